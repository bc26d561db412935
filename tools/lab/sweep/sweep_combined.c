/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_combined.c - `nbar-lab sweep combined`: nodes with several threads; compares polling of the
 * completion word with a release stage of the threads.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bench_host.h"
#include "lab.h"
#include "option.h"
#include "sweep.h"

#define THREADS_MAX 1024u

static const struct result_column columns[] = {
	{ "nodes", "", RESULT_COUNT, 0 },   { "where", "", RESULT_TEXT, 0 },
	{ "alg", "", RESULT_TEXT, 0 },      { "kind", "", RESULT_TEXT, 0 },
	{ "threads", "", RESULT_COUNT, 0 }, { "mean", "us", RESULT_REAL, 2 },
	{ "low", "us", RESULT_REAL, 2 },    { "high", "us", RESULT_REAL, 2 },
	{ "p50", "us", RESULT_REAL, 2 },    { "speedup", "", RESULT_REAL, 2 },
	{ "release", "", RESULT_REAL, 2 },
};

struct options {
	struct bench_options bench;
	uint32_t threads[BENCH_LIST_MAX], nthreads;
	char kind[BENCH_LIST_MAX][NBAR_NAME_MAX];
	uint32_t nkind;
};

enum { OPT_THREADS = BENCH_OPT_MORE, OPT_KIND };

static const struct option more_options[] = {
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "kind", required_argument, NULL, OPT_KIND },
	{ 0 },
};

static int add_threads(void *arg, const char *item)
{
	struct options *o = arg;

	if (o->nthreads == BENCH_LIST_MAX)
		return tool_usage("--threads: at most %u numbers", BENCH_LIST_MAX);
	return option_u32("--threads", item, 1, THREADS_MAX, &o->threads[o->nthreads++]);
}

static int add_kind(void *arg, const char *item)
{
	struct options *o = arg;
	size_t bytes;

	if (!strcmp(item, "all"))
		return tool_list("sense-reverse,mcs,tournament,dissemination:1", add_kind, o);
	if (strlen(item) >= NBAR_NAME_MAX || nbar_team_size(item, 1, &bytes))
		return tool_usage("--kind: '%s' is none of sense-reverse, mcs, tournament, "
				  "dissemination:1 .. dissemination:%u, all",
				  item, NBAR_TEAM_WAYS_MAX);
	if (o->nkind == BENCH_LIST_MAX)
		return tool_usage("--kind: at most %u kinds", BENCH_LIST_MAX);
	strcpy(o->kind[o->nkind++], item);
	return 0;
}

static int combined_read_more(void *arg, int c, const char *value)
{
	struct options *o = arg;

	if (c == OPT_THREADS) {
		o->nthreads = 0;
		return tool_list(value, add_threads, o);
	}
	o->nkind = 0;
	return tool_list(value, add_kind, o);
}

static void combined_usage(void)
{
	fputs("usage: nbar-lab sweep combined [OPTION]...\n"
	      "Nodes of several threads: the threads meet as a team, then the nodes meet. nic:\n"
	      "all threads poll the NIC's completion word. nic-release: one thread polls it,\n"
	      "then releases the others. host: one thread runs the protocol, then releases.\n"
	      "speedup: host / nic; release: nic-release / nic. Times are microseconds.\n\n"
	      "  --threads LIST    threads per node (1,2,4,8)\n"
	      "  --kind LIST       teams: sense-reverse, mcs, tournament, dissemination:1 ..\n"
	      "                    dissemination:16; all: one of each (sense-reverse)\n"
	      "  --where LIST      nic, nic-release, host (nic,nic-release,host)\n"
	      "  --nodes LIST, --alg LIST  see nbar bench (2,4,8; " ALGS_BENCH ")\n"
	      "  -i, --iterations N  measured barriers per run (500)\n"
	      "  --launches N      runs of each point, in random order; medians are shown (6)\n",
	      stdout);
	bench_usage_common(stdout);
}

/* Nodes x algorithms x kinds x threads, in that order. */
static struct bench_point *combined_make_points(const struct options *o, uint32_t *n)
{
	const struct bench_options *opt = &o->bench;
	uint32_t inner = opt->nalg * o->nkind * o->nthreads;
	struct bench_point *point = bench_points_new(opt, opt->nnodes * inner);

	*n = opt->nnodes * inner;
	for (uint32_t i = 0; i < *n; i++) {
		uint32_t threads = o->threads[i % o->nthreads];
		const char *kind = o->kind[i / o->nthreads % o->nkind];

		point[i].config = (struct bench_config){
			.nodes = opt->nodes[i / inner],
			.alg = opt->alg[i / o->nthreads / o->nkind % opt->nalg],
			.iters = opt->iters,
			.warmup = opt->warmup,
			.drive = bench_threads_drive,
			.threads = threads,
			.kind = kind,
		};
		snprintf(point[i].name, sizeof(point[i].name), "%u threads %s", threads, kind);
	}
	return point;
}

static double ratio(const struct bench_options *opt, const struct bench_point *p,
		    enum bench_where a, enum bench_where b)
{
	return bench_point_mean(opt, p, a).median / bench_point_mean(opt, p, b).median;
}

static void combined_add_row(const void *arg, const struct bench_options *opt,
			     const struct bench_point *p, enum bench_where where, struct result *r)
{
	struct metric_median m = bench_point_mean(opt, p, where);

	(void)arg;
	result_count(r, p->config.nodes);
	result_text(r, bench_where_name[where]);
	result_text(r, p->config.alg);
	result_text(r, p->config.kind);
	result_count(r, p->config.threads);
	result_real(r, m.median);
	result_real(r, m.low);
	result_real(r, m.high);
	result_real(r, bench_median(p->repetition[where], opt->repetitions, METRIC_P50).median);
	result_real(r, where == BENCH_NIC ? ratio(opt, p, BENCH_HOST, where) : NAN);
	result_real(r, where == BENCH_NIC ? ratio(opt, p, BENCH_NIC_RELEASE, where) : NAN);
}

/* Counts the points where polling is faster, and the points among them whose intervals do not
 * overlap. Teams of one thread do not count, because they release no other thread. */
static void combined_add_notes(const void *arg, const struct bench_options *opt,
			       const struct bench_point *point, uint32_t n, bool complete,
			       struct result *r)
{
	uint32_t faster = 0, apart = 0, all = 0;

	(void)arg;
	(void)complete;
	for (uint32_t i = 0; i < n; i++) {
		struct metric_median poll = bench_point_mean(opt, &point[i], BENCH_NIC);
		struct metric_median release = bench_point_mean(opt, &point[i], BENCH_NIC_RELEASE);

		if (point[i].config.threads < 2 || !(poll.median > 0 && release.median > 0))
			continue;
		all++;
		faster += poll.median < release.median;
		apart += poll.high < release.low;
	}
	if (all)
		result_note(r,
			    "polling is faster than the release stage at %u of %u points of two "
			    "threads or more, at %u of them with intervals apart",
			    faster, all, apart);
}

static void combined_describe(const struct options *o, struct result *r, int argc, char **argv)
{
	struct sweep_list threads = { .n = o->nthreads };
	char list[BENCH_LIST_MAX * (NBAR_NAME_MAX + 1)];

	for (uint32_t i = 0; i < o->nthreads; i++)
		threads.value[i] = o->threads[i];
	result_command(r, argc, argv);
	sweep_list_text(&threads, list, sizeof(list));
	result_setting_text(r, "threads", list);
	*list = '\0';
	for (uint32_t i = 0; i < o->nkind; i++)
		tool_join(list, sizeof(list), ",", "%s", o->kind[i]);
	result_setting_text(r, "kind", list);
}

static int combined_run(struct options *o, int argc, char **argv)
{
	struct result *result =
		result_new("combined", columns, sizeof(columns) / sizeof(columns[0]));
	uint32_t n;
	struct bench_point *point = combined_make_points(o, &n);
	int r;

	combined_describe(o, result, argc, argv);
	r = bench_points_all(&o->bench, point, n,
			     &(struct bench_rows){ combined_add_row, combined_add_notes, NULL },
			     result);
	free(point);
	return r;
}

int sweep_combined(int argc, char **argv)
{
	static struct options o; /* large */
	const struct bench_extra_options more = { more_options, combined_read_more, &o };
	bool help;
	int r;

	o = (struct options){
		.bench = bench_options_default(),
		.threads = { 1, 2, 4, 8 },
		.nthreads = 4,
		.kind = { "sense-reverse" },
		.nkind = 1,
	};
	o.bench.teams = true;
	o.bench.nnodes = 3;
	o.bench.where[1] = BENCH_NIC_RELEASE;
	o.bench.where[2] = BENCH_HOST;
	o.bench.nwhere = 3;
	o.bench.iters = 500;
	o.bench.warmup = 50;
	o.bench.repetitions = 6;
	r = bench_options_parse(argc - 1, argv + 1, &o.bench, &more, &help);
	if (help)
		combined_usage();
	if (!r && !help && o.bench.drivers == BENCH_DRIVERS_ONE)
		r = tool_usage("--drivers 1: each node with threads needs its own process");
	return r || help ? r : combined_run(&o, argc, argv);
}
