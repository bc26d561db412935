#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""faults.py - each call of daemon, library and tools to libc fails once; see fail.c.

Whatever call fails, the program works or ends with a clear error. It does not hang, is not killed
by a signal, leaves nothing behind, and no other client of the daemon fails. Prints TAP, one test
for each scenario and function. Environment, with defaults:
  EACH=1          how many calls of each call site fail
  SCENARIOS=all   names of scenarios, separated by ";"
  FUNCTIONS=all   names of functions of libc
  SAMPLE=8        scenarios that take long run one of 8 cases; NBAR_SEED selects them
  ONLY="SITE CALL ERROR"   only this case; a failed test prints the settings that repeat it
  V=1             prints what the programs said
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.path.realpath(os.environ.get("BUILD", "build"))
EACH = int(os.environ.get("EACH", "1"))
SAMPLE = int(os.environ.get("SAMPLE", "8"))
SEED = int(os.environ.get("NBAR_SEED", "1"))
LIMIT_S = 120  # time limit of a program; without a failure it ends within a second
FAIL = BUILD + "/fail.so"
CLIENT = BUILD + "/fail-client"
NICD = BUILD + "/nbar-nicd"
NBAR = BUILD + "/nbar"
# Only calls from these files fail: defects in DPDK or in the libraries of an MPI are not ours.
OURS = ("nbar", "libnbar", "fail-client", "libc.so", "libjansson")


class Wrong(Exception):
    """A program has done what it must not do."""


def environment(work, program, **settings):
    env = dict(os.environ, LD_PRELOAD=FAIL, FAIL_FILE=work + "/calls", FAIL_IN=program)
    env.update(settings)
    return env


def run(command, env=None, limit=LIMIT_S):
    """Runs a program. Returns exit status, stdout and stderr; raises Wrong after a hang or a signal, and if processes
    are left."""
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace",
                               start_new_session=True)
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise Wrong(f"{command[0]} hangs; stdout: {out}; stderr: {err}") from None
    if group_lives(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
        raise Wrong(f"{command[0]} leaves processes behind; stderr: {err}")
    if process.returncode < 0 or process.returncode >= 128:
        raise Wrong(f"{command[0]} ended by a signal: {process.returncode}; stderr: {err}")
    return process.returncode, out, err


def members(group):
    """The pids of a process group, without zombies: a container may have no process that reaps orphans."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                state, _, its_group = stat.read().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # the process has ended
        if int(its_group) == group and state not in "ZX":
            yield int(pid)


def group_lives(group):
    """True if a process of the group is still left after a while."""
    for _ in range(1000):
        if not any(members(group)):
            return False
        time.sleep(0.01)
    return True


def until(true, what, limit=LIMIT_S):
    end = time.monotonic() + limit
    while not true():
        if time.monotonic() > end:
            raise Wrong(what)
        time.sleep(0.005)


class Daemon:
    """nbar-nicd with NICs n0 and n1. The default wire is udp."""

    def __init__(self, work, env=None, wire="udp,bind=127.0.0.1:0"):
        self.dir = work + "/run"
        self.out = open(work + "/nicd.out", "w+", encoding="utf-8")
        self.err = open(work + "/nicd.err", "w+", encoding="utf-8")
        nics = []
        for i in range(2):
            nics += ["--nic", f"name=n{i},wire={wire}"]
        self.process = subprocess.Popen(
            [NICD, "--run-dir", self.dir, "--idle", "sleep", "--trace", "64",
             *nics],
            env=env, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err)
        until(lambda: self.ended() or "nic n1 ready" in self.said(self.out) or "NICs are ready" in self.said(self.err),
              "the daemon hangs at its start")

    def ended(self):
        return self.process.poll() is not None

    @staticmethod
    def said(file):
        return os.pread(file.fileno(), 1 << 16, 0).decode(errors="replace")

    def error(self):
        return self.said(self.err)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def masks(self):
        """The signals that each thread blocks; of two threads that block the same, only one."""
        found = set()
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/status"):
            with open(path, encoding="utf-8") as status:
                found.update(line.split()[1] for line in status if line.startswith("SigBlk:"))
        return found

    def all_back(self):
        rc, out, err = run([NBAR, "stat", "--run-dir", self.dir])
        if rc != 0:
            raise Wrong(f"nbar stat: {err}")
        return out.count("ports 0, groups 0") == 2

    def stop(self):
        self.process.terminate()
        try:
            rc = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Wrong("the daemon hangs at its end") from None
        if rc != 0:
            raise Wrong(f"the daemon ended with status {rc}: {self.error()}")
        self.nothing_left()

    def nothing_left(self):
        left = [f for f in os.listdir(self.dir) if f != "nicd.lock"] if os.path.isdir(self.dir) else []
        if left:
            raise Wrong(f"the daemon left {left}; stderr: {self.error()}")

    def kill(self):
        self.process.kill()
        self.process.wait()


def clients(daemon, env=None, nics=("n0", "n1"), options=()):
    return client(dict(env or os.environ, NBAR_RUN_DIR=daemon.dir), nics, options)


def client(env, nics, options=()):
    # Freed blocks in these caches would count as memory in use.
    env["GLIBC_TUNABLES"] = "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0"
    return run([CLIENT, *options, *nics], env)


def clear(text, words):
    """Raises Wrong unless a line of the text begins with the name of the program and continues with a message."""
    if not any(re.match(rf"({words})[^:]*: \S+ \S+", line) for line in text.splitlines()):
        raise Wrong(f"no clear error: {text!r}")


# --- scenarios: each takes a folder, and settings for fail.c; returns what the programs said ------


def of_daemon(work, settings, wire="udp,bind=127.0.0.1:0"):
    """The daemon's calls fail; its clients do not."""
    daemon = Daemon(work, environment(work, "nbar-nicd", **settings), wire)
    try:
        if daemon.ended():
            if daemon.process.returncode not in (1, 2):
                raise Wrong(f"the daemon ended with {daemon.process.returncode}: {daemon.error()}")
            clear(daemon.error(), "nbar-nicd")
            daemon.nothing_left()
            return daemon.error()
        rc, out, err = clients(daemon, options=("-c",))
        said = out + err
        if rc != 0 and "failed: " not in out:
            raise Wrong(f"a client ended with {rc}: {out} {err}")
        rc, out, err = clients(daemon)
        if rc != 0 or "failed: " in out:
            raise Wrong(f"a later client ended with {rc}: {out} {err}; daemon: {daemon.error()}")
        until(daemon.all_back, "ports or groups are not given back")
        until(lambda: daemon.descriptors() <= descriptors_flat(daemon, wire, settings),
              "the daemon keeps descriptors", 20)
        if daemon.masks() != flat.setdefault((wire, "masks"), daemon.masks()):
            raise Wrong(f"the daemon's threads block other signals: {daemon.masks()}")
        daemon.stop()
        return said + daemon.error()
    finally:
        daemon.kill()


flat = {}


def descriptors_flat(daemon, wire, settings):
    """How many descriptors a daemon has open after the same clients if no call fails."""
    if "FAIL_SITE" not in settings:
        flat[wire] = max(flat.get(wire, 0), daemon.descriptors())
    return flat[wire]


def heap_is_flat(name, out, settings):
    """A client has as much memory in the end as if no call had failed."""
    heap = int(re.search(r"^heap: (\d+)", out, re.MULTILINE).group(1))
    if "FAIL_SITE" not in settings:
        flat[name] = max(flat.get(name, 0), heap)
    elif heap > flat[name]:
        raise Wrong(f"the client keeps {heap - flat[name]} bytes: {out}")


def of_library(work, settings, nics=("n0", "n1"), daemon=None, options=()):
    """The calls of a client fail."""
    env = environment(work, "fail-client", **settings)
    if not options:
        env["FAIL_WAIT"] = "1"
    own = None if daemon else Daemon(work)
    try:
        rc, out, err = clients(daemon or own, env, nics, options)
        if rc != 0:
            raise Wrong(f"the client ended with {rc}: {out} {err}")
        heap_is_flat(("heap", *options), out, settings)
        until((daemon or own).all_back, "ports or groups are not given back")
        return out
    finally:
        if own:
            own.stop()


def of_inproc(work, settings):
    """Calls of a client with in-process NICs fail, from the first call on."""
    # A NIC ends a budget after its last port.
    nics = [f"host:wire=udp,bind=127.0.0.{i}:0,budget-ms=500" for i in (1, 2)]
    rc, out, err = client(environment(work, "fail-client", **settings), nics, ("-c",))
    if rc != 0:
        raise Wrong(f"the client ended with {rc}: {out} {err}")
    return out


def tool(work, settings, arguments, daemon=None, results=()):
    """Calls of a tool fail: if the tool succeeds, its results have the same shape as without a failure."""
    tmp = work + "/tmp"
    os.makedirs(tmp, exist_ok=True)
    env = environment(work, "nbar", TMPDIR=tmp, **settings)
    if daemon:
        env["NBAR_RUN_DIR"] = daemon.dir
    rc, out, err = run([NBAR, *arguments], env)
    if os.listdir(tmp) and "cannot remove" not in err:
        raise Wrong(f"nbar left {os.listdir(tmp)}; stderr: {err}")
    if rc != 0:
        clear(err, "nbar")
        return err
    shape = []
    for path in results:
        try:
            text = out if path == "-" else open(path, encoding="utf-8").read()
            shape.append(len(text.splitlines()) if path.endswith("csv") else keys(json.loads(text)))
        except (OSError, ValueError) as why:
            raise Wrong(f"status 0, but {path}: {why}; stderr: {err}") from None
    name = arguments[0]
    if "FAIL_SITE" not in settings:
        flat[name] = shape
    elif shape != flat[name]:
        raise Wrong(f"status 0, but the results are incomplete: {shape}, not {flat[name]}; stderr: {err}")
    return err


def keys(value, path=""):
    """The paths of all members of a JSON text, except notes, which depend on the load of the machine."""
    if isinstance(value, dict):
        return sorted(set(sum((keys(v, path + "." + k) for k, v in value.items() if k != "notes"), [path])))
    if isinstance(value, list):
        return sorted(set(sum((keys(v, path + "[]") for v in value), [path])))
    return [path]


def of_bench(work, settings):
    results = [work + "/bench.json", work + "/bench.csv"]
    return tool(work, settings, ["bench", "--nodes", "2", "--where", "nic,host", "--alg", "pairwise", "-i", "20",
                                 "-x", "5", "--launches", "1", "--json", results[0], "--csv", results[1]],
                results=results)


def of_stat(work, settings, daemon=None):
    own = None if daemon else Daemon(work)
    try:
        return tool(work, settings, ["stat", "--json"], daemon or own, results=["-"])
    finally:
        if own:
            own.stop()


SCENARIOS = {
    "daemon": of_daemon,
    "daemon, wire ring": lambda work, settings: of_daemon(work, settings, "ring"),
    "library": of_library,
    "library, from the first call": lambda work, settings, **how: of_library(work, settings, options=("-c",), **how),
    "in-process NIC": of_inproc,
    "nbar bench": of_bench,
    "nbar stat": of_stat,
}
LONG = {"daemon, wire ring", "nbar bench"}
SHARED = {"library", "library, from the first call", "nbar stat"}  # the cases of a scenario share a daemon


def sites(name, scenario):
    """Runs a scenario without a failure. Returns its calls: (function, number of errors, site, number of the call)."""
    work = tempfile.mkdtemp(prefix="nbar-faults.")
    try:
        scenario(work, {"FAIL_EACH": str(EACH)})
        with open(work + "/calls.sites", encoding="utf-8") as file:
            lines = {line for line in file if line.split("@")[1].startswith(OURS)}
    except Wrong as why:
        sys.exit(f"Bail out! {name}: without a failure: {why}")
    finally:
        shutil.rmtree(work)
    return sorted((f, int(n), s, int(c)) for f, n, s, c in map(str.split, lines))


def one(scenario, daemon, site, call, error):
    """Runs one case. Returns what the programs said, and whether the call has failed."""
    work = tempfile.mkdtemp(prefix="nbar-faults.")
    try:
        how = {"daemon": daemon} if daemon else {}
        said = scenario(work, {"FAIL_SITE": site, "FAIL_CALL": str(call), "FAIL_ERROR": str(error)}, **how)
        return said, os.path.exists(work + "/calls.fired")
    finally:
        shutil.rmtree(work)


def sample(cases):
    """Selects one of SAMPLE cases, by the seed."""
    every = [(function, case) for function in sorted(cases) for case in cases[function]]
    chosen = {}
    for function, case in every[SEED % SAMPLE::SAMPLE]:
        chosen.setdefault(function, []).append(case)
    return chosen


def main():
    if os.environ.get("SAN"):
        print("ok 1 - calls that fail # SKIP a sanitizer has its own malloc\n1..1")
        sys.exit(0)
    wanted = os.environ.get("SCENARIOS", "").split(";") if os.environ.get("SCENARIOS") else SCENARIOS
    functions = os.environ.get("FUNCTIONS", "").split()
    only = os.environ.get("ONLY", "").split()
    count = bad = 0
    for name in wanted:
        scenario = SCENARIOS[name]
        cases = {}
        for function, errors, site, call in sites(name, scenario):
            if not functions or function in functions:
                cases.setdefault(function, []).extend((site, call, e) for e in range(errors))
        if name in LONG and not functions:
            cases = sample(cases)
        if only:
            cases = {only[0].split("@")[0]: [(only[0], int(only[1]), int(only[2]))]}
        work = tempfile.mkdtemp(prefix="nbar-faults.")
        daemon = Daemon(work) if name in SHARED else None
        bitten = 0
        for function, calls in sorted(cases.items()):
            fired = 0
            failures = []
            for site, call, error in calls:
                try:
                    said, bit = one(scenario, daemon, site, call, error)
                    fired += bit
                    if os.environ.get("V"):
                        print(f"# {name}: {site} {call} {error}:", said.strip().replace("\n", "\n#   "))
                except Wrong as why:
                    failures.append(f'SCENARIOS="{name}" ONLY="{site} {call} {error}": {why}')
            count += 1
            for text in failures:
                print("# " + text.replace("\n", "\n#   "))
            bad += bool(failures)
            print(f"{'not ok' if failures else 'ok'} {count} - {name}: {function}: {len(calls)} cases, "
                  f"{fired} have failed", flush=True)
            bitten += fired
        count += 1
        bad += bitten == 0
        print(f"{'ok' if bitten else 'not ok'} {count} - {name}: {bitten} calls have failed", flush=True)
        if daemon:
            daemon.stop()
        shutil.rmtree(work)
    print(f"1..{count}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
