/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror.c - pushes what the NIC writes into the page of a remote host. See mirror.h.
 *
 * Called by the pass. The host may write anything into the NIC's copy of the page. This file reads
 * words of that copy only to push them to the same host; they bound no loop.
 */
#include "mirror.h"
#include "page.h"

#if NBNIC_REMOTE
#define NO_CELL UINT32_MAX

static bool mirror_push(const struct nbnic_port *p, const void *at, size_t n, uint32_t cell)
{
	return p->platform->push(p->ctx, p->number, at, n, cell);
}

/* Pushes the results of the barriers from `first` to `last`, at most NBAR_VALUES_AHEAD. The host
 * gives their places to later barriers only when it has the completion. */
static bool push_results(const struct nbnic_port *p, uint32_t cell, uint32_t first, uint32_t last)
{
	for (uint32_t i = 0; i < NBAR_VALUES_AHEAD && (int32_t)(last - first) >= 0; i++, first++) {
		const struct nbar_value *v =
			&p->value[p->cell[cell].values - 1][first % NBAR_VALUES_AHEAD].value;
		struct nbfw_value head = { .op = 0 };

		__builtin_memcpy(&head, v, 4);
		head.op &= (uint8_t)~NBAR_VALUE_RESULT;
		if (!mirror_push(p, v, offsetof(struct nbar_value, of) + nbfw_value_length(&head),
				 NO_CELL))
			return false;
	}
	return true;
}

/* Pushes the completion line by one write. After a failure by two, so that the host sees the rank
 * before the status. */
static bool push_line(struct nbnic_port *p, uint32_t cell, bool wakes)
{
	const struct nbar_completion *c = &p->completion[cell];
	const uint64_t word = c->word;
	const uint32_t epoch = (uint32_t)word, to = wakes ? cell : NO_CELL;
	struct nbnic_mirror *m = p->mirror;
	bool good = true;

	if (NBNIC_VALUES && p->cell[cell].values)
		good = push_results(p, cell, m->pushed[cell] + 1, epoch);
	if (good && word >> 32 == NBAR_STATUS_OK)
		good = mirror_push(p, c, sizeof(*c), to);
	else if (good)
		good = mirror_push(p, &c->wake, sizeof(*c) - sizeof(c->word), NO_CELL) &&
		       mirror_push(p, c, sizeof(c->word), to);
	if (good) {
		m->pushed[cell] = epoch;
		m->due[cell / 64] &= ~(UINT64_C(1) << cell % 64);
	} else {
		m->due[cell / 64] |= UINT64_C(1) << cell % 64;
	}
	return good;
}
_Static_assert(offsetof(struct nbar_completion, wake) == sizeof(uint64_t), "behind the word");

void nbnic_mirror_cell(struct nbnic_port *p, uint32_t cell)
{
	p->cell[cell].wake_pending = true;
	p->mirror->pushed[cell] = 0;
	(void)push_line(p, cell, false);
}

void nbnic_mirror_wake(struct nbnic_port *p, struct nbnic *nic, uint32_t cell)
{
	struct nbnic_cell *seen = &p->cell[cell];
	const bool wakes = seen->sleeper || p->completion[cell].word >> 32 != NBAR_STATUS_OK;

	/* The next completion comes here, too. */
	seen->wake_pending = true;
	/* A host that asks later may have looked before. */
	seen->wake_missed = !wakes;
	if (push_line(p, cell, wakes))
		seen->sleeper = false;
	if (wakes)
		nbnic_count(nic, NBAR_COUNTER_wakes);
}

void nbnic_mirror_stragglers(struct nbnic_port *p, uint32_t cell)
{
	const struct nbar_completion *c = &p->completion[cell];

	/* Advisory: if it is not taken, the next list comes soon. */
	if (mirror_push(p, c->straggler, sizeof(c->straggler) + sizeof(c->why), NO_CELL))
		(void)mirror_push(p, &c->nstragglers, sizeof(c->nstragglers), NO_CELL);
}
_Static_assert(offsetof(struct nbar_completion, why) ==
		       offsetof(struct nbar_completion, straggler) + 7 * sizeof(uint32_t),
	       "one after the other");

void nbnic_mirror_taken(struct nbnic_port *p)
{
	p->mirror->taken = !mirror_push(p, &p->page->sends_taken, sizeof(uint32_t), NO_CELL);
}

static bool push_delivered(struct nbnic_port *p)
{
	struct nbnic_mirror *m = p->mirror;

	for (uint32_t i = 0; i < NBAR_SIGNALS_MAX && m->recvs_pushed != p->recvs_given; i++) {
		const struct nbar_signal *e = &p->page->recv[m->recvs_pushed % NBAR_SIGNALS_MAX];

		if (!mirror_push(p, &e->cell, sizeof(*e) - sizeof(e->seq), NO_CELL) ||
		    !mirror_push(p, &e->seq, sizeof(e->seq), NO_CELL))
			return false;
		m->recvs_pushed++;
	}
	return m->recvs_pushed == p->recvs_given;
}

void nbnic_mirror_delivered(struct nbnic_port *p)
{
	(void)push_delivered(p);
}
_Static_assert(offsetof(struct nbar_signal, cell) == sizeof(uint32_t), "behind seq");

void nbnic_mirror_ask_kick(struct nbnic_port *p)
{
	struct nbnic_mirror *m = p->mirror;

	if (!m->kick)
		m->kick = mirror_push(p, &p->page->kick, sizeof(uint32_t), NO_CELL);
}

void nbnic_mirror_kicked(struct nbnic_port *p)
{
	p->mirror->kick = false;
}

/* Repeats pushes that the platform has refused, then pushes the number of the last request. */
static void push_owed(struct nbnic_port *p)
{
	struct nbnic_mirror *m = p->mirror;

	for (uint32_t i = 0; i < (NBNIC_GROUPS_MAX + 63) / 64; i++)
		for (uint64_t due = m->due[i]; due; due &= due - 1) {
			uint32_t cell = 64 * i + (uint32_t)__builtin_ctzll(due);
			bool wakes = p->cell[cell].sleeper || p->completion[cell].word >> 32;

			if (!push_line(p, cell, wakes))
				return;
			p->cell[cell].sleeper = false;
		}
	if (!push_delivered(p))
		return;
	if (m->taken)
		nbnic_mirror_taken(p);
	if (!m->settle || m->taken)
		return;
	p->page->settled = m->settled;
	m->settle = !mirror_push(p, &p->page->settled, sizeof(uint32_t), NO_CELL);
}

void nbnic_mirror_settle(struct nbnic_port *p, uint32_t seq)
{
	p->mirror->settled = seq;
	p->mirror->settle = true;
	push_owed(p);
}

void nbnic_mirror_look(struct nbnic_port *p, uint64_t now)
{
	struct nbnic_mirror *m = p->mirror;

	push_owed(p);
	if (now >= m->life_at && mirror_push(p, &p->page->life, sizeof(uint32_t), NO_CELL))
		m->life_at = now + NBNIC_MIRROR_LIFE_NS;
}
#endif
