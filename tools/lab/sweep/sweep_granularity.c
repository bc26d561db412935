/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_granularity.c - `nbar-lab sweep granularity`: the time of a loop of compute + barrier as a
 * function of compute, and the range where it is constant.
 */
#include <math.h>
#include <stddef.h>

#include "lab.h"
#include "option.h"
#include "sweep.h"

static const struct result_column columns[] = {
	{ "nodes", "", RESULT_COUNT, 0 }, { "where", "", RESULT_TEXT, 0 },
	{ "alg", "", RESULT_TEXT, 0 },    { "compute", "us", RESULT_REAL, 2 },
	{ "loop", "us", RESULT_REAL, 2 }, { "low", "us", RESULT_REAL, 2 },
	{ "high", "us", RESULT_REAL, 2 }, { "barrier", "us", RESULT_REAL, 2 },
	{ "late", "us", RESULT_REAL, 2 }, { "speedup", "", RESULT_REAL, 2 },
};

struct options {
	struct bench_options bench;
	struct sweep_list compute;
	double range[2];
	uint32_t points;
};

enum { OPT_COMPUTE = BENCH_OPT_MORE, OPT_POINTS };

static const struct option more_options[] = {
	{ "compute", required_argument, NULL, OPT_COMPUTE },
	{ "points", required_argument, NULL, OPT_POINTS },
	{ 0 },
};

static int granularity_read_more(void *arg, int c, const char *value)
{
	struct options *o = arg;

	if (c == OPT_COMPUTE)
		return sweep_range_read("--compute", value, 0.1, 1e6, &o->compute, o->range);
	return option_u32("--points", value, 2, SWEEP_LIST_MAX, &o->points);
}

static void granularity_usage(void)
{
	fputs("usage: nbar-lab sweep granularity [OPTION]...\n"
	      "Loops of compute + barrier: the time of a loop, by its compute. While the last\n"
	      "messages of a barrier leave, computing may cost nothing: the sweep looks for\n"
	      "this flat spot. barrier: loop - compute. late: real - wanted compute time; the\n"
	      "loop contains this delay. Times are microseconds.\n\n"
	      "  --compute A-B|LIST  compute times: a range, or a list (1.5-130)\n"
	      "  --points N        number of points from A to B, with a constant ratio (16)\n"
	      "  --nodes, --alg, --where LIST  see nbar bench (8; " ALGS_SWEEP "; nic,host)\n"
	      "  -i, --iterations N  measured loops per run (1000)\n"
	      "  --launches N      runs of each point, in random order; medians are shown (6)\n",
	      stdout);
	bench_usage_common(stdout);
}

static void granularity_add_row(const void *arg, const struct bench_options *opt,
				const struct bench_point *p, enum bench_where where,
				struct result *r)
{
	struct metric_median m = bench_point_mean(opt, p, where);
	size_t late = BENCH_FIGURE(late_us);
	double compute = p->config.work->step_ns[0] / 1e3;

	(void)arg;
	result_count(r, p->config.nodes);
	result_text(r, bench_where_name[where]);
	result_text(r, p->config.alg);
	result_real(r, compute);
	result_real(r, m.median);
	result_real(r, m.low);
	result_real(r, m.high);
	result_real(r, m.median - compute);
	result_real(r, bench_median(p->repetition[where], opt->repetitions, late).median);
	result_real(r, where == BENCH_NIC ? bench_point_speedup(opt, p) : NAN);
}

/* Adds a note on one curve: the points of one node count and algorithm. */
static void note_flat(const struct bench_options *opt, const struct bench_point *point, uint32_t n,
		      enum bench_where where, struct result *r)
{
	const struct bench_config *c = &point->config;
	double compute[SWEEP_LIST_MAX], time[SWEEP_LIST_MAX];

	for (uint32_t i = 0; i < n; i++) {
		compute[i] = point[i].config.work->step_ns[0] / 1e3;
		time[i] = bench_point_mean(opt, &point[i], where).median;
	}
	double noise = sweep_points_noise(opt, point, n, where);
	struct sweep_flat flat = sweep_flat_find(compute, time, n, noise);

	if (flat.found)
		result_note(r,
			    "flat spot: %u nodes, %s, %s: up to %.2f us (loops of %.2f us, noise "
			    "%.2f us)",
			    c->nodes, c->alg, bench_where_name[where], flat.until, flat.level,
			    noise);
	else
		result_note(r, "flat spot: %u nodes, %s, %s: none (noise %.2f us)", c->nodes,
			    c->alg, bench_where_name[where], noise);
}

static void granularity_add_notes(const void *arg, const struct bench_options *opt,
				  const struct bench_point *point, uint32_t n, bool complete,
				  struct result *r)
{
	const struct options *o = arg;

	for (uint32_t i = 0; complete && i < n; i += o->compute.n)
		for (uint32_t w = 0; w < opt->nwhere; w++)
			note_flat(opt, &point[i], o->compute.n, opt->where[w], r);
	result_note(r, "%s", sweep_compute_text);
}

static int granularity_run(struct options *o, int argc, char **argv)
{
	static const struct sweep_list steady = { { 0 }, 1 };
	struct result *result =
		result_new("granularity", columns, sizeof(columns) / sizeof(columns[0]));
	char list[SWEEP_LIST_MAX * 14];
	struct sweep_points p;
	int r;

	sweep_points_make(&p, &o->bench, &o->compute, &steady);
	result_command(result, argc, argv);
	sweep_list_text(&o->compute, list, sizeof(list));
	result_setting_text(result, "compute_us", list);
	r = bench_points_all(&o->bench, p.point, p.n,
			     &(struct bench_rows){ granularity_add_row, granularity_add_notes, o },
			     result);
	sweep_points_free(&p);
	return r;
}

int sweep_granularity(int argc, char **argv)
{
	struct options o = { .bench = sweep_defaults(8, 1000, 6),
			     .range = { 1.5, 130 },
			     .points = 16 };
	const struct bench_extra_options more = { more_options, granularity_read_more, &o };
	bool help;
	int r;

	r = bench_options_parse(argc - 1, argv + 1, &o.bench, &more, &help);
	if (help)
		granularity_usage();
	if (r || help)
		return r;
	if (!o.compute.n)
		sweep_list_spread(&o.compute, o.range[0], o.range[1], o.points);
	return granularity_run(&o, argc, argv);
}
