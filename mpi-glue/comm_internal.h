/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_internal.h - what comm.c, barrier.c, post.c, join.c (set-up), mates.c, wait.c and log.c
 * share.
 */
#ifndef NBMPI_COMM_INTERNAL_H
#define NBMPI_COMM_INTERNAL_H

#include <pthread.h>

#include "comm.h"

/* A rank of this host. */
struct nbmpi_mate {
	uint32_t rank;
	int32_t pid;
	uint64_t born;
};

/* The three ways of a communicator's barriers. Never back; changed by the thread that calls a
 * blocking barrier, while the communicator has no requests. */
enum nbmpi_path { NBMPI_OPENING, NBMPI_OFFLOADED, NBMPI_PLAIN };

struct nbmpi_comm {
	void *mpi;
	uint32_t rank, size;
	pthread_mutex_t lock; /* over requests, tickets and failures */
	enum nbmpi_path path;
	enum nbmpi_why why; /* it is NBMPI_PLAIN, ... */
	uint32_t why_rank;  /* ... and who brought it about, or NBAR_RANK_NONE */
	bool closed;
	uint32_t nrequest;               /* that hold it */
	struct nbmpi_comm *next, **link; /* all of this process */

	uint32_t calls; /* barriers begun while opening */

	/* From the set-up on. */
	uint32_t nhost, nlocal;
	uint32_t mate;   /* my number among the ranks of my host */
	uint32_t leader; /* of my host: its lowest rank here */
	bool tuned;           /* all have agreed on the profile of "tuned:FILE" ... */
	uint32_t *tuned_host; /* ... and the place in it of each host; a leader's, in the set-up */

	struct nbar_group *group;        /* NULL: all on one host */
	struct nbmpi_attached *attached; /* whose port it is on; NULL: our own */
	struct nbmpi_memory *memory;     /* of the ranks of this host; NULL: alone there */
	uint32_t vain;                   /* looks in vain, and when the mates were looked after */
	double looked_after;
	uint32_t wanted, posted; /* tickets; those between wait for room at the NIC */
	int error;               /* NBMPI_FAILED: final */
	int code;                /* of the MPI, for it */
	uint64_t offloaded, failed, fallback[NBMPI_WHY_END]; /* barriers; by nbmpi_bump */
};

/* The process team of a host, in memory of its own. */
struct nbmpi_memory {
	struct nbar_process_team procs;
	struct nbmpi_mate mate[]; /* each written by the rank itself, during the set-up */
};

/* This process. */
struct nbmpi_self {
	struct nbmpi_start start;
	char nic[NBMPI_NIC_SIZE]; /* the name for nbar_open; empty: NULL */
	pthread_mutex_t lock; /* over ports and the list; opening and closing anything on a port */
	struct nbmpi_comm *comm;
	struct nbmpi_counters gone; /* of communicators that are gone */
	struct nbar_port *port;     /* our own, once we have led a host */
	struct nbmpi_attached *attached;
};
extern struct nbmpi_self nbmpi_self;

/* Counters: written by the one thread that calls barriers, read by any. Relaxed: they order
 * nothing. */
static inline void nbmpi_bump(uint64_t *counter)
{
	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* comm.c: ends a communicator that is closed and has no requests. */
void nbmpi_comm_free(struct nbmpi_comm *c);

/* --- post.c, with the communicator's lock ---------------------------------------------------- */

/* Posts what is wanted, as far as there is room. 0; -EAGAIN: not all; or the library's error. */
int nbmpi_post(struct nbmpi_comm *c);

/* From here on a thread posts what is wanted, on any communicator, as soon as there is room. */
void nbmpi_post_later(void);

/* Ends that thread. The caller holds no lock. */
void nbmpi_post_stop(void);

/* --- join.c ---------------------------------------------------------------------------------- */

/* Sets up the communicator, together with all members, and decides its path. 0, NBMPI_FAILED or
 * NBMPI_MPI_FAILED. The caller holds no lock. */
int nbmpi_set_up(struct nbmpi_comm *c);

/* Gives back group and memory, if any. */
void nbmpi_leave(struct nbmpi_comm *c);

/* Closes all ports. */
void nbmpi_ports_close(void);

/* --- mates.c: the ranks of this host -----------------------------------------------------------
 */

/* Their memory: its leader makes it (a descriptor), and sends it to another one, which has a socket
 * for that; key tells those of one set-up from others. Each takes its place in it by that
 * descriptor. Negative: failed, errno says why. */
int nbmpi_memory_make(uint32_t nlocal);
int nbmpi_memory_socket(uint64_t key, uint32_t rank);
int nbmpi_memory_send(int memory, uint64_t key, uint32_t rank);
int nbmpi_memory_receive(int socket);
int nbmpi_memory_join(struct nbmpi_comm *c, int memory);
void nbmpi_memory_leave(struct nbmpi_comm *c);

/* The first mate whose process has ended, or NULL. Slow: it reads files. */
const struct nbmpi_mate *nbmpi_mate_ended(const struct nbmpi_comm *c);

/* --- wait.c ---------------------------------------------------------------------------------- */

/* Waits for r, with progress of the MPI. 1 or negative, as nbmpi_test. The caller holds no lock. */
int nbmpi_wait(struct nbmpi_request *r);

double nbmpi_now_s(void);

/* --- log.c ----------------------------------------------------------------------------------- */

/* One line on stderr at this verbosity or above. */
void nbmpi_log(int verbose, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One rank says how the barriers of the communicator are run: the one that is the reason if by MPI,
 * or else rank 0. cause: what the system or the library said to this rank. What the program does
 * not want or cannot have is for level 1; what somebody may mend is said at any level, once. */
void nbmpi_log_path(const struct nbmpi_comm *c, const char *cause);

/* Barriers of c have failed with this error of the library, for the reason in nbar_error(): makes
 * an error code whose text names the ranks to look at. Returns NBMPI_FAILED. */
int nbmpi_fail(struct nbmpi_comm *c, int error);

/* The same, as the process of a rank of this host has ended. */
int nbmpi_fail_ended(struct nbmpi_comm *c, const struct nbmpi_mate *mate);

/* Says whom a barrier has waited for so long, at level 1. */
void nbmpi_log_missing(const struct nbmpi_comm *c, double seconds);

/* Adds what c has counted to *out. */
void nbmpi_count(const struct nbmpi_comm *c, struct nbmpi_counters *out);

/* The counters, at level 1. */
void nbmpi_log_counters(void);

#endif
