# SPDX-License-Identifier: BSD-3-Clause
"""Barriers that a NIC runs: libnbar for Python, and the results of the command nbar.

    with nbar.open("n0") as port, port.group(rank, size, nbar.folder("/tmp/meet", rank, size)) as group:
        ticket = group.post()           # one store: the NICs do the rest
        compute()
        group.wait(ticket)
    nbar.run("bench", "--nodes", "2,4").frame()

A call that fails raises OSError: errno is that of nbar.h, and the text is that of nbar_error().
What nbar.h says of threads holds here; close() while another thread waits raises EBUSY.
"""
from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import json
import operator
import os
import subprocess
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

Exchange = Callable[[bytes], Sequence[bytes]]  # own endpoint address to all: mpi4py's Comm.allgather
_ENDPOINT_SIZE = 96
_SLICE_NS = 100_000_000  # of a wait in C: between two of them Python handles signals, as of Ctrl-C


class _Attr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("struct_size", "rank", "size", "tag")] + [
        ("alg", ctypes.c_char_p), ("plan", ctypes.c_void_p), ("plan_length", ctypes.c_size_t)]


class _Library(ctypes.CDLL):
    """libnbar. Python's other threads run during each call."""

    def __init__(self) -> None:
        path = os.environ.get("NBAR_LIBRARY", "libnbar.so.0")
        try:
            super().__init__(path)
        except OSError as error:
            raise OSError(errno.ELIBACC, f"no libnbar: {error}; install the package libnbar0, or set "
                          "NBAR_LIBRARY to the path of libnbar.so.0") from None
        text, pointer, word, ns = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
        for function, *types in (
                (self.nbar_open, text, pointer), (self.nbar_close, pointer),
                (self.nbar_group_open, pointer, pointer, pointer, pointer),
                (self.nbar_group_connect, pointer, text), (self.nbar_group_close, pointer),
                (self.nbar_group_abort, pointer), (self.nbar_post, pointer, pointer),
                (self.nbar_test, pointer, word), (self.nbar_wait, pointer, word, ns),
                (self.nbar_missing, pointer, pointer, word)):
            function.argtypes = types
        self.nbar_error.restype = text

    def check(self, rc: int) -> int:
        """Raises the error of a call that has just returned rc in this thread."""
        if rc < 0:
            raise (TimeoutError if rc == -errno.ETIME else OSError)(-rc, os.fsdecode(self.nbar_error()))
        return rc


_lib = functools.lru_cache(maxsize=None)(_Library)  # loaded by the first call


def _word(name: str, value: int) -> int:
    if not 0 <= operator.index(value) < 1 << 32:
        raise ValueError(f"{name} is {value}: it must be from 0 to {(1 << 32) - 1}")
    return operator.index(value)


def _text(name: str, value: str | Path | None) -> bytes | None:
    if value is not None and b"\0" in os.fsencode(value):
        raise ValueError(f"{name} has a zero byte: {value!r}")
    return None if value is None else os.fsencode(value)


class _Handle(contextlib.AbstractContextManager):
    """A port or a group: open until close(), or until the end of its `with`."""

    def __init__(self, what: str, owner: _Handle | None = None) -> None:
        self._what, self._owner, self._users, self._value = what, owner, 0, None
        # RLock: the garbage collector may close a group while its thread holds the lock.
        self._lock = owner._lock if owner else threading.RLock()

    @contextlib.contextmanager
    def _use(self) -> Iterator[int]:
        """For a call of the library: during the call, nobody may close the handle."""
        handles = [self, self._owner] if self._owner else [self]
        with self._lock:
            if any(handle._value is None for handle in handles):
                raise OSError(errno.EBADF, f"this {self._what} is closed")
            for handle in handles:
                handle._users += 1
        try:
            yield self._value
        finally:
            with self._lock:
                for handle in handles:
                    handle._users -= 1

    def _call(self, function: str, *words: Any) -> int:
        with self._use() as value:
            return _lib().check(getattr(_lib(), function)(value, *words))

    def close(self) -> None:
        """Closes the handle; a second call does nothing. Waiting members of a group get an error."""
        with self._lock:
            if self._users:
                raise OSError(errno.EBUSY, f"another thread uses this {self._what}: abort the group first")
            value, self._value = self._value, None
            if value is not None and (not self._owner or self._owner._value is not None):
                (_lib().nbar_group_close if self._owner else _lib().nbar_close)(value)

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_value", None) is not None:
            warnings.warn(f"a {self._what} was not closed", ResourceWarning, source=self)
            self.close()


class Port(_Handle):
    """A port of a NIC. close() closes its groups, too."""

    def __init__(self, nic: str | Path | None = None) -> None:
        super().__init__("port")
        out = ctypes.c_void_p()
        _lib().check(_lib().nbar_open(_text("nic", nic), ctypes.byref(out)))
        self._value = out.value

    def group(self, rank: int, size: int, exchange: Exchange, **attr: Any) -> Group:
        """Joins a group as member `rank` of `size`, and connects it. attr: alg="tree:4", tag=7."""
        return Group(self, rank, size, exchange, **attr)


class Group(_Handle):
    """A member of a group. One thread at a time posts; any number may test or wait."""

    def __init__(self, port: Port, rank: int, size: int, exchange: Exchange, *,
                 alg: str | None = None, tag: int = 0) -> None:
        super().__init__("group", port)
        self.rank, self.size = _word("rank", rank), _word("size", size)
        attr = _Attr(ctypes.sizeof(_Attr), self.rank, self.size, _word("tag", tag), _text("alg", alg))
        out, mine = ctypes.c_void_p(), ctypes.create_string_buffer(_ENDPOINT_SIZE)
        port._call("nbar_group_open", ctypes.byref(attr), ctypes.byref(out), mine)
        self._value = out.value
        try:
            every = [bytes(one) for one in exchange(mine.raw)]
            if [len(one) for one in every] != [_ENDPOINT_SIZE] * self.size:
                raise ValueError(f"exchange() must return {size} addresses of {_ENDPOINT_SIZE} bytes each")
            self._call("nbar_group_connect", b"".join(every))
        except BaseException:
            self.close()
            raise

    def post(self) -> int:
        """Arrives: posts the next barrier and returns its ticket at once."""
        ticket = ctypes.c_uint32()
        self._call("nbar_post", ctypes.byref(ticket))
        return ticket.value

    def test(self, ticket: int) -> bool:
        """True: the barrier of this ticket is complete; False: not yet."""
        return self._call("nbar_test", _word("ticket", ticket)) == 1

    def wait(self, ticket: int, timeout: float | None = None) -> None:
        """Waits for a barrier. After `timeout` seconds: TimeoutError, whose text names the ranks
        that are missing; the barrier stays posted. None: waits without a limit; Ctrl-C ends it."""
        left, ticket = None if timeout is None else max(0, int(timeout * 1e9)), _word("ticket", ticket)
        with self._use() as value:
            while True:
                now = _SLICE_NS if left is None else min(_SLICE_NS, left)
                rc = _lib().nbar_wait(value, ticket, now)
                left = left and left - now
                if rc != -errno.ETIME or left == 0:
                    _lib().check(rc)
                    return

    def barrier(self, timeout: float | None = None) -> None:
        """post(), then wait(). After TimeoutError the barrier is still posted."""
        self.wait(self.post(), timeout)

    def missing(self) -> list[int]:
        """Ranks that hold up the barrier under way, or that broke it, as far as the NIC knows."""
        ranks = (ctypes.c_uint32 * 64)()
        return ranks[:self._call("nbar_missing", ranks, len(ranks))]

    def abort(self) -> None:
        """Ends the group for all members; threads that wait for it get an error. Any thread."""
        self._call("nbar_group_abort")


open = Port  # open("n0"), open("host:wire=udp"), open(PATH of a control socket); open(): $NBAR_NIC, or n0


def folder(path: str | Path, rank: int, size: int, timeout: float = 60) -> Exchange:
    """An exchange through a folder that all ranks see. It is empty before, and used once."""
    def exchange(mine: bytes) -> list[bytes]:
        part, end, every = Path(path, f"rank-{rank}.new"), time.monotonic() + timeout, []
        part.write_bytes(mine)
        part.rename(part.with_suffix(""))  # nobody reads half an address
        while len(every) < size:
            try:
                every.append(Path(path, f"rank-{len(every)}").read_bytes())
            except FileNotFoundError:
                if time.monotonic() >= end:
                    raise TimeoutError(errno.ETIME, f"rank {len(every)} has put no endpoint address "
                                       f"into {path} for {timeout} s") from None
                time.sleep(0.001)
        return every
    return exchange


class Results(list):
    """Rows of an experiment, a dict each; `about` has the rest: machine, settings, columns, notes."""

    def __init__(self, text: str | bytes, source: str) -> None:
        try:
            self.about: dict[str, Any] = json.loads(text)
            names = [column["name"] for column in self.about["columns"]]
            if not names or not all(isinstance(name, str) for name in names):
                raise ValueError("a column has no name")
            for row in self.about["rows"]:
                if not isinstance(row, list) or len(row) != len(names) or any(isinstance(v, (list, dict)) for v in row):
                    raise ValueError(f"a row has not one value for each of the {len(names)} columns")
            super().__init__(dict(zip(names, row)) for row in self.about.pop("rows"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{source} has no results as nbar's --json writes them: {error!r}") from None

    def frame(self) -> Any:
        """The same as a pandas.DataFrame; attrs["units"] has the unit of each column."""
        import pandas  # python3-pandas; all else here works without it
        units = {column["name"]: column.get("unit", "") for column in self.about["columns"]}
        frame = pandas.DataFrame(list(self), columns=list(units))
        frame.attrs["units"] = units
        return frame


def load(path: str | Path) -> Results:
    """Reads a file that an experiment of the command nbar wrote with --json FILE."""
    return Results(Path(path).read_bytes(), os.fspath(path))


def run(*words: str, program: str | Path = "nbar") -> Results:
    """Runs an experiment: run("sweep", "granularity", program="nbar-lab"). Its messages go to stderr."""
    done = subprocess.run([program, *words, "--json", "-"], stdout=subprocess.PIPE, check=True)
    return Results(done.stdout, " ".join((Path(program).name, *words)))
