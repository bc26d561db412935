/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app.c - `nbar app`: synthetic applications: steps of compute, each ended by a barrier.
 */
#include <stdlib.h>
#include <string.h>

#include "sweep.h"

#define APPS_MAX 16u

static const struct result_column columns[] = {
	{ "nodes", "", RESULT_COUNT, 0 },      { "where", "", RESULT_TEXT, 0 },
	{ "alg", "", RESULT_TEXT, 0 },         { "application", "", RESULT_TEXT, 0 },
	{ "steps", "", RESULT_COUNT, 0 },      { "compute", "us", RESULT_REAL, 1 },
	{ "execution", "us", RESULT_REAL, 2 }, { "low", "us", RESULT_REAL, 2 },
	{ "high", "us", RESULT_REAL, 2 },      { "factor", "", RESULT_REAL, 3 },
	{ "efficiency", "", RESULT_REAL, 3 },
};

struct app {
	char name[16];
	double step_us[SWEEP_LIST_MAX];
	uint32_t step_ns[SWEEP_LIST_MAX]; /* scaled, as is their sum */
	uint32_t nstep;
	double compute_us;
	struct bench_work work;
};

struct options {
	struct bench_options bench;
	struct app app[APPS_MAX];
	uint32_t napp;
	double vary;  /* percent */
	double scale; /* of all steps */
};

/* The three of Buntinas, Panda and Sadayappan. */
static const char *const published[] = {
	"10,20,30,40,50,60,70,80",
	"10,20,30,40,50,60,70,80,90,100,110,120,130,140,150,160,170,180,190,200",
	"100,500,1000,2000,3000,500,500,250,600,1000",
};

enum { OPT_APP = BENCH_OPT_MORE, OPT_STEPS, OPT_VARY, OPT_SCALE };

static const struct option more_options[] = {
	{ "app", required_argument, NULL, OPT_APP },
	{ "steps", required_argument, NULL, OPT_STEPS },
	{ "vary", required_argument, NULL, OPT_VARY },
	{ "scale", required_argument, NULL, OPT_SCALE },
	{ 0 },
};

static int add_app(struct options *o, const char *name, const char *steps)
{
	struct app *app = &o->app[o->napp];
	struct sweep_list list;
	int r = sweep_list_read("--steps", steps, 0.1, 1e6, &list);

	if (r)
		return r;
	if (o->napp == APPS_MAX)
		return tool_usage("--app, --steps: at most %u applications", APPS_MAX);
	*app = (struct app){ .nstep = list.n };
	snprintf(app->name, sizeof(app->name), "%s", name);
	for (uint32_t i = 0; i < list.n; i++)
		app->step_us[i] = list.value[i];
	o->napp++;
	return 0;
}

static int add_published(void *arg, const char *item)
{
	uint64_t n;

	if (!tool_number(item, 1, sizeof(published) / sizeof(published[0]), &n))
		return tool_usage("--app: '%s' is not 1, 2 or 3; --steps takes others", item);
	return add_app(arg, item, published[n - 1]);
}

static int read_one(const char *option, const char *text, double min, double max, double *out)
{
	struct sweep_list list;
	int r = sweep_list_read(option, text, min, max, &list);

	if (r)
		return r;
	*out = list.value[0];
	return list.n == 1 ? 0 : tool_usage("%s: '%s' is not one number", option, text);
}

static int read_more(void *arg, int c, const char *value)
{
	struct options *o = arg;
	char name[16];

	if (c == OPT_APP)
		return tool_list(value, add_published, o);
	if (c == OPT_STEPS) {
		snprintf(name, sizeof(name), "own %u", o->napp + 1);
		return add_app(o, name, value);
	}
	if (c == OPT_SCALE)
		return read_one("--scale", value, 0.001, 1000, &o->scale);
	return read_one("--vary", value, 0, 100, &o->vary);
}

static void usage(void)
{
	fputs("usage: nbar app [OPTION]...\n"
	      "Synthetic applications: steps of compute, each ended by a barrier. Every node varies\n"
	      "every step at random; NIC- and host-based runs see the same times. execution: of all\n"
	      "steps, once. factor: host / NIC. efficiency: compute / execution. Times are\n"
	      "microseconds.\n\n"
	      "  --app LIST        1: 8 steps of 10 to 80; 2: 20 steps of 10 to 200; 3: 10 steps of\n"
	      "                    100 to 3000 (1,2,3)\n"
	      "  --steps LIST      an application of one's own; may be given several times\n"
	      "  --vary PERCENT    by up to so much, up and down (10)\n"
	      "  --scale S         every step times S: where barriers are faster, by as much (1)\n"
	      "  --nodes LIST, --alg LIST, --where LIST  as of nbar bench (8; pairwise; nic,host)\n"
	      "  -i, --iterations N  executions of a run (100); warm-up is one\n"
	      "  --launches N      runs of each, in random order; medians are shown (6)\n",
	      stdout);
	bench_usage_common(stdout);
}

static void add_row(const void *arg, const struct bench_options *opt, const struct bench_point *p,
		    enum bench_where where, struct result *r)
{
	struct bench_median m = bench_point_mean(opt, p, where);
	const struct app *app = ((const struct options *)arg)->app;

	while (&app->work != p->config.work)
		app++;
	result_count(r, p->config.nodes);
	result_text(r, bench_where_name[where]);
	result_text(r, p->config.alg);
	result_text(r, app->name);
	result_count(r, app->nstep);
	result_real(r, app->compute_us);
	result_real(r, m.median * app->nstep);
	result_real(r, m.low * app->nstep);
	result_real(r, m.high * app->nstep);
	if (where == BENCH_NIC)
		result_real(r, bench_point_factor(opt, p));
	else
		result_none(r);
	result_real(r, app->compute_us / (m.median * app->nstep));
}

static void scale_apps(struct options *o)
{
	for (uint32_t i = 0; i < o->napp; i++) {
		struct app *app = &o->app[i];

		for (uint32_t k = 0; k < app->nstep; k++) {
			app->step_ns[k] = (uint32_t)(app->step_us[k] * o->scale * 1e3 + 0.5);
			app->compute_us += app->step_ns[k] / 1e3;
		}
		app->work = (struct bench_work){
			.step_ns = app->step_ns,
			.nstep = app->nstep,
			.vary = o->vary / 100,
		};
	}
}

/* Nodes x algorithms x applications, in that order. */
static void set_points(const struct options *o, struct bench_point *point)
{
	const struct bench_options *opt = &o->bench;

	for (uint32_t i = 0; i < opt->nnodes; i++) {
		for (uint32_t a = 0; a < opt->nalg * o->napp; a++, point++) {
			const struct app *app = &o->app[a % o->napp];

			point->config = (struct bench_config){
				.nodes = opt->nodes[i],
				.alg = opt->alg[a / o->napp],
				.iters = opt->iters * app->nstep,
				.warmup = opt->warmup * app->nstep,
				.work = &app->work,
			};
			snprintf(point->name, sizeof(point->name), "application %s", app->name);
		}
	}
}

static void add_notes(const void *arg, const struct bench_options *opt,
		      const struct bench_point *point, uint32_t n, bool complete, struct result *r)
{
	const struct options *o = arg;

	(void)point;
	(void)n;
	(void)complete;
	result_note(r, "%u executions a run; steps scaled by %g, varied by %g %%", opt->iters,
		    o->scale, o->vary);
	result_note(r, "%s", sweep_compute_text);
}

static void describe(const struct options *o, struct result *r, int argc, char **argv)
{
	char key[40], list[SWEEP_LIST_MAX * 14];

	result_command(r, argc, argv);
	result_setting_number(r, "vary_percent", o->vary);
	result_setting_number(r, "scale", o->scale);
	for (uint32_t i = 0; i < o->napp; i++) {
		struct sweep_list steps = { .n = o->app[i].nstep };

		for (uint32_t k = 0; k < steps.n; k++)
			steps.value[k] = o->app[i].step_us[k];
		sweep_list_text(&steps, list, sizeof(list));
		snprintf(key, sizeof(key), "application %s", o->app[i].name);
		result_setting_text(r, key, list);
	}
}

static int run(struct options *o, int argc, char **argv)
{
	struct result *result = result_new("app", columns, sizeof(columns) / sizeof(columns[0]));
	struct bench_options *opt = &o->bench;
	uint32_t n = opt->nnodes * opt->nalg * o->napp;
	struct bench_point *point = bench_points_new(opt, n);
	int r;

	if (!point) {
		result_free(result);
		return TOOL_FAILED;
	}
	set_points(o, point);
	if (result)
		describe(o, result, argc, argv);
	r = bench_points_all(opt, point, n, &(struct bench_rows){ add_row, add_notes, o }, result);
	free(point);
	return r;
}

int tool_app(int argc, char **argv)
{
	static struct options o; /* large */
	const struct bench_more more = { more_options, read_more, &o };
	bool help;
	int r;

	o = (struct options){ .bench = bench_options_default(), .vary = 10, .scale = 1 };
	o.bench.nodes[0] = 8;
	o.bench.nnodes = 1;
	strcpy(o.bench.alg[0], "pairwise");
	o.bench.iters = 100;
	o.bench.warmup = 1;
	o.bench.launches = 6;
	o.bench.drivers = BENCH_DRIVERS_AUTO;
	r = bench_options_parse(argc, argv, &o.bench, &more, &help);
	if (help)
		usage();
	if (!r && !help && !o.napp)
		r = tool_list("1,2,3", add_published, &o);
	if (r || help)
		return r;
	scale_apps(&o);
	return run(&o, argc, argv);
}
