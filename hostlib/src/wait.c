/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c - how a thread waits (NBAR_WAIT): it spins or yields, then sleeps until it is woken.
 *
 * Called when the first test finds the barrier incomplete. A thread that waits for a group sleeps
 * on the futex of its completion, which the NIC increments on request; a thread that waits for
 * threads of its team sleeps on the word itself. A thread that waits for a NIC sleeps for a bounded
 * time, because a killed daemon wakes no thread. A NIC in this process wakes no thread either: the
 * waiting thread runs the NIC's passes, and naps between them; each nap is longer than the last.
 */
#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "nbar_host.h"
#include "nbar_pace.h"
#include "order.h"

#define SPIN_ROUND 64u                      /* tests of the word between two looks at the clock */
#define POLL_ROUND 4u                       /* such tests, if each test runs a pass of the NIC */
#define NAP_MIN_NS UINT64_C(10000)          /* between two passes of a NIC in this process; */
#define NAP_MAX_NS UINT64_C(1000000)        /* each nap is twice as long as the one before */
#define LOOK_NS UINT64_C(10000000)          /* between two looks at the control socket */
#define SLEEP_NS UINT64_C(200000000)        /* the longest sleep without a look at the socket */
#define STATUS UINT64_C(0xffffffff00000000) /* of a group's completion word */

uint64_t nblib_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Sleeps until another thread wakes this thread, while *word is `seen`, for at most ns. It may also
 * return for no reason. */
static void futex_sleep(const uint32_t *word, int op, uint32_t seen, uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / UINT64_C(1000000000)),
		.tv_nsec = (long)(ns % UINT64_C(1000000000)),
	};

	syscall(SYS_futex, word, op, seen, ns == NBAR_FOREVER ? NULL : &t);
}

int nblib_wait_default(struct nbar_wait_policy *out)
{
	const char *text = getenv("NBAR_WAIT");
	struct nbar_wait_policy p = { .spin_us = 20, .yield_us = 200, .block = 1 };
	unsigned spin, yield, block;
	char end;

	if (!text || !*text) {
		*out = p;
		return 0;
	}
	if (strcmp(text, "spin") == 0)
		p = (struct nbar_wait_policy){ .spin_us = UINT32_MAX };
	else if (strcmp(text, "yield") == 0)
		p = (struct nbar_wait_policy){ .yield_us = UINT32_MAX };
	else if (strcmp(text, "block") == 0)
		p = (struct nbar_wait_policy){ .block = 1 };
	else if (!strchr(text, '-') &&
		 sscanf(text, "%u,%u,%u%c", &spin, &yield, &block, &end) == 3 && block <= 1)
		p = (struct nbar_wait_policy){ spin, yield, (int)block };
	else
		return nblib_fail(-EINVAL,
				  "NBAR_WAIT is \"%s\": it must be spin, yield, block, or "
				  "SPIN_US,YIELD_US,BLOCK as in 20,200,1",
				  text);
	*out = p;
	return 0;
}

/* State that all kinds of waiting share. */
struct waiter {
	const uint64_t *word;
	const struct nbar_process_team *procs; /* takes the place of the word; or NULL */
	const struct nblib_link *in_process;   /* of a NIC in this process; else NULL */
	uint64_t failed; /* bits of the word that show a failure: the ticket will never complete */
	uint32_t ticket;
	uint32_t threads; /* that wait for each other on this host */
	bool spins;       /* even if others want this processor */
	uint64_t start, now, spin_ns, yield_ns;
	uint64_t yields, sleeps, nap_ns;
};

/* Whether others want the processor of this thread. */
static _Thread_local struct nbar_pace pace;

bool nblib_spins(const struct nbar_wait_policy *policy)
{
	return policy->spin_us == UINT32_MAX || (policy->spin_us && nbar_pace_is_alone(&pace));
}

static bool wait_over(const struct waiter *w)
{
	if (w->procs)
		return nblib_procs_reached(w->procs, w->ticket);
	uint64_t word = order_completion_read(w->word);

	if (w->in_process && !nblib_reached(word, w->ticket)) {
		nblib_host_poll(w->in_process);
		word = order_completion_read(w->word);
	}
	return nblib_reached(word, w->ticket) || (word & w->failed);
}

/* Tests for a short time. True: the wait is over. */
static bool spin_round(const struct waiter *w)
{
	uint32_t looks = w->in_process ? POLL_ROUND : SPIN_ROUND;

	for (uint32_t i = 0; i < looks; i++) {
		if (wait_over(w))
			return true;
		order_pause();
	}
	return false;
}

static void set_policy(struct waiter *w, const struct nbar_wait_policy *policy)
{
	w->spins = policy->spin_us == UINT32_MAX;
	w->spin_ns = policy->spin_us * UINT64_C(1000);
	w->yield_ns = policy->block ? policy->yield_us * UINT64_C(1000) : NBAR_FOREVER;
}

/* Begins a wait for the word and the ticket in w. */
static struct waiter begin(struct waiter w, const struct nbar_wait_policy *policy)
{
	set_policy(&w, policy);
	/* Test first: a look at the clock takes as long as a fast barrier. */
	if (!nblib_spins(policy) || !spin_round(&w))
		w.start = w.now = nblib_now_ns();
	return w;
}

/* Spins or yields for one round, and looks at the clock. False: it is time to sleep. */
static bool stay_awake(struct waiter *w)
{
	uint64_t waited = w->now - w->start, before;
	bool may_spin = waited < w->spin_ns;

	if (may_spin && (w->spins || nbar_pace_spins(&pace))) {
		spin_round(w);
		w->now = nblib_now_ns();
	} else if (may_spin || waited - w->spin_ns < w->yield_ns) {
		before = nblib_now_ns();
		sched_yield();
		w->now = nblib_now_ns();
		if (nbar_pace_yielded(&pace, w->now - before) && w->spin_ns > 0)
			pace.home = nbar_move(pace.returns ? pace.home : -1, w->threads);
		w->yields++;
	} else {
		return false;
	}
	return true;
}

static void nap(struct waiter *w, uint64_t longest_ns)
{
	struct timespec t = { 0 };

	w->nap_ns = w->nap_ns ? 2 * w->nap_ns : NAP_MIN_NS;
	if (w->nap_ns > NAP_MAX_NS)
		w->nap_ns = NAP_MAX_NS;
	t.tv_nsec = (long)(w->nap_ns < longest_ns ? w->nap_ns : longest_ns);
	w->sleeps++;
	nanosleep(&t, NULL);
}

static void sleep_group(struct nbar_group *g, struct waiter *w, uint64_t ns)
{
	const uint32_t *wake = nblib_futex(g);
	uint32_t seen = order_wake_read(wake);

	order_ask(&g->doorbell->wake_seq);
	nblib_rang(g, w->ticket, true);
	if (wait_over(w))
		return;
	w->sleeps++;
	futex_sleep(wake, FUTEX_WAIT, seen, ns);
}

enum nblib_end nblib_wait_group(struct nbar_group *g, const struct nbar_wait_policy *policy,
				uint32_t ticket, uint64_t timeout_ns)
{
	const struct nblib_link *in_process = g->port->link.host ? &g->port->link : NULL;
	struct waiter w = begin((struct waiter){ .word = &g->completion->word,
						 .in_process = in_process,
						 .failed = STATUS,
						 .ticket = ticket },
				policy);
	/* Of any wait: each of many waits may be shorter than LOOK_NS. */
	uint64_t looked = order_stat_read(&g->life_looked);
	enum nblib_end end = NBLIB_DONE;

	/* Another thread may have looked since w.start. */
	if (looked > w.start)
		looked = w.start;

	while (!wait_over(&w)) {
		uint64_t waited = w.now - w.start;

		if (order_aborted(&g->aborted))
			end = NBLIB_FAILED;
		else if (order_down_read(&g->port->link.down) != NBLIB_UP)
			end = NBLIB_LOST;
		else if (!in_process && w.now - looked >= LOOK_NS &&
			 nblib_link_look(&g->port->link))
			end = NBLIB_LOST;
		if (end != NBLIB_DONE)
			break;
		/* Before the limit is judged: the sleep may have been as long as the wait. */
		if (w.now - looked >= LOOK_NS) {
			looked = w.now;
			nblib_life_look(g, w.now);
			/* Only after a look of this wait: other threads may have looked long
			 * ago. */
			if (timeout_ns == NBAR_FOREVER && nblib_life_mute(g) >= NBLIB_MUTE_NS) {
				end = NBLIB_MUTE;
				break;
			}
			/* A cancellation point, like the check of a socket. Within a pass of the
			 * NIC a thread must not be cancelled. */
			if (in_process)
				pthread_testcancel();
		}
		if (waited >= timeout_ns) {
			end = NBLIB_TIMEOUT;
			break;
		}
		if (!stay_awake(&w)) {
			uint64_t left = timeout_ns - waited;

			if (in_process)
				nap(&w, left);
			else
				sleep_group(g, &w, left < SLEEP_NS ? left : SLEEP_NS);
			w.now = nblib_now_ns();
		}
	}
	if (w.yields)
		order_stat_add(&g->yields, w.yields);
	if (w.sleeps)
		order_stat_add(&g->sleeps, w.sleeps);
	/* The barrier may have completed just before the daemon ended. */
	uint64_t word = order_completion_read(w.word);

	if (nblib_reached(word, ticket))
		return NBLIB_DONE;
	return word & STATUS ? NBLIB_FAILED : end;
}

/* A thread sleeps on the half of a team's word that holds the epoch. */
static const uint32_t *epoch_half(const uint64_t *word)
{
	return (const uint32_t *)word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* True if the group of a team has failed, so that the barrier of ticket has failed too. */
static bool broken(const struct nbar_team *team, uint32_t ticket)
{
	uint64_t word = order_team_broken(&team->broken);

	if (team->group && order_aborted(&team->group->aborted))
		return true;
	return word && (int32_t)(ticket - (uint32_t)word) >= 0;
}

/* Tests a few times, and does nothing else: for barriers that complete soon. */
static bool soon(const uint64_t *word, uint32_t ticket)
{
	for (uint32_t i = 0; i < SPIN_ROUND; i++) {
		if (nblib_reached(order_completion_read(word), ticket))
			return true;
		order_pause();
	}
	return false;
}

bool nblib_wait_team(const struct nbar_team *team, uint64_t *word, uint32_t ticket)
{
	if (nblib_spins(&team->wait) && soon(word, ticket))
		return true;
	struct waiter w = {
		.word = word, .ticket = ticket, .threads = team->size, .start = nblib_now_ns()
	};

	w.now = w.start;
	set_policy(&w, &team->wait);
	while (!wait_over(&w)) {
		if (broken(team, ticket))
			return false;
		if (!stay_awake(&w)) {
			uint64_t seen = order_team_ask(word, NBLIB_TEAM_SLEEPS);

			/* With a group, the sleep is bounded: a thread that sees the failure does
			 * not wake the others. */
			if (!nblib_reached(seen, ticket))
				futex_sleep(epoch_half(word), FUTEX_WAIT_PRIVATE, (uint32_t)seen,
					    team->group ? SLEEP_NS : NBAR_FOREVER);
			w.now = nblib_now_ns();
		}
	}
	return true;
}

void nblib_wake_group(const struct nbar_group *g)
{
	syscall(SYS_futex, nblib_futex(g), FUTEX_WAKE, INT_MAX);
}

void nblib_wake_team(uint64_t *word)
{
	syscall(SYS_futex, epoch_half(word), FUTEX_WAKE_PRIVATE, INT_MAX);
}

bool nblib_wait_procs(struct nbar_process_team *procs, const struct nbar_wait_policy *policy,
		      uint32_t ticket, uint64_t timeout_ns)
{
	struct waiter w =
		begin((struct waiter){ .procs = procs, .ticket = ticket, .threads = procs->size },
		      policy);

	while (!wait_over(&w)) {
		uint64_t waited = w.now - w.start;

		if (waited >= timeout_ns)
			return false;
		if (!stay_awake(&w)) {
			uint64_t left =
				timeout_ns == NBAR_FOREVER ? timeout_ns : timeout_ns - waited;
			uint32_t seen = order_wake_read(&procs->wake);

			order_procs_sleeps(&procs->sleepers, 1);
			if (!wait_over(&w))
				futex_sleep(&procs->wake, FUTEX_WAIT, seen, left);
			order_procs_sleeps(&procs->sleepers, -1);
			w.now = nblib_now_ns();
		}
	}
	return true;
}

void nblib_wake_procs(struct nbar_process_team *procs)
{
	order_procs_wake(&procs->wake);
	syscall(SYS_futex, &procs->wake, FUTEX_WAKE, INT_MAX);
}
