/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - barriers of a communicator, offloaded or fallback; the reasons of a fallback, and
 * counters: what both glues share.
 *
 * The MPI runs the first barriers of a communicator; nbar only counts them (judge.h). The next
 * blocking barrier is the set-up: the ranks of each host find each other, their leaders join a
 * group, and a vote tells every rank whether all have joined. From then on all barriers of the
 * communicator are either offloaded or the MPI's own. README.md explains the reasons.
 *
 * Knows no MPI: struct nbmpi_ops hides it. As MPI requires, one thread at a time calls barriers of
 * a communicator; different communicators may run at the same time.
 */
#ifndef NBMPI_COMM_H
#define NBMPI_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

#define NBMPI_VERSION 10u /* of messages and of the order of collectives */

/* Reasons for the fallback of a communicator. X(name, level, text). level: the verbosity from which
 * on the reason is printed. 0: the user can fix the cause: printed once per process at verbosity 0,
 * and every time from 1 on. */
#define NBMPI_WHYS(X)                                                               \
	X(none, 1, "")                                                              \
	X(disabled, 1, "nbar is not enabled, or refused its settings at the start") \
	X(inter, 1, "it is an intercommunicator")                                   \
	X(alone, 2, "it has one rank")                                              \
	X(few, 1, "it is over fewer hosts than the minimum")                        \
	X(foreign, 1, "not all of its processes belong to one world that has nbar") \
	X(terms, 1, "its processes have different settings or versions of nbar")    \
	X(nic, 0, "no port of a NIC could be opened")                               \
	X(group, 0, "a NIC has no group for it")                                    \
	X(memory, 0, "the processes of a host could not share memory")              \
	X(attach, 0, "a process could not attach to the NIC of its host")           \
	X(connect, 0, "the NICs could not be connected")                            \
	X(reach, 0, "the NICs of its hosts do not hear each other")                 \
	X(values, 1, "a NIC cannot carry its values")                               \
	X(slow, 1, "the NICs were slower")                                          \
	X(value, 2, "the NICs would take longer for such values")                   \
	X(opening, 1, "they have taken too little time yet, or are nonblocking")

enum nbmpi_why {
#define NBMPI_WHY_ID(name, level, text) NBMPI_WHY_##name,
	NBMPI_WHYS(NBMPI_WHY_ID)
#undef NBMPI_WHY_ID
		NBMPI_WHY_END
};

/* What a process has counted. */
struct nbmpi_counters {
	uint64_t by_nic;   /* barriers run by NICs */
	uint64_t by_host;  /* barriers run by the processes of one host, without a NIC */
	uint64_t fallback; /* barriers run by the MPI itself, for any reason */
	/* Allreduces of values that a barrier can carry: run by NICs, and by the MPI itself. */
	uint64_t allreduces_by_nic, allreduces_by_mpi;
	uint64_t failed;             /* communicators whose barriers or allreduces failed */
	uint64_t comms;              /* communicators that have called a barrier */
	uint64_t why[NBMPI_WHY_END]; /* fallback, for each reason */
	uint64_t why_allreduce[NBMPI_WHY_END]; /* allreduces_by_mpi, for each reason */
};

/* A vote: the least value of all ranks is the result. A vote against has the reason and the
 * rank. */
#define NBMPI_VOTE_YES (UINT64_C(1) << 62)
/* Bit of a vote against that may only follow from the failure of another rank: the vote of that
 * rank is less, and is the result. */
#define NBMPI_VOTE_FOLLOWS (UINT64_C(1) << 61)

static inline uint64_t nbmpi_vote_no(enum nbmpi_why why, uint32_t rank)
{
	return (uint64_t)rank << 32 | (uint32_t)why;
}

/* Values that all ranks of a communicator combine. */
struct nbmpi_sum {
	uint64_t least;   /* least value of all ranks */
	uint64_t also[4]; /* four further least values */
	uint32_t before;  /* sum of the totals of all lower ranks */
	uint32_t total;   /* sum of the totals of all ranks */
};

/* A message between two ranks of a communicator. */
struct nbmpi_message {
	uint32_t rank; /* the other rank; NBAR_RANK_NONE: receive from any rank */
	uint32_t size;
	bool in; /* true: receive; false: send */
	void *data;
	void *request; /* for nbmpi_ops.exchange */
};

/* Functions that the core needs from the MPI, for communicator `mpi`. Functions that return int: 0,
 * or the MPI's error code. */
struct nbmpi_ops {
	/* Returns the ranks on this host, in order; the caller frees them. *n: their number, right
	 * even without memory (NULL). *why: a reason against NICs that all ranks know, or
	 * NBMPI_WHY_none. */
	uint32_t *(*mates)(void *mpi, uint32_t *n, enum nbmpi_why *why);
	/* Returns a number of the host of a rank: ranks of one host get the same number. Does not
	 * wait for other ranks. */
	uint64_t (*host)(void *mpi, uint32_t rank);
	/* All ranks call it together. sum: in and out. */
	int (*sum)(void *mpi, struct nbmpi_sum *sum);
	/* Sends and receives all messages; they cannot match messages of the program. Allocates no
	 * memory, because after a failed allocation at one rank, the other ranks would wait. Tags
	 * separate the messages of one set-up from those of others, if the MPI needs that. */
	int (*exchange)(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n);
	/* Lets the MPI make progress with all other pending operations (coll_nbar_module.c,
	 * pmpi_request.c). */
	void (*progress)(void);
	/* Called after each barrier of NICs. The MPI then receives the messages that were sent
	 * before the barrier: now, or when the program looks for a message. */
	void (*receive)(void);
	/* The MPI's error code if a rank has revoked the communicator, else 0. NULL: this MPI
	 * cannot revoke. */
	int (*revoked)(void *mpi);
	/* Returns an error code of the MPI for a failure that the text describes. */
	int (*error)(const char *text);
};

struct nbmpi_start {
	struct nbmpi_config config;
	const struct nbmpi_ops *ops;
	uint32_t rank; /* in the world */
};

/* Start and stop the core. stop closes all open communicators; no barrier may be under way. */
void nbmpi_start(const struct nbmpi_start *start);
void nbmpi_stop(void);

/* Sums up the counters of all communicators, open and closed. */
void nbmpi_counters_read(struct nbmpi_counters *out);

/* Text of a reason, for people. */
const char *nbmpi_why_text(enum nbmpi_why why);

struct nbmpi_comm;

/*
 * Opens a communicator at its first barrier, or a second time at its first allreduce, whose values
 * have a group of their own: so barriers cost the same with and without them, and each kind is
 * counted, timed and judged by itself. The cost does not depend on its number of ranks. NULL: no
 * memory.
 */
enum nbmpi_kind { NBMPI_BARRIERS, NBMPI_ALLREDUCES, NBMPI_KINDS };
struct nbmpi_comm *nbmpi_comm_open(void *mpi, uint32_t rank, uint32_t size, bool inter,
				   enum nbmpi_kind kind);

/* If the MPI itself runs all further barriers of the communicator, returns their counter: the
 * caller may then call nbmpi_bump and the MPI's barrier at once. NULL: not so, or not yet. */
uint64_t *nbmpi_comm_fallbacks(struct nbmpi_comm *c);

/* Counters: only the thread that calls barriers writes them; any thread reads them. Relaxed: they
 * order nothing. */
static inline void nbmpi_bump(uint64_t *counter)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Closes a communicator that the program frees. Its requests stay valid. */
void nbmpi_comm_close(struct nbmpi_comm *c);

/* Results of a barrier, other than 0. */
#define NBMPI_BY_MPI 1        /* call the MPI's own barrier now */
#define NBMPI_FAILED (-1)     /* give nbmpi_comm_code() to the MPI's error handler */
#define NBMPI_MPI_FAILED (-2) /* as NBMPI_FAILED, but the handler was called already */

/* The blocking barrier: 0 when it is complete, or one of the above. */
int nbmpi_barrier(struct nbmpi_comm *c);

/* The blocking allreduce, of a communicator of that kind; as nbmpi_barrier. value: in and out; it
 * stays as it was if the result is not 0. */
int nbmpi_allreduce(struct nbmpi_comm *c, struct nbar_value *value);

/* Call it when the MPI's own barrier is complete, which NBMPI_BY_MPI has asked for. */
void nbmpi_barrier_by_mpi(struct nbmpi_comm *c);

/* A barrier or an allreduce under way. It stays at its address until nbmpi_test has returned other
 * than 0. */
struct nbmpi_request {
	struct nbmpi_comm *comm; /* held until nbmpi_test has returned other than 0 */
	uint32_t ticket, round;
	int code;    /* after a failure: as nbmpi_comm_code() */
	bool orphan; /* after a failure: the communicator has been freed */
	/* An allreduce: see post.c. */
	struct nbar_value *value; /* the operands, and then the result; NULL: a barrier */
	bool done;                /* value is the result */
	struct nbmpi_request *next;
};

/* True: nbmpi_ibarrier, or nbmpi_iallreduce with this value, does not return NBMPI_BY_MPI. False:
 * they do not use `out`. */
bool nbmpi_comm_offloaded(const struct nbmpi_comm *c, const struct nbar_value *value);

/* Starts a barrier: 0 and *out, or one of the above. Never waits for another rank. */
int nbmpi_ibarrier(struct nbmpi_comm *c, struct nbmpi_request *out);

/* As nbmpi_ibarrier. When nbmpi_test has returned 1, *value is the result. It stays as it was after
 * a failure. */
int nbmpi_iallreduce(struct nbmpi_comm *c, struct nbar_value *value, struct nbmpi_request *out);

/* 1: complete; 0: not yet, or another call holds the communicator (in any thread, also further up
 * the stack of this thread); negative: failed. If the result is not 0, the request is gone. Never
 * waits, so progress functions may call it. */
int nbmpi_test(struct nbmpi_request *r);

/* Lets other processes run if the policy says so. For callers that wait with nbmpi_test: once after
 * some tests. Never sleeps. */
void nbmpi_yield(void);

/* The same, for callers that do nothing else. Set *since to 0 before the first call of a wait. When
 * the wait has yielded for a millisecond, each call also sleeps, for about 0.1 ms. */
void nbmpi_wait_yield(uint64_t *since);

/* Error code of the failure of this communicator's barriers. */
int nbmpi_comm_code(const struct nbmpi_comm *c);

#endif
