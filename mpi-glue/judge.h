/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * judge.h - after how many barriers of the MPI does a communicator get a set-up, does that pay, and
 * are the offloaded barriers as fast as those of the MPI?
 *
 * Each rank times the last barriers that the MPI runs before the set-up (in the first ones, a
 * program and its MPI also start), a few by NICs within it, and as many offloaded ones after it:
 * barriers of the program, with its pauses and its load. Pure: the caller reads the clock, and
 * combines the figures of all ranks.
 */
#ifndef NBMPI_JUDGE_H
#define NBMPI_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

/* The least number of barriers before the set-up. */
#define NBMPI_PAYS 8u
/* Between hosts, unless a setting asks for NICs: a set-up with NICs, and the end of NICs that are
 * too slow, take some milliseconds. It pays when the barriers of the MPI have taken several times
 * as long, by their number and the median of those that are timed. */
#define NBMPI_PAYS_NS UINT64_C(50000000)
#define NBMPI_ASK 32u           /* barriers before the ranks ask whether it pays; then doubled */
#define NBMPI_TRIALS 3u         /* timed barriers by NICs within the set-up */
#define NBMPI_TIMED_LEAST 4u    /* timed barriers of the MPI, without which nobody judges */
#define NBMPI_TIMED_MOST 8u     /* more are not needed */
#define NBMPI_SLOWER_PERCENT 20 /* NICs that are slower by this much are given up */

enum nbmpi_way { NBMPI_WAY_MPI, NBMPI_WAY_NBAR, NBMPI_WAYS };

/* The timed barriers of a rank. All ranks have the same numbers of them. */
struct nbmpi_judge {
	uint32_t n[NBMPI_WAYS];
	double took[NBMPI_WAYS][NBMPI_TIMED_MOST]; /* s; by the MPI: the latest */
	uint32_t oldest;                           /* of these, modulo NBMPI_TIMED_MOST */
	bool closed;                               /* there is a verdict, or nobody asks for one */
};

/* The greatest and the least figure of all ranks, in ns. */
struct nbmpi_cost {
	uint64_t most[NBMPI_WAYS], least[NBMPI_WAYS];
};

void nbmpi_judge_note(struct nbmpi_judge *j, enum nbmpi_way way, double seconds);

/* True: as many barriers by NICs are timed as by the MPI, and they are enough. */
bool nbmpi_judge_is_due(const struct nbmpi_judge *j);

/*
 * The figure of a rank, in s, in a communicator of this size: what a barrier takes from the arrival
 * of the last rank on.
 *
 * The barrier of a rank that arrives early also contains its wait for late ranks. If ranks arrive
 * in turns, each is the last in one of `size` barriers, and its shortest barriers, as many as that,
 * contain no such wait. The longest of these is the figure: a lucky barrier alone counts little.
 */
double nbmpi_judge_figure(const struct nbmpi_judge *j, enum nbmpi_way way, uint32_t size);

/*
 * True: the NICs are too slow.
 *
 * The rank with the greatest figure shows the cost. But if this rank was never the last, its figure
 * contains waits for others. Some rank was the last often enough, so the least figure contains
 * none: both must say that the NICs are slower.
 */
bool nbmpi_judge_slower(const struct nbmpi_cost *cost);

#endif
