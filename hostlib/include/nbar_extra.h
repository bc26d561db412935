/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_extra.h - what tools, researchers and runtime systems need beside nbar.h.
 *
 * It has custom plans, the counters of a NIC, raw messages between hosts, teams of all kinds, and
 * processes of a host that share a member. The rules of nbar.h for errors, threads and memory are
 * valid here too.
 */
#ifndef NBAR_EXTRA_H
#define NBAR_EXTRA_H

#include "nbar.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Plans. With struct nbar_group_attr.alg "custom", plan and plan_length give what this rank does in
 * a barrier: struct nbar_plan of nbar_abi.h. nbar_group_open copies the plan; the NIC checks it.
 * Each rank has its own plan. The plans must fit each other. No NIC can check that, because each
 * NIC sees only one plan.
 */

/* Reads the counters of a NIC, for monitors. nic: name or path, as in nbar_open, without port.
 * out->pid: the process number of the daemon in the caller's PID namespace; if the daemon is not
 * visible there, the number in the daemon's own PID namespace. */
int nbar_nic_stat(const char *nic, struct nbar_rep_nic_stat *out);

/* Calls visit for each group of a NIC. If visit returns another value than 0, the call ends and
 * returns this value. */
int nbar_nic_groups(const char *nic, int (*visit)(void *arg, const struct nbar_group_info *info),
		    void *arg);

/* Reads how long the barriers of a NIC took, from their start at the NIC to their completion.
 * -EOPNOTSUPP: this NIC does not record it. */
int nbar_nic_latency(const char *nic, struct nbar_rep_nic_latency *out);

/*
 * Which ranks a member waited for, as its NIC knows it: from which rank the last token of each
 * barrier came, in order of arrival, and how long the barrier took from its start. The sender of
 * the last token may itself have waited for another rank: nbar_extra(3) says what this means in
 * each plan.
 */
#define NBAR_LAST_MAX 8u
struct nbar_group_stat {
	uint64_t barriers; /* barriers that the NIC has completed */
	uint64_t ns;       /* sum of their latencies */
	uint32_t nlast;    /* entries of last[] */
	uint32_t nrank;    /* ranks from which a last token came; may be more than nlast */
	struct nbar_last last[NBAR_LAST_MAX]; /* one per rank, greatest sum of latencies first */
};

/* As nbar_nic_groups, but visit also gets the statistic of the group; NULL: the NIC has none, as
 * for a "signal" group. */
int nbar_nic_group_stats(const char *nic,
			 int (*visit)(void *arg, const struct nbar_group_info *info,
				      const struct nbar_group_stat *stat),
			 void *arg);

/*
 * Asks whether the NICs of the peers hear the NIC of this host, and it hears them, before the first
 * barrier of a connected group: a barrier notices only after the retry budget (8 s). Each member
 * may ask on its own, while the groups of the others are open. 0: all NICs have answered.
 * -EHOSTUNREACH: after timeout_ns (about 2 s are enough even if 30 % of the frames are lost; a time
 * in which this process stood still counts as 1 s at most) some have not; nbar_error() names one
 * with its address. -ENOTCONN: not connected; -EINVAL: a "signal" group, or attached; -ENETDOWN,
 * -ETIME: this host's own NIC has ended, or does not answer.
 */
int nbar_group_reach(struct nbar_group *g, uint64_t timeout_ns);

/*
 * Signal service: raw messages of 20 bytes between members of a "signal" group, unordered and
 * possibly lost. peer: the index of the peer (see nbar_group_connect). -EAGAIN: the NIC has not
 * taken earlier messages yet. On one port, one thread at a time.
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
 * The kinds of a team (nbar.h): how its threads meet.
 *
 * "sense-reverse"
 *     Each thread counts down by one fetch-and-sub; the last thread releases all. The epoch, in the
 *     same word as the count, is the sense. (Mellor-Crummey and Scott, Algorithms for Scalable
 *     Synchronization on Shared-Memory Multiprocessors, 1991: centralized)
 * "mcs"
 *     Threads arrive up a tree with four children each, and wake up down a tree with two. (The same
 *     paper: its new tree-based barrier)
 * "tournament"
 *     Pairs climb a binary tree: the loser signals the winner. Thread 0 wins, and wakes the others
 *     down the same tree. (Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization,
 *     1988; the wake-up tree is that of the paper above)
 * "dissemination:N"
 *     In round r each thread signals N others, at the distances i * (N + 1)^r, i = 1..N. N is 1 to
 *     NBAR_TEAM_WAYS_MAX. (Hensgen, Finkel and Manber for N = 1; Hoefler, Mehlan, Mietke and
 *     Rehm, 2006, for more)
 *
 * Each flag that a thread waits for lies on a cache line of its own.
 */
#define NBAR_TEAM_WAYS_MAX 16u

/*
 * The barrier in two halves, for a team without a group; the caller does its own work between them.
 * All threads call arrive. In one thread, arrive returns 1 after all have arrived: this thread does
 * the work, and then must call release. In the other threads, arrive returns 0: they must call
 * await at once. ticket: as arrive has set it in the same thread.
 */
int nbar_team_arrive(struct nbar_team *team, uint32_t me, uint32_t *ticket);
int nbar_team_release(struct nbar_team *team, uint32_t me, uint32_t ticket);
int nbar_team_await(struct nbar_team *team, uint32_t me, uint32_t ticket);

/*
 * Several processes of a node may share one member of a group: one process opens port and group,
 * the others attach to both. All test and wait in the same way, and arrive through a process team
 * (see below). A share names the port and the group. Every process of the same user that has the
 * share may attach. With a remote NIC, its PID namespace must be that of the process that opened
 * the port, and a thread of that process pushes the posts of the others.
 */
struct nbar_share {
	uint64_t secret[2];
	uint32_t port, cell, rank, size;
	uint32_t socket_id;   /* of an in-process NIC; else 0 */
	uint32_t struct_size; /* sizeof, in the library that made the share */
	struct nbar_endpoint endpoint;
	uint32_t value_max, values; /* values: index in value[] of the page */
	/* Of a remote NIC: the process that opened the port, and two of its descriptors. */
	uint32_t pid, page, asks;
	uint64_t inode; /* of the page's memory */
};
void nbar_group_share(const struct nbar_group *g, struct nbar_share *out);

/* Returns the bytes of values up to which a barrier is about as fast as one without a value:
 * NBAR_VALUE_MAX, or less if programs of a NIC in the kernel's network path run it. These leave
 * longer values and pairs to the daemon, and in UDP parts of words (4 bytes). For the process that
 * opened the group. Any thread. */
uint32_t nbar_group_fast_value(const struct nbar_group *g);

/* Attaches to the port of a share. nic: as in nbar_open, but without the number of a port. Close
 * the port by nbar_close. Errors: -ENOENT, -EACCES this port is not shared with us; others as
 * nbar_open. */
int nbar_attach(const char *nic, const struct nbar_share *share, struct nbar_port **out);

/* Attaches to the group of a share. port: from nbar_attach, with this share or another share of the
 * same port. Close the group by nbar_group_close; the other processes can still use it. If a
 * process ends without closing the group, the group fails for all members. */
int nbar_group_attach(struct nbar_port *port, const struct nbar_share *share,
		      struct nbar_group **out);

/*
 * Process team: a team of processes that post, test and wait. It lies in memory that the processes
 * share, and one process prepares it. With g NULL the process team is the whole barrier. Else g is
 * this process's handle of the shared group, which must be new: without a posted barrier.
 */
#define NBAR_PROCESS_TEAM_MAX 1024u
struct nbar_process_team {
	uint32_t size;
	uint32_t reserved0[31];
	uint32_t sleepers, wake; /* without a group: number of sleepers, and their futex */
	uint32_t reserved1[30];
	uint32_t done; /* in a large process team: the last complete barrier. With a group: the
			* last barrier whose values a process has combined */
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

/* Process `me` of the process team (0 to size - 1) arrives at its next barrier. Pass *ticket to
 * test and wait (ticket may be NULL). One thread at a time for each process. Errors as nbar_post;
 * -ERANGE: there is no such process. */
int nbar_process_team_post(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
			   uint32_t *ticket);

/*
 * As nbar_process_team_post, for a group with value_max: all[me] carries the value of this process,
 * in memory that all processes of the team share. The process that sees all arrive folds the values
 * in the order of the processes, and posts the result. The next write to all[me] must wait until
 * this barrier is complete: each barrier under way needs an `all` of its own. nbar_result reads the
 * result: each process must have read that of barrier t before it arrives at t + NBAR_VALUES_AHEAD.
 * Values that differ in op, type or count fail the group: -EBADMSG.
 */
int nbar_process_team_post_value(struct nbar_process_team *procs, struct nbar_group *g, uint32_t me,
				 const struct nbar_value *all,
				 void (*fold)(struct nbar_value *to, const struct nbar_value *from),
				 uint32_t *ticket);

/* As nbar_test and nbar_wait. policy NULL: the policy of the group; without a group, the
 * default. */
int nbar_process_team_test(struct nbar_process_team *procs, struct nbar_group *g, uint32_t ticket);
int nbar_process_team_wait(struct nbar_process_team *procs, struct nbar_group *g, uint32_t ticket,
			   const struct nbar_wait_policy *policy, uint64_t timeout_ns);

/* As nbar_missing, but also writes to why[i] the reason why ranks[i] is missing: NBAR_WHY_KIND
 * gives the kind (enum nbar_why), and NBAR_WHY_NS for how long, in nanoseconds (nbar_abi.h). */
int nbar_missing_why(const struct nbar_group *g, uint32_t *ranks, uint16_t *why, uint32_t n);

/* Writes such a reason in words, as "process stopped, late for 2.0 s"; "" if nothing is known.
 * Returns as snprintf. */
int nbar_why_text(uint16_t why, char *out, size_t size);

/* Writes in words that the NIC of this host has shown no sign of life while threads waited for a
 * barrier of the group; "" if the NIC runs. Returns as snprintf. */
int nbar_nic_why(const struct nbar_group *g, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
