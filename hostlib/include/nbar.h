/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar.h - barriers that a NIC runs: the host's API for every day. The rest is in nbar_extra.h.
 *
 * A process opens a port of a NIC, opens a group on the port, exchanges endpoint addresses with the
 * other members by any means, and connects. From then on, a barrier is one store (nbar_post) and
 * one word to poll (nbar_test, nbar_wait); the NICs do the rest while the host computes.
 *
 * Errors: functions return 0 or a positive answer, or a negative errno; then nbar_error() says in
 * words what went wrong, where, and what to do next. Outputs are set only on success. Only -ETIME
 * means "not in time": nothing is broken, call again.
 *
 * Threads: calls on different ports may run at once. Post, test, wait, arm, missing and abort on
 * different groups of one port may run at once, too. On one group, one thread at a time posts, and
 * any number of threads test or wait. On one port, one thread at a time opens, connects or closes.
 *
 * Memory: a write of any thread of a member before a barrier is visible after the barrier to all
 * threads of the same node that took part. A barrier does not flush RDMA or MPI traffic: see
 * nbar(3), "MEMORY".
 *
 * Structs with struct_size: set it to sizeof the struct (0: only the fields up to plan_length). The
 * program then also works with a library that knows more fields. It works with a library that knows
 * fewer fields, as long as the fields that this library does not know are 0.
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
#define NBAR_VERSION (NBAR_VERSION_MAJOR << 16 | NBAR_VERSION_MINOR)

struct nbar_port;  /* a port of a NIC, opened by this process */
struct nbar_group; /* this process's member of a group */

/* Text of the last error in this thread, never NULL. The text belongs to the library and is valid
 * until the next call. */
const char *nbar_error(void);

/*
 * Opens a port. nic: "n0" (a NIC of the daemon whose run directory is $NBAR_RUN_DIR, or the default
 * run directory), "n0:3" (port 3 of this NIC), a path of a control socket, or NULL: $NBAR_NIC, or
 * else "n0". Or an in-process NIC, without a daemon: "host:wire=udp,bind=192.0.2.1:0" or
 * "host:wire=verbs,mode=write" (see nbar(3); "host:" alone: verbs, or else udp); all calls with the
 * same text get the same NIC. The caller closes *out. Errors: -ENOENT, -ECONNREFUSED no such NIC,
 * or no daemon; -EACCES; -EPROTO the NIC speaks another version; -EBUSY the port has another owner;
 * -ENOSPC no port is free; -EINVAL, and the errors of the wire; -ETIME no answer for 30 s;
 * -ELIBACC, -ELIBBAD libnbar-hostnic.so is missing, or of another version.
 */
int nbar_open(const char *nic, struct nbar_port **out);

/* Closes a port and all groups still open on it. The other members of these groups get an error. */
void nbar_close(struct nbar_port *port);

struct nbar_group_attr {
	uint32_t struct_size;
	uint32_t rank, size;
	uint32_t tag;    /* any number that all members use; members with another tag are refused */
	const char *alg; /* NULL: "auto"; or another name that nbar-nicd --list-algs shows */
	/* "custom": see nbar_extra.h. */
	const struct nbar_plan *plan;
	size_t plan_length;
	uint32_t value_max; /* bytes of the values that barriers may carry; the same on all members
			     */
};

/*
 * Opens a group and yields the endpoint address that the other members need; the caller keeps attr
 * and closes *out. From here on the NIC keeps the signals of other members. Errors: -EINVAL,
 * -ERANGE bad attributes or plan; -E2BIG attr has fields that this library does not know; -ENOSPC
 * the NIC is full; -ENETDOWN the NIC is gone; -ETIME no answer for 30 s: the port and its other
 * groups still work.
 */
int nbar_group_open(struct nbar_port *port, const struct nbar_group_attr *attr,
		    struct nbar_group **out, struct nbar_endpoint *endpoint);

/*
 * Connects a group. endpoints[r] is the endpoint address of rank r, for all r below size (the
 * library reads only the addresses that the plan needs); the caller keeps the array. In a "signal"
 * group, all other ranks become peers. The index of peer r is r if r is below the own rank, else r
 * - 1. Errors: -EPROTO an endpoint address is of another group, version, wire or algorithm: the
 * text names its rank; -EISCONN; -ETIME as above, but then close the group.
 */
int nbar_group_connect(struct nbar_group *g, const struct nbar_endpoint *endpoints);

/* Gives the ranks whose endpoint addresses nbar_group_connect reads, so that a caller need not
 * gather all: sets *ranks to an array that lives as long as the group, and returns its length. */
int nbar_group_peers(const struct nbar_group *g, const uint32_t **ranks);

/* As nbar_group_connect, but endpoints[i] is the address of rank number i of nbar_group_peers. */
int nbar_group_connect_peers(struct nbar_group *g, const struct nbar_endpoint *endpoints);

/* Closes a group and its descriptor. The NIC still answers for the last barrier of the group. */
void nbar_group_close(struct nbar_group *g);

/* How a thread waits: it spins for spin_us, then yields for yield_us, then sleeps until the NIC
 * wakes it, or still yields if block is 0. It yields instead of spinning while other threads want
 * its processor: it notices that a yield takes longer. With spin_us UINT32_MAX it always spins.
 * With an in-process NIC, the waiting thread runs the NIC, so the NIC cannot wake it: instead of
 * sleeping, the thread polls, every 10 us at first and every 1 ms at last. This struct never
 * grows. */
struct nbar_wait_policy {
	uint32_t spin_us, yield_us;
	int block;
};

/* Copies a policy into a group. The default is from $NBAR_WAIT ("spin", "yield", "block", or
 * "SPIN_US,YIELD_US,BLOCK"), or else 20 us, 200 us, block. Call it while no thread waits. */
void nbar_group_set_wait(struct nbar_group *g, const struct nbar_wait_policy *policy);

/*
 * Arrives: posts the next barrier of the group and returns at once. Pass *ticket to test and wait
 * (ticket may be NULL). Up to NBAR_POSTED_MAX barriers may be under way; they complete in order.
 * Errors: -EAGAIN too many are under way; -ENOTCONN not connected; others as nbar_test.
 */
int nbar_post(struct nbar_group *g, uint32_t *ticket);

/*
 * 1: the barrier of ticket is complete; 0: not yet. Errors, final for the group: -EHOSTUNREACH a
 * member's NIC is silent; -ECONNRESET a member's process died; -ESHUTDOWN a member closed the
 * group; -ECANCELED a member, or this process, has aborted the group; -EBADMSG values differ;
 * -ENETDOWN a NIC was stopped,
 * its device has failed, or our NIC is gone. nbar_error() names the rank. -EINVAL: this barrier has
 * not been posted.
 */
int nbar_test(struct nbar_group *g, uint32_t ticket);

#define NBAR_FOREVER UINT64_MAX

/*
 * Waits for the barrier of ticket. 0: complete. -ETIME: timeout_ns have passed, or with
 * NBAR_FOREVER, the NIC of this host has not run for 30 s. The barrier stays posted: wait again, or
 * do other work. nbar_error() and nbar_missing() name the missing ranks. Other results are those of
 * nbar_test.
 */
int nbar_wait(struct nbar_group *g, uint32_t ticket, uint64_t timeout_ns);

/* Calls nbar_post, then nbar_wait with NBAR_FOREVER, and returns their errors. After -ETIME the
 * barrier is still posted, and another nbar_barrier would post the next barrier. A program that
 * must continue after -ETIME uses nbar_post and nbar_wait instead. */
int nbar_barrier(struct nbar_group *g);

/*
 * Posts a barrier that carries a value: nbar_post for a group with value_max. All members post the
 * same op, type and count (nbar_abi.h, struct nbar_value), and get the same bits as the result. Up
 * to NBAR_VALUES_AHEAD barriers, with a value or without, may then be under way. Errors: -EINVAL
 * the value is longer than value_max, or op does not take type; others as nbar_post. If members
 * post different values, or some post none, the group fails: -EBADMSG.
 */
int nbar_post_value(struct nbar_group *g, const struct nbar_value *value, uint32_t *ticket);

/* Reads the result of a barrier that is complete, until NBAR_VALUES_AHEAD later ones are posted
 * with values: a thread that posts them must wait until the others have read it. -EINVAL: it
 * carried none, is not complete, or its result is gone. */
int nbar_result(const struct nbar_group *g, uint32_t ticket, struct nbar_value *out);

/* nbar_post_value, nbar_wait and nbar_result in one; in and out may be the same. After -ETIME the
 * barrier stays posted with its value: do not call again, the next barrier would carry it, too. */
int nbar_allreduce(struct nbar_group *g, const struct nbar_value *in, struct nbar_value *out);

/*
 * Returns a descriptor of the group for poll(), select() and epoll. The NIC makes the descriptor
 * readable when a barrier completes or fails, once for each nbar_group_arm; also when the NIC ends.
 * The descriptor belongs to the library: do not read it, and take it out of the epoll set before
 * nbar_group_close. Each call returns the same descriptor. Errors: -EPERM this process is only
 * attached to the group; -EOPNOTSUPP this NIC has no descriptors; -ENOSPC, -EMFILE; -EINVAL a
 * "signal" group; -ENETDOWN, -ETIME as nbar_group_open.
 */
int nbar_group_fd(struct nbar_group *g);

/* Call it before each poll(). 0: the descriptor becomes readable when the barrier of ticket ends.
 * After poll() arm again, because the descriptor may be readable without a reason. Other results as
 * nbar_test: do not poll. On one group, one thread at a time. -EINVAL: no descriptor yet. */
int nbar_group_arm(struct nbar_group *g, uint32_t ticket);

/*
 * Aborts a group: threads of this process that wait for it return at once, and all members get
 * -ECANCELED with this rank. Any thread may call it, at any time before nbar_group_close; a second
 * call does nothing. -EAGAIN (the NIC is busy), -ENOMEM: the threads of this process return, but
 * the NIC does not know of the abort: call again, or close the group to end the others' barriers.
 */
int nbar_group_abort(struct nbar_group *g);

/*
 * Gives the ranks that hold up the barrier under way, or that broke it, as far as the NIC knows:
 * writes up to n ranks, and returns how many it knows, which may be more than n (0: none is known;
 * the NIC begins to ask a millisecond after it starts to wait).
 */
int nbar_missing(const struct nbar_group *g, uint32_t *ranks, uint32_t n);

/*
 * Team: threads of one process that arrive together, alone or in front of a group. In front of a
 * group, the last thread posts the start token, and all threads poll the completion word, so there
 * is no second, local release. The memory belongs to the caller: free it when no thread uses it.
 * The fields belong to the library, except `wait`, which the caller may set before the first
 * barrier.
 */
#define NBAR_TEAM_MAX 65536u
struct nbar_team {
	uint64_t arrived; /* sense-reverse: threads still to arrive, and the epoch */
	uint64_t reserved0[15];
	uint64_t released; /* completion word without a group; not in the cache line of the count */
	uint64_t reserved1[15];
	uint32_t size, kind, ways, lines;
	uint32_t local, reserved3;
	uint64_t broken;
	struct nbar_group *group;
	struct nbar_wait_policy wait;
	uint32_t reserved2[17];
}
#if defined(__GNUC__)
__attribute__((aligned(128)))
#endif
;

struct nbar_team_attr {
	uint32_t struct_size;     /* see above */
	uint32_t size;            /* threads */
	const char *kind;         /* how they meet: see nbar_extra.h. NULL: "sense-reverse" */
	struct nbar_group *group; /* or NULL */
	int local; /* with a group, not 0: one thread polls for it and then wakes the others */
};

/* Computes the bytes of a team of a kind: struct nbar_team and the memory behind it. For kind NULL
 * it is sizeof(struct nbar_team). */
int nbar_team_size(const char *kind, uint32_t size, size_t *bytes);

/* Prepares a team in length bytes at team, aligned to 128. While a team uses a group, nothing else
 * may post on the group. -EINVAL: size 0, no such kind, not aligned. -ERANGE: beyond NBAR_TEAM_MAX.
 * -ENOSPC: length is too small. -EBUSY: the group has a barrier under way. -EPERM: this process is
 * only attached to the group. */
int nbar_team_init(struct nbar_team *team, size_t length, const struct nbar_team_attr *attr);

/* Waits for all threads of the team, and for all members of the group. Exactly `size` threads must
 * call it. me: the number of the calling thread, 0 to size - 1; two threads must not use the same
 * number at the same time, except in a team of kind "sense-reverse". 0, or an error as nbar_wait
 * (final, for every thread), but never -ETIME: the threads also wait for a NIC that does not run.
 * -ERANGE: there is no such thread. */
int nbar_team_barrier(struct nbar_team *team, uint32_t me);

/* The same in phases: a thread calls post, computes, and then calls test until it returns 1, or
 * wait. Then the thread may call post again. ticket may be NULL. Errors as nbar_team_barrier;
 * -EINVAL: the kind is not "sense-reverse", or `local` is set. */
int nbar_team_post(struct nbar_team *team, uint32_t me, uint32_t *ticket);
int nbar_team_test(struct nbar_team *team, uint32_t ticket);
int nbar_team_wait(struct nbar_team *team, uint32_t ticket);

#ifdef __cplusplus
}
#endif
#endif
