/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_arrival.c - `nbar-lab sweep arrival`: the advantage of NIC-based barriers if hosts arrive
 * at different times.
 */
#include <math.h>

#include "lab.h"
#include "sweep.h"

static const struct result_column columns[] = {
	{ "nodes", "", RESULT_COUNT, 0 },     { "where", "", RESULT_TEXT, 0 },
	{ "alg", "", RESULT_TEXT, 0 },        { "compute", "us", RESULT_REAL, 1 },
	{ "variation", "%", RESULT_REAL, 1 }, { "total variation", "us", RESULT_REAL, 1 },
	{ "loop", "us", RESULT_REAL, 2 },     { "low", "us", RESULT_REAL, 2 },
	{ "high", "us", RESULT_REAL, 2 },     { "difference", "us", RESULT_REAL, 2 },
	{ "speedup", "", RESULT_REAL, 2 },
};

struct options {
	struct bench_options bench;
	struct sweep_list compute, vary;
};

enum { OPT_COMPUTE = BENCH_OPT_MORE, OPT_VARY };

static const struct option more_options[] = {
	{ "compute", required_argument, NULL, OPT_COMPUTE },
	{ "vary", required_argument, NULL, OPT_VARY },
	{ 0 },
};

static int read_more(void *arg, int c, const char *value)
{
	struct options *o = arg;

	return c == OPT_COMPUTE ? sweep_list_read("--compute", value, 0.1, 1e6, &o->compute)
				: sweep_list_read("--vary", value, 0, 100, &o->vary);
}

static void arrival_usage(void)
{
	fputs("usage: nbar-lab sweep arrival [OPTION]...\n"
	      "Loops of compute + barrier. Every host varies its compute time at random; NIC-\n"
	      "and host-based runs have equal times. total variation: greatest - least compute\n"
	      "time of a host. difference: host - NIC. Times are microseconds.\n\n"
	      "  --compute LIST    compute times (64,128,256,512,1024,2048,4096)\n"
	      "  --vary LIST       greatest variation, percent up or down (0,5,10,15,20)\n"
	      "  --nodes, --alg, --where LIST  see nbar bench (16; " ALGS_SWEEP "; nic,host)\n"
	      "  -i, --iterations N  measured loops per run (200)\n"
	      "  --launches N      runs of each point, in random order; medians are shown (3)\n",
	      stdout);
	bench_usage_common(stdout);
}

static void arrival_add_row(const void *arg, const struct bench_options *opt,
			    const struct bench_point *p, enum bench_where where, struct result *r)
{
	const struct bench_work *work = p->config.work;
	double compute = work->step_ns[0] / 1e3;
	struct metric_median m = bench_point_mean(opt, p, where);

	(void)arg;
	result_count(r, p->config.nodes);
	result_text(r, bench_where_name[where]);
	result_text(r, p->config.alg);
	result_real(r, compute);
	result_real(r, work->vary * 100);
	result_real(r, compute * work->vary * 2);
	result_real(r, m.median);
	result_real(r, m.low);
	result_real(r, m.high);
	result_real(r, where == BENCH_NIC ? bench_point_mean(opt, p, BENCH_HOST).median - m.median
					  : NAN);
	result_real(r, where == BENCH_NIC ? bench_point_speedup(opt, p) : NAN);
}

static void arrival_add_notes(const void *arg, const struct bench_options *opt,
			      const struct bench_point *point, uint32_t n, bool complete,
			      struct result *r)
{
	(void)arg;
	(void)opt;
	(void)point;
	(void)n;
	(void)complete;
	result_note(r, "%s", sweep_compute_text);
}

static void arrival_describe(const struct options *o, struct result *r, int argc, char **argv)
{
	char list[SWEEP_LIST_MAX * 14];

	result_command(r, argc, argv);
	sweep_list_text(&o->compute, list, sizeof(list));
	result_setting_text(r, "compute_us", list);
	sweep_list_text(&o->vary, list, sizeof(list));
	result_setting_text(r, "vary_percent", list);
}

static int arrival_run(struct options *o, int argc, char **argv)
{
	struct result *result =
		result_new("arrival", columns, sizeof(columns) / sizeof(columns[0]));
	struct sweep_points p;
	int r;

	sweep_points_make(&p, &o->bench, &o->compute, &o->vary);
	arrival_describe(o, result, argc, argv);
	r = bench_points_all(&o->bench, p.point, p.n,
			     &(struct bench_rows){ arrival_add_row, arrival_add_notes, NULL },
			     result);
	sweep_points_free(&p);
	return r;
}

int sweep_arrival(int argc, char **argv)
{
	struct options o = {
		.bench = sweep_defaults(16, 200, 3),
		.compute = { { 64, 128, 256, 512, 1024, 2048, 4096 }, 7 },
		.vary = { { 0, 5, 10, 15, 20 }, 5 },
	};
	const struct bench_extra_options more = { more_options, read_more, &o };
	bool help;
	int r;

	r = bench_options_parse(argc - 1, argv + 1, &o.bench, &more, &help);
	if (help)
		arrival_usage();
	return r || help ? r : arrival_run(&o, argc, argv);
}
