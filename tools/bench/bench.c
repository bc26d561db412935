/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.c - `nbar bench`: latency of every plan at every size, NIC-based against host-based.
 */
#include "bench.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct result_column columns[] = {
	{ "nodes", "", RESULT_COUNT, 0 },     { "where", "", RESULT_TEXT, 0 },
	{ "alg", "", RESULT_TEXT, 0 },        { "mean", "us", RESULT_REAL, 2 },
	{ "low", "us", RESULT_REAL, 2 },      { "high", "us", RESULT_REAL, 2 },
	{ "p50", "us", RESULT_REAL, 2 },      { "p99", "us", RESULT_REAL, 2 },
	{ "max", "us", RESULT_REAL, 2 },      { "skew", "us", RESULT_REAL, 2 },
	{ "speedup", "", RESULT_REAL, 2 },    { "mean min", "us", RESULT_REAL, 2 },
	{ "mean avg", "us", RESULT_REAL, 2 },
};
#define NCOLUMN (sizeof(columns) / sizeof(columns[0]))

static void add_row(const void *arg, const struct bench_options *opt, const struct bench_point *p,
		    enum bench_where where, struct result *r)
{
	static const size_t rest[] = { BENCH_FIGURE(p50_us), BENCH_FIGURE(p99_us),
				       BENCH_FIGURE(max_us), BENCH_FIGURE(skew_us) };
	const struct bench_figures *repetition = p->repetition[where];
	struct bench_median mean = bench_point_mean(opt, p, where);

	(void)arg;
	result_count(r, p->config.nodes);
	result_text(r, bench_where_name[where]);
	result_text(r, p->config.alg);
	result_real(r, mean.median);
	result_real(r, mean.low);
	result_real(r, mean.high);
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		result_real(r, bench_median(repetition, opt->repetitions, rest[i]).median);
	if (where == BENCH_NIC)
		result_real(r, bench_point_speedup(opt, p));
	else
		result_none(r);
	if (!opt->full)
		return;
	result_real(r,
		    bench_median(repetition, opt->repetitions, BENCH_FIGURE(mean_min_us)).median);
	result_real(r,
		    bench_median(repetition, opt->repetitions, BENCH_FIGURE(mean_avg_us)).median);
}

static void add_notes(const void *arg, const struct bench_options *opt,
		      const struct bench_point *point, uint32_t n, bool complete, struct result *r)
{
	(void)arg;
	(void)point;
	(void)n;
	(void)complete;
	result_note(r, "%u barriers a run; speedup: host mean / NIC mean%s", opt->iters,
		    bench_wants(opt, BENCH_NIC) && bench_wants(opt, BENCH_HOST)
			    ? ""
			    : ", if both are run");
	for (uint32_t i = 0; i < opt->nwhere; i++)
		if (bench_in_process(opt->where[i]))
			result_note(r,
				    "%s: NICs in the hosts' processes%s%s; no speedup: it compares "
				    "on one wire",
				    bench_where_name[opt->where[i]], opt->keys ? ", " : "",
				    opt->keys ? opt->keys : "");
}

static struct bench_point *make_points(const struct bench_options *opt, uint32_t *n)
{
	struct bench_point *point = bench_points_new(opt, opt->nnodes * opt->nalg);
	uint32_t at = 0;

	*n = opt->nnodes * opt->nalg;
	for (uint32_t i = 0; point && i < opt->nnodes; i++) {
		for (uint32_t a = 0; a < opt->nalg; a++) {
			point[at++].config = (struct bench_config){
				.nodes = opt->nodes[i],
				.alg = opt->alg[a],
				.iters = opt->iters,
				.warmup = opt->warmup,
			};
		}
	}
	return point;
}

/* The wires of a bench without a daemon. */
static void name_wires(struct bench_options *opt)
{
	char wires[sizeof(opt->wire)] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < opt->nwhere; i++) {
		if (!bench_in_process(opt->where[i]))
			return;
		used += (size_t)snprintf(wires + used, sizeof(wires) - used, "%s%s", i ? " " : "",
					 bench_where_name[opt->where[i]] + strlen("host-"));
		if (used >= sizeof(wires))
			break;
	}
	memcpy(opt->wire, wires, sizeof(wires));
}

int tool_bench(int argc, char **argv)
{
	struct bench_options opt = bench_options_default();
	struct bench_point *point;
	struct result *result;
	uint32_t n;
	bool help;
	int r;

	if (argc > 1 && !strcmp(argv[1], "one-to-many")) {
		tool_begin("nbar bench one-to-many");
		return tool_one_to_many(argc, argv);
	}
	opt.in_process = true;
	r = bench_options_parse(argc, argv, &opt, NULL, &help);
	if (help)
		bench_usage(stdout);
	if (r || help)
		return r;
	name_wires(&opt);
	point = make_points(&opt, &n);
	if (!point)
		return TOOL_FAILED;
	result = result_new("bench", columns, NCOLUMN - (opt.full ? 0 : 2));
	if (result)
		result_command(result, argc, argv);
	r = bench_points_all(&opt, point, n, &(struct bench_rows){ add_row, add_notes, NULL },
			     result);
	free(point);
	return r;
}
