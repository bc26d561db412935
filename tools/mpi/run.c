/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - the tests. The iterations of each method are divided into blocks. In each round every
 * method runs one block, in random order, so a drift of the machine affects all methods alike.
 *
 * Between blocks, all ranks run the MPI's own barrier, and exchange their measurements.
 */
#include "bench.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "hist.h"
#include "stats.h"

#define START_NS 200000u /* time in which all ranks leave a reduction */

/* The measurements of a case at a rank. */
struct lane {
	struct mpib_method *method;
	const struct app *app;
	struct hist hist;
	double *skew; /* at rank 0 */
	uint32_t nskew;
};

struct run {
	const struct mpib_options *opt;
	struct mpib_world *world;
	struct lane *lane;
	uint32_t nexit; /* number of exits kept per block */
	uint64_t *exit, *first, *last;
	uint32_t iteration; /* selects the rank that computes, and how long */
};

static double us_of(uint64_t ns)
{
	return (double)ns / 1e3;
}

static void run_meet(const struct run *run)
{
	PMPI_Barrier(run->world->off);
}

static double reduced(double mine, MPI_Op op)
{
	double all = mine;

	PMPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
	return all;
}

static double average(const struct run *run, double mine)
{
	return reduced(mine, MPI_SUM) / run->world->size;
}

/* Computes for this time; returns the real time, which is longer if processors are shared. */
static uint64_t run_compute(const struct run *run, uint64_t ns)
{
	uint64_t begin = tool_now_ns(), end = begin + ns, now = begin;
	struct timespec t = { .tv_sec = (time_t)(end / 1000000000u),
			      .tv_nsec = (long)(end % 1000000000u) };

	while (run->world->compute == MPIB_SLEEP &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
	while (now < end) {
		if (run->world->compute == MPIB_YIELD)
			sched_yield();
		now = tool_now_ns();
	}
	return now - begin;
}

/* --- barrier --------------------------------------------------------------------------------- */

/* Keeps last exit - first exit of each barrier of the block. */
static void keep_skew(struct run *run, struct lane *lane, uint32_t n)
{
	int count = (int)(n < run->nexit ? n : run->nexit);

	if (!run->world->one_clock)
		return;
	PMPI_Reduce(run->exit, run->first, count, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
	PMPI_Reduce(run->exit, run->last, count, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	for (int i = 0; run->world->rank == 0 && i < count; i++)
		lane->skew[lane->nskew++] = us_of(run->last[i] - run->first[i]);
}

static void block_barrier(struct run *run, struct lane *lane, uint32_t n, double *metric)
{
	struct mpib_method *m = lane->method;
	uint64_t begin, before, now;
	double mean;

	m->ops->barrier(m);
	begin = before = tool_now_ns();
	for (uint32_t i = 0; i < n; i++) {
		m->ops->barrier(m);
		now = tool_now_ns();
		hist_add(&lane->hist, now - before);
		if (i < run->nexit)
			run->exit[i] = now;
		before = now;
	}
	mean = us_of(before - begin) / n;
	metric_set_means(metric, average(run, mean), reduced(mean, MPI_MIN),
			 reduced(mean, MPI_MAX));
	keep_skew(run, lane, n);
}

/* --- ibarrier -------------------------------------------------------------------------------- */

/* Mean time of a loop; *computed: the part of it that was computation. */
static double run_loops(const struct run *run, struct mpib_method *m, uint32_t n,
			uint64_t compute_ns, double *computed)
{
	uint64_t begin, sum = 0;

	m->ops->barrier(m);
	begin = tool_now_ns();
	for (uint32_t i = 0; i < n; i++) {
		m->ops->start(m);
		if (compute_ns)
			sum += run_compute(run, compute_ns);
		m->ops->finish(m);
	}
	begin = tool_now_ns() - begin;
	*computed = average(run, us_of(sum) / n);
	return average(run, us_of(begin) / n);
}

static void block_ibarrier(struct run *run, struct lane *lane, uint32_t n, double *metric)
{
	double computed, pure = run_loops(run, lane->method, n, 0, &computed);
	double us = run->opt->compute_us ? run->opt->compute_us : pure;
	double overall = run_loops(run, lane->method, n, (uint64_t)(us * 1e3) + 1, &computed);
	double overlap = 100 * (1 - (overall - computed) / pure);

	metric[METRIC_OVERALL] = overall;
	metric[METRIC_COMPUTE] = computed;
	metric[METRIC_PURE] = pure;
	metric[METRIC_OVERLAP] = overlap < 0 ? 0 : overlap > 100 ? 100 : overlap;
}

/* --- busy ------------------------------------------------------------------------------------ */

/* If the ranks share a clock, all continue at the same time. Otherwise a rank that leaves a barrier
 * early would wait for ranks that leave it late. */
static void meet_exactly(const struct run *run)
{
	uint64_t mine = tool_now_ns() + START_NS, start = mine;

	if (!run->world->one_clock) {
		run_meet(run);
		return;
	}
	PMPI_Allreduce(&mine, &start, 1, MPI_UINT64_T, MPI_MAX, run->world->off);
	while (tool_now_ns() < start)
		sched_yield();
}

static void block_busy(struct run *run, struct lane *lane, uint32_t n, double *metric)
{
	const struct mpib_options *opt = run->opt;
	struct mpib_method *m = lane->method;
	double waited = 0;

	for (uint32_t i = 0; i < n; i++, run->iteration++) {
		int busy = opt->busy_rank < 0 ? (int)(run->iteration % (uint32_t)run->world->size)
					      : opt->busy_rank;
		uint64_t entered;

		meet_exactly(run);
		entered = tool_now_ns();
		m->ops->start(m);
		if (run->world->rank == busy)
			run_compute(run, (uint64_t)opt->compute_us * 1000);
		m->ops->finish(m);
		if (run->world->rank == busy)
			continue;
		entered = tool_now_ns() - entered;
		hist_add(&lane->hist, entered);
		waited += us_of(entered);
	}
	metric[METRIC_WAIT] = reduced(waited, MPI_SUM) / (run->world->size - 1) / n;
}

/* --- app ------------------------------------------------------------------------------------- */

/* Executes all steps n times. All methods get the same compute times. */
static void block_app(struct run *run, struct lane *lane, uint32_t n, double *metric)
{
	const struct bench_work *work = &lane->app->work;
	uint32_t rank = (uint32_t)run->world->rank, first = run->iteration * work->nstep;
	uint64_t begin;

	lane->method->ops->barrier(lane->method);
	begin = tool_now_ns();
	for (uint32_t i = first; i < first + n * work->nstep; i++) {
		run_compute(run, bench_work_ns(work, rank, i));
		lane->method->ops->barrier(lane->method);
	}
	metric[METRIC_EXECUTION] = reduced(us_of(tool_now_ns() - begin) / n, MPI_MAX);
	metric[METRIC_EFFICIENCY] = lane->app->compute_us / metric[METRIC_EXECUTION];
}

/* --- all ------------------------------------------------------------------------------------- */

static void (*const tests[MPIB_TEST_END])(struct run *run, struct lane *lane, uint32_t n,
					  double *metric) = {
	[MPIB_BARRIER] = block_barrier,
	[MPIB_IBARRIER] = block_ibarrier,
	[MPIB_BUSY] = block_busy,
	[MPIB_APP] = block_app,
};

uint32_t mpib_ncase(const struct mpib_options *opt)
{
	return opt->nmethod * (opt->test == MPIB_APP ? opt->app_set.n : 1);
}

/* Warms up each method: the first nmethod lanes have one method each. */
static void warm_up(const struct run *run)
{
	for (uint32_t k = 0; k < run->opt->nmethod; k++) {
		struct mpib_method *m = run->lane[k].method;

		run_meet(run);
		for (uint32_t i = 0; i < run->opt->warmup; i++) {
			m->ops->barrier(m);
			m->ops->start(m);
			m->ops->finish(m);
		}
	}
}

/* The histogram over all ranks, at rank 0. */
static struct hist gather(const struct hist *mine)
{
	struct hist all = { 0 };
	uint64_t least = mine->total ? mine->min : INT64_MAX; /* MPICH takes the sign into account */

	PMPI_Reduce(mine->count, all.count, HIST_BUCKETS, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	PMPI_Reduce(&mine->total, &all.total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	PMPI_Reduce(&least, &all.min, 1, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
	PMPI_Reduce(&mine->max, &all.max, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
	return all;
}

/* Medians over the blocks, and figures that cover all iterations. */
static void summarise(const struct run *run, struct lane *lane, struct mpib_result *res)
{
	const struct hist all = gather(&lane->hist);
	double skew = lane->nskew ? stats_median(lane->skew, lane->nskew) : NAN;
	uint32_t blocks = run->opt->blocks;

	for (uint32_t b = 0; b < blocks; b++)
		metric_set_all(res->block[b], &all, skew);
	metric_merge(res->block[0], METRIC_END, blocks, mpib_table[run->opt->test], res->metric);
}

static void run_blocks(struct run *run, struct mpib_result *result)
{
	const struct mpib_options *opt = run->opt;
	uint64_t random = opt->seed;
	uint32_t order[MPIB_CASES_MAX], ncase = mpib_ncase(opt);

	for (uint32_t b = 0; b < opt->blocks; b++) {
		uint32_t n = opt->iters / opt->blocks + (b < opt->iters % opt->blocks);

		stats_shuffle(order, ncase, &random);
		for (uint32_t k = 0; k < ncase; k++) {
			run->iteration =
				b * (opt->iters / opt->blocks); /* the same for all methods */
			run_meet(run);
			tests[opt->test](run, &run->lane[order[k]], n, result[order[k]].block[b]);
		}
	}
}

void mpib_run(const struct mpib_options *opt, struct mpib_world *w, struct mpib_method *method,
	      struct mpib_result *result)
{
	uint32_t ncase = mpib_ncase(opt);
	struct run run = {
		.opt = opt,
		.world = w,
		.lane = mpib_alloc(ncase, sizeof(*run.lane)),
		.nexit = MPIB_SKEW_MAX / opt->blocks,
	};

	prctl(PR_SET_TIMERSLACK, 1ul);
	run.exit = mpib_alloc(run.nexit, sizeof(*run.exit));
	run.first = mpib_alloc(run.nexit, sizeof(*run.first));
	run.last = mpib_alloc(run.nexit, sizeof(*run.last));
	for (uint32_t k = 0; k < ncase; k++) {
		run.lane[k].method = &method[k % opt->nmethod];
		run.lane[k].app = result[k].app;
		run.lane[k].skew = mpib_alloc(result[k].app ? 0 : MPIB_SKEW_MAX, sizeof(double));
	}
	warm_up(&run);
	run_blocks(&run, result);
	for (uint32_t k = 0; k < ncase; k++) {
		summarise(&run, &run.lane[k], &result[k]);
		free(run.lane[k].skew);
	}
	free(run.lane);
	free(run.exit);
	free(run.first);
	free(run.last);
}
