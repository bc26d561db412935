/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * members.h - members of a group, each a process with an in-process NIC, over UDP on the loopback
 * interface.
 *
 * They are forked from a process that has no threads, and share memory to exchange endpoint
 * addresses and to check each other. No test asserts a time: a wait for something that must happen
 * ends after PATIENCE_S.
 */
#ifndef TESTBED_MEMBERS_H
#define TESTBED_MEMBERS_H

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "nbar_extra.h"
#include "unit/unit.h"

#define RANKS_MAX 8u
#define PATIENCE_S 60u
#define BARRIERS 300u
#define ANY "host:wire=udp,bind=127.0.0.1:0"
#define QUICK ANY ",budget-ms=3000" /* the retry budget: after this time, a silent peer is dead */

static struct shared {
	uint32_t opened, connected, done, failed;
	struct nbar_endpoint endpoint[RANKS_MAX];
	uint32_t entered[RANKS_MAX];
	char said[RANKS_MAX][400]; /* why a member has failed */
} * shared;

static uint32_t rank, size; /* of this process */

/* In a member: ends it, and records the reason. */
#define want(cond, ...)                                                                        \
	do {                                                                                   \
		if (!(cond)) {                                                                 \
			int want_n = snprintf(shared->said[rank], 100, "line %d: ", __LINE__); \
			snprintf(shared->said[rank] + want_n, 300, __VA_ARGS__);               \
			__atomic_store_n(&shared->failed, 1, __ATOMIC_RELAXED);                \
			_exit(1);                                                              \
		}                                                                              \
	} while (0)
#define want_ok(call) want((call) >= 0, "%s", nbar_error())
#define want_error(call, error, part)                                                         \
	do {                                                                                  \
		int want_rc = (call);                                                         \
		want(want_rc == (error), "returned %d: %s", want_rc, nbar_error());           \
		want(strstr(nbar_error(), part), "\"%s\" is not in: %s", part, nbar_error()); \
	} while (0)

static inline void nap_ms(uint32_t ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

static inline void meet(uint32_t *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < size) {
		if (__atomic_load_n(&shared->failed, __ATOMIC_RELAXED))
			_exit(1);
		nap_ms(1);
	}
}

/* Runs n members. killed: one bit for each member that must end by a signal. */
static inline void members(uint32_t n, void (*body)(void), uint32_t killed)
{
	pid_t pid[RANKS_MAX];
	int status[RANKS_MAX];

	memset(shared, 0, sizeof(*shared));
	size = n;
	for (rank = 0; rank < n; rank++) {
		pid[rank] = fork();
		if (pid[rank] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(PATIENCE_S);
			body();
			exit(0);
		}
	}
	for (uint32_t r = 0; r < n; r++)
		waitpid(pid[r], &status[r], 0);
	for (uint32_t r = 0; r < n; r++)
		require(killed >> r & 1 ? WIFSIGNALED(status[r]) && WTERMSIG(status[r]) == SIGKILL
					: status[r] == 0,
			"rank %u: status %x, %s", r, (unsigned)status[r], shared->said[r]);
}

static struct nbar_port *port;
static struct nbar_group *group;

static inline void join(const char *nic)
{
	const struct nbar_group_attr attr = { .rank = rank, .size = size };

	want_ok(nbar_open(nic, &port));
	want_ok(nbar_group_open(port, &attr, &group, &shared->endpoint[rank]));
	meet(&shared->opened);
	want_ok(nbar_group_connect(group, shared->endpoint));
	meet(&shared->connected);
}

static inline void leave(void)
{
	meet(&shared->done);
	nbar_group_close(group);
	nbar_close(port);
}

/* Call this first. */
static inline void members_begin(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		abort();
}

#endif
