/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h - barriers of a communicator, offloaded or fallback: what both glues share.
 *
 * The first barriers of a communicator are the MPI's own, and cost no more than a count. The first
 * blocking one after so many (NBMPI_PAYS) is the set-up: the ranks of each host find each other,
 * their leaders join a group, and a vote tells everybody whether all have. From then on all
 * barriers of the communicator are either offloaded or the MPI's own. README.md says why it is done
 * so.
 *
 * Knows no MPI: that is behind struct nbmpi_ops. Barriers of one communicator are called by one
 * thread at a time, as MPI demands; anything else may run at once.
 */
#ifndef NBMPI_COMM_H
#define NBMPI_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"

#define NBMPI_VERSION 5u /* of messages and of the order of collectives */

/* Barriers that a communicator has called before the blocking one that sets it up: the set-up takes
 * about as long as so many barriers of an MPI between hosts. */
#define NBMPI_PAYS 8u

/* Why a communicator uses the barriers of the MPI. X(name, what to say) */
#define NBMPI_WHYS(X)                                                            \
	X(none, "")                                                              \
	X(disabled, "nbar is not enabled, or refused its settings at the start") \
	X(inter, "it is an intercommunicator")                                   \
	X(alone, "it has one rank")                                              \
	X(few, "it is over fewer hosts than the minimum")                        \
	X(foreign, "not all of its processes belong to one world that has nbar") \
	X(terms, "its processes have different settings or versions of nbar")    \
	X(nic, "no port of a NIC could be opened")                               \
	X(group, "a NIC has no group for it")                                    \
	X(memory, "the processes of a host could not share memory")              \
	X(attach, "a process could not attach to the NIC of its host")           \
	X(connect, "the NICs could not be connected")                            \
	X(opening, "it has called too few barriers yet, or only nonblocking ones")

enum nbmpi_why {
#define NBMPI_WHY_ID(name, text) NBMPI_WHY_##name,
	NBMPI_WHYS(NBMPI_WHY_ID)
#undef NBMPI_WHY_ID
		NBMPI_WHY_END
};

/* What a process has done. */
struct nbmpi_counters {
	uint64_t by_nic;             /* barriers run by NICs */
	uint64_t by_host;            /* by the processes of one host, without a NIC */
	uint64_t fallback;           /* by the MPI's own barrier, for any reason ... */
	uint64_t why[NBMPI_WHY_END]; /* ... and for each */
	uint64_t failed;             /* communicators whose barriers failed */
	uint64_t comms;              /* communicators that have called a barrier */
};

/* A vote: the least one counts. No: why, and the rank that says so. */
#define NBMPI_VOTE_YES (UINT64_C(1) << 62) /* MPICH takes MPI_MIN of the 64th bit for a sign */

static inline uint64_t nbmpi_vote_no(enum nbmpi_why why, uint32_t rank)
{
	return (uint64_t)rank << 32 | (uint32_t)why;
}

/* What all ranks of a communicator bring together. */
struct nbmpi_sum {
	uint64_t least;  /* of all ranks' */
	uint32_t before; /* sum of the totals of all lower ranks */
	uint32_t total;  /* of all ranks' */
};

/* A message from a rank of a communicator to another one. */
struct nbmpi_message {
	uint32_t rank; /* the other one; NBAR_RANK_NONE: receives from any */
	uint32_t size;
	bool in; /* received, not sent */
	void *data;
};

/* What the core asks of the MPI at hand, for communicator `mpi`. Functions that return int: 0, or
 * the MPI's error code. */
struct nbmpi_ops {
	/* Ranks on this host, in order, and how many; the caller frees them. NULL: no memory. *why:
	 * a reason against NICs that all ranks know, or NBMPI_WHY_none. */
	uint32_t *(*mates)(void *mpi, uint32_t *n, enum nbmpi_why *why);
	/* Numbers of the hosts of all ranks, any numbering; the caller frees them. NULL: there is
	 * no telling now. Waits for nobody. */
	uint32_t *(*hosts)(void *mpi, uint32_t size);
	/* Called by all ranks. sum: in and out. */
	int (*sum)(void *mpi, struct nbmpi_sum *sum);
	/* Sends and receives all messages, apart from the program's own. Tags tell those of one
	 * set-up from those of others, if the MPI needs that. */
	int (*exchange)(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n);
	/* Lets the MPI go on with everything else that is pending. */
	void (*progress)(void);
	/* An error code of the MPI for a failure that the text describes. */
	int (*error)(const char *text);
};

struct nbmpi_start {
	struct nbmpi_config config;
	const struct nbmpi_ops *ops;
	uint32_t rank; /* in the world */
	bool crowded;  /* there are more ranks on this machine than processors */
};

/* There are more ranks on this machine than processors: found out late. */
void nbmpi_crowded(void);

/* Begins; and ends, with all communicators that are still open: no barrier is under way then. */
void nbmpi_start(const struct nbmpi_start *start);
void nbmpi_stop(void);

/* Sums up what all communicators, and those that are gone, have counted. */
void nbmpi_counters_read(struct nbmpi_counters *out);

/* Text of a reason, for people. */
const char *nbmpi_why_text(enum nbmpi_why why);

struct nbmpi_comm;

/* A communicator met for the first time: costs the same however many ranks it has. inter: it is an
 * intercommunicator. NULL: no memory. */
struct nbmpi_comm *nbmpi_comm_open(void *mpi, uint32_t rank, uint32_t size, bool inter);

/* The communicator is freed. Requests on it stay good. */
void nbmpi_comm_close(struct nbmpi_comm *c);

/* What a barrier came to, other than 0. */
#define NBMPI_BY_MPI 1        /* call the MPI's own barrier now */
#define NBMPI_FAILED (-1)     /* nbmpi_comm_code(): what the MPI's error handler should get */
#define NBMPI_MPI_FAILED (-2) /* the same, but the handler has had it */

/* The blocking barrier: 0 when it is complete, or one of the above. */
int nbmpi_barrier(struct nbmpi_comm *c);

/* A barrier under way; plain data. */
struct nbmpi_request {
	struct nbmpi_comm *comm; /* held until nbmpi_test has returned other than 0 */
	uint32_t ticket;
	int code;    /* set when it has failed: as nbmpi_comm_code(), ... */
	bool orphan; /* ... and whether the communicator has been freed */
};

/* Starts a barrier: 0 and *out, or one of the above. Never waits for another rank. */
int nbmpi_ibarrier(struct nbmpi_comm *c, struct nbmpi_request *out);

/* 1: complete; 0: not yet, or another thread, or this one further up, is at the communicator;
 * negative: failed. After other than 0 the request is gone. Progress functions may call it: it
 * waits for nobody. */
int nbmpi_test(struct nbmpi_request *r);

/* Lets other processes run if the policy is to; round counts from 0 since waiting began. For those
 * who wait by nbmpi_test. Never sleeps. */
void nbmpi_yield(uint32_t round);

/* Error code of the failure of this communicator's barriers. */
int nbmpi_comm_code(const struct nbmpi_comm *c);

#endif
