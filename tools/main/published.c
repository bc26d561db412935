/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * published.c - see published.h.
 */
#include "published.h"

#include <string.h>

#define MYRINET "Buntinas, Panda, Sadayappan: NIC-based barrier on Myrinet/GM"
#define INFINIBAND "Hoefler, Mehlan, Mietke, Rehm: n-way dissemination on InfiniBand"
#define HETEROGENEOUS "Meyer, Elster: optimised barriers for heterogeneous systems"
#define HYBRID "Seyedroudbari, Kadiyala: OpenMP and MPI barriers, and both together"

#define NIC33 "dual Pentium II 300 MHz, Myrinet, NICs of 33 MHz"
#define NIC66 "dual Pentium II 300 MHz, Myrinet, NICs of 66 MHz"
#define IB64 "64 nodes, InfiniBand"
#define ETHERNET "8 nodes of 2 x 4 cores, 10 nodes of 2 x 6 cores, gigabit Ethernet"
#define CLUSTER "nodes of several cores, one MPI process per node"

const struct published published[] = {
	{ "bench mpi-barrier", "NIC-based barrier, at MPI level", "16 nodes", "105.37 us", NIC33,
	  MYRINET },
	{ "bench mpi-barrier", "host-based barrier, at MPI level", "16 nodes", "216.70 us", NIC33,
	  MYRINET },
	{ "bench mpi-barrier", "host / NIC", "16 nodes", "2.09", NIC33, MYRINET },
	{ "bench mpi-barrier", "NIC-based barrier, at MPI level", "8 nodes", "46.41 us", NIC66,
	  MYRINET },
	{ "bench mpi-barrier", "host-based barrier, at MPI level", "8 nodes", "102.86 us", NIC66,
	  MYRINET },
	{ "bench mpi-barrier", "host / NIC", "8 nodes", "2.22", NIC66, MYRINET },
	{ "bench", "overhead of MPI over the NIC's barrier", "16 nodes", "3.22 us", NIC33,
	  MYRINET },
	{ "bench", "overhead of MPI over the NIC's barrier", "8 nodes", "1.16 us", NIC66, MYRINET },
	{ "bench", "7 nodes, no power of two, against 8", "pairwise exchange", "7 can be slower",
	  NIC66, MYRINET },
	{ "bench mpi-barrier", "best hybrid barrier against the MPI's own", "largest cases",
	  "about half", ETHERNET, HETEROGENEOUS },
	{ "granularity", "flat spot of the host-based barrier", "8 nodes", "up to about 17 us",
	  NIC33, MYRINET },
	{ "granularity", "flat spot of the host-based barrier", "8 nodes", "up to about 8 us",
	  NIC66, MYRINET },
	{ "granularity", "flat spot of the NIC-based barrier", "8 nodes", "none",
	  "both kinds of NIC", MYRINET },
	{ "efficiency", "0.50: NIC-based, host-based", "16 nodes", "204.76 us, 366.40 us", NIC33,
	  MYRINET },
	{ "efficiency", "0.90: NIC-based, host-based", "16 nodes", "1023.82 us, 1831.98 us", NIC33,
	  MYRINET },
	{ "efficiency", "0.50: NIC-based, host-based", "8 nodes", "120.62 us, 179.18 us", NIC66,
	  MYRINET },
	{ "efficiency", "0.90: NIC-based, host-based", "8 nodes", "603.11 us, 895.91 us", NIC66,
	  MYRINET },
	{ "efficiency", "what these values are",
	  "their ratio is exactly 5, as of b / (1 - e), and not 9", "total time a loop", "",
	  MYRINET },
	{ "arrival", "advantage of the NIC", "16 nodes",
	  "shrinks as the total variation grows, never gone", NIC33, MYRINET },
	{ "app mpi-app", "speedup over all applications", "three of them", "up to 1.93",
	  "dual Pentium II 300 MHz, Myrinet", MYRINET },
	{ "threads", "sense-reverse", "2 threads, 8 threads", "0.25 us, 6.20 us", CLUSTER, HYBRID },
	{ "threads", "MCS tree", "2 threads, 8 threads", "1.02 us, 64.3 us", CLUSTER, HYBRID },
	{ "bench combined", "MCS tree between processes", "2 processes, 10 processes",
	  "0.5 us, 3.5 us", CLUSTER, HYBRID },
	{ "bench combined", "dissemination between processes", "2 processes, 12 processes",
	  "0.43 us, 4.3 us", CLUSTER, HYBRID },
	{ "one-to-many", "RTT(P) / P", "1:P ping-pong", "falls, then settles", IB64, INFINIBAND },
	{ "one-to-many", "n-way dissemination against the best MPI of its day", "64 nodes",
	  "up to 40 % less", IB64, INFINIBAND },
};
const uint32_t npublished = sizeof(published) / sizeof(published[0]);

bool published_of(const char *list, const char *experiment)
{
	size_t n = strlen(experiment);

	while (*list) {
		size_t length = strcspn(list, " ");

		if (length == n && !memcmp(list, experiment, n))
			return true;
		list += length + strspn(list + length, " ");
	}
	return false;
}
