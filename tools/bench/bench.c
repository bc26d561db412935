/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.c - `nbar bench`: latency of every plan at every size, NIC-based against host-based.
 */
#include "bench.h"
#include "option.h"
#include "subcommands.h"

#include <stdlib.h>
#include <string.h>

/* The columns before the metrics. */
static const struct result_column keys[] = {
	{ "nodes", "", RESULT_COUNT, 0 },
	{ "where", "", RESULT_TEXT, 0 },
	{ "alg", "", RESULT_TEXT, 0 },
};
#define NKEY (sizeof(keys) / sizeof(keys[0]))

static unsigned tables(const struct bench_options *opt)
{
	return METRIC_BENCH | (opt->full ? METRIC_BENCH_FULL : 0);
}

static void add_row(const void *arg, const struct bench_options *opt, const struct bench_point *p,
		    enum bench_where where, struct result *r)
{
	const struct bench_figures *repetition = p->repetition[where];
	double value[METRIC_END];

	(void)arg;
	result_count(r, p->config.nodes);
	result_text(r, bench_where_name[where]);
	result_text(r, p->config.alg);
	metric_merge(repetition->metric, BENCH_NFIGURES,
		     bench_repetitions_done(repetition, opt->repetitions), METRIC_BENCH, value);
	if (where == BENCH_NIC)
		value[METRIC_SPEEDUP] = bench_point_speedup(opt, p);
	metric_put(r, tables(opt), value);
}

static void add_notes(const void *arg, const struct bench_options *opt,
		      const struct bench_point *point, uint32_t n, bool complete, struct result *r)
{
	(void)arg;
	(void)point;
	(void)n;
	(void)complete;
	if (opt->value)
		result_note(r, "the barriers carry sums of %u bytes", opt->value);
	result_note(r, "%u barriers per run; speedup: host mean / NIC mean%s", opt->iters,
		    bench_wants(opt, BENCH_NIC) && bench_wants(opt, BENCH_HOST)
			    ? ""
			    : ", if both are run");
	for (uint32_t i = 0; i < opt->nwhere; i++)
		if (bench_in_process(opt->where[i]))
			result_note(r,
				    "%s: NICs in the hosts' processes%s%s; no speedup, because "
				    "the wires differ",
				    bench_where_name[opt->where[i]], opt->keys ? ", " : "",
				    opt->keys ? opt->keys : "");
}

static struct bench_point *make_points(const struct bench_options *opt, uint32_t *n)
{
	struct bench_point *point = bench_points_new(opt, opt->nnodes * opt->nalg);
	uint32_t at = 0;

	*n = opt->nnodes * opt->nalg;
	for (uint32_t i = 0; i < opt->nnodes; i++) {
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
	struct result_column column[RESULT_COLUMNS_MAX];
	struct bench_point *point;
	struct result *result;
	uint32_t n, n_column;
	bool help;
	int r;

	opt.in_process = true;
	r = bench_options_parse(argc, argv, &opt, NULL, &help);
	if (option_ends(r, help, bench_usage))
		return r;
	name_wires(&opt);
	point = make_points(&opt, &n);
	memcpy(column, keys, sizeof(keys));
	n_column = NKEY + metric_columns(tables(&opt), column + NKEY);
	result = result_new("bench", column, n_column);
	result_command(result, argc, argv);
	r = bench_points_all(&opt, point, n, &(struct bench_rows){ add_row, add_notes, NULL },
			     result);
	free(point);
	return r;
}
