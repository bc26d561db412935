/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the options of `nbar mpi-bench`.
 *
 * Two programs read these options: the command, which uses no MPI, so that --help needs no MPI; and
 * the program that the command executes.
 */
#ifndef NBAR_TOOLS_MPI_OPTIONS_H
#define NBAR_TOOLS_MPI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "app_set.h"
#include "experiment.h"
#include "plan.h"

#define MPIB_METHODS_MAX 16u
#define MPIB_BLOCKS_MAX 1000u
#define MPIB_ITERS_MAX 100000000u

/* MPIB_ALLREDUCE: only as the user names it; then it is MPIB_BARRIER with `value`. */
enum mpib_test { MPIB_BARRIER, MPIB_ALLREDUCE, MPIB_IBARRIER, MPIB_BUSY, MPIB_APP, MPIB_TEST_END };
extern const char *const mpib_test_name[MPIB_TEST_END];
extern const unsigned mpib_table[MPIB_TEST_END]; /* of metrics */

enum mpib_kind {
	MPIB_MPI,  /* the MPI's own barrier */
	MPIB_NBAR, /* MPI_Barrier as the glue runs it */
	MPIB_LIB,  /* libnbar without MPI */
	MPIB_LIB2, /* libnbar without MPI, on another NIC */
	MPIB_P2P   /* the engine, over messages of the MPI */
};

struct mpib_choice {
	char name[32]; /* as the user wrote it */
	enum mpib_kind kind;
	struct nbfw_alg alg; /* of MPIB_P2P */
};

/* How a rank computes. */
enum mpib_compute {
	MPIB_AUTO, /* spins; where ranks share processors, sleeps, and yields in an application */
	MPIB_SPIN,
	MPIB_SLEEP, /* sleeps: takes no processor time from other ranks */
	MPIB_YIELD, /* ranks that share a processor compute at the same time, as in nbar-lab app */
	MPIB_COMPUTE_END
};
extern const char *const mpib_compute_name[MPIB_COMPUTE_END];

struct mpib_options {
	enum mpib_test test;
	uint32_t value; /* bytes that are reduced; 0: a barrier */
	struct mpib_choice method[MPIB_METHODS_MAX];
	uint32_t nmethod;
	uint32_t iters, warmup, blocks;
	uint32_t compute_us; /* 0: as long as the barrier takes */
	int busy_rank;       /* -1: each rank in turn */
	enum mpib_compute compute;
	struct app_set app_set; /* of MPIB_APP */
	bool app_options_given; /* the user gave an option of app_set */
	bool full;
	uint64_t seed;
	struct experiment_options out;
	const char *nic2; /* of MPIB_LIB2, as in NBAR_NIC; or NULL */
	const char *mpi;  /* "openmpi", "mpich", or NULL: detect the MPI */
};

/* 0, or the exit code to end with, after a message; sets *help if the user asked for help. */
int mpib_options_parse(int argc, char **argv, struct mpib_options *opt, bool *help);
void mpib_usage(FILE *to);

#endif
