/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_net.c - NICs that run passes, over wires with queues of a limited length.
 *
 * For the tests of the scheduler. See nic_net.h.
 */
#include "unit/nic/nic_net.h"

#include "unit/unit.h"

static struct net net;

static bool on_transmit(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	struct net_nic *n = ctx, *peer = &net.n[to->byte[0]];

	if (peer->refuses && peer->tail - peer->head >= peer->limit) {
		n->refused++;
		return false;
	}
	if (++n->sent_pass > n->most_pass)
		n->most_pass = n->sent_pass;
	if (net.seen)
		net.seen(&net, n->index, peer->index, t);
	if (peer->sink || peer->dead || (net.lost && net.lost(&net, n->index, peer->index, t)))
		return true;
	if (peer->tail - peer->head >= peer->limit) {
		peer->dropped++;
		return true;
	}
	struct net_frame *f = &peer->queue[peer->tail++ % NET_QUEUE];

	f->from = n->index;
	f->at = net.now + net.delay;
	f->token = *t;
	if (t->value_length)
		memcpy(&f->value, t->value, t->value_length);
	return true;
}

static void on_complete(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, uint32_t status,
			uint32_t failed_rank)
{
	struct net_nic *n = ctx;
	struct net_host *h = &n->host[port][cell];

	if (status == NBAR_STATUS_OK)
		require(epoch == ++h->completions, "cell %u: epoch %u", cell, epoch);
	h->status = status;
	h->failed_rank = failed_rank;
}

static int on_operand(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch,
		      struct nbfw_value *out, uint32_t most)
{
	struct nbfw_value v;
	int length = net.operand(&net, ((struct net_nic *)ctx)->index, cell, epoch, &v);

	(void)port;
	if (length > (int)most)
		return -NBAR_EINVAL;
	if (length > 0)
		memcpy(out, &v, NBFW_VALUE_HEAD + (size_t)length);
	return length;
}

static void on_result(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch,
		      const struct nbfw_value *v, uint32_t length)
{
	(void)port;
	assert_int_equal(length, NBFW_VALUE_HEAD + nbfw_value_length(v));
	net.result(&net, ((struct net_nic *)ctx)->index, cell, epoch, v);
}

static void on_stragglers(void *ctx, uint32_t port, uint32_t cell,
			  const struct nbnic_straggler *straggler, uint32_t n)
{
}

static bool on_deliver(void *ctx, uint32_t port, uint32_t cell, uint32_t src,
		       const uint32_t word[NBAR_SIGNAL_WORDS])
{
	return true;
}

static void on_release(void *ctx, struct nbnic_group *block)
{
	struct net_nic *n = ctx;

	if (n->host[block->port][block->cell].group == block)
		n->host[block->port][block->cell].group = NULL;
	free(block);
}

static const struct nbnic_ops net_ops = {
	.transmit = on_transmit,
	.complete = on_complete,
	.operand = on_operand,
	.result = on_result,
	.stragglers = on_stragglers,
	.deliver = on_deliver,
	.release = on_release,
};

static void nic_begin(uint32_t i)
{
	const struct nbnic_config config = {
		.pull_ns = NBNIC_PULL_NS_DEFAULT,
		.budget_ns = NET_BUDGET,
		.linger_bytes = UINT64_C(64) << 20, /* enough for 64 groups with 4,096 peers each */
		.quota = net.quota,
	};
	const struct nbnic_addr addr = { { (uint8_t)i } };

	assert_int_equal(nbnic_init(&net.n[i].nic, &net_ops, &net.n[i], 255, &addr, &config), 0);
}

struct net *net_new_quota(uint32_t quota)
{
	memset(&net, 0, sizeof(net));
	net.quota = quota;
	net.now = NET_SECOND;
	for (uint32_t i = 0; i < NET_NICS; i++) {
		net.n[i].index = i;
		net.n[i].limit = NET_QUEUE;
		nic_begin(i);
	}
	return &net;
}

struct net *net_new(void)
{
	return net_new_quota(NBNIC_QUOTA);
}

void net_free(struct net *w)
{
	for (uint32_t i = 0; i < NET_NICS; i++)
		nbnic_fini(&w->n[i].nic);
}

void net_restart(struct net *w, uint32_t nic)
{
	nbnic_fini(&w->n[nic].nic);
	w->n[nic].head = w->n[nic].tail;
	nic_begin(nic);
}

struct nbnic_group *net_open(struct net *w, uint32_t nic, uint32_t port, uint32_t cell,
			     const char *alg, uint32_t size, uint32_t rank,
			     const struct nbar_plan *plan)
{
	static uint32_t block[65536];
	struct nbnic_open arg = { .port = port,
				  .cell = cell,
				  .rank = rank,
				  .size = size,
				  .alg = alg,
				  .cookie = ++w->cookie << 32 | 77,
				  .value_max = w->value_max,
				  .plan = plan };
	struct nbnic_group *g;

	assert_int_equal(nbfw_alg_parse(alg, &arg.kind), 0);
	if (!plan) {
		assert_in_range(nbfw_plan_generate(arg.kind, size, rank, block, sizeof(block)), 1,
				sizeof(block));
		arg.plan = (const struct nbar_plan *)block;
	}
	g = nbnic_group_build(&arg, malloc(nbnic_group_size_values(arg.plan, size, w->value_max)));
	assert_int_equal(nbnic_group_open(&w->n[nic].nic, g), 0);
	w->n[nic].host[port][cell] = (struct net_host){ .group = g };
	return g;
}

static void put32(uint8_t *at, uint32_t v)
{
	for (uint32_t i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

struct nbar_endpoint net_endpoint(struct net *w, const struct nbnic_group *g, uint32_t nic,
				  uint32_t rank, uint32_t handle, uint64_t cookie)
{
	struct nbar_endpoint endpoint;

	nbnic_group_endpoint(&w->n[nic].nic, g, &endpoint);
	put32(endpoint.byte + 8, handle);
	put32(endpoint.byte + 12, rank);
	put32(endpoint.byte + 24, (uint32_t)cookie);
	put32(endpoint.byte + 28, (uint32_t)(cookie >> 32));
	return endpoint;
}

void net_connect_phantoms(struct net *w, uint32_t nic, struct nbnic_group *g, uint32_t peer_nic)
{
	uint32_t bad;
	const char *why;

	for (uint32_t i = 0; i < g->npeer; i++) {
		struct nbar_endpoint endpoint =
			net_endpoint(w, g, peer_nic, g->peer[i].rank, UINT32_C(0x10000) + i, i);

		assert_int_equal(
			nbnic_group_connect(&w->n[nic].nic, g, &endpoint, 1, w->now, &bad, &why),
			0);
	}
}

void net_connect(struct net *w, uint32_t nic, struct nbnic_group *g,
		 const struct nbar_endpoint *endpoint)
{
	uint32_t bad;
	const char *why;

	for (uint32_t i = 0; i < g->npeer; i++)
		assert_int_equal(nbnic_group_connect(&w->n[nic].nic, g, &endpoint[g->peer[i].rank],
						     1, w->now, &bad, &why),
				 0);
}

void net_pair(struct net *w, uint32_t a, uint32_t port_a, uint32_t b, uint32_t port_b,
	      uint32_t cell)
{
	struct nbnic_group *g[2] = {
		net_open(w, a, port_a, cell, "dissemination:1", 2, 0, NULL),
		net_open(w, b, port_b, cell, "dissemination:1", 2, 1, NULL),
	};
	struct nbar_endpoint endpoint[2];

	nbnic_group_endpoint(&w->n[a].nic, g[0], &endpoint[0]);
	nbnic_group_endpoint(&w->n[b].nic, g[1], &endpoint[1]);
	net_connect(w, a, g[0], endpoint);
	net_connect(w, b, g[1], endpoint);
}

/* When the next frame in its queue arrives. */
static uint64_t arrival(const struct net_nic *n)
{
	return n->head != n->tail ? n->queue[n->head % NET_QUEUE].at : UINT64_MAX;
}

static bool pass(struct net *w, struct net_nic *n)
{
	uint32_t taken = 0;

	if (n->dead)
		return false;
	for (; taken < NET_BURST && arrival(n) <= w->now; taken++) {
		struct net_frame f = n->queue[n->head++ % NET_QUEUE];
		struct nbnic_addr from = { { (uint8_t)f.from } };

		f.token.value = &f.value;
		nbnic_receive(&n->nic, &from, &f.token, w->now);
	}
	uint64_t sent = n->sent_pass;
	bool worked = nbnic_work(&n->nic, w->now);
	bool any = worked || taken > 0 || nbnic_next(&n->nic) == 0;

	require(worked || n->sent_pass == sent, "it has sent frames, and says that it had no work");
	n->sent_last = n->sent_pass;
	n->sent_pass = 0;
	return any;
}

bool net_round(struct net *w)
{
	bool any = false;

	for (uint32_t i = 0; i < NET_NICS; i++)
		any |= pass(w, &w->n[i]);
	w->round++;
	w->now += NET_STEP;
	return any;
}

void net_pass(struct net *w, uint64_t ns)
{
	for (uint64_t end = w->now + ns; w->now < end;) {
		uint64_t next = end;

		if (net_round(w))
			continue;
		for (uint32_t i = 0; i < NET_NICS; i++) {
			const struct net_nic *n = &w->n[i];
			uint64_t due = n->dead ? next : nbnic_next(&n->nic);

			next = due < next ? due : next;
			if (!n->dead && arrival(n) < next)
				next = arrival(n);
		}
		if (next > w->now)
			w->now = next;
	}
}

void net_post(struct net *w, uint32_t nic, uint32_t port, uint32_t cell, uint32_t epoch)
{
	nbnic_doorbell(&w->n[nic].nic, w->n[nic].host[port][cell].group, epoch, w->now);
}

uint32_t net_rounds_until(struct net *w, uint32_t nic, uint32_t port, uint32_t cell, uint32_t epoch,
			  uint32_t most)
{
	uint32_t rounds = 0;

	for (; w->n[nic].host[port][cell].completions < epoch; rounds++) {
		require(rounds < most, "nothing after %u rounds", rounds);
		net_round(w);
	}
	return rounds;
}

const struct nbar_plan *net_plan(uint32_t size, uint32_t rank, uint32_t nsend, uint32_t nrecv)
{
	static uint32_t block[16384];
	struct nbar_plan *p = (struct nbar_plan *)block;
	const char *why;

	*p = (struct nbar_plan){ NBAR_PLAN_MAGIC, rank, size, 1, nsend, nrecv };
	*(struct nbar_step *)(p + 1) = (struct nbar_step){ 0, nsend, 0, nrecv };
	struct nbar_send *send = (struct nbar_send *)((struct nbar_step *)(p + 1) + 1);
	struct nbar_recv *recv = (struct nbar_recv *)(send + nsend);

	for (uint32_t i = 0; i < nsend; i++)
		send[i] = (struct nbar_send){ (rank + 1 + i) % size, 0 };
	for (uint32_t i = 0; i < nrecv; i++)
		recv[i] = (struct nbar_recv){ (rank + 1 + i) % size };
	static uint64_t scratch[NBAR_SENDS_MAX + NBAR_SLOTS_MAX + 1];

	/* A plan without sends or slots is no barrier, and a NIC refuses it. Tests still use it,
	 * because even such a plan leaves the pass bounded. */
	if (nsend > 0 && nrecv > 0)
		assert_int_equal(nbfw_plan_check(p, (size_t)nbfw_plan_length(p), scratch, &why), 0);
	return p;
}
