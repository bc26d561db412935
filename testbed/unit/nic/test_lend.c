/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lend.c - groups that a wire steps by itself. The wire of this test is a loop like that of
 * device_world.h, and steps the groups that it has with the same engine.
 */
#include "device_world.h"
#include "engine.h"

#define LENT_MAX 80u
#define FIRST_NS (w.device.nic.group[0]->first)

/* A group that the wire has, by the index of its handle. */
static struct lent {
	const struct nbnic_group *g; /* NULL: the NIC has it */
	uint64_t state[16];
	struct wire_lend how;
	struct wire_counts n;
	enum nbnic_want wanted; /* 0: nothing */
} lent[LENT_MAX];

static struct {
	bool refuses, keeps; /* keeps: a take fails */
	uint32_t lends, takes, begun, ended;
	void (*at_lend)(void); /* what a host does while the wire takes a group */
	struct nbar_results *place;
} wire;

static struct nbnic_client c;

static struct nbfw_state *state_of(struct lent *l)
{
	return (struct nbfw_state *)l->state;
}

static bool wire_lend(struct wire_base *base, const struct nbnic_group *g,
		      const struct wire_lend *how)
{
	uint32_t index = g->handle & 0xffff;
	struct lent *l = &lent[index];

	assert_in_range(index, 0, LENT_MAX - 1);
	assert_null(l->g);
	if (wire.refuses)
		return false;
	assert_in_range(nbfw_state_size(g->plan), 1, sizeof(l->state));
	*l = (struct lent){ .g = g, .how = *how };
	memcpy(l->state, g->state, nbfw_state_size(g->plan));
	wire.lends++;
	if (wire.at_lend)
		wire.at_lend();
	return true;
}

static bool wire_take(struct wire_base *base, struct nbnic_group *g, struct wire_counts *out)
{
	struct lent *l = &lent[g->handle & 0xffff];

	assert_ptr_equal(l->g, g);
	if (!wire.keeps) {
		memcpy(g->state, l->state, nbfw_state_size(g->plan));
		*out = l->n;
	}
	*l = (struct lent){ .g = NULL };
	wire.takes++;
	return !wire.keeps;
}

static struct nbar_results *wire_port_begin(struct wire_base *base, uint32_t port)
{
	wire.begun++;
	return wire.place;
}

static void wire_port_end(struct wire_base *base, uint32_t port)
{
	wire.ended++;
}

static void wire_act(struct lent *l, const struct nbfw_action *a)
{
	const struct nbnic_group *g = l->g;
	const struct nbfw_state *s = state_of(l);

	if (a->complete) {
		l->n.completed++;
		w.device.port[g->port]->completion[g->cell].word = s->epoch;
		if (l->how.sleeper)
			l->wanted = NBNIC_WANT_WAKE;
		l->how.sleeper = false;
	}
	for (uint32_t i = a->send_first; i < a->send_end; i++) {
		const struct nbnic_peer *to = &g->peer[g->send_peer[i]];
		const struct nbfw_token t = {
			.type = NBFW_TOKEN,
			.handle = to->handle,
			.cookie = to->cookie,
			.src = g->rank,
			.epoch = s->epoch,
			.slot = nbfw_plan_sends(g->plan)[i].slot,
			.arg = NBAR_RANK_NONE,
			.sender = g->handle,
		};

		l->n.sent++;
		loop_transmit(&w.wire.base, &to->addr, &t);
	}
}

static void wire_frame(struct nbnic *nic, const struct nbfw_token *t, uint64_t now)
{
	struct lent *l = &lent[(t->handle & 0xffff) % LENT_MAX];
	struct nbfw_action a;

	if (!l->g || l->g->handle != t->handle || t->type != NBFW_TOKEN) {
		nbnic_receive(nic, &w.wire.base.addr, t, now);
		return;
	}
	nbfw_step_token(state_of(l), l->g->plan, t, &a);
	l->n.received += a.verdict == NBFW_USED;
	wire_act(l, &a);
}

static unsigned wire_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < LENT_MAX; i++) {
		if (!lent[i].wanted)
			continue;
		const enum nbnic_want wanted = lent[i].wanted;

		lent[i].wanted = 0;
		nbnic_lend_wanted(nic, i, wanted, now);
		n++;
	}
	for (; n < budget && w.wire.head != w.wire.tail; n++) {
		struct nbfw_token t = w.wire.queue[w.wire.head++ % 65536];

		wire_frame(nic, &t, now);
	}
	return n;
}

static const struct wire_ops lending_ops = {
	.values = true,
	.poll = wire_poll,
	.transmit = loop_transmit,
	.lend = wire_lend,
	.take = wire_take,
	.port_begin = wire_port_begin,
	.port_end = wire_port_end,
};

/* --- the world -------------------------------------------------------------------------------- */

/* A NIC with one port. Neither the NIC nor the wire has a tick soon. */
static int set_up(void **state)
{
	memset(lent, 0, sizeof(lent));
	memset(&wire, 0, sizeof(wire));
	world_ops = &lending_ops;
	world_begin(0, 0);
	port_open(&c);
	passes(1);
	return 0;
}

/* All that was lent has come back. */
static int tear_down(void **state)
{
	nbnic_client_end(&c, NBAR_STATUS_CLOSED);
	assert_int_equal(wire.lends, wire.takes);
	assert_int_equal(wire.begun, wire.ended);
	world_end();
	return 0;
}

#define LEND_TEST(f) UNIT_IN(f, set_up, tear_down)

static struct nbnic_group *group_at(uint32_t cell)
{
	return c.port->cell[cell].group;
}

static struct lent *lent_at(uint32_t cell)
{
	return &lent[group_at(cell)->handle & 0xffff];
}

static void connect_to(uint32_t cell, const struct nbar_endpoint *endpoint, uint32_t n)
{
	struct nbar_req_group_connect *req = (void *)(w.in + 1024);

	*req = (struct nbar_req_group_connect){ .cell = cell, .nendpoint = n };
	if (n > 0)
		memcpy(req + 1, endpoint, n * sizeof(*endpoint));
	assert_int_equal(
		request(&c, NBAR_OP_GROUP_CONNECT, req, sizeof(*req) + n * sizeof(*endpoint)), 0);
}

/* Members 0 and 1 in the cells 0 and 1. */
static void group_pair_open(const char *alg)
{
	struct nbar_endpoint endpoint[2];

	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(group_open(&c, alg, i, 2), 0);
		endpoint[i] = ((const struct nbar_rep_group_open *)reply_body())->endpoint;
	}
	for (uint32_t i = 0; i < 2; i++)
		connect_to(i, &endpoint[1 - i], 1);
}

static void pair_open(void)
{
	group_pair_open("pairwise");
}

/* The host posts; the wire hears of it if it has the group. */
static void ring(uint32_t cell)
{
	c.port->page->doorbell[cell].posted++;
}

static void start(uint32_t cell)
{
	static const struct nbfw_event event = { .type = NBFW_EV_START };
	struct lent *l = lent_at(cell);
	struct nbfw_action a;

	ring(cell);
	assert_non_null(l->g);
	nbfw_step(state_of(l), l->g->plan, &event, &a);
	wire_act(l, &a);
}

static uint32_t done(uint32_t cell)
{
	return (uint32_t)c.port->completion[cell].word;
}

static uint64_t count_of(enum nbar_counter n)
{
	return w.device.nic.counter[n];
}

/* A request for statistics takes all groups back. */
static void take_all(void)
{
	assert_int_equal(request(&c, NBAR_OP_NIC_STAT, "", 0), 0);
	assert_int_equal(wire.lends, wire.takes);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_wire_runs_barriers(void **state)
{
	pair_open();
	assert_int_equal(wire.lends, 0);
	passes(1);
	assert_int_equal(wire.lends, 2);
	assert_true(lent[0].how.first_ns == FIRST_NS);
	assert_true(lent[0].how.left_ns == 0);
	assert_false(lent[0].how.sleeper);
	for (uint32_t n = 1; n <= 3; n++) {
		start(0);
		start(1);
		passes(2);
		assert_int_equal(done(0), n);
		assert_int_equal(done(1), n);
	}
	assert_int_equal(wire.takes, 0);
	assert_int_equal(count_of(NBAR_COUNTER_barriers_completed), 0);
	take_all();
	assert_int_equal(count_of(NBAR_COUNTER_barriers_completed), 6);
	assert_int_equal(count_of(NBAR_COUNTER_tokens_sent), 6);
	assert_int_equal(count_of(NBAR_COUNTER_tokens_received), 6);
	/* The NIC lends the groups again, and there is nothing else to do. */
	assert_false(nbnic_device_pass(&w.device, w.now));
	assert_int_equal(wire.lends, 4);
	/* The NIC goes on with the same barriers. */
	take_all();
	wire.refuses = true;
	ring(0);
	ring(1);
	passes(3);
	assert_int_equal(done(0), 4);
	assert_int_equal(count_of(NBAR_COUNTER_doorbells_bad), 0);
}

static void what_the_wire_counts_is_added(void **state)
{
	pair_open();
	passes(1);
	lent[0].n = (struct wire_counts){ 1, 2, 3, 4, 5, 6 };
	lent[1].n = (struct wire_counts){ 10, 20, 30, 40, 50, 60 };
	take_all();
	assert_int_equal(count_of(NBAR_COUNTER_barriers_completed), 11);
	assert_int_equal(count_of(NBAR_COUNTER_tokens_sent), 22);
	assert_int_equal(count_of(NBAR_COUNTER_tokens_received), 33);
	assert_int_equal(count_of(NBAR_COUNTER_tokens_duplicate), 44);
	assert_int_equal(count_of(NBAR_COUNTER_tokens_stale), 55);
	assert_int_equal(count_of(NBAR_COUNTER_frames_bad), 66);
}

/* A group of which the NIC has something to do is not lent. */
static void busy_groups_are_not_lent(void **state)
{
	struct nbnic_group *g;

	group_pair_open("signal");
	passes(1);
	assert_int_equal(wire.lends, 0);
	group_close(&c, 0);
	group_close(&c, 1);
	assert_int_equal(group_open(&c, "pairwise", 0, 2), 0);
	passes(1); /* not connected */
	assert_int_equal(wire.lends, 0);
	group_close(&c, 0);

	wire.refuses = true;
	pair_open();
	g = group_at(0);
	wire.refuses = false;
	ring(0); /* the NIC has not read it */
	assert_false(nbnic_lend_some(&w.device, w.now));
	assert_int_equal(wire.lends, 1);
	take_all();
	wire.refuses = true;
	ring(1);
	passes(3);
	assert_int_equal(done(0), 1);
	ring(0);
	ring(0); /* one barrier runs, and one is posted ahead */
	passes(1);
	wire.refuses = false;
	passes(1);
	assert_false(g->lent);
	assert_true(group_at(1)->lent);
	take_all();
	wire.refuses = true;
	ring(1);
	ring(1);
	passes(5);
	assert_int_equal(done(0), 3);
	w.wire.room = 0; /* sends wait */
	ring(0);
	passes(2);
	wire.refuses = false;
	passes(1);
	assert_false(g->lent);
	assert_true(group_at(1)->lent);
	take_all();
	wire.refuses = true;
	w.wire.room = UINT32_MAX;
	passes(2);
	wire.refuses = false;
	g->armed = false; /* its PULLs wait */
	passes(1);
	assert_false(g->lent);
	g->armed = true;
	w.device.nic.sweep_next = UINT64_MAX; /* its timer is due, but the sweep comes later */
	for (uint32_t late = 0; late < 2; late++) {
		w.now = g->deadline + late;
		passes(1);
		assert_false(g->lent);
	}
	w.now = g->deadline - 1;
	passes(1);
	assert_true(g->lent);
	assert_true(lent_at(0)->how.left_ns == 1);
}

/* An early PULL waits while the timer runs for the TIMEOUT: the NIC still needs the state. */
static void groups_whose_pulls_wait_are_not_lent(void **state)
{
	struct nbnic_group *g;

	wire.refuses = true;
	pair_open();
	g = group_at(0);
	g->first = MS;
	ring(0);
	passes(1);
	w.wire.room = 0;
	w.now = g->deadline;
	passes(1);
	assert_true(g->armed);
	wire.refuses = false;
	passes(2);
	assert_false(g->lent);
	assert_true(group_at(1)->lent);
	w.wire.room = UINT32_MAX;
	w.now++;
	passes(1);
	assert_int_equal(count_of(NBAR_COUNTER_pulls_sent), 1);
	assert_true(g->lent);
}

static void failed_groups_are_not_lent(void **state)
{
	const struct nbar_req_group_abort abort = { .cell = 0 };
	uint32_t lends;

	pair_open();
	passes(1);
	start(1);
	assert_int_equal(request(&c, NBAR_OP_GROUP_ABORT, &abort, sizeof(abort)), 0);
	assert_int_equal(c.port->completion[0].word >> 32, NBAR_STATUS_ABORTED);
	assert_false(group_at(0)->lent);
	lends = wire.lends;
	passes(3); /* the ABORT reaches member 1, which fails, too */
	assert_int_equal(c.port->completion[1].word >> 32, NBAR_STATUS_ABORTED);
	assert_int_equal(wire.lends, lends);
}

static void a_deadline_is_kept_without_progress(void **state)
{
	struct nbnic_group *g;
	uint64_t deadline;

	wire.refuses = true;
	pair_open();
	g = group_at(0);
	ring(0);
	passes(1);
	assert_true(g->armed);
	deadline = g->deadline;
	wire.refuses = false;
	w.now += 1000;
	passes(1);
	assert_true(g->lent);
	assert_false(g->armed);
	assert_true(lent[0].how.left_ns == deadline - w.now);
	w.now += 1000;
	take_all();
	assert_true(g->armed);
	assert_true(g->deadline == deadline);
	assert_true(w.device.nic.due <= deadline);
	/* The barrier completes: no timer. */
	passes(1);
	g->timeouts = 7;
	g->nstragglers = 1;
	start(1);
	passes(1);
	take_all();
	assert_false(g->armed);
	assert_true(g->deadline > w.now); /* that of the barrier before */
	passes(1);
	assert_true(lent[0].how.left_ns == 0);
	assert_int_equal(g->nstragglers, 0);
	assert_int_equal(g->timeouts, 7);
	/* The next barrier begins: the first interval. */
	passes(1);
	w.now += 1000;
	start(0);
	w.now += 1000;
	take_all();
	assert_true(g->armed);
	assert_true(g->deadline == w.now + g->first);
	assert_true(g->started == w.now);
	assert_int_equal(g->timeouts, 0);
	/* One barrier ends and the next begins, at the same step. */
	passes(1);
	start(1);
	passes(1);
	assert_int_equal(done(0), 2);
	w.now += 1000;
	start(0);
	take_all();
	assert_true(g->deadline == w.now + g->first);
	/* The wire wants a group that it has not. */
	nbnic_lend_wanted(&w.device.nic, 0, NBNIC_WANT_TIMEOUT, w.now);
	assert_true(g->deadline == w.now + g->first);
}

/* A step of the same barrier is progress. */
static void a_step_is_progress(void **state)
{
	struct nbar_endpoint endpoint[4];
	struct nbnic_group *g;

	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(group_open(&c, "dissemination", i, 4), 0);
		endpoint[i] = ((const struct nbar_rep_group_open *)reply_body())->endpoint;
	}
	for (uint32_t i = 0; i < 4; i++) {
		struct nbar_endpoint peer[4];

		for (uint32_t p = 0; p < group_at(i)->npeer; p++)
			peer[p] = endpoint[group_at(i)->peer[p].rank];
		connect_to(i, peer, group_at(i)->npeer);
	}
	passes(1);
	g = group_at(0);
	start(0);
	take_all();
	passes(1);
	w.now += 1000;
	start(3); /* rank 0 goes on with its second step */
	passes(1);
	assert_int_equal(state_of(&lent[0])->step, 1);
	w.now += 1000;
	take_all();
	assert_int_equal(g->state->epoch, 1);
	assert_true(g->deadline == w.now + g->first);
}

/* Without progress the wire wants that the NIC takes the group back: a TIMEOUT is due. */
static void a_wanted_group_times_out(void **state)
{
	struct nbnic_group *g;

	pair_open();
	passes(1);
	g = group_at(0);
	nbnic_lend_wanted(&w.device.nic, 0, NBNIC_WANT_TIMEOUT, w.now);
	assert_false(g->lent || g->armed);
	nbnic_lend_wanted(&w.device.nic, 0, NBNIC_WANT_TIMEOUT, w.now); /* not lent */
	nbnic_lend_wanted(&w.device.nic, 2, NBNIC_WANT_TIMEOUT, w.now); /* no group */
	assert_int_equal(wire.takes, 1);
	passes(1);
	start(0);
	/* For another reason, it has as much time as before: no TIMEOUT, no PULL. */
	w.now += 1000;
	lent[0].wanted = NBNIC_WANT_TAKE;
	passes(3);
	assert_int_equal(wire.takes, 2);
	assert_int_equal(count_of(NBAR_COUNTER_pulls_sent), 0);
	assert_true(lent[0].how.left_ns == FIRST_NS);
	w.now += FIRST_NS;
	lent[0].wanted = NBNIC_WANT_TIMEOUT;
	passes(1);
	passes(1);
	assert_int_equal(count_of(NBAR_COUNTER_pulls_sent), 1);
	passes(2); /* member 1, which the wire had, has got the PULL, and says why it is late */
	assert_int_equal(count_of(NBAR_COUNTER_pulls_received), 1);
	assert_int_equal(count_of(NBAR_COUNTER_laters_received), 1);
}

/* A frame that the wire leaves to the NIC meets the state that the wire had. */
static void a_pull_is_answered_by_the_state_of_now(void **state)
{
	pair_open();
	passes(1);
	w.wire.room = 0; /* the token of member 1 is lost */
	start(1);
	w.wire.room = UINT32_MAX;
	start(0);
	passes(1);
	assert_int_equal(done(1), 1);
	assert_int_equal(done(0), 0);
	w.now += FIRST_NS;
	lent[0].wanted = NBNIC_WANT_TIMEOUT;
	passes(4);
	assert_int_equal(count_of(NBAR_COUNTER_pulls_received), 1);
	assert_int_equal(done(0), 1);
}

static void sleepers_are_woken(void **state)
{
	uint32_t takes;

	wire.refuses = true;
	pair_open();
	ring(0);
	c.port->page->doorbell[0].wake_seq++;
	passes(1);
	wire.refuses = false;
	passes(1);
	assert_true(lent[0].how.sleeper);
	assert_false(lent[1].how.sleeper);
	take_all(); /* without a completion: the sleeper is not forgotten */
	assert_int_equal(w.wakes, 0);
	passes(1);
	assert_true(lent[0].how.sleeper);
	start(1);
	passes(2);
	assert_int_equal(done(0), 1);
	assert_int_equal(w.wakes, 1);
	assert_int_equal(c.port->page->completion[0].wake, 1);
	passes(1);
	assert_false(lent[0].how.sleeper);
	/* For a wake alone the wire keeps the group; a NIC that has the group by then wakes nobody.
	 */
	takes = wire.takes;
	nbnic_lend_wanted(&w.device.nic, 0, NBNIC_WANT_WAKE, w.now);
	assert_int_equal(w.wakes, 2);
	assert_int_equal(wire.takes, takes);
	wire.refuses = true;
	take_all();
	nbnic_lend_wanted(&w.device.nic, 0, NBNIC_WANT_WAKE, w.now);
	assert_int_equal(w.wakes, 2);
	wire.refuses = false;
	passes(1);
	/* A barrier completes without a sleeper; a thread that had looked before asks afterwards.
	 */
	start(0);
	start(1);
	passes(1);
	take_all();
	assert_int_equal(w.wakes, 2);
	wire.refuses = true;
	c.port->page->doorbell[0].wake_seq++;
	passes(1);
	assert_int_equal(w.wakes, 3);
}

static void ring_both(void)
{
	ring(0);
	ring(1);
	wire.at_lend = NULL;
}

/* What the host posts while the group changes hands is not lost: the thread of the NIC does not
 * sleep before it has looked. */
static void posts_are_not_missed(void **state)
{
	pair_open();
	wire.at_lend = ring_both;
	assert_true(nbnic_device_pass(&w.device, w.now));
	assert_false(group_at(0)->lent);
	wire.refuses = true;
	passes(3);
	assert_int_equal(done(0), 1);
	/* The wire does not hear of a post: the NIC looks now and then, or when the host kicks. */
	for (uint32_t kicks = 0; kicks < 2; kicks++) {
		wire.refuses = false;
		passes(1);
		ring(0);
		assert_false(nbnic_device_pass(&w.device, w.now));
		if (kicks) {
			nbnic_device_look(&w.device);
		} else {
			w.now = w.device.next_tick;
			assert_false(nbnic_device_pass(&w.device, w.now));
			w.now = w.device.next_tick;
		}
		assert_true(group_at(0)->lent);
		wire.refuses = true;
		assert_true(nbnic_device_pass(&w.device, w.now));
		assert_false(group_at(0)->lent);
		assert_true(group_at(1)->lent);
		assert_true(nbnic_device_pass(&w.device, w.now));
		assert_int_equal(group_at(0)->state->epoch, 2 + kicks);
		start(1);
		passes(3);
		assert_int_equal(done(0), 2 + kicks);
	}
}

/* A host that has posted since the last look is left alone: the wire has heard most posts. */
static void posts_of_late_are_left_to_the_wire(void **state)
{
	pair_open();
	passes(1);
	for (uint32_t i = 1; i <= 3; i++) {
		start(0);
		w.now = w.device.next_tick;
		passes(1);
		start(1);
		passes(2);
		assert_int_equal(done(0), i);
	}
	assert_int_equal(wire.takes, 0);
}

/* A look leaves groups alone whose posts the wire has heard, or whose hosts wait for nothing. */
static void looks_take_no_more_than_they_must(void **state)
{
	pair_open();
	passes(1);
	c.port->page->doorbell[0].wake_seq++;
	w.now = w.device.next_tick;
	assert_false(nbnic_device_pass(&w.device, w.now));
	assert_true(group_at(0)->lent && group_at(1)->lent);
	/* A sleeper of which the wire has not heard. */
	c.port->cell[1].posted = 1;
	c.port->page->doorbell[1].posted = 1;
	w.now = w.device.next_tick;
	passes(1);
	assert_true(group_at(1)->lent);
	c.port->page->doorbell[1].wake_seq++;
	w.now = w.device.next_tick;
	wire.refuses = true;
	passes(1);
	assert_true(group_at(1)->lent);
	w.now = w.device.next_tick;
	passes(1);
	assert_false(group_at(1)->lent);
}

/* The wire has not heard that the host falls asleep, and completes the barrier before the look. */
static void a_kick_wakes_those_who_asked(void **state)
{
	pair_open();
	passes(1);
	start(0);
	c.port->page->doorbell[0].wake_seq++;
	start(1);
	passes(2);
	assert_int_equal(done(0), 1);
	assert_int_equal(w.wakes, 0);
	nbnic_device_look(&w.device);
	passes(2);
	assert_int_equal(w.wakes, 1);
	assert_int_equal(wire.takes, 1); /* the other host sleeps not */
	nbnic_device_look(&w.device);
	passes(2);
	assert_int_equal(wire.takes, 1);
}

/* The looks reach every cell of a port with many. */
static void every_cell_has_its_look(void **state)
{
	const uint32_t n = NBNIC_SCAN_CELLS + 6;

	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(group_open(&c, "pairwise", 0, 1), 0);
		connect_to(i, NULL, 0);
	}
	passes(n);
	assert_int_equal(wire.lends, n);
	for (uint32_t i = 0; i < n; i++)
		ring(i);
	for (uint32_t i = 0; i < 6; i++) {
		w.now = w.device.next_tick;
		passes(1);
	}
	passes(2);
	for (uint32_t i = 0; i < n; i++)
		require(done(i) == 1, "cell %u: %u", i, done(i));
	/* Cells that the wire has not are left to the scan. */
	take_all();
	wire.refuses = true;
	for (uint32_t i = 0; i < n; i++)
		ring(i);
	w.now = w.device.next_tick;
	passes(2);
	assert_int_equal(done(n - 1), 2);
}

/* A state that does not come back: the group fails, and its members learn it. Barriers that the
 * host has seen complete stay so. */
static void a_lost_state_fails_the_group(void **state)
{
	pair_open();
	passes(1);
	for (uint32_t n = 0; n < 2; n++) {
		start(0);
		start(1);
		passes(2);
	}
	start(1);
	wire.keeps = true;
	nbnic_lend_wanted(&w.device.nic, 0, NBNIC_WANT_TAKE, w.now);
	wire.keeps = false;
	assert_int_equal(c.port->completion[0].word, (uint64_t)NBAR_STATUS_NIC_DOWN << 32 | 2);
	assert_int_equal(c.port->completion[0].failed_rank, 0);
	passes(3);
	assert_int_equal(c.port->completion[1].word, (uint64_t)NBAR_STATUS_NIC_DOWN << 32 | 2);
	assert_int_equal(c.port->completion[1].failed_rank, 0);
	assert_false(group_at(0)->lent || group_at(1)->lent);
}

/* The wire has sent all tokens of a barrier that the host's page does not have: a peer that waits
 * in the barrier after it learns of the failure. */
static void a_lost_state_may_be_ahead_of_the_page(void **state)
{
	pair_open();
	passes(1);
	w.wire.room = 0; /* the token of member 1 is lost */
	start(1);
	w.wire.room = UINT32_MAX;
	start(0);
	passes(1);
	assert_int_equal(done(0), 0);
	assert_int_equal(done(1), 1);
	start(1);
	wire.keeps = true;
	nbnic_lend_wanted(&w.device.nic, 0, NBNIC_WANT_TAKE, w.now);
	wire.keeps = false;
	assert_int_equal(c.port->completion[0].word, (uint64_t)NBAR_STATUS_NIC_DOWN << 32);
	assert_int_equal(count_of(NBAR_COUNTER_tokens_sent), 0); /* of a barrier that may be old */
	passes(3);
	assert_int_equal(c.port->completion[1].word, 1);
	lent[1].wanted = NBNIC_WANT_TIMEOUT;
	passes(5);
	assert_int_equal(c.port->completion[1].word, (uint64_t)NBAR_STATUS_NIC_DOWN << 32 | 1);
	assert_int_equal(c.port->completion[1].failed_rank, 0);
	assert_int_equal(count_of(NBAR_COUNTER_frames_bad), 0);
}

/* While the wire has all groups, a daemon sleeps: no timer wakes it, and its first TIMEOUT comes
 * later than that of a NIC that is awake. */
static void nothing_wakes_a_nic_that_lends_all(void **state)
{
	const struct wire_ops others = { .poll = wire_poll, .transmit = loop_transmit };

	assert_true(nbnic_device_lends_all(&w.device));
	wire.refuses = true;
	pair_open();
	ring(0);
	passes(1);
	assert_false(nbnic_device_lends_all(&w.device));
	assert_true(FIRST_NS == 1000 * MS / NBFW_WINDOW); /* sooner than 64 times 1 ms */
	assert_true(nbnic_device_next(&w.device) == w.now + FIRST_NS);
	wire.refuses = false;
	passes(1);
	assert_true(nbnic_device_lends_all(&w.device));
	assert_true(nbnic_device_next(&w.device) == UINT64_MAX);
	take_all();
	assert_false(nbnic_device_lends_all(&w.device));
	assert_true(nbnic_device_next(&w.device) == w.now + FIRST_NS);
	passes(1);
	w.wire.base.ops = &others;
	assert_false(nbnic_device_lends_all(&w.device));
	w.wire.base.ops = &lending_ops;
	/* A group that lingers may wait for its end. */
	group_close(&c, 0);
	passes(1);
	assert_true(nbnic_device_lends_all(&w.device));
	assert_true(nbnic_device_next(&w.device) < UINT64_MAX);
}

static void lent_groups_may_end(void **state)
{
	struct nbnic_client other;

	pair_open();
	passes(1);
	start(0);
	group_close(&c, 0);
	assert_int_equal(wire.takes, 1);
	assert_int_equal(count_of(NBAR_COUNTER_tokens_sent), 1);
	/* The cell has a new group, which is lent in its turn. */
	assert_int_equal(group_open(&c, "pairwise", 0, 1), 0);
	connect_to(0, NULL, 0);
	assert_int_equal(done(0), 0);
	passes(2);
	assert_true(group_at(0)->lent);
	/* A client ends. */
	port_open(&other);
	assert_int_equal(group_open(&other, "pairwise", 0, 1), 0);
	nbnic_client_end(&other, NBAR_STATUS_CLOSED);
	/* The NIC stops. */
	start(0);
	nbnic_device_stop(&w.device, w.now);
	assert_int_equal(c.port->completion[0].word, (uint64_t)NBAR_STATUS_NIC_DOWN << 32 | 1);
	assert_int_equal(wire.lends, wire.takes);
}

static void failures_reach_lent_groups(void **state)
{
	pair_open();
	passes(1);
	start(0);
	nbnic_fail(&w.device.nic, NBAR_STATUS_NIC_DOWN, w.now);
	assert_int_equal(c.port->completion[0].word, (uint64_t)NBAR_STATUS_NIC_DOWN << 32);
	assert_int_equal(wire.takes, 2);
	passes(1);
	assert_int_equal(wire.lends, 2);
}

/* The list of groups shows the state that the wire had. */
static void statistics_are_of_now(void **state)
{
	const struct nbar_req_group_stat stat = { 0 };
	const struct nbar_group_info *info;

	pair_open();
	passes(1);
	start(0);
	assert_int_equal(request(&c, NBAR_OP_GROUP_STAT, &stat, sizeof(stat)), 0);
	info = (const void *)((const struct nbar_rep_group_stat *)reply_body() + 1);
	assert_int_equal(info->epoch, 1);
	assert_int_equal(info->running, 1);
}

static uint32_t takes_most;

static void on_exclusive(void *ctx, nbnic_fn *fn, void *arg)
{
	const uint32_t before = wire.takes;

	fn(arg, w.now);
	if (wire.takes - before > takes_most)
		takes_most = wire.takes - before;
}

/* The pass waits for a request while a few groups come back, not while all do. */
static void groups_come_back_a_few_at_a_time(void **state)
{
	static struct nbnic_platform counted;

	counted = *w.device.platform;
	counted.exclusive = on_exclusive;
	assert_int_equal(group_open(&c, "signal", 0, 2), 0);
	for (uint32_t i = 1; i <= 40; i++) {
		assert_int_equal(group_open(&c, "pairwise", 0, 1), 0);
		connect_to(i, NULL, 0);
	}
	group_close(&c, 0); /* its handle is free */
	passes(40);
	assert_int_equal(wire.lends, 40);
	w.device.platform = &counted;
	takes_most = 0;
	take_all();
	assert_in_range(takes_most, 1, 16);
}

static uint32_t noted;

static void on_trace(void *ctx, const struct nbar_trace_event *e)
{
	noted++;
}

/* The programs of a wire note no events, so a NIC that is traced has its groups itself. */
static void a_traced_nic_lends_nothing(void **state)
{
	static struct nbnic_platform traced;

	traced = *w.device.platform;
	traced.trace = on_trace;
	w.device.platform = &traced;
	noted = 0;
	w.device.nic.tracing = true;
	pair_open();
	ring(0);
	passes(3);
	assert_int_equal(wire.lends, 0);
	assert_int_equal(group_at(0)->state->epoch, 1);
	assert_true(noted > 0);
}

/* Groups with values, too: the wire learns where the host finds results. A frame that the wire
 * gives on takes the group back. */
static void groups_with_values_are_lent(void **state)
{
	struct nbar_endpoint endpoint[2];

	for (uint32_t i = 0; i < 2; i++) {
		const struct nbar_req_group_open req = {
			.rank = i, .size = 2, .value_max = 8, .alg = "pairwise"
		};

		assert_int_equal(request(&c, NBAR_OP_GROUP_OPEN, &req, sizeof(req)), 0);
		endpoint[i] = ((const struct nbar_rep_group_open *)reply_body())->endpoint;
	}
	for (uint32_t i = 0; i < 2; i++)
		connect_to(i, &endpoint[1 - i], 1);
	passes(3);
	for (uint32_t i = 0; i < 2; i++) {
		assert_non_null(lent_at(i)->g);
		assert_int_equal(lent_at(i)->how.values, 1 + i);
	}
	const struct nbnic_group *g = group_at(0);
	const struct nbfw_token t = { .type = NBFW_TOKEN,
				      .handle = g->handle,
				      .cookie = g->cookie,
				      .src = 1,
				      .epoch = 1,
				      .arg = NBAR_RANK_NONE,
				      .sender = group_at(1)->handle };

	nbnic_receive(&w.device.nic, &w.wire.base.addr, &t, 0);
	assert_int_equal(wire.takes, 1);
	assert_false(g->lent);
	assert_true(nbfw_has_token(g->state, 1, 0));
	/* A state that does not come back: no answer repeats a value of another barrier. */
	struct nbfw_values *x = group_at(1)->values;

	x->length[0] = x->length[1] = 16;
	x->head[0] = x->head[1] = 1;
	wire.keeps = true;
	nbnic_lend_wanted(&w.device.nic, group_at(1)->handle & 0xffff, NBNIC_WANT_TAKE, w.now);
	wire.keeps = false;
	assert_true(x->length[0] == 0 && x->length[1] == 0 && x->head[0] == 0 && x->head[1] == 0);
}

/* The completions of a port are where the wire wants them; the futexes stay in the page. */
static void completions_may_lie_elsewhere(void **state)
{
	static struct nbar_results results;
	struct nbar_completion *const place = results.completion;
	struct nbnic_client other;

	assert_ptr_equal(c.port->completion, c.port->page->completion);
	memset(&results, 0xee, sizeof(results));
	wire.place = &results;
	wire.refuses = true;
	nbnic_client_end(&c, NBAR_STATUS_CLOSED);
	assert_int_equal(wire.ended, 1);
	port_open(&c);
	assert_ptr_equal(c.port->completion, place);
	assert_ptr_equal(c.port->value, results.value);
	pair_open();
	assert_true(place[1].word == 0 && place[1].nstragglers == 0);
	c.port->page->doorbell[0].wake_seq++;
	ring(0);
	ring(1);
	passes(3);
	assert_int_equal(place[0].word, 1);
	assert_int_equal(c.port->page->completion[0].word, 0);
	assert_int_equal(c.port->page->completion[0].wake, 1);
	nbnic_page_stragglers(c.port, 0, &(struct nbnic_straggler){ .rank = 1 }, 1);
	assert_int_equal(place[0].nstragglers, 1);
	wire.place = NULL;
	port_open(&other);
	assert_ptr_equal(other.port->completion, other.port->page->completion);
	nbnic_client_end(&other, NBAR_STATUS_CLOSED);
}

UNIT_MAIN(NULL, NULL, LEND_TEST(a_wire_runs_barriers), LEND_TEST(what_the_wire_counts_is_added),
	  LEND_TEST(busy_groups_are_not_lent), LEND_TEST(groups_whose_pulls_wait_are_not_lent),
	  LEND_TEST(failed_groups_are_not_lent), LEND_TEST(a_deadline_is_kept_without_progress),
	  LEND_TEST(a_step_is_progress), LEND_TEST(a_wanted_group_times_out),
	  LEND_TEST(a_pull_is_answered_by_the_state_of_now), LEND_TEST(sleepers_are_woken),
	  LEND_TEST(posts_are_not_missed), LEND_TEST(looks_take_no_more_than_they_must),
	  LEND_TEST(posts_of_late_are_left_to_the_wire), LEND_TEST(every_cell_has_its_look),
	  LEND_TEST(a_lost_state_fails_the_group), LEND_TEST(a_lost_state_may_be_ahead_of_the_page),
	  LEND_TEST(a_kick_wakes_those_who_asked), LEND_TEST(nothing_wakes_a_nic_that_lends_all),
	  LEND_TEST(lent_groups_may_end), LEND_TEST(failures_reach_lent_groups),
	  LEND_TEST(statistics_are_of_now), LEND_TEST(groups_come_back_a_few_at_a_time),
	  LEND_TEST(a_traced_nic_lends_nothing), LEND_TEST(groups_with_values_are_lent),
	  LEND_TEST(completions_may_lie_elsewhere))
