/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_threads.c - `nbar-lab threads`: barriers of the threads of a process: nbar_team, and
 * barriers of other projects (peers).
 *
 * Each repetition runs every kind, and the transfer of a cache line, once with every number of
 * threads, in random order. The figures are medians over the repetitions. sweep_threads_opt.c reads
 * the options.
 */
#include "sweep_threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab.h"
#include "stats.h"
#include "sweep.h"
#include "thread_run.h"
#include "tool.h"
#include "signals.h"

#define LEVEL 0.95

/* A kind with a number of threads, and its measurements. */
struct point {
	const char *kind;
	uint32_t threads;
	uint32_t n; /* repetitions done */
	double *ns; /* by repetition: the mean over the threads of their mean times */
	double *iterations;
};

/* --- the runs -------------------------------------------------------------------------------- */

static double mean(const double *value, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += value[i];
	return sum / n;
}

static int threads_measure(struct experiment *e, const struct sweep_threads_options *opt,
			   struct point *p, uint32_t repetition)
{
	static struct thread_loop loop;
	bool transfer = !strcmp(p->kind, THREAD_TRANSFER);
	int r;

	loop = (struct thread_loop){
		.threads = p->threads,
		.warmup = opt->warmup,
		.iterations = opt->iterations,
		.limit_ns = opt->limit_ms * UINT64_C(1000000),
	};
	progress_show(&e->progress, "%s, %u threads", p->kind, p->threads);
	r = thread_run(p->kind, &loop);
	if (r)
		return r;
	/* The loop measures round trips: a transfer is half a round trip. */
	for (uint32_t i = 0; i < p->threads; i++)
		loop.mean_ns[i] /= transfer ? 2 : 1;
	for (uint32_t i = 0; experiment_raw(e) && i < p->threads; i++)
		fprintf(experiment_raw(e), "%s/%u,%u,%u,%.3f\n", p->kind, p->threads, i, repetition,
			loop.mean_ns[i]);
	experiment_add(e, 1);
	p->ns[p->n] = mean(loop.mean_ns, p->threads);
	p->iterations[p->n++] = (double)loop.measured;
	return 0;
}

/* Measures all points once in each repetition, each time in another order. */
static int threads_measure_all(struct experiment *e, const struct sweep_threads_options *opt,
			       struct point *point, uint32_t n)
{
	uint32_t order[SWEEP_KINDS_MAX * SWEEP_COUNTS_MAX + 1];
	uint64_t seed = opt->seed;

	for (uint32_t repetition = 0; repetition < opt->repetitions; repetition++) {
		stats_shuffle(order, n, &seed);
		for (uint32_t i = 0; i < n; i++) {
			int r = threads_measure(e, opt, &point[order[i]], repetition);

			if (r)
				return r;
		}
	}
	return 0;
}

/* --- the result ------------------------------------------------------------------------------ */

static const struct result_column columns[] = {
	{ "threads", "", RESULT_COUNT, 0 },    { "barrier", "", RESULT_TEXT, 0 },
	{ "of", "", RESULT_TEXT, 0 },          { "time", "us", RESULT_REAL, 3 },
	{ "low", "us", RESULT_REAL, 3 },       { "high", "us", RESULT_REAL, 3 },
	{ "best", "", RESULT_REAL, 2 },        { "transfers", "", RESULT_REAL, 2 },
	{ "iterations", "", RESULT_COUNT, 0 },
};
#define NCOLUMN ((uint32_t)(sizeof(columns) / sizeof(columns[0])))

static const char *threads_maker(const char *kind)
{
	if (!strncmp(kind, "ck-", 3))
		return "ck";
	if (!strcmp(kind, "omp-gcc"))
		return "gcc";
	if (!strcmp(kind, "omp-llvm"))
		return "llvm";
	if (!strcmp(kind, "pthread"))
		return "libc";
	return thread_kind_own(kind) ? "nbar" : "-";
}

static double median(const struct point *p)
{
	return stats_median(p->ns, p->n);
}

/* The fastest nbar_team, or the fastest peer, with that many threads; NULL if there is none. */
static const struct point *threads_fastest(const struct point *point, uint32_t n, uint32_t threads,
					   bool own)
{
	const struct point *best = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (point[i].n && point[i].threads == threads &&
		    strcmp(point[i].kind, THREAD_TRANSFER) &&
		    thread_kind_own(point[i].kind) == own &&
		    (!best || median(&point[i]) < median(best)))
			best = &point[i];
	return best;
}

static void threads_add_row(struct result *r, const struct point *p, const struct point *best,
			    double transfer)
{
	double low, high, ns = median(p);

	stats_median_interval(p->ns, p->n, LEVEL, &low, &high);
	result_count(r, p->threads);
	result_text(r, p->kind);
	result_text(r, threads_maker(p->kind));
	result_real(r, ns / 1000);
	result_real(r, low / 1000);
	result_real(r, high / 1000);
	result_real(r, best && strcmp(p->kind, THREAD_TRANSFER) ? ns / median(best) : NAN);
	result_real(r, transfer > 0 ? ns / transfer : NAN);
	result_count(r, (uint64_t)stats_median(p->iterations, p->n));
}

static void add_note(struct result *r, const struct point *point, uint32_t n, uint32_t threads,
		     double transfer)
{
	const struct point *own = threads_fastest(point, n, threads, true);
	const struct point *peer = threads_fastest(point, n, threads, false);
	char reach[80] = "";

	if (!own || !peer)
		return;
	if (threads == 2 && transfer > 0)
		snprintf(reach, sizeof(reach), ", %.2f transfers of a cache line",
			 median(own) / transfer);
	result_note(
		r,
		"%u threads: nbar_team %s takes %.3f us%s; the fastest peer, %s, %.2f times that",
		threads, own->kind, median(own) / 1000, reach, peer->kind,
		median(peer) / median(own));
}

/* Reports the measurements. After an interrupted run, the existing measurements are valid. */
static void threads_report(struct result *r, const struct sweep_threads_options *opt,
			   const struct point *point, uint32_t n, bool complete)
{
	double transfer = 0;

	for (uint32_t i = 0; i < n; i++)
		if (point[i].n && !strcmp(point[i].kind, THREAD_TRANSFER))
			transfer = median(&point[i]);
	for (uint32_t i = 0; i < n; i++)
		if (point[i].n)
			threads_add_row(r, &point[i],
					threads_fastest(point, n, point[i].threads, true),
					transfer);
	for (uint32_t i = 0; complete && i < opt->nthreads; i++)
		add_note(r, point, n, opt->threads[i], transfer);
	result_note(
		r,
		"time: median over %s%u repetitions of the mean over the threads; low, high: its "
		"95 %% confidence interval; best: time / time of the fastest nbar_team; "
		"transfers: time / time of moving a cache line from core to core",
		complete ? "" : "at most ", opt->repetitions);
}

/* --------------------------------------------------------------------------------------------- */

static struct result *threads_begin(const struct sweep_threads_options *opt, int argc, char **argv)
{
	struct result *r = result_new("threads", columns, NCOLUMN);
	char kinds[SWEEP_KINDS_MAX * 32] = "", threads[SWEEP_COUNTS_MAX * 4] = "";

	for (uint32_t i = 0; i < opt->nkind; i++)
		tool_join(kinds, sizeof(kinds), ",", "%s", opt->kind[i]);
	for (uint32_t i = 0; i < opt->nthreads; i++)
		tool_join(threads, sizeof(threads), ",", "%u", opt->threads[i]);
	result_command(r, argc, argv);
	result_setting_text(r, "kinds", kinds);
	result_setting_text(r, "threads", threads);
	result_setting_number(r, "iterations", opt->iterations);
	result_setting_number(r, "warmup", opt->warmup);
	result_setting_number(r, "launches", opt->repetitions);
	result_setting_number(r, "limit_ms", opt->limit_ms);
	result_setting_number(r, "seed", (double)opt->seed);
	return r;
}

static uint32_t list_points(const struct sweep_threads_options *opt, struct point *point,
			    double *values)
{
	uint32_t n = 0;

	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		point[n++] = (struct point){ .kind = THREAD_TRANSFER, .threads = 2 };
	for (uint32_t t = 0; t < opt->nthreads; t++)
		for (uint32_t k = 0; k < opt->nkind; k++)
			point[n++] =
				(struct point){ .kind = opt->kind[k], .threads = opt->threads[t] };
	for (uint32_t i = 0; i < n; i++) {
		point[i].ns = values + (size_t)2 * i * opt->repetitions;
		point[i].iterations = point[i].ns + opt->repetitions;
	}
	return n;
}

int sweep_threads(int argc, char **argv)
{
	static struct point point[SWEEP_KINDS_MAX * SWEEP_COUNTS_MAX + 1];
	struct sweep_threads_options opt;
	struct experiment e;
	double *values;
	uint32_t n;
	bool help;
	int r = sweep_threads_options(argc, argv, &opt, &help);

	if (help || r)
		return r;
	values = tool_alloc((size_t)2 * (SWEEP_KINDS_MAX * SWEEP_COUNTS_MAX + 1) * opt.repetitions,
			    sizeof(*values));
	n = list_points(&opt, point, values);
	signals_begin();
	r = experiment_begin(&e, &opt.files, threads_begin(&opt, argc, argv),
			     (double)n * opt.repetitions);
	if (!r) {
		r = threads_measure_all(&e, &opt, point, n);
		threads_report(e.result, &opt, point, n, !r);
		r = experiment_end(&e, r);
	}
	free(values);
	return r;
}
