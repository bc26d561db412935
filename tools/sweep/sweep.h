/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep.h - what the experiments below `nbar sweep` share, and the mathematics of two of them.
 *
 * sweep_granularity.c  compute + barrier, over the compute
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

/* Points of nodes x algorithm x compute x variation, in that order. */
struct sweep_points {
	uint32_t n;
	struct bench_point *point;
	struct bench_work *work;
	uint32_t *step_ns;
};

/* 0, or an exit code after a message. */
int sweep_points_make(struct sweep_points *p, const struct bench_options *opt,
		      const struct sweep_list *compute_us, const struct sweep_list *vary_percent);
void sweep_points_free(struct sweep_points *p);

/* What to compute is, for the notes and for --help. */
extern const char sweep_compute_text[];

/* Median over the points of what of their times is not known. */
double sweep_points_noise(const struct bench_options *opt, const struct bench_point *point,
			  uint32_t n, enum bench_where where);

/*
 * Where the time of a loop does not grow with what is computed in it, because the last messages
 * are still leaving: time = max(level, base + compute). Points by rising compute.
 */
struct sweep_flat {
	bool found;
	double until; /* compute up to which it is flat: level - base */
	double level, base;
};

/* noise: by how much a time may differ for no reason. A flat spot is found if at least two points
 * lie on it, the line alone misses the first by more than the noise, and all of them by more than
 * three times that. */
struct sweep_flat sweep_flat_find(const double *compute, const double *time, uint32_t n,
				  double noise);

/*
 * Least x whose value reaches the target, where the value grows with x but is measured with noise:
 * a sample is a median and an interval that covers it.
 */
struct sweep_bisect {
	double target, tolerance; /* of x, as a fraction */
	double low, high;         /* of x; valid if have_* */
	bool have_low, have_high;
	double sure_low, sure_high; /* the interval itself lies below, above; 0: none has */
	double next;                /* x to be measured */
	uint32_t steps, outward;
};
#define SWEEP_OUTWARD_MAX 8u

/* Halves what is sought until it is known to the tolerance, then steps outward until the intervals,
 * too, enclose it (or gives that up). */
void sweep_bisect_begin(struct sweep_bisect *b, double guess, double target, double tolerance);
void sweep_bisect_answer(struct sweep_bisect *b, double median, double low, double high);
bool sweep_bisect_done(const struct sweep_bisect *b);

/* It is known to the tolerance, whatever the intervals. */
bool sweep_bisect_converged(const struct sweep_bisect *b);

/* The x found: the least one measured whose median reached the target. */
static inline double sweep_bisect_found(const struct sweep_bisect *b)
{
	return b->high;
}

#endif
