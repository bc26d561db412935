#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""probes.py PROGRAM PID COMMAND...: attaches to the USDT probes of the provider nbar in a process,
as perf does, and runs COMMAND again until each of the probes doorbell and completion has fired.
Called by probes.sh. Exit status 77 where the kernel permits no tracer."""

import ctypes
import errno
import os
import re
import struct
import subprocess
import sys

SYS_PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
UPROBE = "/sys/bus/event_source/devices/uprobe"
NAMES = ("doorbell", "completion", "late", "silent")


class Attr(ctypes.Structure):
    """The first fields of the kernel's struct perf_event_attr (PERF_ATTR_SIZE_VER1)."""

    _fields_ = [
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample", ctypes.c_uint64 * 3),
        ("flags", ctypes.c_uint64),
        ("wakeup", ctypes.c_uint32),
        ("bp_type", ctypes.c_uint32),
        ("config1", ctypes.c_uint64),
        ("config2", ctypes.c_uint64),
    ]


def skip(why):
    print(why)
    sys.exit(77)


def segments(program):
    """Returns the mapped parts of the file: address, offset in the file, size."""
    text = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    for line in re.findall(r"^ +LOAD +(\w+) +(\w+) +\w+ +(\w+)", text, re.M):
        offset, address, size = (int(x, 16) for x in line)
        yield address, offset, size


def probes(program):
    """Returns name, file offset, and file offset of the semaphore of each probe."""
    parts = list(segments(program))

    def in_file(address):
        return next(address - a + o for a, o, size in parts if a <= address < a + size)

    text = subprocess.run(["readelf", "-nW", program], capture_output=True, text=True, check=True).stdout
    form = r"Provider: nbar\s+Name: (\w+)\s+Location: (\w+), Base: \w+, Semaphore: (\w+)"
    for name, location, semaphore in re.findall(form, text):
        yield name, in_file(int(location, 16)), in_file(int(semaphore, 16))


def attach(program, pid, location, semaphore):
    """Returns a descriptor that counts how often the process executes the location."""
    libc = ctypes.CDLL(None, use_errno=True)
    path = ctypes.create_string_buffer(os.fsencode(os.path.realpath(program)))
    attr = Attr(
        type=int(open(UPROBE + "/type").read()),
        size=ctypes.sizeof(Attr),
        config=semaphore << 32,
        config1=ctypes.addressof(path),
        config2=location,
    )
    fd = libc.syscall(SYS_PERF_EVENT_OPEN[os.uname().machine], ctypes.byref(attr), pid, -1, -1, 0)
    if fd < 0:
        error = ctypes.get_errno()
        if error in (errno.EACCES, errno.EPERM, errno.ENOSYS):
            skip(f"perf_event_open: {os.strerror(error)}")
        raise OSError(error, os.strerror(error))
    return fd


def main():
    program, pid, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    if not os.path.exists(UPROBE) or os.uname().machine not in SYS_PERF_EVENT_OPEN:
        skip("this kernel has no uprobes")
    found = sorted(probes(program))
    if {name for name, _, _ in found} != set(NAMES):
        raise SystemExit(f"the probes are {found}")
    counters = [(name, attach(program, pid, at, semaphore)) for name, at, semaphore in found]
    # The daemon looks for tracers four times a second, so the first barriers may be missed.
    for _ in range(100):
        subprocess.run(command, check=True)
        counts = dict.fromkeys(NAMES, 0)
        for name, fd in counters:
            counts[name] += struct.unpack("q", os.read(fd, 8))[0]
        if counts["doorbell"] and counts["completion"]:
            break
    print(counts)
    if not (counts["doorbell"] and counts["completion"]) or counts["silent"]:
        raise SystemExit("wrong counts")


main()
