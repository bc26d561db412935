/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_threads.h - the options of `nbar-lab threads`.
 */
#ifndef NBAR_TOOLS_SWEEP_THREADS_H
#define NBAR_TOOLS_SWEEP_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "experiment.h"

#define SWEEP_KINDS_MAX 32u
#define SWEEP_COUNTS_MAX 64u

struct sweep_threads_options {
	struct experiment_options files;
	char kind[SWEEP_KINDS_MAX][32];
	uint32_t nkind;
	uint32_t threads[SWEEP_COUNTS_MAX], nthreads;
	uint32_t iterations, warmup, repetitions, limit_ms;
	uint64_t seed;
};

/* 0, or the exit code to end with. *help: the user asked for help, which was printed. */
int sweep_threads_options(int argc, char **argv, struct sweep_threads_options *opt, bool *help);

#endif
