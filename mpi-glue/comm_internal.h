/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm_internal.h - what comm.c, barrier.c, post.c, join.c (set-up), port.c, mates.c, wait.c and
 * log.c share.
 */
#ifndef NBMPI_COMM_INTERNAL_H
#define NBMPI_COMM_INTERNAL_H

#include <pthread.h>

#include "comm.h"
#include "judge.h"

/* A rank of this host. */
struct nbmpi_mate {
	uint32_t rank;
	int32_t pid;
	uint64_t born;
};

/* The three paths of a communicator's barriers. A communicator never returns to an earlier path.
 * The thread that calls a blocking barrier changes the path, while no barrier is under way. */
enum nbmpi_path { NBMPI_OPENING, NBMPI_OFFLOADED, NBMPI_PLAIN };

struct nbmpi_comm {
	void *mpi;
	uint32_t rank, size;
	enum nbmpi_kind kind;
	const struct nbar_value *value; /* of the allreduce that sets up; its trial carries it */
	pthread_mutex_t lock;           /* protects requests, tickets and failures */
	enum nbmpi_path path;
	enum nbmpi_why why; /* reason for NBMPI_PLAIN */
	uint32_t why_rank;  /* rank that is the reason, or NBAR_RANK_NONE */
	bool closed;
	uint32_t nrequest;               /* requests that hold the communicator */
	struct nbmpi_comm *next, **link; /* list of all communicators of this process */

	uint32_t calls; /* barriers begun on path OPENING */
	uint32_t asks;  /* the number of them before the next try to set up */
	struct nbmpi_judge judge;
	double since; /* the MPI runs a barrier that began then */

	/* Set by the set-up. */
	uint32_t nhost, nlocal;
	uint32_t fast_value;  /* the least of all NICs: see nbar_group_fast_value */
	uint32_t mate;        /* my number among the ranks of my host */
	uint32_t leader;      /* of my host: its lowest rank in the communicator */
	bool tuned;           /* all ranks have agreed on the profile of "tuned:FILE" */
	uint32_t *tuned_host; /* set-up: index of each host in the profile; room for 2 * size */

	struct nbar_group *group;    /* NULL: all ranks are on one host */
	struct nbmpi_port *port;     /* of the group */
	struct nbmpi_memory *memory; /* of the ranks of this host; NULL: this rank is alone there */
	uint32_t vain;               /* unsuccessful tests, and the last check of the mates */
	double looked_after;
	uint32_t wanted, posted; /* tickets; those between them wait for room at the NIC */
	/* Allreduces without a result, in the order of their tickets; and the first of them that is
	 * not posted. */
	struct nbmpi_request *queue, **queue_end, *unposted;
	uint32_t round; /* counts changes of the path: tickets of another round are complete */
	int error;      /* NBMPI_FAILED: final */
	int code;       /* error code of the MPI for this failure */
	uint64_t offloaded, failed, fallback[NBMPI_WHY_END]; /* barriers; by nbmpi_bump */
};

/* The shared memory of the ranks of a host, with their process team. */
struct nbmpi_memory {
	struct nbar_process_team procs;
	uint32_t ended; /* 1 + index of the mate that the first rank to fail has blamed; 0: none */
	/* Each rank writes its own entry, during the set-up. Then follow, if the communicator is
	 * one of allreduces, the values: struct nbar_value[NBAR_VALUES_AHEAD][nlocal]. */
	struct nbmpi_mate mate[];
};

/* This process. */
struct nbmpi_self {
	struct nbmpi_start start;
	char nic[NBMPI_NIC_SIZE]; /* the name for nbar_open; empty: NULL */
	pthread_mutex_t lock;     /* protects ports, the list, and each open and close on a port */
	struct nbmpi_comm *comm;
	struct nbmpi_counters gone; /* counters of closed communicators */
	struct nbmpi_port *own;     /* our own port, if this rank has been a leader */
	struct nbmpi_port *ports;   /* other ports: of other processes, and lost ports of our own */
};
extern struct nbmpi_self nbmpi_self;

/* comm.c: ends a closed communicator without requests. */
void nbmpi_comm_free(struct nbmpi_comm *c);

/* --- post.c, with the communicator's lock ---------------------------------------------------- */

/* Draws the next ticket for r, which nbmpi_post posts. */
void nbmpi_want(struct nbmpi_comm *c, struct nbmpi_request *r);

/* Posts the wanted tickets as far as the NIC has room. 0; -EAGAIN: not all; or an error of the
 * library. */
int nbmpi_post(struct nbmpi_comm *c);

/* Gives complete allreduces their results. 0, or an error of the library. */
int nbmpi_take_results(struct nbmpi_comm *c);

/* From here on, r waits for no result. */
void nbmpi_forget(struct nbmpi_comm *c, const struct nbmpi_request *r);

/* Starts a thread that posts the wanted tickets of all communicators as soon as there is room. */
void nbmpi_post_later(void);

/* Ends that thread. The caller holds no lock. */
void nbmpi_post_stop(void);

/* comm.c: true for a barrier, and for a value that all NICs of the communicator take as fast as
 * that. */
bool nbmpi_value_is_fast(const struct nbmpi_comm *c, const struct nbar_value *value);

/* fold.c: folds `from` into `to`, which have the same op, type and count. */
void nbmpi_fold(struct nbar_value *to, const struct nbar_value *from);

/* --- join.c ---------------------------------------------------------------------------------- */

/* A collective: sets up the communicator and decides its path, unless a set-up would not pay yet.
 * 0, NBMPI_FAILED or NBMPI_MPI_FAILED. The caller holds no lock. */
int nbmpi_set_up(struct nbmpi_comm *c);

/* Frees the group and the memory of c, if any. */
void nbmpi_leave(struct nbmpi_comm *c);

/* --- judge.c --------------------------------------------------------------------------------- */

/* A collective: would a set-up with NICs pay by now? If not, sets the next time to ask. 0, or an
 * error code of the MPI. */
int nbmpi_judge_pays(struct nbmpi_comm *c, bool *pays);

/* Puts the figures of this rank into a sum. True: by the sum over all ranks, the NICs are too slow.
 * cause: gets the figures as text. */
void nbmpi_judge_give(const struct nbmpi_comm *c, struct nbmpi_sum *sum);
bool nbmpi_judge_take(const struct nbmpi_comm *c, const struct nbmpi_sum *sum, char *cause,
		      size_t size);

/* A collective, after a blocking offloaded barrier: if the NICs are slower than the MPI, all ranks
 * leave the barriers to the MPI. 0 or NBMPI_MPI_FAILED. The caller holds no lock. */
int nbmpi_judge_comm(struct nbmpi_comm *c);

/* --- port.c, with nbmpi_self.lock ------------------------------------------------------------ */

/* Opens the group of c on our own port, or attaches to it on the port of another rank. NIC: as in
 * nbar_open. Errors: a reason; nbar_error() has the text, except for NBMPI_WHY_memory (errno). */
enum nbmpi_why nbmpi_port_open_group(struct nbmpi_comm *c, const char *nic,
				     const struct nbar_group_attr *attr,
				     struct nbar_endpoint *endpoint);
enum nbmpi_why nbmpi_port_attach_group(struct nbmpi_comm *c, const char *nic,
				       const struct nbar_share *share);
void nbmpi_port_close_group(struct nbmpi_comm *c);

/* Closes all ports. */
void nbmpi_ports_close(void);

/* --- mates.c: the ranks of this host -----------------------------------------------------------
 */

/* The memory that the ranks of a host share. The leader makes it (a descriptor), and each other
 * rank opens it; key is different for each set-up. Each rank maps the memory by the descriptor.
 * Then the leader removes the name. Negative: an errno. */
int nbmpi_memory_make(uint64_t key, const struct nbmpi_comm *c);
int nbmpi_memory_open(uint64_t key, uint32_t leader);
void nbmpi_memory_unlink(uint64_t key, uint32_t leader);
int nbmpi_memory_join(struct nbmpi_comm *c, int memory);
void nbmpi_memory_leave(struct nbmpi_comm *c);

/* The values of this ticket, by mate. */
static inline struct nbar_value *nbmpi_memory_values(const struct nbmpi_comm *c, uint32_t ticket)
{
	struct nbar_value *all = (struct nbar_value *)(void *)&c->memory->mate[c->nlocal];

	return all + (size_t)c->nlocal * (ticket % NBAR_VALUES_AHEAD);
}
_Static_assert(sizeof(struct nbmpi_mate) % _Alignof(struct nbar_value) == 0, "alignment");

/* The first mate whose process has ended, or NULL. Slow: it reads files. */
const struct nbmpi_mate *nbmpi_mate_ended(const struct nbmpi_comm *c);

/* The mate to blame for a barrier that fails because `ended` has ended. The first rank that fails
 * records whom it blames. It may exit before the others fail; they must not blame it. */
const struct nbmpi_mate *nbmpi_mate_blame(const struct nbmpi_comm *c,
					  const struct nbmpi_mate *ended);

/* --- wait.c ---------------------------------------------------------------------------------- */

/* Waits for r, with progress of the MPI. 1 or negative, as nbmpi_test. The caller holds no lock. */
int nbmpi_wait(struct nbmpi_request *r);

double nbmpi_now_s(void);

/* --- log.c ----------------------------------------------------------------------------------- */

/* Writes one line to stderr at this verbosity or above. */
void nbmpi_log(int verbose, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One rank prints how the barriers of the communicator run: for a fallback the rank that is the
 * reason, else rank 0. cause: the message of the system or the library at this rank. NBMPI_WHYS
 * gives the level of each reason. A reason that the user can fix is printed once at any level. */
void nbmpi_log_path(const struct nbmpi_comm *c, const char *cause);

/* Barriers of c have failed with this error of the library; nbar_error() has the reason. Makes an
 * error code whose text names the missing ranks. Returns NBMPI_FAILED. */
int nbmpi_fail(struct nbmpi_comm *c, int error);

/* As nbmpi_fail, with an error code of the MPI. */
int nbmpi_fail_code(struct nbmpi_comm *c, int code);

/* As nbmpi_fail, because the process of a rank of this host has ended. */
int nbmpi_fail_ended(struct nbmpi_comm *c, const struct nbmpi_mate *mate);

/* A member of the group is a host: if ranks share hosts, a text of libnbar needs "host 3" for
 * "rank 3". */
void nbmpi_hosts_for_ranks(char *text);

/* Level 1: names the ranks that a barrier has waited for. */
void nbmpi_log_missing(const struct nbmpi_comm *c, double seconds);

/* Adds the counters of c to *out. */
void nbmpi_count(const struct nbmpi_comm *c, struct nbmpi_counters *out);

/* "barrier" or "allreduce". */
const char *nbmpi_kind_text(const struct nbmpi_comm *c);

/* Level 1: prints the counters. */
void nbmpi_log_counters(void);

#endif
