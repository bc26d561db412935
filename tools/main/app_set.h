/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * app_set.h - synthetic applications: steps of compute, each with a barrier at its end. For `nbar
 * app` and `nbar mpi-bench`.
 */
#ifndef NBAR_TOOLS_APP_SET_H
#define NBAR_TOOLS_APP_SET_H

#include "sweep_list.h"
#include "work.h"

#define APP_SET_MAX 16u

struct result;

struct app {
	char name[16];
	struct sweep_list step_us;
	uint32_t step_ns[SWEEP_LIST_MAX]; /* scaled, as is their sum */
	double compute_us;
	struct bench_work work;
};

struct app_set {
	struct app app[APP_SET_MAX];
	uint32_t n;
	double vary;  /* percent */
	double scale; /* of all steps */
};

/* The options: applications "1,2,3" of the literature; the user's own steps; vary; scale. */
enum app_set_option { APP_SET_APP, APP_SET_STEPS, APP_SET_VARY, APP_SET_SCALE };

/* Lines of --help for these options. */
extern const char app_set_usage[];

struct app_set app_set_default(void);

/* 0, or TOOL_USAGE after a message. */
int app_set_read(struct app_set *a, enum app_set_option option, const char *value);

/* Called after all options are read: selects the three applications of the literature if the user
 * named none, and computes the times. The struct must not move after this. */
void app_set_finish(struct app_set *a, uint64_t seed);

/* Adds the applications to settings and notes of a result. */
void app_set_describe(const struct app_set *a, struct result *r);
void app_set_note(const struct app_set *a, struct result *r);

#endif
