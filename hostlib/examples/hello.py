# SPDX-License-Identifier: BSD-3-Clause
"""hello.py - processes that meet in a barrier, and compute while the NICs run it.

Usage: python3 hello.py NIC FOLDER RANK SIZE, once for each rank from 0 to SIZE - 1. FOLDER is an
empty folder that all processes see: they exchange their endpoint addresses in it.
"""
import sys

import nbar

nic, path, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
total = 0.0
with nbar.open(nic) as port, port.group(rank, size, nbar.folder(path, rank, size)) as group:
    for i in range(1, 1001):
        ticket = group.post()
        total += 1 / i
        group.wait(ticket)
print(f"rank {rank} of {size}: hello after 1000 barriers, and {total:.3f} by the way")
