# SPDX-License-Identifier: BSD-3-Clause
"""The experiments of `nbar-lab report` in the order of the page: commands, figures, published points.

commands has the command by default, with --quick and with --thorough (a missing one is that by
default), and the estimated seconds on two cores. No command is the beginning of another command.
measured is the column whose interval over the repetitions is in the columns low and high. Of the rows
that have the values `where`, the headline compares two at the greatest `at`, first by its first column.
"""


def lines(title, x, y, *series, log="", only=None):
    """The first series gives a line its colour, the second its dashes; log: axes with a logarithmic scale.
    only: rows that have this value in this column."""
    return {"kind": "lines", "title": title, "x": x, "y": y, "series": series, "log": log, "only": only}


def bars(title, x, y, *series):
    return {**lines(title, x, y, *series), "kind": "bars"}


def heat(title, x, y, value, only=None):
    return {**lines(title, x, y, only=only), "kind": "heat", "value": value}


def headline(text, column, new, base, at=(), where=(), less=False):
    """base / new of the measured column, or with less base - new; new and base: values in `column`."""
    return {"text": text, "column": column, "new": new, "base": base, "at": at, "where": dict(where), "less": less}


PROFILE = "cluster.profile"  # a file in the folder of the report, the last argument of `profile` and `predict`
MPI_PLANS = "p2p:pairwise,p2p:dissemination:1"

EXPERIMENTS = {
    "bench": {
        "title": "Latency over size",
        "text": "Mean time of one barrier, run by the NICs and run by the hosts over the same NICs, with the same plans.",
        "commands": [("nbar bench --nodes 2,3,4,5,8,12,16,24,32 --alg all -i 1000 -x 100 --launches 3", 240),
                     ("nbar bench --nodes 2,4,7,8,16 --alg pairwise,dissemination:3 -i 200 -x 20 --launches 2 --drivers 1",
                      15),
                     ("nbar bench --nodes 2-32 --alg all -i 1000 -x 100 --launches 5", 1500)],
        "measured": "mean",
        "headline": headline("times as long if the hosts run the barrier", "where", "nic", "host", ["nodes"],
                             {"alg": "pairwise"}),
        "panels": [lines("Mean time of a barrier", "nodes", "mean", "alg", "where", log="xy"),
                   lines("Host-based / NIC-based", "nodes", "speedup", "alg", log="x")],
    },
    "granularity": {
        "title": "Granularity",
        "text": "Loops of compute + barrier. Where the last messages of a barrier are still leaving, computing may "
                "cost nothing: a flat spot.",
        "commands": [("nbar-lab sweep granularity --compute 0.5-130 --points 24 --launches 3", 60),
                     ("nbar-lab sweep granularity --compute 0.5-64 --points 8 -i 200 -x 20 --launches 3", 10),
                     ("nbar-lab sweep granularity --compute 0.5-130 --points 24 --launches 6", 120)],
        "measured": "loop",
        "panels": [lines("Time of a loop, over the compute in it", "compute", "loop", "where", "alg", log="xy")],
    },
    "efficiency": {
        "title": "Least compute for an efficiency",
        "text": "Efficiency is compute / (time of a loop of compute + barrier). How much must a program compute "
                "between two barriers to reach an efficiency?",
        "commands": [("nbar-lab sweep efficiency --launches 3", 150),
                     ("nbar-lab sweep efficiency --nodes 8 --efficiency 0.50,0.90 -i 200 -x 20 --launches 2", 20),
                     ("nbar-lab sweep efficiency --launches 6", 300)],
        "measured": "compute",
        "headline": headline("times as much compute needed with host-based barriers", "where", "nic", "host",
                             ["nodes", "efficiency"]),
        "panels": [bars("Least compute", "efficiency", "compute", "where", "nodes"),
                   lines("Time of a loop with that compute", "efficiency", "total", "where", "nodes", log="y")],
    },
    "arrival": {
        "title": "Arrival at different times",
        "text": "Every host varies its compute time at random; NIC- and host-based runs have equal times. The gain "
                "of the NIC is host - NIC, over the total variation.",
        "commands": [("nbar-lab sweep arrival --vary 0,10,20 -i 100", 180),
                     ("nbar-lab sweep arrival --nodes 8 --compute 64,512,4096 --vary 0,10,20 -i 50 -x 5 --launches 2", 15),
                     ("nbar-lab sweep arrival -i 200", 600)],
        "measured": "loop",
        "headline": headline("us less a loop with NIC-based barriers, without variation", "where", "nic", "host",
                             ["nodes"], {"total_variation": 0}, less=True),
        "panels": [lines("Host-based - NIC-based, over the total variation; a line a compute", "total_variation",
                         "difference", "compute")],
    },
    "app": {
        "title": "Synthetic applications",
        "text": "Steps of compute, each ended by a barrier, each varied by 10 % at random on every node.",
        "commands": [("nbar-lab app --launches 3", 90), ("nbar-lab app --scale 0.05 -i 50 --launches 3", 15),
                     ("nbar-lab app --launches 6", 180)],
        "measured": "execution",
        "headline": headline("times the execution time with host-based barriers", "where", "nic", "host", ["nodes"],
                             {"application": "1"}),
        "panels": [bars("Efficiency: compute / execution time", "application", "efficiency", "where", "nodes")],
    },
    "threads": {
        "title": "Barriers of threads",
        "text": "The threads of one process: the teams of nbar, POSIX, OpenMP of GCC and LLVM, Concurrency Kit, in "
                "one run.",
        "commands": [("nbar-lab threads --launches 3", 180),
                     ("nbar-lab threads --threads 2,4,8 -i 2000 -x 100 --launches 3 --limit 50", 20),
                     ("nbar-lab threads --launches 10", 600)],
        "measured": "time",
        "headline": headline("times the barrier of a team (sense-reverse) with pthread_barrier_wait", "barrier",
                             "sense-reverse", "pthread", ["threads"]),
        "panels": [lines("Time of a barrier", "threads", "time", "of", "barrier", log="xy")],
    },
    "combined": {
        "title": "Threads and nodes together",
        "text": "The threads of a node meet as a team, and then the nodes do. All threads poll the NIC's completion "
                "word; or one does, and releases the others by one stage more.",
        "commands": [("nbar-lab sweep combined --threads 1,2,4 --launches 3", 120),
                     ("nbar-lab sweep combined --nodes 2,4 --threads 1,2,4 -i 100 -x 10 --launches 2", 20),
                     ("nbar-lab sweep combined --launches 6", 400)],
        "measured": "mean",
        "headline": headline("times as long with a release stage", "where", "nic", "nic-release",
                             ["nodes", "threads"]),
        "panels": [heat("Mean time of a barrier, us: all threads poll the NIC's word", "threads", "nodes", "mean",
                        ("where", "nic")),
                   bars("Time with a release stage / time without", "threads", "release", "nodes", "kind")],
    },
    "one-to-many": {
        "title": "Several messages at once",
        "text": "The 1:P ping-pong: node 0 sends to P nodes, each answers at once. The LoP model fitted to it "
                "suggests the n of an n-way dissemination; barriers of every n tell whether it is right.",
        "commands": [("nbar-lab one-to-many --tune --launches 2", 240),
                     ("nbar-lab one-to-many --tune --peers 16 --nodes 4,8,16 --barriers 300 --where nic --launches 2 "
                      "--drivers 1", 25),
                     ("nbar-lab one-to-many --tune --launches 5", 600)],
        "panels": [lines("RTT(P) / P of the ping-pong", "n", "a_message", only=("what", "ping-pong")),
                   lines("Median time of a barrier, over n; a line a size", "n", "p50", "nodes", "where", log="y",
                         only=("what", "barrier"))],
    },
    "profile": {
        "title": "What messages cost between hosts",
        "text": "The profile of a cluster: O, the cost of a message, and L, that of a further one, from each host to "
                "each other host. NICs of one daemon share a processor, so their differences are noise; on a real "
                "cluster, the map shows its racks.",
        "commands": [("nbar-lab profile --nodes 16 -i 1000", 30), ("nbar-lab profile --nodes 5 -i 50", 3)],
        "file": ["--output", PROFILE],
        "panels": [heat("O: one message, us", "to", "from", "O"), heat("L: a further message, us", "to", "from", "L")],
    },
    "predict": {
        "title": "Predicted and measured barriers",
        "text": "The critical path of barriers through that profile, beside measured barriers of the same hosts, and "
                "the clusters of the barrier that nbar-lab tune composes. The published error of the model is about "
                "200 us.",
        "commands": [("nbar-lab predict", 1), ("nbar-lab predict", 1)],
        "file": [PROFILE],
        "panels": [bars("Predicted time of a barrier", "alg", "predicted"),
                   bars("Measured time of a barrier", "alg", "measured")],
    },
    "simulate": {
        "title": "A million members, simulated",
        "text": "The engine of the NICs in a simulated fat tree: o = 200 ns, 150 ns a hop, 100 Gb/s. tuned: the "
                "barrier that is composed from sampled costs of this network.",
        "commands": [("nbar-lab simulate --members 1000000 --net fat-tree --alg dissemination:1,pairwise,tree:4,tuned",
                      240),
                     ("nbar-lab simulate --members 2000 --net fat-tree --alg dissemination:1,pairwise,tree:4,tuned", 2)],
        "panels": [bars("Time of a barrier", "alg", "mean")],
    },
    "mpi-barrier": {
        "title": "Barriers of an MPI program",
        "text": "MPI_Barrier as the MPI runs it and as nbar runs it, and plans over the MPI's messages. Ranks on one "
                "machine meet in shared memory; NICs take part between hosts.",
        "mpi": True,
        "commands": [(f"nbar mpi-bench --method mpi,nbar,{MPI_PLANS},p2p:mcs,p2p:tournament,p2p:binomial,p2p:linear "
                      "-i 20000 --blocks 20", 10),
                     (f"nbar mpi-bench --method mpi,nbar,{MPI_PLANS} -i 2000", 3)],
        "measured": "avg",
        "headline": headline("times as long by the MPI's own barrier", "method", "nbar", "mpi"),
        "panels": [bars("Mean time of a barrier", "method", "avg")],
    },
    "mpi-app": {
        "title": "Synthetic applications over MPI",
        "text": "The same applications, as an MPI program: this is where the literature measured them.",
        "mpi": True,
        "commands": [("nbar mpi-bench --test app --method mpi,nbar,p2p:pairwise -i 1000", 40),
                     ("nbar mpi-bench --test app --scale 0.05 --method mpi,nbar,p2p:pairwise -i 100", 3)],
        "measured": "execution",
        "headline": headline("times the execution time with the MPI's own barrier", "method", "nbar", "mpi",
                             where={"application": "1"}),
        "panels": [bars("Efficiency: compute / execution time", "application", "efficiency", "method"),
                   bars("Execution time with the MPI's own barrier / with this one", "application", "speedup",
                        "method")],
    },
}

# Published values in figures: experiment, x, y, mark, points. The hardware was different, and often old.
POINTS = [
    ("bench", "nodes", "mean", "NIC", [(8, 46.41), (16, 105.37)]),
    ("bench", "nodes", "mean", "host", [(8, 102.86), (16, 216.70)]),
    ("bench", "nodes", "mean", "MPI, MCS tree", [(2, 0.5), (10, 3.5)]),
    ("bench", "nodes", "mean", "MPI, dissemination", [(2, 0.43), (12, 4.3)]),
    ("bench", "nodes", "speedup", "host / NIC", [(8, 2.22), (16, 2.09)]),
    ("efficiency", "efficiency", "total", "NIC, 16 nodes", [(0.50, 204.76), (0.90, 1023.82)]),
    ("efficiency", "efficiency", "total", "host, 16 nodes", [(0.50, 366.40), (0.90, 1831.98)]),
    ("efficiency", "efficiency", "total", "NIC, 8 nodes", [(0.50, 120.62), (0.90, 603.11)]),
    ("efficiency", "efficiency", "total", "host, 8 nodes", [(0.50, 179.18), (0.90, 895.91)]),
    ("threads", "threads", "time", "sense-reverse", [(2, 0.25), (8, 6.20)]),
    ("threads", "threads", "time", "MCS tree", [(2, 1.02), (8, 64.3)]),
]
