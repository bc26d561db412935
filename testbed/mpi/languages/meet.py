# SPDX-License-Identifier: BSD-3-Clause
"""meet.py - barriers of mpi4py: no rank leaves a barrier before the last rank has entered it."""
import time

from mpi4py import MPI

ROUNDS = 100


def meet(barrier):
    """Returns how many barriers a rank left too early."""
    times = []
    for _ in range(ROUNDS):
        entered = time.monotonic_ns()
        barrier()
        times.append((entered, time.monotonic_ns()))
    every = MPI.COMM_WORLD.allgather(times)
    return sum(min(rank[i][1] for rank in every) < max(rank[i][0] for rank in every) for i in range(ROUNDS))


early = meet(MPI.COMM_WORLD.Barrier) + meet(lambda: MPI.COMM_WORLD.Ibarrier().Wait())
print(f"python rank {MPI.COMM_WORLD.rank}: {early} early")
