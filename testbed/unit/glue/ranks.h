/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks.h - the ranks of an MPI, as processes, for tests of the glue: a fake MPI between them, with
 * calls that fail on demand.
 *
 * Host h uses NIC "nH". A rank runs a function of the test
 * and ends. It reports a failure by expect(), because the asserts of cmocka belong to the test
 * program.
 */
#ifndef NBAR_TEST_RANKS_H
#define NBAR_TEST_RANKS_H

#include <unistd.h>

#include "comm_internal.h"
#include "unit/unit.h"

#define RANKS_MAX 12u
#define RANKS_NOTES 8u
/* After the first failure a rank may wait for what never comes: then sleeps, and calls into the MPI
 * that take time, are so many times as long by the clock of the test. */
#define HURRY_FOLD 32
#define MPI_BROKEN 61  /* code of a call after a failure of the MPI */
#define MPI_REVOKED 76 /* code of a revoked communicator */
#define MPI_TEXT 62    /* code of an error with a text */

/* A communicator of the fake MPI: ranks `first` to `first + size - 1` of the world. */
struct ranks_comm {
	uint32_t id, first, size;
	struct nbmpi_comm *nbar;
};

/* What one rank shows to the test program and to the others. */
struct rank_shown {
	uint32_t mpi_barriers; /* barriers of the MPI that it has entered, by all communicators */
	uint32_t entered;      /* barriers that it has entered by ranks_barrier */
	uint32_t progress;     /* calls of nbmpi_ops.progress */
	int32_t pid;
	uint64_t note[RANKS_NOTES]; /* the test's own */
	char error[1024];           /* the last text of nbmpi_ops.error */
	char said[8192];            /* stderr, once the rank has ended */
	int status;                 /* as of waitpid */
};

/* The test sets these after ranks_begin, and before ranks_run. */
struct ranks {
	uint32_t size, each; /* ranks; ranks of a host, in a row */
	struct nbmpi_config config;
	double barrier_takes;     /* s: a barrier of this MPI, by the clock of the test */
	bool cannot_revoke;       /* this MPI has no nbmpi_ops.revoked */
	bool killed[RANKS_MAX];   /* the rank is to end by a signal */
	enum nbmpi_why mates_say; /* what nbmpi_ops.mates knows at all ranks */
	/* Shared by all ranks. */
	int revoked;              /* atomic: the code, or 0 */
	int broken;               /* atomic: the MPI has failed */
	bool failed;              /* a rank has failed: the others end */
	bool hurry;               /* atomic: waits pass faster by the clock of the test */
	uint32_t go[RANKS_NOTES]; /* atomic: signals of a test between its ranks */
	struct rank_shown rank[RANKS_MAX];
};
extern struct ranks *ranks;
extern uint32_t ranks_me;
extern double ranks_progress_takes; /* s: a call of nbmpi_ops.progress, by the clock of the test */

/* Prepares a world: usual settings, "each" ranks on each host. */
void ranks_begin(uint32_t size, uint32_t each);

/* Runs all ranks, each in a process of its own, between nbmpi_start and nbmpi_stop, and waits for
 * all. The test fails if a rank fails, or leaves memory or descriptors behind. */
void ranks_run(void (*body)(void));

/* Runs the tests of an array beside n NICs; the exit status of main(). The NICs are in a process of
 * their own, because this one forks: it has no other thread that could hold a lock then. */
#define run_with_ranks(n, tests) \
	(ranks_nics = (n), cmocka_run_group_tests(tests, ranks_nics_start, ranks_nics_end))
extern uint32_t ranks_nics;
int ranks_nics_start(void **state);
int ranks_nics_end(void **state);

/* From now on the wire of the NICs loses this percentage of the frames. */
void ranks_nics_loss(uint32_t percent);

/* --- within a rank --------------------------------------------------------------------------- */

#define expect(cond, ...)                                                                     \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			fprintf(stderr, "%s:%d: rank %u: %s: ", __FILE__, __LINE__, ranks_me, \
				#cond);                                                       \
			fprintf(stderr, __VA_ARGS__);                                         \
			fprintf(stderr, "\n");                                                \
			ranks->failed = true;                                                 \
			_exit(1);                                                             \
		}                                                                             \
	} while (0)

/* A communicator of ranks `first` to `first + size - 1`; opened by nbmpi_comm_open. */
void ranks_open(struct ranks_comm *c, uint32_t id, uint32_t first, uint32_t size);

/* The barrier as the program calls it: by the MPI if the glue says so. The rank fails if it leaves
 * the barrier before all have entered. Returns what nbmpi_barrier has returned. */
int ranks_barrier(struct ranks_comm *c);

/* Calls the barriers up to and with the set-up. Returns the result of the last one. */
int ranks_set_up(struct ranks_comm *c);

/* Waits until ranks->go[i] is at least n, or ends if another rank has failed. */
void ranks_await(uint32_t i, uint32_t n);
void ranks_signal(uint32_t i);

/* The MPI's n-th call from now on (1: the next) fails at this rank, and with it the whole MPI;
 * 0: none. */
void ranks_mpi_fails(uint32_t n);

/* The MPI's n-th call from now on closes descriptor 0 of this process. */
void ranks_mpi_closes_0(uint32_t n);

/* --- system calls and allocations of this process ----------------------------------------------
 */

/* The n-th call from now on fails (1: the next); 0: none. Returns the name of the failed call, or
 * NULL. name: only calls of this name count; NULL: all. */
void faults_set(uint32_t n, const char *name, int error);
const char *faults_end(void);

/* All calls of this name fail until faults_end. */
void faults_always(const char *name, int error);

/* The clock of the test, of all threads: the clock of the system, and this many seconds more. */
void clock_advance(double s);
void clock_restore(void); /* no more */
double clock_ahead(void);
extern uint64_t yield_takes;    /* ns; or 0. No other time passes then */
extern bool yields_are_counted; /* and nothing else: no other process runs meanwhile */

/* Numbers of calls of this thread. */
struct calls {
	uint32_t yields, sleeps;
	uint64_t slept_ns;
	uint32_t threads; /* that it has made, and not joined */
	uint32_t exposed; /* of all that it has made, those that may get signals */
	uint32_t held;    /* locks that it holds */
};
extern _Thread_local struct calls calls;

/* If `makers_wait`, a thread that makes another one first gives it time to run, and counts whether
 * it has slept by then. */
extern bool makers_wait;
extern uint32_t slept_early;

/* What is in the bytes behind each new block. */
extern uint8_t blocks_behind;

/* Blocks of memory, and mutexes, that are in use. */
int64_t blocks_in_use(void);
int64_t mutexes_in_use(void);

#endif
