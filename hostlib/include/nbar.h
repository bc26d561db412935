/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar.h - barriers that a NIC runs: the host's API.
 *
 * A process opens a port of a NIC, opens a group on it, exchanges endpoint addresses with the other
 * members by any means it has, and connects. From then on a barrier is one store (nbar_post) and
 * one word to poll (nbar_test, nbar_wait); the NICs do the rest while the host computes.
 *
 * Functions return 0 or a positive answer, or a negative errno; then nbar_error() says in words
 * what went wrong, where, and what to do next. Outputs are set only on success.
 *
 * Threads: calls on different ports may run at once, and so may post, test, wait and missing on
 * different groups of one port. One thread at a time posts on a group; any number may test or wait
 * for it. Open, connect and close of anything on a port: one thread at a time.
 *
 * Memory: writes before a barrier on any thread of a member are visible after it to all threads of
 * the same node that took part. It does not flush RDMA or MPI traffic.
 */
#ifndef NBAR_H
#define NBAR_H

#include <stddef.h>
#include <stdint.h>

#include "nbar_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NBAR_VERSION_MAJOR 0
#define NBAR_VERSION_MINOR 1

struct nbar_port;  /* a port of a NIC, opened by this process */
struct nbar_group; /* this process's member of a group */

/* Text of the last error in this thread; never NULL; valid until the next call into nbar. */
const char *nbar_error(void);

/*
 * Opens a port. nic: "n0" (a NIC of the daemon whose run directory is $NBAR_RUN_DIR, or else the
 * default one), "n0:3" (port 3 of it), a path of a control socket, or NULL: $NBAR_NIC, or else
 * "n0". Or an in-process NIC, with no daemon: "host:wire=udp,bind=192.0.2.1:0" or
 * "host:wire=verbs,mode=write" (see nbar(3); "host:" alone: verbs, or else udp); who opens the same
 * text again gets the same NIC. Errors: -ENOENT, -ECONNREFUSED no such NIC, no daemon; -EACCES;
 * -EPROTO it speaks another version; -EBUSY that port has another owner; -ENOSPC no port is free;
 * -EINVAL, and what its wire says; -ELIBACC, -ELIBBAD no libnbar-hostnic.so, or another version's.
 */
int nbar_open(const char *nic, struct nbar_port **out);

/* Closes a port and all groups still open on it. Members that wait for them get an error. */
void nbar_close(struct nbar_port *port);

struct nbar_group_attr {
	uint32_t rank, size;
	/* NULL: "auto"; or another name that the NIC knows: see nbar-nicd --list-algs */
	const char *alg;
	uint32_t tag;                 /* any number the members agree on; others are refused */
	const struct nbar_plan *plan; /* "custom": the plan of this rank; copied */
	size_t plan_length;           /* bytes of it */
};

/*
 * Opens a group and yields the endpoint address that the other members need. From here on the NIC
 * keeps what others send. Errors: -EINVAL, -ERANGE bad attributes or plan; -ENOSPC the NIC is full;
 * -ENETDOWN the NIC is gone; -ETIMEDOUT it has not answered for 30 s: try again, all else goes on.
 */
int nbar_group_open(struct nbar_port *port, const struct nbar_group_attr *attr,
		    struct nbar_group **out, struct nbar_endpoint *endpoint);

/*
 * Connects a group: endpoints[r] is the endpoint address of rank r, for all r below size (the NIC
 * gets just those it needs; the rest may be anything). For "signal" groups all ranks but its own
 * become peers, and the index of peer r is r, or r - 1 beyond its own rank. -EPROTO: an endpoint
 * address is of another group, version, wire or algorithm; the text names its rank. -ETIMEDOUT: as
 * above, but close the group.
 */
int nbar_group_connect(struct nbar_group *g, const struct nbar_endpoint *endpoints);

/* Ranks whose endpoint addresses nbar_group_connect reads, for those who would rather not gather
 * all: sets *ranks to an array that lives as long as the group, and returns its length. */
int nbar_group_peers(const struct nbar_group *g, const uint32_t **ranks);

/* Closes a group. The NIC goes on answering for its last barrier. */
void nbar_group_close(struct nbar_group *g);

/*
 * Several processes of a node may share one member of a group: one opens port and group, the
 * others attach to both and then test and wait as the first does; they arrive through a process
 * team (see below). A share tells what to attach to. Whoever has it, and is of the same user, may
 * do so.
 */
struct nbar_share {
	uint64_t secret[2];
	uint32_t port, cell, rank, size;
	uint32_t socket_id; /* where others find an in-process NIC; else 0 */
	uint32_t reserved;
	struct nbar_endpoint endpoint;
};
void nbar_group_share(const struct nbar_group *g, struct nbar_share *out);

/* Attaches to the port of a share. nic: as in nbar_open, but for a port's number. Closed by
 * nbar_close. Errors: -ENOENT, -EACCES that port is not shared with us; else as nbar_open. */
int nbar_attach(const char *nic, const struct nbar_share *share, struct nbar_port **out);

/* Attaches to the group of a share, through any share's port that is the same. Close it by
 * nbar_group_close; the others go on. A process that ends without that is dead to all members. */
int nbar_group_attach(struct nbar_port *port, const struct nbar_share *share,
		      struct nbar_group **out);

/* How a thread waits: it spins for spin_us, then yields for yield_us, then sleeps if block is not
 * 0 (the NIC wakes it), or goes on yielding. An in-process NIC runs on the time of those who
 * wait, and wakes none of them: instead of the sleep it is polled every 10 us at first, every ms at
 * last. */
struct nbar_wait_policy {
	uint32_t spin_us, yield_us;
	int block;
};

/* Sets the policy of a group; the default is from $NBAR_WAIT ("spin", "yield", "block", or
 * "SPIN_US,YIELD_US,BLOCK"), or else 20 us, 200 us, block; with one processor it never spins. */
void nbar_group_set_wait(struct nbar_group *g, const struct nbar_wait_policy *policy);

/*
 * Arrives: posts the next barrier of the group and returns at once. *ticket (may be NULL) is what
 * test and wait take. Up to NBAR_POSTED_MAX may be under way; they complete in order. Errors:
 * -EAGAIN too many are under way; -ENOTCONN not connected; else as nbar_test.
 */
int nbar_post(struct nbar_group *g, uint32_t *ticket);

/*
 * 1: the barrier of ticket is complete; 0: not yet. Errors, final for the group: -ETIMEDOUT a
 * member's NIC is silent; -ECONNRESET a member's process died; -ESHUTDOWN a member closed the
 * group; -ENETDOWN a NIC was stopped, its device has failed, or ours is gone. nbar_error() names
 * the rank.
 */
int nbar_test(struct nbar_group *g, uint32_t ticket);

#define NBAR_FOREVER UINT64_MAX

/*
 * Waits for it. 0: complete. -ETIME: timeout_ns have passed; the barrier stays posted, so wait
 * again or go on with other work; nbar_error() and nbar_missing() tell who is missing. Else as
 * nbar_test.
 */
int nbar_wait(struct nbar_group *g, uint32_t ticket, uint64_t timeout_ns);

/* Post and wait for ever. */
int nbar_barrier(struct nbar_group *g);

/*
 * Ranks that hold up the barrier under way, or that broke it, as far as the NIC knows: writes up
 * to n of them and returns how many there are (0: nobody known; the NIC begins to ask a
 * millisecond after it starts to wait).
 */
int nbar_missing(const struct nbar_group *g, uint32_t *ranks, uint32_t n);

/* What this process has done on a group. */
struct nbar_group_stats {
	uint64_t posted, completed;
	uint64_t yields, sleeps; /* of waiting threads */
};
void nbar_group_get_stats(const struct nbar_group *g, struct nbar_group_stats *out);

/* Counters of a NIC by name or path (as in nbar_open, without port), for monitors. */
int nbar_nic_stat(const char *nic, struct nbar_rep_nic_stat *out);

/* Its groups: calls visit for each; a return other than 0 ends it and is returned. */
int nbar_nic_groups(const char *nic, int (*visit)(void *arg, const struct nbar_group_info *info),
		    void *arg);

/*
 * Signal service: raw messages of 20 bytes between members of a "signal" group, unordered and
 * possibly lost. peer: index as at connect. -EAGAIN: the NIC has not taken earlier ones yet.
 * One thread at a time a port.
 */
int nbar_signal_send(struct nbar_group *g, uint32_t peer, const uint32_t word[NBAR_SIGNAL_WORDS]);

struct nbar_signal_in {
	struct nbar_group *group;
	uint32_t src; /* rank */
	uint32_t word[NBAR_SIGNAL_WORDS];
};

/* 1: *out is the next message of any group of the port; 0: there is none. */
int nbar_signal_recv(struct nbar_port *port, struct nbar_signal_in *out);

/*
 * Team: threads of one process that arrive together, alone or in front of a group. In front of a
 * group, one of them posts the start token when all have arrived, and all poll the completion word
 * themselves, so there is no second, local release. Kinds:
 *
 * "sense-reverse"    each thread counts down by one fetch-and-sub, the last one releases all; the
 *                    epoch beside the count is the sense (Mellor-Crummey and Scott, Algorithms for
 *                    Scalable Synchronization on Shared-Memory Multiprocessors, 1991: centralized)
 * "mcs"              arrival up a tree of four children a thread, wake-up down one of two (the same
 *                    paper: its new tree-based barrier)
 * "tournament"       pairs climb a binary tree, the loser signals the winner; thread 0 wins, and
 *                    wakes down the same tree (Hensgen, Finkel and Manber, Two Algorithms for
 * Barrier Synchronization, 1988; with a wake-up tree as in the paper above) "dissemination:N"  in
 * round r each thread signals the N that are i * (N + 1)^r further, i = 1..N, for N from 1 to
 * NBAR_TEAM_WAYS_MAX (Hensgen, Finkel and Manber for N = 1; Hoefler, Mehlan, Mietke and Rehm, 2006,
 * for more)
 *
 * Each flag that a thread waits for lies on a cache line of its own. The memory is the caller's,
 * and padded: free it when no thread is in it. The fields are the library's, but for wait, which
 * you may set before the team begins.
 */
#define NBAR_TEAM_MAX 65536u
#define NBAR_TEAM_WAYS_MAX 16u
struct nbar_team {
	uint64_t arrived; /* sense-reverse: threads still to arrive, and the epoch */
	uint64_t reserved0[15];
	uint64_t released; /* completion word without a group, away from the line of the count */
	uint64_t reserved1[15];
	uint32_t size, kind, ways, lines;
	uint32_t local, joined;
	uint64_t broken;
	struct nbar_group *group;
	struct nbar_wait_policy wait;
	uint32_t reserved2[17];
}
#if defined(__GNUC__)
__attribute__((aligned(128)))
#endif
;

/* Prepares a team of size threads over group (or NULL), of kind "sense-reverse". While a team uses
 * a group, nobody else posts on it. -EINVAL: size 0. -EBUSY: the group has a barrier under way.
 * -EPERM: this process is only attached to the group. */
int nbar_team_init(struct nbar_team *team, uint32_t size, struct nbar_group *group);

/* Waits for all threads of the team, and for all members of the group. 0, or as nbar_wait (for
 * every thread; final). Called by exactly `size` threads at a time. -EINVAL: the kind wants to know
 * which thread it is. */
int nbar_team_barrier(struct nbar_team *team);

struct nbar_team_attr {
	uint32_t size;
	const char *kind; /* NULL: "sense-reverse" */
	struct nbar_group *group;
	int local; /* of a group: not 0: its poster alone polls, and then wakes as the kind does */
};

/* Bytes of memory that a team of a kind takes: struct nbar_team, and what lies behind it. */
int nbar_team_size(const char *kind, uint32_t size, size_t *bytes);

/* Prepares a team of any kind in length bytes at team, aligned to 128. Errors: as nbar_team_init;
 * -EINVAL no such kind, not aligned; -ERANGE beyond NBAR_TEAM_MAX; -ENOSPC length is too small. */
int nbar_team_setup(struct nbar_team *team, size_t length, const struct nbar_team_attr *attr);

/* The number of this thread, for those who have none: 0, 1, 2, ... -ENOSPC: all are given out. */
int nbar_team_join(struct nbar_team *team);

/* nbar_team_barrier of any kind, by thread `me`: 0 to size - 1, each one at a time. -ERANGE: there
 * is no such thread. */
int nbar_team_barrier_as(struct nbar_team *team, uint32_t me);

/*
 * The same in two halves, for a team without a group and something of one's own between them: all
 * threads arrive; the one that gets 1 knows that all have, and must release; those that get 0 must
 * wait. ticket: from arrive, as it is.
 */
int nbar_team_arrive(struct nbar_team *team, uint32_t me, uint32_t *ticket);
int nbar_team_release(struct nbar_team *team, uint32_t me, uint32_t ticket);
int nbar_team_wait(struct nbar_team *team, uint32_t me, uint32_t ticket);

/*
 * Process team: as a team, but of processes, and split in phases. It lies in memory that they
 * share, one of them prepares it, and each counts its own barriers: 1, 2, 3, ... With g NULL the
 * process team is the whole barrier; else g is this process's handle of the group they share, which
 * is fresh: no barrier has been posted on it.
 */
#define NBAR_PROCESS_TEAM_MAX 1024u
struct nbar_process_team {
	uint32_t size;
	uint32_t reserved0[31];
	uint32_t sleepers, wake; /* who sleeps without a group, and the futex */
	uint32_t reserved1[30];
	uint32_t done; /* a large process team's last barrier complete */
	uint32_t reserved2[31];
	uint32_t arrived[NBAR_PROCESS_TEAM_MAX]; /* the last ticket of each process */
}
#if defined(__GNUC__)
__attribute__((aligned(128)))
#endif
;

/* Prepares a process team of size processes, before any of them uses it. -ERANGE: not 1 to
 * NBAR_PROCESS_TEAM_MAX. */
int nbar_process_team_init(struct nbar_process_team *procs, uint32_t size);

/* Process `me` of the process team (0 to size - 1) arrives at barrier `ticket`. As nbar_post. */
int nbar_process_team_post(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
			   uint32_t ticket);

/* As nbar_test and nbar_wait. policy NULL: that of the group, or else the default. */
int nbar_process_team_test(struct nbar_process_team *procs, struct nbar_group *g, uint32_t ticket);
int nbar_process_team_wait(struct nbar_process_team *procs, struct nbar_group *g, uint32_t ticket,
			   const struct nbar_wait_policy *policy, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
