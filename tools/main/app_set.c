/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app_set.c - see app_set.h.
 */
#include "app_set.h"

#include <stdio.h>

#include "tool.h"

/* The three applications of Buntinas, Panda and Sadayappan. */
static const char *const published[] = {
	"10,20,30,40,50,60,70,80",
	"10,20,30,40,50,60,70,80,90,100,110,120,130,140,150,160,170,180,190,200",
	"100,500,1000,2000,3000,500,500,250,600,1000",
};

const char app_set_usage[] =
	"  --app LIST        1: 8 steps of 10 to 80; 2: 20 steps of 10 to 200; 3: 10\n"
	"                    steps of 100 to 3000 (1,2,3)\n"
	"  --steps LIST      your own application; may be given several times\n"
	"  --vary PERCENT    greatest variation of a step, up or down (10)\n"
	"  --scale S         multiply every step by S, for faster barriers (1)\n";

struct app_set app_set_default(void)
{
	return (struct app_set){ .vary = 10, .scale = 1 };
}

static int set_add(struct app_set *a, const char *name, const char *steps)
{
	struct app *app = &a->app[a->n];

	if (a->n == APP_SET_MAX)
		return tool_usage("--app, --steps: at most %u applications", APP_SET_MAX);
	snprintf(app->name, sizeof(app->name), "%s", name);
	a->n++;
	return sweep_list_read("--steps", steps, 0.1, 1e6, &app->step_us);
}

static int add_published(void *arg, const char *item)
{
	uint64_t n;

	if (!tool_number(item, 1, sizeof(published) / sizeof(published[0]), &n))
		return tool_usage("--app: '%s' is not 1, 2 or 3; describe others by --steps", item);
	return set_add(arg, item, published[n - 1]);
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

int app_set_read(struct app_set *a, enum app_set_option option, const char *value)
{
	char name[16];

	switch (option) {
	case APP_SET_APP:
		return tool_list(value, add_published, a);
	case APP_SET_STEPS:
		snprintf(name, sizeof(name), "own %u", a->n + 1);
		return set_add(a, name, value);
	case APP_SET_VARY:
		return read_one("--vary", value, 0, 100, &a->vary);
	case APP_SET_SCALE:
		return read_one("--scale", value, 0.001, 1000, &a->scale);
	}
	return 0;
}

void app_set_finish(struct app_set *a, uint64_t seed)
{
	if (!a->n)
		(void)tool_list("1,2,3", add_published, a);
	for (uint32_t i = 0; i < a->n; i++) {
		struct app *app = &a->app[i];

		app->compute_us = 0;
		for (uint32_t k = 0; k < app->step_us.n; k++) {
			app->step_ns[k] = (uint32_t)(app->step_us.value[k] * a->scale * 1e3 + 0.5);
			app->compute_us += app->step_ns[k] / 1e3;
		}
		app->work = (struct bench_work){
			.step_ns = app->step_ns,
			.nstep = app->step_us.n,
			.vary = a->vary / 100,
			.seed = seed,
		};
	}
}
