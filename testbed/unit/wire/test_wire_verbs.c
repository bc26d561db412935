/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_verbs.c - the wire "verbs" without a device: how a poll shares its budget, and frames
 * that find no room.
 *
 * The test replaces the calls of the device: the completion queue always has datagrams, and an RDMA
 * write goes to memory at once. A NIC without groups counts each received frame as a stranger.
 */
#include "unit/unit.h"

#ifdef WIRES_VERBS
#include "verbs/verbs.c"

#define PEERS 40u
#define BUDGET 128u

static struct verbs_wire *w;
static struct nbnic nic;
static struct verbs_peer peer[PEERS];
static struct verbs_connection connection[PEERS];
static struct verbs_slot slot[PEERS][VERBS_SLOTS];
static struct ibv_context context;
static struct ibv_cq recv_cq = { .context = &context }, send_cq = { .context = &context };
static struct ibv_qp qp = { .context = &context };
static struct ibv_mr mr;
static uint8_t room[VERBS_RECVS * VERBS_ROOM];
static unsigned ndatagram; /* that wait */
static unsigned ntaken;    /* datagrams */
static int nsent;          /* sends of datagrams whose completion is reported */

static int fake_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	int n = 0;

	for (; cq == &send_cq && n < most && nsent > 0; n++, nsent--)
		wc[n] = (struct ibv_wc){ .status = IBV_WC_SUCCESS };
	for (; cq == &recv_cq && n < most && ndatagram > 0; n++, ndatagram--, ntaken++)
		wc[n] = (struct ibv_wc){
			.status = IBV_WC_SUCCESS,
			.byte_len = VERBS_GRH + NBFW_FRAME_SIZE,
			.wc_flags = IBV_WC_GRH,
			.src_qp = 77,
		};
	return n;
}

static int fake_post_recv(struct ibv_qp *q, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return 0;
}

static int fake_post_send(struct ibv_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (wr->opcode == IBV_WR_RDMA_WRITE)
		memcpy((void *)(uintptr_t)wr->wr.rdma.remote_addr,
		       (const void *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length);
	return 0;
}

static const struct nbfw_token token = { .type = NBFW_TOKEN, .handle = 7, .cookie = 9, .epoch = 1 };

static int setup(void **state)
{
	static const struct nbnic_ops none;
	const struct nbnic_config config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					     .budget_ns = NBNIC_BUDGET_NS_DEFAULT };

	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	context.ops.poll_cq = fake_poll_cq;
	context.ops.post_recv = fake_post_recv;
	context.ops.post_send = fake_post_send;
	ndatagram = ntaken = 0;
	w->recv_cq = &recv_cq;
	w->send_cq = &send_cq;
	w->qp = &qp;
	w->out.inlined = VERBS_INLINE;
	w->mr = &mr;
	w->room = room;
	w->wake_fd = -1;
	w->self.mode = VERBS_WRITE_RC;
	w->self.qpn = 5;
	memcpy(w->base.addr.byte, &w->self, sizeof(w->self));
	room[0] = 0x60; /* a GRH */
	nbfw_token_pack(&token, room + VERBS_GRH);
	assert_int_equal(nbnic_init(&nic, &none, NULL, 4, &w->base.addr, &config), 0);
	return 0;
}

static int teardown(void **state)
{
	free(w);
	return 0;
}

static void add_peer(uint32_t i)
{
	const struct verbs_addr a = { .qpn = 100 + i };

	memset(slot[i], 0, sizeof(slot[i]));
	connection[i] = (struct verbs_connection){
		.cq = &send_cq,
		.qp = &qp,
		.slot = slot[i],
		.out.inlined = VERBS_WRITE_MAX,
		.its.slot = (uintptr_t)slot[i],
		.state = VERBS_CONNECTION_READY,
	};
	peer[i] = (struct verbs_peer){ .qpn = a.qpn, .connection = &connection[i] };
	memcpy(peer[i].addr.byte, &a, sizeof(a));
	verbs_peer_insert(w, &peer[i]);
	peer[i].next_connection = w->connections;
	w->connections = &peer[i];
}

/* Peer i writes until its slots are full. */
static void fill(uint32_t i)
{
	uint8_t frame[NBFW_FRAME_SIZE];

	nbfw_token_pack(&token, frame);
	while (connection[i].written - connection[i].seen < VERBS_SLOTS) {
		connection[i].done = connection[i].posted;
		assert_true(verbs_connection_write(w, &peer[i], frame, sizeof(frame)));
	}
}

static void fill_loopback(void)
{
	while (w->loop_tail - w->loop_head < VERBS_LOOP)
		assert_true(verbs_transmit(&w->base, &w->base.addr, &token));
}

static uint64_t received(void)
{
	return nic.counter[NBAR_COUNTER_frames_stranger];
}

static unsigned poll_all(unsigned budget)
{
	uint64_t before = received();
	unsigned n = verbs_poll(&w->base, &nic, 1, budget);

	assert_int_equal(received() - before, n);
	return n;
}

/* All three sources have more than a poll may take: each gets some, and the sum is the budget. */
static void budget_is_shared(void **state)
{
	uint32_t own;

	add_peer(0);
	for (unsigned budget = 4; budget <= BUDGET; budget++) {
		fill_loopback();
		fill(0);
		ndatagram = VERBS_RECVS;
		ntaken = 0;
		own = w->loop_head;
		assert_in_range(poll_all(budget), 3, budget);
		assert_true(w->loop_head != own);
		assert_true(ntaken > 0);
		assert_true(connection[0].written - connection[0].seen < VERBS_SLOTS);
	}
}

/* One source alone gets all that is there. */
static void one_source(void **state)
{
	ndatagram = 100;
	assert_int_equal(poll_all(BUDGET), 100);
	ndatagram = 200;
	assert_int_equal(poll_all(BUDGET), BUDGET);
	assert_int_equal(poll_all(BUDGET), 200 - BUDGET);
	assert_int_equal(poll_all(BUDGET), 0);
	fill_loopback();
	for (uint32_t n = 0; n < VERBS_LOOP; n += BUDGET / 2)
		assert_int_equal(poll_all(BUDGET), BUDGET / 2);
	add_peer(0);
	connection[0].state = VERBS_CONNECTION_IDLE;
	assert_int_equal(poll_all(BUDGET), 0);
}

/* More connections than a poll can serve, all full. */
static void no_connection_starves(void **state)
{
	uint32_t seen[PEERS];

	for (uint32_t i = 0; i < PEERS; i++) {
		add_peer(i);
		seen[i] = 0;
	}
	for (uint32_t round = 0; round < PEERS / 4; round++) {
		for (uint32_t i = 0; i < PEERS; i++)
			fill(i);
		assert_int_equal(poll_all(64), 64);
	}
	for (uint32_t i = 0; i < PEERS; i++) {
		assert_true(connection[i].seen > seen[i]);
		seen[i] = connection[i].seen;
	}
	/* The connection where the next poll would begin ends. */
	for (uint32_t i = 0; i < PEERS / 2; i++) {
		assert_non_null(w->connection_at);
		w->connection_at->connection->state = VERBS_CONNECTION_IDLE;
		verbs_peer_remove(w, w->connection_at);
		assert_int_equal(poll_all(64), 64);
		for (uint32_t k = 0; k < PEERS; k++)
			if (connection[k].state == VERBS_CONNECTION_READY)
				fill(k);
	}
	while (w->connections)
		verbs_peer_remove(w, w->connections);
	assert_null(w->connection_at);
	assert_int_equal(poll_all(64), 0);
}

static void refused_is_counted(void **state)
{
	fill_loopback();
	assert_int_equal(w->base.refused, 0);
	assert_false(verbs_transmit(&w->base, &w->base.addr, &token));
	assert_int_equal(w->base.refused, 1);
	add_peer(0);
	peer[0].connection->state = VERBS_CONNECTION_IDLE;
	for (uint32_t i = 0; i < VERBS_SENDS; i++)
		assert_true(verbs_transmit(&w->base, &peer[0].addr, &token));
	assert_false(verbs_transmit(&w->base, &peer[0].addr, &token));
	assert_int_equal(w->base.refused, 2);
	nsent = 1;
	poll_all(BUDGET);
	assert_int_equal(nsent, 0);
	assert_true(verbs_transmit(&w->base, &peer[0].addr, &token));
	w->broken = true;
	assert_true(verbs_transmit(&w->base, &peer[0].addr, &token));
	assert_int_equal(w->base.refused, 2);
	assert_int_equal(w->base.errors, 1);
}

UNIT_MAIN(NULL, NULL, UNIT_IN(budget_is_shared, setup, teardown),
	  UNIT_IN(one_source, setup, teardown), UNIT_IN(no_connection_starves, setup, teardown),
	  UNIT_IN(refused_is_counted, setup, teardown))
#else
int main(void)
{
	puts("1..1\nok 1 - wire verbs # SKIP this build has none: apt-get install libibverbs-dev");
	return 0;
}
#endif
