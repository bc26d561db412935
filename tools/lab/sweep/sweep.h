/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep.h - shared by the experiments of `nbar-lab sweep`, and the mathematics of two of them.
 *
 * sweep_granularity.c  time of a loop of compute + barrier, as a function of the compute
 * sweep_efficiency.c   least compute for an efficiency
 * sweep_arrival.c      hosts that arrive at different times
 * sweep_combined.c     nodes of several threads
 * sweep_threads.c      barriers of threads; no NIC, no hosts (sweep_threads_opt.c, thread_run.c,
 *                      thread_loop.c, peers/)
 * sweep_points.c       points of compute and variation
 * sweep_list.c         lists of numbers
 * sweep_math.c         flat spot and bisection: pure, no measuring
 *
 * To add one, add a row to the table of tools/main/subcommands.h.
 */
#ifndef NBAR_TOOLS_SWEEP_H
#define NBAR_TOOLS_SWEEP_H

#include "bench.h"
#include "sweep_list.h"

/* Defaults of an experiment with compute: nodes, measured loops per run, runs of each point. */
struct bench_options sweep_defaults(uint32_t nodes, uint32_t iters, uint32_t repetitions);

/* Points of nodes x algorithm x compute x variation, in that order. */
struct sweep_points {
	uint32_t n;
	struct bench_point *point;
	struct bench_work *work;
	uint32_t *step_ns;
};

void sweep_points_make(struct sweep_points *p, const struct bench_options *opt,
		       const struct sweep_list *compute_us, const struct sweep_list *vary_percent);
void sweep_points_free(struct sweep_points *p);

/* Text for the notes and for --help: the meaning of "compute". */
extern const char sweep_compute_text[];

/* The noise of the points: the median of half the widths of the intervals of their times. */
double sweep_points_noise(const struct bench_options *opt, const struct bench_point *point,
			  uint32_t n, enum bench_where where);

/*
 * The flat part of a curve: there, the time of a loop does not grow with the computation, because
 * the last messages of the barrier are still leaving. time = max(level, base + compute). Points are
 * in order of rising compute.
 */
struct sweep_flat {
	bool found;
	double until; /* end of the flat part: compute = level - base */
	double level, base;
};

/* noise: random deviation of a time. A flat part is found under three conditions: at least two
 * points are on the flat part; the line base + compute alone misses the first point by more than
 * the noise; and with this line alone, the sum of the
 * distances of all points would be larger by more than three times the noise. */
struct sweep_flat sweep_flat_find(const double *compute, const double *time, uint32_t n,
				  double noise);

/*
 * Searches the least x whose value reaches the target. The value grows with x, but measured values
 * have noise: a sample is a median and an interval that covers the median.
 */
struct sweep_bisect {
	double target, tolerance; /* of x, as a fraction */
	double low, high;         /* of x; valid if have_* */
	bool have_low, have_high;
	double sure_low;  /* x whose whole interval is below the target; 0: none */
	double sure_high; /* x whose whole interval is above the target; 0: none */
	double next;      /* x to measure next */
	uint32_t steps, outward;
};
#define SWEEP_OUTWARD_MAX 8u

/* Bisects until x is known to the tolerance. Then steps outward until sure_low and sure_high are
 * found, at most SWEEP_OUTWARD_MAX times. */
void sweep_bisect_begin(struct sweep_bisect *b, double guess, double target, double tolerance);
void sweep_bisect_answer(struct sweep_bisect *b, double median, double low, double high);
bool sweep_bisect_done(const struct sweep_bisect *b);

/* True if x is known to the tolerance, without regard to the intervals. */
bool sweep_bisect_converged(const struct sweep_bisect *b);

/* The result: the least measured x whose median reached the target. */
static inline double sweep_bisect_found(const struct sweep_bisect *b)
{
	return b->high;
}

#endif
