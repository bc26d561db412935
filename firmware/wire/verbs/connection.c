/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.c - modes "write-rc" and "write-uc" of the wire "verbs": writes tokens into the memory
 * of their receiver.
 *
 * Called by the polling thread. The receiver polls memory, and no completion queue. Frames go as
 * datagrams until each end has told the other that it is ready, and again after a connection
 * breaks. The contents of a receive slot are hostile until checked.
 */
#include <string.h>

#include "verbs.h"

#define BURST 16u
#define HANDSHAKE_MIN_NS UINT64_C(1000000)
#define HANDSHAKE_MAX_NS UINT64_C(128000000)

/* Of a frame without a value, and its sequence number. */
static uint32_t sum_of(const uint8_t *frame, uint32_t sequence)
{
	uint32_t word[NBFW_FRAME_SIZE / 4], sum = sequence ^ 0x6e626172u;

	memcpy(word, frame, sizeof(word));
	for (uint32_t i = 0; i < NBFW_FRAME_SIZE / 4; i++)
		sum = (sum ^ word[i]) * UINT32_C(16777619);
	return sum;
}

/* Goes on with the sum over a value. The shift takes the upper bits down: without it, a value has
 * the same sum if two of its elements change their signs. */
static uint32_t sum_with_value(uint32_t sum, const uint8_t *at, uint32_t size)
{
	uint32_t word;

	for (uint32_t i = 0; i < size; i += sizeof(word)) {
		memcpy(&word, at + i, sizeof(word));
		sum = (sum ^ word) * UINT32_C(16777619);
		sum ^= sum >> 15;
	}
	return sum;
}

/* Where the elements of a value begin in their slot. */
static uint32_t begin_of(uint32_t size)
{
	return VERBS_ELEMENTS - ((size + 7) & ~7u);
}

static void connection_break(struct verbs_wire *w, struct verbs_connection *l, uint32_t error)
{
	w->base.errors++;
	l->its = (struct verbs_end){ 0 };
	l->error = error;
	l->state = VERBS_CONNECTION_MAKING;
	l->reset = true;
	verbs_wake(w);
}

void verbs_connection_failed(struct verbs_wire *w, const struct ibv_qp *qp, const struct ibv_cq *cq)
{
	for (struct verbs_peer *p = w->connections; p; p = p->next_connection) {
		struct verbs_connection *l = p->connection;

		if (cq && l->cq == cq)
			l->renew = true;
		else if (!qp || l->qp != qp)
			continue;
		if (l->state >= VERBS_CONNECTION_OPEN)
			connection_break(w, l, IBV_WC_FATAL_ERR);
	}
}

static void look_for_completions(struct verbs_wire *w, struct verbs_connection *l)
{
	struct ibv_wc wc[VERBS_WRITES / VERBS_WRITES_SIGNALLED];
	int n = ibv_poll_cq(l->cq, (int)(sizeof(wc) / sizeof(wc[0])), wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			connection_break(w, l, wc[i].status);
			return;
		}
		l->done += VERBS_WRITES_SIGNALLED;
	}
}

/* Puts the value behind a frame into the slot; returns where in the slot the write begins. */
__attribute__((noinline)) static uint32_t put_value(struct verbs_slot *slot, const uint8_t *frame,
						    uint32_t size)
{
	const uint32_t elements = size - NBFW_FRAME_SIZE - NBFW_VALUE_HEAD;
	const uint32_t begin = begin_of(elements);

	memset(slot->element, 0, sizeof(slot->element));
	memcpy(slot->element + begin, frame + NBFW_FRAME_SIZE + NBFW_VALUE_HEAD, elements);
	memcpy(slot->line.head, frame + NBFW_FRAME_SIZE, NBFW_VALUE_HEAD);
	slot->line.sum = sum_with_value(slot->line.sum, (const uint8_t *)slot + begin,
					VERBS_ELEMENTS - begin + NBFW_VALUE_HEAD);
	return begin;
}

/* A frame with a value that no write can carry. */
static bool is_long(const struct verbs_connection *l, uint32_t size)
{
	const uint32_t most = l->out.room ? VERBS_WRITE_MAX : l->out.inlined;

	return size > NBFW_FRAME_SIZE + NBFW_VALUE_HEAD + VERBS_ELEMENTS ||
	       VERBS_WRITE_MAX - begin_of(size - NBFW_FRAME_SIZE - NBFW_VALUE_HEAD) > most;
}

bool verbs_connection_write(struct verbs_wire *w, struct verbs_peer *p, const uint8_t *frame,
			    uint32_t size)
{
	struct verbs_connection *l = p->connection;
	struct verbs_slot slot;
	uint32_t begin = offsetof(struct verbs_slot, line);
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
	}, *bad;

	if (l->state == VERBS_CONNECTION_READY &&
	    l->posted - l->done > VERBS_WRITES - VERBS_WRITES_SIGNALLED)
		look_for_completions(w, l);
	if (l->state != VERBS_CONNECTION_READY || l->posted - l->done == VERBS_WRITES)
		return false;
	if (size != NBFW_FRAME_SIZE && is_long(l, size))
		return false;
	memset(slot.line.head, 0, sizeof(slot.line.head));
	memcpy(slot.line.frame, frame, sizeof(slot.line.frame));
	slot.line.sequence = l->written + 1;
	slot.line.sum = sum_of(frame, slot.line.sequence);
	if (size != NBFW_FRAME_SIZE)
		begin = put_value(&slot, frame, size);
	sge = (struct ibv_sge){ .addr = (uintptr_t)&slot + begin,
				.length = (uint32_t)sizeof(slot) - begin };
	wr.wr.rdma.remote_addr = l->its.slot + l->written % VERBS_SLOTS * sizeof(slot) + begin;
	wr.wr.rdma.rkey = l->its.rkey;
	wr.send_flags = verbs_out_put(&l->out, l->posted % VERBS_WRITES, &sge);
	if ((l->posted + 1) % VERBS_WRITES_SIGNALLED == 0)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(l->qp, &wr, &bad)) { /* the queue has room, so this is an error */
		connection_break(w, l, IBV_WC_FATAL_ERR);
		return false;
	}
	l->posted++;
	l->written++;
	w->base.writes++;
	return true;
}

/* Makes the frame of a line with a value: copies the elements from their slot once, because the
 * peer can change them. Goes on with the sum, and returns the size of the frame. If the head is
 * wrong, or the value longer than a slot, the frame gets no elements: so it does not unpack. */
__attribute__((noinline)) static uint32_t take_value(const struct verbs_slot *at,
						     const struct verbs_line *line, uint8_t *frame,
						     uint32_t *sum)
{
	struct verbs_slot got = { .line = *line };
	uint32_t elements = nbfw_value_length((const void *)line->head);
	uint32_t begin;

	elements = elements > VERBS_ELEMENTS ? 0 : elements;
	begin = begin_of(elements);
	memcpy(got.element + begin, at->element + begin, VERBS_ELEMENTS - begin);
	*sum = sum_with_value(*sum, (const uint8_t *)&got + begin,
			      VERBS_ELEMENTS - begin + NBFW_VALUE_HEAD);
	memcpy(frame, got.line.frame, NBFW_FRAME_SIZE);
	memcpy(frame + NBFW_FRAME_SIZE, got.line.head, NBFW_VALUE_HEAD);
	memcpy(frame + NBFW_FRAME_SIZE + NBFW_VALUE_HEAD, got.element + begin, elements);
	return NBFW_FRAME_SIZE + NBFW_VALUE_HEAD + elements;
}

/* A frame from a slot. */
struct taken {
	struct verbs_line line;
	uint32_t size;
	uint8_t valued[NBFW_FRAME_SIZE + NBFW_VALUE_HEAD + VERBS_ELEMENTS]; /* if it has a value */
};

/* Takes the next frame of a connection. A sender that is VERBS_SLOTS ahead has overwritten frames:
 * these frames are lost, as can happen on any wire. */
static bool connection_take(struct verbs_wire *w, struct verbs_connection *l, struct taken *got)
{
	const struct verbs_slot *at = &l->slot[l->seen % VERBS_SLOTS];
	uint32_t sum;

	if ((int32_t)(verbs_slot_sequence(at) - l->seen) <= 0)
		return false;
	memcpy(&got->line, &at->line, sizeof(got->line));
	if ((int32_t)(got->line.sequence - l->seen) <= 0)
		return false;
	sum = sum_of(got->line.frame, got->line.sequence);
	got->size = NBFW_FRAME_SIZE;
	if (__builtin_expect(got->line.frame[0] == NBFW_FRAME_VERSION_VALUE, 0))
		got->size = take_value(at, &got->line, got->valued, &sum);
	if (got->line.sum != sum)
		return false; /* the write of this slot is incomplete */
	w->base.errors += got->line.sequence - l->seen - 1;
	l->seen = got->line.sequence;
	return true;
}

/* Takes the writes of one peer, at most `most`. */
static unsigned take_written(struct verbs_wire *w, const struct verbs_peer *p, struct nbnic *nic,
			     uint64_t now, unsigned most)
{
	const uint8_t *frame;
	struct nbfw_token t;
	struct taken got;
	unsigned n = 0;

	if (p->connection->state < VERBS_CONNECTION_OPEN)
		return 0;
	for (; n < most && connection_take(w, p->connection, &got); n++) {
		frame = got.size == NBFW_FRAME_SIZE ? got.line.frame : got.valued;
		if (nbfw_token_unpack(frame, got.size, &t))
			nbnic_receive(nic, &p->addr, &t, now);
		else
			w->base.malformed++;
	}
	return n;
}

unsigned verbs_connection_poll(struct verbs_wire *w, struct nbnic *nic, uint64_t now, unsigned most)
{
	const struct verbs_peer *first = w->connection_at ? w->connection_at : w->connections;
	struct verbs_peer *p = w->connection_at ? w->connection_at : w->connections;
	unsigned n = 0;

	if (!p || most == 0)
		return 0;
	do {
		n += take_written(w, p, nic, now, most - n < BURST ? most - n : BURST);
		p = p->next_connection ? p->next_connection : w->connections;
	} while (p != first && n < most);
	w->connection_at = p;
	return n;
}

static void handshake_send(struct verbs_wire *w, const struct verbs_peer *p)
{
	const struct verbs_connection *l = p->connection;
	struct verbs_handshake h = {
		.type = VERBS_HANDSHAKE,
		.wants = l->state != VERBS_CONNECTION_READY,
		.id = verbs_addr_of(&p->addr).id,
		.end = l->mine,
	};

	if (l->state >= VERBS_CONNECTION_OPEN) {
		h.known_qpn = l->its.qpn;
		h.known_psn = l->its.psn;
	}
	(void)verbs_send(w, p, &h, sizeof(h)); /* sent again until the peer answers */
}

/* If an unreliable connection loses a write, only later writes show the loss. The later frames do
 * not wait for the lost frame: a PULL asks for its token again. */
static void skip_lost(struct verbs_wire *w, struct verbs_connection *l)
{
	uint32_t next = UINT32_MAX;

	for (uint32_t i = 0; i < VERBS_SLOTS; i++) {
		uint32_t ahead = verbs_slot_sequence(&l->slot[i]) - l->seen;

		if ((int32_t)ahead > 0 && ahead < next && (l->seen + ahead - 1) % VERBS_SLOTS == i)
			next = ahead;
	}
	if (next != UINT32_MAX) {
		w->base.errors += next - 1;
		l->seen += next - 1;
	}
}

void verbs_connection_look(struct verbs_wire *w, uint64_t now)
{
	for (struct verbs_peer *p = w->connections; p; p = p->next_connection) {
		struct verbs_connection *l = p->connection;

		if (w->self.mode == VERBS_WRITE_UC && l->state >= VERBS_CONNECTION_OPEN)
			skip_lost(w, l);
		if (l->state == VERBS_CONNECTION_READY)
			look_for_completions(w, l);
		if (l->state == VERBS_CONNECTION_READY || l->state == VERBS_CONNECTION_MAKING ||
		    now < l->handshake_at)
			continue;
		if (l->renew) { /* recreating the queues failed, or no frame has used them since */
			l->state = VERBS_CONNECTION_MAKING;
			verbs_wake(w);
		} else {
			handshake_send(w, p);
		}
		l->handshake_ns = l->handshake_ns ? l->handshake_ns * 2 : HANDSHAKE_MIN_NS;
		if (l->handshake_ns > HANDSHAKE_MAX_NS)
			l->handshake_ns = HANDSHAKE_MAX_NS;
		l->handshake_at = now + l->handshake_ns;
	}
}

void verbs_connection_heard(struct verbs_wire *w, struct verbs_peer *p,
			    const struct verbs_handshake *h)
{
	struct verbs_connection *l = p ? p->connection : NULL;

	if (!l)
		return; /* too early: no group here has this NIC as a peer yet */
	if (h->id != w->self.id || h->end.qpn == 0 || h->end.size != sizeof(struct verbs_slot)) {
		w->base.malformed++;
		return;
	}
	if (l->state == VERBS_CONNECTION_MAKING)
		return;
	if (l->state == VERBS_CONNECTION_IDLE || memcmp(&h->end, &l->its, sizeof(l->its)) != 0) {
		l->reset = l->state != VERBS_CONNECTION_IDLE;
		l->its = h->end;
		l->state = VERBS_CONNECTION_MAKING;
		verbs_wake(w);
		return;
	}
	if (h->known_qpn == l->mine.qpn && h->known_psn == l->mine.psn)
		l->state = VERBS_CONNECTION_READY;
	if (h->wants)
		handshake_send(w, p);
}
