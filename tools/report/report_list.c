/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_list.c - the experiments that `nbar report` runs, in the order of the page.
 */
#include "report.h"

const struct report_experiment report_experiments[] = {
	{
		.name = "bench",
		.title = "Latency over size",
		.text = "Mean time of one barrier, run by the NICs and run by the hosts over the same "
			"NICs, with the same plans.",
		.command = { "bench --nodes 2,3,4,5,8,12,16,24,32 --alg all -i 1000 -x 100 "
			     "--launches 3",
			     "bench --nodes 2,4,7,8,16 --alg pairwise,dissemination:3 -i "
			     "200 -x 20 --launches 2 --drivers 1",
			     "bench --nodes 2-32 --alg all -i 1000 -x 100 --launches 5" },
		.seconds = { 240, 15, 1500 },
		.best = "speedup",
		.best_text = "times as long if the hosts run the barrier, at most",
		.panel = { {
				   .title = "Mean time of a barrier",
				   .x = "nodes",
				   .y = "mean",
				   .series = { "alg", "where" },
				   .log_x = true,
				   .log_y = true,
			   },
			   {
				   .title = "Host-based / NIC-based",
				   .x = "nodes",
				   .y = "speedup",
				   .series = { "alg" },
				   .log_x = true,
			   } },
	},
	{
		.name = "granularity",
		.title = "Granularity",
		.text = "Loops of compute + barrier. Where the last messages of a barrier are still "
			"leaving, computing may cost nothing: a flat spot.",
		.command = { "sweep granularity --compute 0.5-130 --points 24 --launches 3",
			     "sweep granularity --compute 0.5-64 --points 8 -i 200 -x 20 "
			     "--launches 3",
			     "sweep granularity --compute 0.5-130 --points 24 --launches 6" },
		.seconds = { 60, 10, 120 },
		.panel = { {
			.title = "Time of a loop, over the compute in it",
			.x = "compute",
			.y = "loop",
			.series = { "where", "alg" },
			.log_x = true,
			.log_y = true,
		} },
	},
	{
		.name = "efficiency",
		.title = "Least compute for an efficiency",
		.text = "Efficiency is compute / (time of a loop of compute + barrier). How much must a "
			"program compute between two barriers to reach an efficiency?",
		.command = { "sweep efficiency --launches 3",
			     "sweep efficiency --nodes 8 --efficiency 0.50,0.90 -i 200 -x "
			     "20 --launches 2",
			     "sweep efficiency --launches 6" },
		.seconds = { 150, 20, 300 },
		.best = "less_compute",
		.best_text = "% less compute with NIC-based barriers, at most",
		.panel = { {
				   .kind = REPORT_BARS,
				   .title = "Least compute",
				   .x = "efficiency",
				   .y = "compute",
				   .series = { "where", "nodes" },
			   },
			   {
				   .title = "Time of a loop with that compute",
				   .x = "efficiency",
				   .y = "total",
				   .series = { "where", "nodes" },
				   .log_y = true,
			   } },
	},
	{
		.name = "arrival",
		.title = "Arrival at different times",
		.text = "Every host varies its compute time at random; NIC- and host-based runs have equal "
			"times. The gain of the NIC is host - NIC, over the total variation.",
		.command = { "sweep arrival --vary 0,10,20 -i 100",
			     "sweep arrival --nodes 8 --compute 64,512,4096 --vary 0,10,20 "
			     "-i 50 -x 5 --launches 2",
			     "sweep arrival -i 200" },
		.seconds = { 180, 15, 600 },
		.best = "difference",
		.best_text = "us less a loop with NIC-based barriers, at most",
		.panel = { {
			.title =
				"Host-based - NIC-based, over the total variation; a line a compute",
			.x = "total_variation",
			.y = "difference",
			.series = { "compute" },
		} },
	},
	{
		.name = "app",
		.title = "Synthetic applications",
		.text = "Steps of compute, each ended by a barrier, each varied by 10 % at random on "
			"every node.",
		.command = { "app --launches 3", "app --scale 0.05 -i 50 --launches 3",
			     "app --launches 6" },
		.seconds = { 90, 15, 180 },
		.best = "speedup",
		.best_text = "times the execution time with host-based barriers, at most",
		.panel = { {
			.kind = REPORT_BARS,
			.title = "Efficiency: compute / execution time",
			.x = "application",
			.y = "efficiency",
			.series = { "where", "nodes" },
		} },
	},
	{
		.name = "threads",
		.title = "Barriers of threads",
		.text = "The threads of one process: the teams of nbar, POSIX, OpenMP of GCC and LLVM, "
			"Concurrency Kit, in one run.",
		.command = { "sweep threads --launches 3",
			     "sweep threads --threads 2,4,8 -i 2000 -x 100 --launches 3 "
			     "--limit 50",
			     "sweep threads --launches 10" },
		.seconds = { 180, 20, 600 },
		.panel = { {
			.title = "Time of a barrier",
			.x = "threads",
			.y = "time",
			.series = { "of", "barrier" },
			.log_x = true,
			.log_y = true,
		} },
	},
	{
		.name = "combined",
		.title = "Threads and nodes together",
		.text = "The threads of a node meet as a team, and then the nodes do. All threads poll "
			"the NIC's completion word; or one does, and releases the others by one stage "
			"more.",
		.command = { "sweep combined --threads 1,2,4 --launches 3",
			     "sweep combined --nodes 2,4 --threads 1,2,4 -i 100 -x 10 "
			     "--launches 2",
			     "sweep combined --launches 6" },
		.seconds = { 120, 20, 400 },
		.best = "release",
		.best_text = "times as long with a release stage, at most",
		.panel = { {
				   .kind = REPORT_HEAT,
				   .title =
					   "Mean time of a barrier, us: all threads poll the NIC's word",
				   .x = "threads",
				   .y = "nodes",
				   .value = "mean",
				   .only = "where",
				   .only_value = "nic",
			   },
			   {
				   .kind = REPORT_BARS,
				   .title = "Time with a release stage / time without",
				   .x = "threads",
				   .y = "release",
				   .series = { "nodes", "kind" },
			   } },
	},
	{
		.name = "one-to-many",
		.title = "Several messages at once",
		.text = "The 1:P ping-pong: node 0 sends to P nodes, each answers at once. The LoP model "
			"fitted to it suggests the n of an n-way dissemination; barriers of every n tell "
			"whether it is right.",
		.command = { "bench one-to-many --tune --launches 2",
			     "bench one-to-many --tune --peers 16 --nodes 4,8,16 --barriers "
			     "300 --where nic --launches 2 --drivers 1",
			     "bench one-to-many --tune --launches 5" },
		.seconds = { 240, 25, 600 },
		.panel = { {
				   .title = "RTT(P) / P of the ping-pong",
				   .x = "n",
				   .y = "a_message",
				   .only = "what",
				   .only_value = "ping-pong",
			   },
			   {
				   .title = "Median time of a barrier, over n; a line a size",
				   .x = "n",
				   .y = "p50",
				   .series = { "nodes", "where" },
				   .log_y = true,
				   .only = "what",
				   .only_value = "barrier",
			   } },
	},
	{
		.name = "profile",
		.title = "What messages cost between hosts",
		.text = "The profile of a cluster: O, the cost of a message, and L, that of a further one, "
			"from each host to each other host. NICs of one daemon share a processor, so "
			"their differences are noise; on a real cluster, the map shows its racks.",
		.command = { "profile --nodes 16 -i 1000", "profile --nodes 5 -i 50" },
		.seconds = { 30, 3 },
		.file = "cluster.profile",
		.file_option = "--output",
		.panel = { {
				   .kind = REPORT_HEAT,
				   .title = "O: one message, us",
				   .x = "to",
				   .y = "from",
				   .value = "O",
			   },
			   {
				   .kind = REPORT_HEAT,
				   .title = "L: a further message, us",
				   .x = "to",
				   .y = "from",
				   .value = "L",
			   } },
	},
	{
		.name = "predict",
		.title = "Predicted and measured barriers",
		.text = "The critical path of barriers through that profile, beside measured barriers of the "
			"same hosts, and the clusters of the barrier that nbar tune composes. The "
			"published error of the model is about 200 us.",
		.command = { "predict", "predict" },
		.seconds = { 1, 1 },
		.file = "cluster.profile",
		.file_option = "",
		.panel = { {
				   .kind = REPORT_BARS,
				   .title = "Predicted time of a barrier",
				   .x = "alg",
				   .y = "predicted",
			   },
			   {
				   .kind = REPORT_BARS,
				   .title = "Measured time of a barrier",
				   .x = "alg",
				   .y = "measured",
			   } },
	},
	{
		.name = "simulate",
		.title = "A million members, simulated",
		.text = "The engine of the NICs in a simulated fat tree: o = 200 ns, 150 ns a hop, 100 Gb/s. "
			"tuned: the barrier that is composed from sampled costs of this network.",
		.command = { "simulate --members 1000000 --net fat-tree --alg "
			     "dissemination:1,pairwise,tree:4,tuned",
			     "simulate --members 2000 --net fat-tree --alg "
			     "dissemination:1,pairwise,tree:4,tuned" },
		.seconds = { 240, 2 },
		.panel = { {
			.kind = REPORT_BARS,
			.title = "Time of a barrier",
			.x = "alg",
			.y = "mean",
		} },
	},
	{
		.name = "mpi-barrier",
		.title = "Barriers of an MPI program",
		.text = "MPI_Barrier as the MPI runs it and as nbar runs it, and plans over the MPI's "
			"messages. Ranks on one machine meet in shared memory; NICs take part between "
			"hosts.",
		.mpi = true,
		.command = { "mpi-bench --method mpi,nbar,p2p:pairwise,p2p:dissemination:1,"
			     "p2p:mcs,p2p:tournament,p2p:binomial,p2p:linear -i 20000 "
			     "--blocks 20",
			     "mpi-bench --method mpi,nbar,p2p:pairwise,p2p:dissemination:1 "
			     "-i 2000" },
		.seconds = { 10, 3 },
		.best = "speedup",
		.best_text = "times as fast as the MPI's own, at most",
		.panel = { {
			.kind = REPORT_BARS,
			.title = "Mean time of a barrier",
			.x = "method",
			.y = "avg",
		} },
	},
	{
		.name = "mpi-app",
		.title = "Synthetic applications over MPI",
		.text = "The same applications, as an MPI program: this is where the literature measured "
			"them.",
		.mpi = true,
		.command = { "mpi-bench --test app --method mpi,nbar,p2p:pairwise -i 1000",
			     "mpi-bench --test app --scale 0.05 --method "
			     "mpi,nbar,p2p:pairwise -i 100" },
		.seconds = { 40, 3 },
		.best = "speedup",
		.best_text = "times the execution time with the MPI's own barrier, at most",
		.panel = { {
				   .kind = REPORT_BARS,
				   .title = "Efficiency: compute / execution time",
				   .x = "application",
				   .y = "efficiency",
				   .series = { "method" },
			   },
			   {
				   .kind = REPORT_BARS,
				   .title =
					   "Execution time with the MPI's own barrier / with this one",
				   .x = "application",
				   .y = "speedup",
				   .series = { "method" },
			   } },
	},
};
const uint32_t report_nexperiment = sizeof(report_experiments) / sizeof(report_experiments[0]);
