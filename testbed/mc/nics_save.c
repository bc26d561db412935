/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nics_save.c - saves and loads the state of the real NICs, and computes its fingerprint. Two
 * states have the same fingerprint if they differ only in fields without effect. See nics.h.
 *
 * Fields without effect:
 * - counters, latencies, and the number of the pass; and PROBEs, for which no host asks here;
 * - the time of day: the NIC only compares times. Each time becomes its distance from now, and
 *   `phase` says where ages in units of 2^20 ns change;
 * - fields that the NIC writes before it reads them again: the deadline of a group without a timer,
 *   stragglers beyond the end of their list, and the asker and the round-trip state of a step that
 *   is over. Samples of the round trip do have an effect: the NIC computes later intervals from
 * them.
 *
 * One merge is not exact. When a timer is disarmed, `due` may stay earlier than every armed timer.
 * The NIC then sweeps once more and finds nothing. This can postpone a timer by one sweep, and
 * change which of two groups comes first. States that differ only in `due` count as one, so the
 * checker tries only one of the two orders.
 *
 * All blocks and NICs stay where they are, so pointers keep their meaning. Of the large tables of a
 * NIC only the first entries are in use: one port, two groups.
 */
#include <string.h>

#include "nics.h"
#include "states.h"

struct part {
	size_t at, bytes;
};

/* clang-format off */
#define FIRST(field, n) { offsetof(struct nbnic, field), (n) * sizeof(((struct nbnic *)0)->field[0]) }
static const struct part parts[] = {
	{ 0, offsetof(struct nbnic, interval) },
	{ offsetof(struct nbnic, nopen), offsetof(struct nbnic, counter) - offsetof(struct nbnic, nopen) },
	FIRST(sends_port, 1), FIRST(pulls_port, 1), FIRST(share, 1),
	FIRST(generation, NICS_LIVES), FIRST(free, NICS_LIVES), FIRST(group, NICS_LIVES),
};
/* clang-format on */

struct heard {
	uint32_t index;
	struct nbnic_heard entry;
};

static size_t put(uint8_t *out, size_t at, const void *from, size_t bytes)
{
	memcpy(out + at, from, bytes);
	return at + bytes;
}

size_t nics_most_bytes(void)
{
	return sizeof(struct nics_state) +
	       NICS_MAX * (sizeof(struct nbnic) - sizeof(((struct nbnic *)0)->heard) +
			   NICS_HEARD * sizeof(struct heard) + NICS_LIVES * NICS_BLOCK);
}

static uint32_t heard_find(const struct nbnic *nic, struct heard out[NICS_HEARD])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < NBNIC_HEARD_MAX && n < NICS_HEARD; i++)
		if (nic->heard[i].nic)
			out[n++] = (struct heard){ i, nic->heard[i] };
	return n;
}

size_t nics_save(void *ctx, void *out)
{
	const struct nics *n = ctx;
	size_t at = 0, frames = n->s.nframe * sizeof(n->s.frame[0]);

	at = put(out, at, &n->s, offsetof(struct nics_state, frame));
	at = put(out, at, n->s.frame, frames);
	for (uint32_t r = 0; r < n->cfg.size; r++) {
		const uint8_t *nic = (const uint8_t *)&n->nic[r];
		struct heard heard[NICS_HEARD];

		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			at = put(out, at, nic + parts[i].at, parts[i].bytes);
		memset(heard, 0, sizeof(heard));
		heard_find(&n->nic[r], heard);
		at = put(out, at, heard, sizeof(heard));
		for (uint32_t life = 0; life < NICS_LIVES; life++)
			at = put(out, at, n->block[r][life], n->s.group[r][life].block * n->bytes);
	}
	return at;
}

static size_t get(void *to, const uint8_t *in, size_t at, size_t bytes)
{
	memcpy(to, in + at, bytes);
	return at + bytes;
}

void nics_load(void *ctx, const void *in)
{
	struct nics *n = ctx;
	size_t at = get(&n->s, in, 0, offsetof(struct nics_state, frame));

	n->why = NULL;
	at = get(n->s.frame, in, at, n->s.nframe * sizeof(n->s.frame[0]));
	for (uint32_t r = 0; r < n->cfg.size; r++) {
		struct heard heard[NICS_HEARD], now[NICS_HEARD];
		uint8_t *nic = (uint8_t *)&n->nic[r];

		for (uint32_t i = heard_find(&n->nic[r], now); i > 0; i--)
			n->nic[r].heard[now[i - 1].index] = (struct nbnic_heard){ 0 };
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			at = get(nic + parts[i].at, in, at, parts[i].bytes);
		at = get(heard, in, at, sizeof(heard));
		for (uint32_t i = 0; i < NICS_HEARD; i++)
			if (heard[i].entry.nic)
				n->nic[r].heard[heard[i].index] = heard[i].entry;
		memset(n->block[r], 0, sizeof(n->block[r]));
		for (uint32_t life = 0; life < NICS_LIVES; life++)
			at = get(n->block[r][life], in, at, n->s.group[r][life].block * n->bytes);
	}
}

/* --- the fingerprint -------------------------------------------------------------------------- */

/* How far a time is ahead of `now`; 0 for all times in the past. */
static uint64_t ahead(uint64_t time, uint64_t now)
{
	return time == UINT64_MAX ? time : time > now ? time - now : 0;
}

/* Passes since `then`, up to the largest number that the NIC distinguishes. */
static uint32_t passes(const struct nbnic *nic, uint32_t then)
{
	return nic->pass - then < 3 ? nic->pass - then : 3;
}

struct nic_face {
	uint64_t phase, due, sweep_next, sweep_ns, doubt_end, pull_next, linger_bytes;
	struct nbnic_link linger, sends_fresh, sends_ports, pulls_fresh, pulls_ports;
	struct nbnic_link sends_link, sends_groups, pulls_link, pulls_groups;
	const struct nbnic_group *group[NICS_LIVES];
	uint32_t queue_turn, sweep_at, sweep_left, pull_left, high, fresh, nfree, nopen, nlinger;
	uint32_t sends_served, pulls_served, share_pass, share_left;
	uint16_t generation[NICS_LIVES], free[NICS_LIVES];
	bool full, sweeping, pulls_round_up;
	struct heard heard[NICS_HEARD];
};

static void face_of(const struct nics *n, uint32_t rank, struct nic_face *f)
{
	const struct nbnic *nic = &n->nic[rank];
	uint64_t now = n->s.now[rank];

	memset(f, 0, sizeof(*f));
	f->phase = now % (UINT64_C(1) << NBNIC_HEARD_SHIFT);
	f->due = ahead(nics_due(n, rank), now);
	f->sweep_next = ahead(nic->sweep_next, now);
	f->sweep_ns = nic->sweep_ns;
	f->doubt_end = ahead(nic->doubt_end, now);
	f->pull_next = ahead(nic->pull_next, now);
	f->linger_bytes = nic->linger_bytes;
	f->linger = nic->linger;
	f->sends_fresh = nic->sends.fresh;
	f->sends_ports = nic->sends.ports;
	f->pulls_fresh = nic->pulls.fresh;
	f->pulls_ports = nic->pulls.ports;
	f->sends_link = nic->sends_port[0].link;
	f->sends_groups = nic->sends_port[0].groups;
	f->pulls_link = nic->pulls_port[0].link;
	f->pulls_groups = nic->pulls_port[0].groups;
	memcpy(f->group, nic->group, sizeof(f->group));
	f->queue_turn = passes(nic, nic->queue_turn);
	f->sweep_at = nic->sweep_at;
	f->sweep_left = nic->sweep_left;
	f->pull_left = nic->pull_left;
	f->high = nic->high;
	f->fresh = nic->fresh;
	f->nfree = nic->nfree;
	f->nopen = nic->nopen;
	f->nlinger = nic->nlinger;
	f->sends_served = passes(nic, nic->sends_port[0].served);
	f->pulls_served = passes(nic, nic->pulls_port[0].served);
	f->share_pass = nic->share[0].pass == nic->pass;
	f->share_left = f->share_pass ? nic->share[0].left : 0;
	memcpy(f->generation, nic->generation, sizeof(f->generation));
	memcpy(f->free, nic->free, nic->nfree * sizeof(f->free[0]));
	f->full = nic->full;
	f->sweeping = nic->sweeping;
	f->pulls_round_up = nic->pulls_round_up;
	for (uint32_t i = heard_find(nic, f->heard); i > 0; i--)
		f->heard[i - 1].entry.time =
			(uint32_t)(now >> NBNIC_HEARD_SHIFT) - f->heard[i - 1].entry.time;
}

/* Clears the round-trip state if it belongs to a step that is over: no code reads it then. */
static void rtt_normalise(struct nbnic_group *g, uint64_t now)
{
	struct nbnic_rtt *r = &g->rtt;
	const struct nbfw_state *s = g->state;

	if (!s->running || r->epoch != s->epoch || r->step != s->step) {
		*r = (struct nbnic_rtt){ .smooth = r->smooth, .off = r->off, .every = r->every };
		return;
	}
	r->timeout = ahead(r->timeout, now);
	r->begun = now - r->begun;
}

/* Normalises the stragglers and the asker. Times become ages, in the units of why.c. */
static void why_normalise(struct nbnic_group *g, uint64_t now)
{
	const struct nbfw_state *s = g->state;
	uint32_t clock = (uint32_t)(now >> NBAR_WHY_SHIFT);

	for (uint32_t i = 0; i < NBAR_STRAGGLERS_MAX; i++)
		if (i < g->nstragglers)
			g->straggler[i].since = clock - g->straggler[i].since;
		else
			g->straggler[i] = (struct nbnic_straggler){ 0 };
	/* A member that asked in another step gets no second LATER: epochs and steps only grow. */
	if (!s->running || g->asker.step != s->step || g->asker.pull.epoch != s->epoch)
		memset(&g->asker, 0, sizeof(g->asker));
	g->asker.pull.info = 0; /* a LATER does not repeat it */
	if (g->asked_epoch != s->epoch + 1)
		g->asked_epoch = g->asked_since = 0;
	else
		g->asked_since = clock - g->asked_since;
	g->host_why = 0; /* only nbnic_group_info reads it */
}

/* The fingerprint of a group's block, without the fields that have no effect. */
static uint64_t group_fingerprint(const struct nics *n, uint32_t rank, uint32_t life)
{
	static uint64_t block[NICS_BLOCK / 8];
	struct nbnic_group *g = (struct nbnic_group *)(void *)block;
	const uint64_t now = n->s.now[rank];

	if (!n->s.group[rank][life].block)
		return 0;
	memcpy(block, n->block[rank][life], sizeof(block));
	if (g->armed || g->life == NBAR_LIFE_LINGER)
		g->deadline = ahead(g->deadline, now);
	else
		g->deadline = 0;
	size_t last = (size_t)((uint8_t *)g->last - (uint8_t *)n->block[rank][life]);

	memset((uint8_t *)block + last, 0, (1 + g->plan->nrecv) * sizeof(*g->last));
	g->started = 0;
	rtt_normalise(g, now);
	why_normalise(g, now);
	return mc_fingerprint(block, g->bytes);
}

static uint32_t stamp(uint64_t now)
{
	return (uint32_t)(now >> NBNIC_STAMP_SHIFT) | 1;
}

/* The fingerprint of the frames in flight. The time in a PULL and in its answer becomes an age, by
 * the clock of the member that asks. */
static uint64_t frames_fingerprint(const struct nics *n)
{
	static struct nics_frame frame[NICS_FRAMES_MAX];

	memcpy(frame, n->s.frame, n->s.nframe * sizeof(frame[0]));
	for (uint32_t i = 0; i < n->s.nframe; i++) {
		struct nics_frame *f = &frame[i];
		bool pull = f->token.type == NBFW_PULL;

		/* 1 is added, because 0 means no answer. */
		if (pull || (f->token.type == NBFW_TOKEN && f->token.info != 0))
			f->token.info = stamp(n->s.now[pull ? f->from : f->to]) - f->token.info + 1;
	}
	return mc_fingerprint(frame, n->s.nframe * sizeof(frame[0]));
}

uint64_t nics_fingerprint(void *ctx)
{
	struct nics *n = ctx;
	struct nic_face face;
	uint64_t part[1 + NICS_MAX * (1 + NICS_LIVES) + 1];
	uint64_t now[NICS_MAX];
	uint32_t k = 0;

	memcpy(now, n->s.now, sizeof(now));
	memset(n->s.now, 0, sizeof(n->s.now));
	part[k++] = mc_fingerprint(&n->s, offsetof(struct nics_state, frame));
	memcpy(n->s.now, now, sizeof(now));
	part[k++] = frames_fingerprint(n);
	for (uint32_t r = 0; r < n->cfg.size; r++) {
		face_of(n, r, &face);
		part[k++] = mc_fingerprint(&face, sizeof(face));
		for (uint32_t life = 0; life < NICS_LIVES; life++)
			part[k++] = group_fingerprint(n, r, life);
	}
	return mc_fingerprint(part, k * sizeof(part[0]));
}
