/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app.c - `nbar-lab app`: synthetic applications: steps of compute, each ended by a barrier.
 */
#include <math.h>
#include <stdlib.h>

#include "app_set.h"
#include "lab.h"
#include "sweep.h"

static const struct result_column columns[] = {
	{ "nodes", "", RESULT_COUNT, 0 },      { "where", "", RESULT_TEXT, 0 },
	{ "alg", "", RESULT_TEXT, 0 },         { "application", "", RESULT_TEXT, 0 },
	{ "steps", "", RESULT_COUNT, 0 },      { "compute", "us", RESULT_REAL, 1 },
	{ "execution", "us", RESULT_REAL, 2 }, { "low", "us", RESULT_REAL, 2 },
	{ "high", "us", RESULT_REAL, 2 },      { "speedup", "", RESULT_REAL, 3 },
	{ "efficiency", "", RESULT_REAL, 3 },
};

struct options {
	struct bench_options bench;
	struct app_set app_set;
};

enum { OPT_APP = BENCH_OPT_MORE }; /* OPT_APP + app_set_option: the options of app_set.h */

static const struct option more_options[] = {
	{ "app", required_argument, NULL, OPT_APP + APP_SET_APP },
	{ "steps", required_argument, NULL, OPT_APP + APP_SET_STEPS },
	{ "vary", required_argument, NULL, OPT_APP + APP_SET_VARY },
	{ "scale", required_argument, NULL, OPT_APP + APP_SET_SCALE },
	{ 0 },
};

static int app_read_more(void *arg, int c, const char *value)
{
	struct options *o = arg;

	return app_set_read(&o->app_set, (enum app_set_option)(c - OPT_APP), value);
}

static void app_usage(void)
{
	fputs("usage: nbar-lab app [OPTION]...\n"
	      "Synthetic applications: steps of compute, each with a barrier at its end. Every\n"
	      "node varies every step at random; NIC- and host-based runs have equal times.\n"
	      "execution: time of all steps, once. speedup: host / NIC. efficiency: compute /\n"
	      "execution. Times are microseconds.\n\n",
	      stdout);
	fputs(app_set_usage, stdout);
	fputs("  --nodes, --alg, --where LIST  see nbar bench (8; " ALGS_SWEEP "; nic,host)\n"
	      "  -i, --iterations N  executions per run (100), after one as warm-up\n"
	      "  --launches N      runs of each point, in random order; medians are shown (6)\n",
	      stdout);
	bench_usage_common(stdout);
}

static void app_add_row(const void *arg, const struct bench_options *opt,
			const struct bench_point *p, enum bench_where where, struct result *r)
{
	struct metric_median m = bench_point_mean(opt, p, where);
	const struct app *app = ((const struct options *)arg)->app_set.app;

	while (&app->work != p->config.work)
		app++;
	result_count(r, p->config.nodes);
	result_text(r, bench_where_name[where]);
	result_text(r, p->config.alg);
	result_text(r, app->name);
	result_count(r, app->work.nstep);
	result_real(r, app->compute_us);
	result_real(r, m.median * app->work.nstep);
	result_real(r, m.low * app->work.nstep);
	result_real(r, m.high * app->work.nstep);
	result_real(r, where == BENCH_NIC ? bench_point_speedup(opt, p) : NAN);
	result_real(r, app->compute_us / (m.median * app->work.nstep));
}

/* Nodes x algorithms x applications, in that order. */
static void set_points(const struct options *o, struct bench_point *point)
{
	const struct bench_options *opt = &o->bench;

	for (uint32_t i = 0; i < opt->nnodes; i++) {
		for (uint32_t a = 0; a < opt->nalg * o->app_set.n; a++, point++) {
			const struct app *app = &o->app_set.app[a % o->app_set.n];

			point->config = (struct bench_config){
				.nodes = opt->nodes[i],
				.alg = opt->alg[a / o->app_set.n],
				.iters = opt->iters * app->work.nstep,
				.warmup = opt->warmup * app->work.nstep,
				.work = &app->work,
			};
			snprintf(point->name, sizeof(point->name), "application %s", app->name);
		}
	}
}

static void app_add_notes(const void *arg, const struct bench_options *opt,
			  const struct bench_point *point, uint32_t n, bool complete,
			  struct result *r)
{
	const struct options *o = arg;

	(void)point;
	(void)n;
	(void)complete;
	result_note(r, "%u executions a run", opt->iters);
	app_set_note(&o->app_set, r);
	result_note(r, "%s", sweep_compute_text);
}

static int app_run(struct options *o, int argc, char **argv)
{
	struct result *result = result_new("app", columns, sizeof(columns) / sizeof(columns[0]));
	struct bench_options *opt = &o->bench;
	uint32_t n = opt->nnodes * opt->nalg * o->app_set.n;
	struct bench_point *point = bench_points_new(opt, n);
	int r;

	set_points(o, point);
	result_command(result, argc, argv);
	app_set_describe(&o->app_set, result);
	r = bench_points_all(opt, point, n, &(struct bench_rows){ app_add_row, app_add_notes, o },
			     result);
	free(point);
	return r;
}

int tool_app(int argc, char **argv)
{
	static struct options o; /* large */
	const struct bench_extra_options more = { more_options, app_read_more, &o };
	bool help;
	int r;

	o = (struct options){ .bench = sweep_defaults(8, 100, 6), .app_set = app_set_default() };
	o.bench.warmup = 1;
	r = bench_options_parse(argc, argv, &o.bench, &more, &help);
	if (help)
		app_usage();
	if (r || help)
		return r;
	app_set_finish(&o.app_set, 0);
	return app_run(&o, argc, argv);
}
