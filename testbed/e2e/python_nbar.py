# SPDX-License-Identifier: BSD-3-Clause
"""Tests of hostlib/python/nbar.py: with a real daemon, with members in separate processes, and with
wrong calls. python.sh starts this program and the daemon, and sets PYTHONPATH, NBAR_RUN_DIR,
NBAR_LIBRARY and BUILD. It prints TAP.

`python_nbar.py member NIC FOLDER RANK SIZE ROUNDS` is a member: it runs ROUNDS barriers, checks that it
leaves none before all have entered it, then runs one for each line of its standard input.
"""
import contextlib
import errno
import gc
import json
import mmap
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

import nbar

BUILD = Path(os.environ["BUILD"])
HELLO = Path(__file__).parents[2] / "hostlib/examples/hello.py"
IN_PROCESS = "host:wire=udp,bind=127.0.0.1:0"
PATIENCE = 120  # seconds; after this time a process counts as hanging


def member(nic: str, path: str, rank: int, size: int, rounds: int) -> int:
    """Runs ROUNDS barriers, then one for each line of standard input."""
    with open(Path(path, "entered"), "r+b") as file, mmap.mmap(file.fileno(), 4096) as memory:
        entered = memoryview(memory).cast("I")
        with nbar.open(nic) as port, port.group(rank, size, nbar.folder(path, rank, size)) as group:
            early = 0
            for i in range(1, rounds + 1):
                entered[rank] = i
                group.wait(group.post(), PATIENCE)
                early += any(entered[other] < i for other in range(size))
            print(f"rank {rank}: {rounds} barriers, {early} early", flush=True)
            for _ in sys.stdin:
                group.barrier(PATIENCE)
        entered.release()
    return early


class Members:
    """Members in separate processes, which end with the `with` statement."""

    def __init__(self, nics, rounds=0, here=()):
        self.folder = tempfile.TemporaryDirectory()
        Path(self.folder.name, "entered").write_bytes(bytes(4096))
        self.size = len(nics)
        self.process = [subprocess.Popen(
            [sys.executable, "-X", "dev", __file__, "member", nic, self.folder.name, str(rank), str(self.size),
             str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                        for rank, nic in enumerate(nics) if rank not in here]

    def exchange(self, rank):
        """The exchange of the member that is in this process."""
        return nbar.folder(self.folder.name, rank, self.size)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.process:
            process.kill()
            process.communicate(timeout=PATIENCE)
        self.folder.cleanup()


class Both(threading.Thread):
    """An exchange between two groups of this process: rank 1 is in this thread, rank 0 in the caller."""

    def __init__(self, port, **attr):
        super().__init__()
        self.port, self.attr, self.address, self.group = port, attr, [None, None], None
        self.both = threading.Barrier(2)
        self.start()

    def exchange(self, rank):
        def exchange(mine):
            self.address[rank] = mine
            self.both.wait(PATIENCE)
            return self.address
        return exchange

    def run(self):
        self.group = self.port.group(1, 2, self.exchange(1), **self.attr)


class Test(unittest.TestCase):
    """All tests use the same daemon, with NICs n0 and n1."""

    def refused(self, code, words, function, *args, **options):
        """The call raises OSError with this errno, and with these words in its text. Returns the text."""
        with self.assertRaises(OSError) as caught:
            function(*args, **options)
        self.assertEqual(caught.exception.errno, code, caught.exception)
        self.assertIn(words, str(caught.exception))
        return str(caught.exception)

    def pair(self, port, **attr):
        """Two members of a group, on a port, in this process."""
        other = Both(port, **attr)
        group = port.group(0, 2, other.exchange(0), **attr)
        other.join(PATIENCE)
        self.addCleanup(other.group.close)
        self.addCleanup(group.close)
        return group, other.group

    def port(self, nic="n0"):
        """A port that is closed at the end of the test."""
        port = nbar.open(nic)
        self.addCleanup(port.close)
        return port

    def check_barriers(self, nics):
        with Members(nics, rounds=300) as members:
            for rank, process in enumerate(members.process):
                said, _ = process.communicate(timeout=PATIENCE)
                self.assertEqual((said, process.returncode), (f"rank {rank}: 300 barriers, 0 early\n", 0))

    def test_barriers(self):
        """300 barriers of processes; none completes early"""
        self.check_barriers(["n0", "n1"])

    def test_barriers_in_process(self):
        """300 barriers over in-process NICs; none completes early"""
        self.check_barriers([IN_PROCESS, IN_PROCESS])

    def test_example(self):
        """the example"""
        with tempfile.TemporaryDirectory() as path:
            both = [subprocess.Popen([sys.executable, HELLO, f"n{rank}", path, str(rank), "2"], text=True,
                                     stdout=subprocess.PIPE) for rank in range(2)]
            said = [process.communicate(timeout=PATIENCE)[0] for process in both]
        self.assertEqual(said, [f"rank {rank} of 2: hello after 1000 barriers, and 7.485 by the way\n"
                                for rank in range(2)])

    def test_phases(self):
        """post returns at once, and test is true once the others have come"""
        one, two = self.pair(self.port(), alg="pairwise", tag=7)
        for _ in range(100):
            ticket = one.post()
            self.assertFalse(one.test(ticket))
            two.post()
            one.wait(ticket, PATIENCE)
            self.assertTrue(one.test(ticket))
        self.assertEqual(one.missing(), [])

    def test_late(self):
        """a time limit names the rank that is missing, and the barrier goes on"""
        with Members(["n0", "n1"], here=(0,)) as members, self.port().group(0, 2, members.exchange(0)) as group:
            ticket, text, missing = group.post(), "", []
            for _ in range(1000):  # until the NIC has asked the other NIC
                text, missing = self.refused(errno.ETIME, "", group.wait, ticket, 0.1), group.missing()
                if "rank 1 (" in text and missing:
                    break
            self.assertIn("rank 1 (", text)
            self.assertEqual(missing, [1])
            self.assertRaises(TimeoutError, group.wait, ticket, 0)
            members.process[0].stdin.write("barrier\n")
            members.process[0].stdin.flush()
            group.wait(ticket, PATIENCE)

    def test_member_dies(self):
        """a member is killed: the other's error names its rank"""
        with Members(["n0", "n1"], here=(0,)) as members, self.port().group(0, 2, members.exchange(0)) as group:
            ticket = group.post()
            members.process[0].kill()
            self.refused(errno.ECONNRESET, "rank 1", group.wait, ticket, PATIENCE)
            self.refused(errno.ECONNRESET, "rank 1", group.barrier)

    def test_wrong_nic(self):
        """a NIC that does not exist, and invalid names"""
        self.refused(errno.ENOENT, "nbar-nicd --nic name=n9", nbar.open, "n9")
        self.refused(errno.ECONNREFUSED, "nobody listens", nbar.open, Path(__file__).resolve())
        self.refused(errno.EINVAL, "is not a NIC name", nbar.open, "")
        self.refused(errno.EINVAL, "", nbar.open, "n" * 100)
        self.refused(errno.EINVAL, "", nbar.open, "host:wire=pigeon")
        self.assertRaises(ValueError, nbar.open, "n0\0more")
        self.assertRaises(TypeError, nbar.open, 5)

    def test_closed(self):
        """closed objects are refused by all calls, in any order; a second close has no effect"""
        port = self.port()
        one, two = self.pair(port)
        one.close()
        one.close()
        port.close()
        port.close()
        for group in one, two:
            for call in group.post, group.barrier, group.missing, group.abort:
                self.refused(errno.EBADF, "this group is closed", call)
            for call in group.test, group.wait:
                self.refused(errno.EBADF, "this group is closed", call, 1)
        self.refused(errno.EBADF, "this port is closed", port.group, 0, 1, lambda mine: [mine])
        with self.port() as again, again.group(0, 1, lambda mine: [mine]) as alone:
            alone.barrier(PATIENCE)

    def test_close_in_use(self):
        """a group that a thread waits for cannot be closed; abort ends the wait"""
        one, two = self.pair(self.port())
        ticket, caught = one.post(), []

        def waits():
            try:
                one.wait(ticket)
            except OSError as error:
                caught.append(error.errno)
        thread = threading.Thread(target=waits)
        thread.start()
        while not one._users:
            time.sleep(0.001)
        self.refused(errno.EBUSY, "abort the group first", one.close)
        self.refused(errno.EBUSY, "another thread uses this port", one._owner.close)
        one.abort()
        thread.join(PATIENCE)
        self.assertEqual(caught, [errno.ECANCELED])
        with contextlib.suppress(OSError):  # rank 0 has posted this barrier, so it may complete
            two.barrier()
        self.refused(errno.ECANCELED, "rank 0", two.barrier)

    def test_not_closed(self):
        """objects that the program does not close are closed with a warning"""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one, two = self.pair(nbar.open("n0"))
            self.doCleanups()
            del one, two
            port = nbar.open("n0")
            port.itself = port
            del port
            gc.collect()
        self.assertEqual([str(one.message) for one in caught], ["a port was not closed"] * 2)

    def test_garbage(self):
        """invalid addresses, numbers and names"""
        port = self.port()
        for other in [[], [b""] * 2, [os.urandom(95)] * 2, [os.urandom(96)] * 3]:
            with self.assertRaises(ValueError):
                port.group(0, 2, lambda mine, other=other: other)
        for other in os.urandom(96), bytes(96):
            self.refused(errno.EPROTO, "rank 1", port.group, 0, 2, lambda mine, other=other: [mine, other])
        for rank, size in (-1, 2), (0, -1), (1 << 32, 2), (0, 1 << 64):
            self.assertRaises(ValueError, port.group, rank, size, lambda mine: [mine])
        for rank in "0", 0.5, None:
            self.assertRaises(TypeError, port.group, rank, 1, lambda mine: [mine])
        self.refused(errno.ERANGE, "rank 2", port.group, 2, 2, lambda mine: [mine])
        self.refused(errno.EINVAL, "senseless", port.group, 0, 1, lambda mine: [mine], alg="senseless")
        with port.group(0, 1, lambda mine: [mine]) as group:
            self.refused(errno.EINVAL, "has not been posted", group.test, 5)
            self.refused(errno.EINVAL, "has not been posted", group.wait, 5)
            self.assertRaises(ValueError, group.wait, -1)
            self.assertRaises(ValueError, group.wait, 1, float("nan"))

    def test_folder(self):
        """a rank that never comes to the folder is named; a second use is refused"""
        with tempfile.TemporaryDirectory() as path:
            self.refused(errno.ETIME, "rank 1", self.port().group, 0, 2, nbar.folder(path, 0, 2, timeout=0))
        self.refused(errno.ENOENT, path, self.port().group, 0, 2, nbar.folder(path, 0, 2))

    def test_fork(self):
        """a child cannot use a port of its parent, and does not disturb it"""
        group, other = self.pair(self.port())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            try:
                group.barrier()
            except OSError as error:
                os._exit(7 if "before a fork" in str(error) else 1)
            os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        other.post()
        group.barrier(PATIENCE)

    def test_no_library(self):
        """without libnbar, the message says what to install"""
        code = "import nbar\ntry: nbar.open()\nexcept OSError as e: print(e)"
        said = subprocess.run([sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, check=True,
                              env={**os.environ, "NBAR_LIBRARY": "/nonexistent.so"}).stdout
        self.assertIn("install the package libnbar0", said)

    def test_run(self):
        """results of experiments"""
        words = "bench", "--nodes", "2", "-i", "50", "-x", "5", "--where", "nic,host"
        rows = nbar.run(*words, program=BUILD / "nbar")
        self.assertEqual([(row["nodes"], row["where"]) for row in rows], [(2, "nic"), (2, "host")])
        self.assertTrue(all(row["mean"] > 0 for row in rows))
        self.assertEqual(rows.about["settings"]["iterations"], 50)
        with self.assertRaises(subprocess.CalledProcessError):
            nbar.run("bench", "--nodes", "none", program=BUILD / "nbar")
        self.assertRaises(FileNotFoundError, nbar.run, "bench", program="/nonexistent/nbar")

    def test_load(self):
        """results from a file, and files without results"""
        good = {"columns": [{"name": "nodes", "unit": ""}, {"name": "mean", "unit": "us"}],
                "rows": [[2, 4.5], [4, None]], "notes": ["a"]}
        with tempfile.TemporaryDirectory() as path:
            file = Path(path, "result.json")
            file.write_text(json.dumps(good), encoding="utf-8")
            rows = nbar.load(file)
            self.assertEqual(rows, [{"nodes": 2, "mean": 4.5}, {"nodes": 4, "mean": None}])
            self.assertEqual(rows.about["notes"], ["a"])
            for bad in b"", b"{", b"[]", b"7", b"{}", b'{"columns": 5, "rows": []}', b"\xff\xfe\x00", \
                    b'{"columns": [], "rows": []}', b'{"columns": [{"name": 1}], "rows": []}', \
                    b'{"columns": [{"name": "a"}], "rows": [[1, 2]]}', b'{"columns": [{"name": "a"}], "rows": [7]}', \
                    b'{"columns": [{"name": "a"}], "rows": [[[]]]}', b"[" * 100000, os.urandom(100):
                file.write_bytes(bad)
                with self.assertRaisesRegex(ValueError, "result.json has no results"):
                    nbar.load(file)
            self.assertRaises(FileNotFoundError, nbar.load, "/nonexistent.json")

    def test_frame(self):
        """results as a table of pandas"""
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("there is no pandas: apt-get install python3-pandas")
        frame = nbar.Results('{"columns": [{"name": "mean", "unit": "us"}], "rows": [[1.5], [2.5]]}', "a").frame()
        self.assertEqual(frame["mean"].sum(), 4)
        self.assertEqual(frame.attrs["units"], {"mean": "us"})


class Tap(unittest.TestResult):
    """Prints a line of TAP for each test, numbered after `first` earlier tests."""

    def __init__(self, first):
        super().__init__()
        self.first = first

    def said(self, word, test, tail=""):
        print(f"{word} {self.first + self.testsRun} - nbar.py: {test.shortDescription() or test}{tail}", flush=True)

    def addSuccess(self, test):
        self.said("ok", test)

    def addSkip(self, test, reason):
        self.said("ok", test, f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        print("# " + self.failures[-1][1].replace("\n", "\n# "))
        self.said("not ok", test)

    def addError(self, test, err):
        self.addFailure(test, err)


if __name__ == "__main__":
    if sys.argv[1:2] == ["member"]:
        sys.exit(member(*sys.argv[2:4], *map(int, sys.argv[4:])))
    result = Tap(int(sys.argv[1]))
    unittest.defaultTestLoader.loadTestsFromTestCase(Test).run(result)
    print(f"# status {int(not result.wasSuccessful())}")
    sys.exit(not result.wasSuccessful())
