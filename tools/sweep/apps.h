/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apps.h - synthetic applications: steps of compute, each ended by a barrier. Of `nbar app` and of
 * `nbar mpi-bench`.
 */
#ifndef NBAR_TOOLS_APPS_H
#define NBAR_TOOLS_APPS_H

#include "sweep_list.h"
#include "work.h"

#define APPS_MAX 16u

struct result;

struct app {
	char name[16];
	struct sweep_list step_us;
	uint32_t step_ns[SWEEP_LIST_MAX]; /* scaled, as is their sum */
	double compute_us;
	struct bench_work work;
};

struct apps {
	struct app app[APPS_MAX];
	uint32_t n;
	double vary;  /* percent */
	double scale; /* of all steps */
};

/* What an option says: "1,2,3" of the literature; steps of one's own; percent; factor. */
enum apps_option { APPS_APP, APPS_STEPS, APPS_VARY, APPS_SCALE };

/* Lines of --help for them. */
extern const char apps_usage[];

struct apps apps_default(void);

/* 0 or TOOL_USAGE, the message is out. */
int apps_read(struct apps *a, enum apps_option option, const char *value);

/* When all options are read: the three of the literature, if none was named; and the times. It must
 * stay where it is from here on. */
void apps_finish(struct apps *a, uint64_t seed);

/* Into settings and notes of a result. */
void apps_describe(const struct apps *a, struct result *r);
void apps_note(const struct apps *a, struct result *r);

#endif
