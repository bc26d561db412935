/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * line.c - modes "write-rc" and "write-uc" of the wire "verbs": tokens written into the
 * memory of their receiver.
 *
 * Called by the polling thread. A line is a connection to one peer; the receiver polls memory and
 * no completion queue. Until both ends have told each other that they are ready, and
 * whenever a line breaks, frames go as datagrams. What lies in a place is hostile until checked.
 */
#include <string.h>

#include "verbs.h"

#define BURST 16u
#define HELLO_MIN_NS UINT64_C(1000000)
#define HELLO_MAX_NS UINT64_C(128000000)

static uint32_t sum_of(const uint8_t *frame, uint32_t turn)
{
	uint32_t word[NBFW_FRAME_SIZE / 4], sum = turn ^ 0x6e626172u;

	memcpy(word, frame, sizeof(word));
	for (uint32_t i = 0; i < NBFW_FRAME_SIZE / 4; i++)
		sum = (sum ^ word[i]) * UINT32_C(16777619);
	return sum;
}

static void line_break(struct verbs_wire *w, struct verbs_line *l, uint32_t error)
{
	w->base.errors++;
	l->its = (struct verbs_end){ 0 };
	l->error = error;
	l->state = VERBS_LINE_MAKING;
	l->reset = true;
	verbs_wake(w);
}

void verbs_line_gone_wrong(struct verbs_wire *w, const struct ibv_qp *qp, const struct ibv_cq *cq)
{
	for (struct verbs_peer *p = w->lines; p; p = p->next_line) {
		struct verbs_line *l = p->line;

		if (cq && l->cq == cq)
			l->renew = true;
		else if (!qp || l->qp != qp)
			continue;
		if (l->state >= VERBS_LINE_OPEN)
			line_break(w, l, IBV_WC_FATAL_ERR);
	}
}

static void look_for_completions(struct verbs_wire *w, struct verbs_line *l)
{
	struct ibv_wc wc[VERBS_WRITES / VERBS_WRITES_SIGNALLED];
	int n = ibv_poll_cq(l->cq, (int)(sizeof(wc) / sizeof(wc[0])), wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			line_break(w, l, wc[i].status);
			return;
		}
		l->done += VERBS_WRITES_SIGNALLED;
	}
}

bool verbs_line_write(struct verbs_wire *w, struct verbs_peer *p, const uint8_t *frame)
{
	struct verbs_line *l = p->line;
	struct verbs_place place = { .turn = l->written + 1 };
	struct ibv_sge sge = { .addr = (uintptr_t)&place, .length = sizeof(place) };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
	}, *bad;

	if (l->state == VERBS_LINE_READY &&
	    l->posted - l->done > VERBS_WRITES - VERBS_WRITES_SIGNALLED)
		look_for_completions(w, l);
	if (l->state != VERBS_LINE_READY || l->posted - l->done == VERBS_WRITES)
		return false;
	memcpy(place.frame, frame, sizeof(place.frame));
	place.sum = sum_of(frame, place.turn);
	wr.wr.rdma.remote_addr = l->its.place + l->written % VERBS_PLACES * sizeof(place);
	wr.wr.rdma.rkey = l->its.rkey;
	wr.send_flags = verbs_out_put(&l->out, l->posted % VERBS_WRITES, &sge);
	if ((l->posted + 1) % VERBS_WRITES_SIGNALLED == 0)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(l->qp, &wr, &bad)) { /* though there is room */
		line_break(w, l, IBV_WC_FATAL_ERR);
		return false;
	}
	l->posted++;
	l->written++;
	w->base.writes++;
	return true;
}

/* The next frame of a line. A sender that was a whole round ahead has overwritten some: these are
 * lost, as on any wire. */
static bool line_take(struct verbs_wire *w, struct verbs_line *l, uint8_t frame[NBFW_FRAME_SIZE])
{
	const struct verbs_place *at = &l->place[l->seen % VERBS_PLACES];
	struct verbs_place got;

	if ((int32_t)(verbs_place_turn(at) - l->seen) <= 0)
		return false;
	memcpy(&got, at, sizeof(got));
	if ((int32_t)(got.turn - l->seen) <= 0 || got.sum != sum_of(got.frame, got.turn))
		return false; /* it is just being written */
	w->base.errors += got.turn - l->seen - 1;
	l->seen = got.turn;
	memcpy(frame, got.frame, sizeof(got.frame));
	return true;
}

unsigned verbs_line_poll(struct verbs_wire *w, struct nbnic *nic, uint64_t now)
{
	uint8_t frame[NBFW_FRAME_SIZE];
	struct nbfw_token t;
	unsigned n = 0;

	for (struct verbs_peer *p = w->lines; p; p = p->next_line) {
		if (p->line->state < VERBS_LINE_OPEN)
			continue;
		for (unsigned i = 0; i < BURST && line_take(w, p->line, frame); i++, n++) {
			if (nbfw_token_unpack(frame, sizeof(frame), &t))
				nbnic_receive(nic, &p->addr, &t, now);
			else
				w->base.malformed++;
		}
	}
	return n;
}

static void hello_send(struct verbs_wire *w, const struct verbs_peer *p)
{
	const struct verbs_line *l = p->line;
	struct verbs_hello h = {
		.type = VERBS_HELLO,
		.wants = l->state != VERBS_LINE_READY,
		.id = verbs_addr_of(&p->addr).id,
		.end = l->mine,
	};

	if (l->state >= VERBS_LINE_OPEN) {
		h.known_qpn = l->its.qpn;
		h.known_psn = l->its.psn;
	}
	(void)verbs_send(w, p, &h, sizeof(h)); /* it is said again until it is answered */
}

/* That an unreliable connection has lost a write shows only by later ones, which do not wait for
 * it: its token is asked for again. */
static void skip_lost(struct verbs_wire *w, struct verbs_line *l)
{
	uint32_t next = UINT32_MAX;

	for (uint32_t i = 0; i < VERBS_PLACES; i++) {
		uint32_t ahead = verbs_place_turn(&l->place[i]) - l->seen;

		if ((int32_t)ahead > 0 && ahead < next && (l->seen + ahead - 1) % VERBS_PLACES == i)
			next = ahead;
	}
	if (next != UINT32_MAX) {
		w->base.errors += next - 1;
		l->seen += next - 1;
	}
}

void verbs_line_look(struct verbs_wire *w, uint64_t now)
{
	for (struct verbs_peer *p = w->lines; p; p = p->next_line) {
		struct verbs_line *l = p->line;

		if (w->self.mode == VERBS_WRITE_UC && l->state >= VERBS_LINE_OPEN)
			skip_lost(w, l);
		if (l->state == VERBS_LINE_READY)
			look_for_completions(w, l);
		if (l->state == VERBS_LINE_READY || l->state == VERBS_LINE_MAKING ||
		    now < l->hello_at)
			continue;
		if (l->renew) { /* it could not be made, or nobody has wanted it since */
			l->state = VERBS_LINE_MAKING;
			verbs_wake(w);
		} else {
			hello_send(w, p);
		}
		l->hello_ns = l->hello_ns ? l->hello_ns * 2 : HELLO_MIN_NS;
		if (l->hello_ns > HELLO_MAX_NS)
			l->hello_ns = HELLO_MAX_NS;
		l->hello_at = now + l->hello_ns;
	}
}

void verbs_line_heard(struct verbs_wire *w, struct verbs_peer *p, const struct verbs_hello *h)
{
	struct verbs_line *l = p ? p->line : NULL;

	if (!l)
		return; /* he is early: no group here has him as a peer yet */
	if (h->id != w->self.id || h->end.qpn == 0) {
		w->base.malformed++;
		return;
	}
	if (l->state == VERBS_LINE_MAKING)
		return;
	if (l->state == VERBS_LINE_IDLE || memcmp(&h->end, &l->its, sizeof(l->its)) != 0) {
		l->reset = l->state != VERBS_LINE_IDLE;
		l->its = h->end;
		l->state = VERBS_LINE_MAKING;
		verbs_wake(w);
		return;
	}
	if (h->known_qpn == l->mine.qpn && h->known_psn == l->mine.psn)
		l->state = VERBS_LINE_READY;
	if (h->wants)
		hello_send(w, p);
}
