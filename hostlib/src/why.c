/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * why.c - which ranks a barrier waits for and why, in numbers and in words; and whether the NIC of
 * this host still runs.
 *
 * Called after a time limit, and now and then by waiting threads; never on the fast path. What the
 * page says about late ranks may be old: only texts depend on it.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "internal.h"
#include "nbar_host.h"
#include "order.h"

/* One look adds at most this to the time without a sign, because this process may have been stopped
 * itself. */
#define LIFE_STEP_NS UINT64_C(200000000)
/* After such a time without a sign, the text names the NIC: if its process is stopped; in any
 * case. */
#define LIFE_STOPPED_NS UINT64_C(50000000)
#define LIFE_GONE_NS UINT64_C(1000000000)

#define TEXT_MAX 64u                 /* bytes of the text of a reason */
#define ROOM_A_RANK (TEXT_MAX + 32u) /* " and 1048575 (TEXT)" */

void nblib_life_look(struct nbar_group *g, uint64_t now)
{
	uint32_t life = order_life_read(&g->port->page->life);
	uint64_t before = order_stat_read(&g->life_looked), since = now - before;
	uint64_t mute = 0;

	/* Another thread has looked later than `now`, and has counted this time. */
	if (now < before)
		return;
	/* 0: an earlier version of the NIC, without a sign of life. */
	if (life != 0 && life == order_stat_read(&g->life))
		mute = nblib_life_mute(g) + (since < LIFE_STEP_NS ? since : LIFE_STEP_NS);
	order_stat_write(&g->life, life);
	order_stat_write(&g->life_looked, now);
	order_stat_write(&g->life_mute, mute);
}

int nbar_nic_why(const struct nbar_group *g, char *out, size_t size)
{
	const struct nblib_link *l = &g->port->link;
	uint64_t mute = nblib_life_mute(g);
	const char *server = nblib_link_server(l);

	if (l->host || mute < LIFE_STOPPED_NS)
		return snprintf(out, size, "%s", "");
	uint32_t pid = nblib_link_pid(l);
	char state = nbar_process_state(pid);

	if (state == 'T' || state == 't')
		return snprintf(out, size,
				"NIC %s of this host has not run for %.1f s: its %s, process %u, "
				"is stopped: let it go on (kill -CONT %u)",
				l->nic, (double)mute / 1e9, server, pid, pid);
	if (mute < LIFE_GONE_NS)
		return snprintf(out, size, "%s", "");
	if (pid == 0) /* of another machine, or another PID namespace */
		return snprintf(out, size,
				"NIC %s has not run for %.1f s: does its %s at %s get a processor?",
				l->nic, (double)mute / 1e9, server, l->path);
	return snprintf(out, size,
			"NIC %s of this host has not run for %.1f s: does its %s, process %u, get "
			"a processor?",
			l->nic, (double)mute / 1e9, server, pid);
}

int nbar_why_text(uint16_t why, char *out, size_t size)
{
	double age = (double)NBAR_WHY_NS(why) / 1e9;

	switch ((enum nbar_why)NBAR_WHY_KIND(why)) {
	case NBAR_WHY_HOST_LATE:
		return snprintf(out, size, "late for %.1f s", age);
	case NBAR_WHY_HOST_STOPPED:
		return snprintf(out, size, "process stopped, late for %.1f s", age);
	case NBAR_WHY_HOST_ENDED:
		return snprintf(out, size, "process ended, late for %.1f s", age);
	case NBAR_WHY_NIC_SILENT:
		return snprintf(out, size, "NIC silent for %.1f s", age);
	case NBAR_WHY_UNKNOWN:
	case NBAR_WHY_END:
		break;
	}
	return snprintf(out, size, "%s", "");
}

/* "ranks 3 (late for 2.0 s), 5 and 7 have". size: at least ROOM_A_RANK * (n + 1). */
static void say_ranks(char *out, size_t size, const uint32_t *rank, const uint16_t *why, int n)
{
	size_t at = (size_t)snprintf(out, size, n == 1 ? "rank" : "ranks");
	char text[TEXT_MAX];

	for (int i = 0; i < n; i++) {
		const char *before = i == 0 ? " " : i == n - 1 ? " and " : ", ";

		at += (size_t)snprintf(out + at, size - at, "%s%u", before, rank[i]);
		if (nbar_why_text(why[i], text, sizeof(text)))
			at += (size_t)snprintf(out + at, size - at, " (%s)", text);
	}
	snprintf(out + at, size - at, n == 1 ? " has" : " have");
}

int nblib_why_late(const struct nbar_group *g, uint32_t ticket)
{
	uint32_t rank[NBAR_STRAGGLERS_MAX];
	uint16_t why[NBAR_STRAGGLERS_MAX];
	char who[ROOM_A_RANK * (NBAR_STRAGGLERS_MAX + 1)];
	int n;

	if (nbar_nic_why(g, who, sizeof(who)))
		return nblib_fail(-ETIME, "barrier %u is not complete yet: %s; then wait again",
				  ticket, who);
	n = nbar_missing_why(g, rank, why, NBAR_STRAGGLERS_MAX);
	if (n == 0)
		return nblib_fail(-ETIME,
				  "barrier %u is not complete yet; NIC %s does not know of anybody "
				  "missing: wait again",
				  ticket, g->port->link.nic);
	say_ranks(who, sizeof(who), rank, why, n);
	return nblib_fail(-ETIME,
			  "barrier %u is not complete yet: %s not arrived, as far as NIC %s knows: "
			  "wait again, or look at that rank",
			  ticket, who, g->port->link.nic);
}

int nbar_missing_why(const struct nbar_group *g, uint32_t *ranks, uint16_t *why, uint32_t n)
{
	uint64_t word = order_completion_read(&g->completion->word);
	uint32_t nstragglers;

	if (word >> 32) {
		if (n) {
			ranks[0] = order_failed_rank_read(&g->completion->failed_rank);
			why[0] = 0;
		}
		return 1;
	}
	if ((uint32_t)word == (uint32_t)order_posted_read(&g->posted))
		return 0;
	nstragglers = order_stragglers_read(&g->completion->nstragglers);
	if (nstragglers > NBAR_STRAGGLERS_MAX)
		nstragglers = NBAR_STRAGGLERS_MAX;
	/* An earlier version of the NIC shows no sign of life, and has no `why` in its page. */
	bool told = order_life_read(&g->port->page->life) != 0;

	for (uint32_t i = 0; i < nstragglers && i < n; i++) {
		ranks[i] = order_straggler_read(&g->completion->straggler[i]);
		why[i] = told ? order_why_read(&g->completion->why[i]) : 0;
	}
	return (int)nstragglers;
}

int nbar_missing(const struct nbar_group *g, uint32_t *ranks, uint32_t n)
{
	uint16_t why[NBAR_STRAGGLERS_MAX];

	return nbar_missing_why(g, ranks, why, n < NBAR_STRAGGLERS_MAX ? n : NBAR_STRAGGLERS_MAX);
}
