/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_rtt.c - timers that follow the measured round trip after a loss, and only then: the cost
 * of a lost token, the number of PULLs, and the retry budget, which stays. Time is simulated.
 */
#include "unit/nic/nic_net.h"
#include "unit/unit.h"

#define DELAY UINT64_C(50000)
#define RTT (2 * DELAY)
#define LIMIT (10 * NET_SECOND)

/* The tokens to NIC 0 and the PULLs of NIC 0 that the next barrier loses; a test sets both. */
static uint32_t lose_tokens, lose_pulls;

static bool lose(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	uint32_t *left = from == 0 && t->type == NBFW_PULL                  ? &lose_pulls
			 : to == 0 && t->type == NBFW_TOKEN && t->info == 0 ? &lose_tokens
									    : NULL;

	(void)w;
	if (!left || *left == 0)
		return false;
	--*left;
	return true;
}

static struct net *begin(struct nbnic_group **g)
{
	struct net *w = net_new();

	w->delay = DELAY;
	w->lost = lose;
	lose_tokens = lose_pulls = 0;
	net_pair(w, 0, 0, 1, 0, 0);
	*g = w->n[0].host[0][0].group;
	return w;
}

static uint64_t counted(const struct net *w, enum nbar_counter c)
{
	return w->n[0].nic.counter[c] + w->n[1].nic.counter[c];
}

static uint64_t frames(const struct net *w)
{
	return counted(w, NBAR_COUNTER_tokens_sent) + counted(w, NBAR_COUNTER_pulls_sent) +
	       counted(w, NBAR_COUNTER_laters_sent) + counted(w, NBAR_COUNTER_aborts_sent);
}

/* One barrier, to which the host of NIC 1 comes later by `late`. Returns the time until NIC 0
 * completes the barrier. Both NICs complete it, and no frame is in flight afterwards. */
static uint64_t barrier(struct net *w, uint64_t late)
{
	uint32_t epoch = w->n[0].host[0][0].completions + 1;
	uint64_t start = w->now, took;

	net_post(w, 0, 0, 0, epoch);
	if (late)
		net_pass(w, late);
	net_post(w, 1, 0, 0, epoch);
	while (w->n[0].host[0][0].completions < epoch) {
		require(w->now - start < LIMIT, "barrier %u does not end", epoch);
		net_round(w);
	}
	took = w->now - start;
	net_pass(w, 2 * RTT);
	for (uint32_t i = 0; w->n[1].host[0][0].completions < epoch; i++) {
		require(i < 1000, "NIC 1 does not complete barrier %u", epoch);
		net_pass(w, NET_MS);
	}
	return took;
}

static uint64_t pulls(const struct net *w)
{
	return w->n[0].nic.counter[NBAR_COUNTER_pulls_sent];
}

/* After one sample: the arithmetic of RFC 6298, with weights 1/8 and 1/4. Each division rounds, and
 * the time of a PULL is rounded to 128 ns. */
static void check_sample(const struct net *w, const struct nbnic_rtt *was,
			 const struct nbnic_rtt *r)
{
	uint64_t ns = 8 * (r->smooth - was->smooth + was->smooth / 8) + 4, off;

	if (was->smooth == 0)
		return;
	assert_in_range(ns + 128, 2 * w->delay, 2 * w->delay + 2 * NET_STEP + 256);
	off = ns > was->smooth ? ns - was->smooth : was->smooth - ns;
	assert_in_range(r->off + 4, was->off - was->off / 4 + off / 4,
			was->off - was->off / 4 + off / 4 + 8);
}

/* Loses one token in each of some barriers, so that the timer of NIC 0 follows the round trip: the
 * larger of 2 round trips, and 1 round trip and 4 deviations. */
static void teach(struct net *w, uint32_t n)
{
	const struct nbnic_group *g = w->n[0].host[0][0].group;

	for (uint32_t i = 0; i < n; i++) {
		const struct nbnic_rtt was = g->rtt;
		uint64_t rtt, off, first;

		lose_tokens = 1;
		barrier(w, 0);
		check_sample(w, &was, &g->rtt);
		rtt = g->rtt.smooth;
		off = 4 * g->rtt.off;
		first = rtt + (off > rtt ? off : rtt);
		if (first < NBNIC_PULL_NS_LEAST)
			first = NBNIC_PULL_NS_LEAST;
		assert_int_equal(g->rtt.every, first);
		assert_int_equal(g->first,
				 first < NBNIC_PULL_NS_DEFAULT ? first : NBNIC_PULL_NS_DEFAULT);
	}
}

/* The first lost token costs pull_ns, later ones some three round trips. */
static void test_a_lost_token_costs_three_round_trips(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	uint64_t clean = barrier(w, 0), lost;

	(void)state;
	lose_tokens = 1;
	lost = barrier(w, 0);
	assert_in_range(lost, NBNIC_PULL_NS_DEFAULT, NBNIC_PULL_NS_DEFAULT * 3 / 2 + 2 * RTT);
	lose_tokens = 1;
	lost = barrier(w, 0);
	assert_in_range(lost - clean, RTT, 4 * RTT); /* one sample: the deviation is half of it */
	teach(w, 20);
	for (uint32_t i = 0; i < 10; i++) {
		lose_tokens = 1;
		lost = barrier(w, 0);
		assert_in_range(lost - clean, RTT, 3 * RTT);
	}
	net_free(w);
}

/* A barrier that loses no frame sends no extra frame, before and after other barriers with losses.
 */
static void test_not_one_extra_frame(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);

	(void)state;
	for (uint32_t i = 0; i < 200; i++)
		barrier(w, i % 2 ? 0 : NBNIC_PULL_NS_DEFAULT - 3 * DELAY);
	assert_int_equal(frames(w), 2 * 200);
	assert_int_equal(g->first, NBNIC_PULL_NS_DEFAULT);
	teach(w, 20);
	uint64_t before = frames(w);

	for (uint32_t i = 0; i < 200; i++)
		barrier(w, 0);
	assert_int_equal(frames(w) - before, 2 * 200);
	net_free(w);
}

/* PULLs that a late host did not need make the interval as long as it was. */
static void test_needless_pulls_end(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	uint64_t before;

	(void)state;
	teach(w, 20);
	assert_in_range(g->first, 2 * RTT - 256, 5 * RTT / 2);
	before = pulls(w);
	for (uint64_t shorter = g->first; g->first < NBNIC_PULL_NS_DEFAULT; shorter = g->first) {
		barrier(w, g->first + RTT);
		assert_true(g->first == 2 * shorter || g->first == NBNIC_PULL_NS_DEFAULT);
	}
	assert_in_range(pulls(w) - before, 1, 3);
	before = frames(w);
	for (uint32_t i = 0; i < 50; i++)
		barrier(w, NBNIC_PULL_NS_DEFAULT - 3 * DELAY);
	assert_int_equal(frames(w) - before, 2 * 50);
	net_free(w);
}

/* The token was on its way when the PULL for it went out. The token arrives before the answer, and
 * is not taken for the answer. */
static void test_a_token_that_was_on_its_way(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	uint64_t first, rtt;

	(void)state;
	teach(w, 20);
	first = g->first;
	rtt = g->rtt.smooth;
	barrier(w, first - DELAY / 2);
	assert_int_equal(counted(w, NBAR_COUNTER_laters_sent), 0);
	assert_int_equal(g->first, first + first / 16);
	assert_int_equal(g->rtt.smooth, rtt);
	net_free(w);
}

static uint64_t pulls_for_a_late_host(bool after_losses, uint64_t late)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	uint64_t before;

	if (after_losses)
		teach(w, 20);
	before = pulls(w);
	barrier(w, late);
	before = pulls(w) - before;
	net_free(w);
	return before;
}

/* The longer a host is late, the fewer early PULLs ask for it: after an eighth of the retry budget
 * there are none. Their number is that of intervals that grow by an eighth, between the round trip
 * and that time. */
static void test_a_late_host_gets_few_pulls(void **state)
{
	uint64_t usual = pulls_for_a_late_host(false, 5 * NET_SECOND);
	uint64_t most = pulls_for_a_late_host(true, 5 * NET_SECOND), n = 0;

	(void)state;
	for (double ns = 8.0 * 2 * RTT; ns < (double)NET_BUDGET / 8; ns *= 9.0 / 8)
		n++;
	assert_in_range(most, usual + n / 2, usual + n + 8);
	assert_int_equal(most - usual, pulls_for_a_late_host(true, 2 * NET_SECOND) -
					       pulls_for_a_late_host(false, 2 * NET_SECOND));
}

/* If the token of a late host is lost, the barrier takes an eighth longer at most, and a few round
 * trips. */
static void test_a_token_lost_after_a_long_wait(void **state)
{
	(void)state;
	for (uint64_t late = 2 * NET_MS; late < NET_SECOND; late *= 3) {
		struct nbnic_group *g;
		struct net *w = begin(&g);

		teach(w, 20);
		lose_tokens = 1;
		assert_in_range(barrier(w, late), late, late + late / 8 + 4 * RTT);
		assert_int_equal(lose_tokens, 0);
		net_free(w);
	}
}

/* After a lost PULL, the next PULL follows after the same interval, not after twice the interval.
 */
static void test_a_lost_pull_is_repeated_soon(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);

	(void)state;
	teach(w, 20);
	lose_tokens = 1;
	lose_pulls = 4;
	assert_in_range(barrier(w, 0), (5 * 2 + 1) * RTT, (5 * 2 + 4) * RTT);
	assert_int_equal(lose_pulls, 0);
	net_free(w);
}

/* An answer repeats the time of its PULL: the round trip is measured right after a second PULL. */
static void test_the_answer_to_a_second_pull(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);

	(void)state;
	lose_tokens = lose_pulls = 1;
	barrier(w, 0);
	assert_in_range(g->rtt.smooth, RTT - 128, RTT + 2 * NET_STEP);
	assert_in_range(g->first, 3 * g->rtt.smooth - 2, 3 * g->rtt.smooth);
	net_free(w);
}

/* If round trips vary, the interval has four deviations more. If they are long, pull_ns is the
 * limit. */
static void test_the_interval_has_limits(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);

	(void)state;
	teach(w, 20);
	w->delay = 4 * DELAY;
	for (uint32_t i = 0; i < 10; i++)
		teach(w, 1);
	assert_in_range(g->rtt.smooth + 4 * g->rtt.off, 5 * RTT, 20 * RTT);
	assert_true(g->first > 4 * RTT && g->first <= NBNIC_PULL_NS_DEFAULT);
	w->delay = 0;
	for (uint32_t i = 0; i < 60; i++) {
		teach(w, 1);
		assert_in_range(g->first, NBNIC_PULL_NS_LEAST, NBNIC_PULL_NS_DEFAULT);
	}
	assert_in_range(g->first, NBNIC_PULL_NS_LEAST, 2 * NBNIC_PULL_NS_LEAST);
	net_free(w);
}

static uint64_t silent_after(bool after_losses, uint64_t *asked)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	const struct net_host *h = &w->n[0].host[0][0];
	uint64_t start, took;

	if (after_losses)
		teach(w, 20);
	*asked = pulls(w);
	w->n[1].dead = true;
	start = w->now;
	net_post(w, 0, 0, 0, h->completions + 1);
	while (h->status == NBAR_STATUS_OK) {
		took = w->now - start;
		require(took < 2 * NET_BUDGET, "the silent NIC is not given up");
		assert_int_equal(g->nstragglers > 0 && took < 100 * NET_MS, false);
		net_pass(w, NET_MS);
	}
	assert_int_equal(h->status, NBAR_STATUS_SILENT);
	*asked = pulls(w) - *asked;
	took = w->now - start;
	net_free(w);
	return took;
}

/* A NIC that falls silent is given up after the same time as before any loss, and is not called
 * silent sooner. Early PULLs end after an eighth of the budget. */
static void test_the_budget_stays(void **state)
{
	uint64_t asked, most = NBFW_WINDOW - 1;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		assert_in_range(silent_after(i > 0, &asked), NET_BUDGET, NET_BUDGET * 9 / 8);
		assert_in_range(asked, NBFW_WINDOW - 1, most);
		most += 8 + 50; /* 8 intervals of 2 RTT; (9 / 8)^50 > NET_BUDGET / 8 / (16 RTT) */
	}
}

/* An answer that comes before the step has sent a PULL does not count. */
static void test_an_answer_without_a_question(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	const struct nbnic_addr from = { { 1 } };
	uint64_t rtt;

	(void)state;
	teach(w, 20);
	rtt = g->rtt.smooth;
	net_post(w, 0, 0, 0, 21);
	assert_true(w->now < w->n[0].nic.doubt_end);
	const struct nbfw_token t = { .type = NBFW_TOKEN,
				      .handle = g->handle,
				      .cookie = g->cookie,
				      .src = 1,
				      .epoch = 21,
				      .info = 1 };

	nbnic_receive(&w->n[0].nic, &from, &t, w->now);
	assert_int_equal(w->n[0].host[0][0].completions, 21);
	assert_int_equal(g->rtt.smooth, rtt);
	net_free(w);
}

/* An answer counts only if it comes from the source of a slot that this step lacks. */
static void test_other_answers_do_not_count(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	const struct nbnic_addr from = { { 1 } };

	(void)state;
	teach(w, 20);
	net_post(w, 0, 0, 0, 21);
	net_pass(w, g->first + 2 * NET_STEP);
	assert_true(g->rtt.asked);
	assert_int_equal(g->state->tries, 0);
	const struct nbfw_token right = { .type = NBFW_TOKEN,
					  .handle = g->handle,
					  .cookie = g->cookie,
					  .src = 1,
					  .epoch = 21,
					  .info = 1 };
	struct nbfw_token wrong[] = { right, right, right, right };
	uint64_t rtt = g->rtt.smooth, first = g->first;

	wrong[0].src = 0;
	wrong[1].epoch = 20;
	wrong[2].slot = 1;
	wrong[3].type = NBFW_ABORT; /* without a cause: refused */
	for (uint32_t i = 0; i < 4; i++)
		nbnic_receive(&w->n[0].nic, &from, &wrong[i], w->now);
	assert_int_equal(g->rtt.smooth, rtt);
	assert_int_equal(g->first, first);
	net_free(w);
}

/* The sweeps follow a measured round trip at once. If it is long, they stay as they are. A round
 * trip is never 0, which means that none was measured; the longest is a 64th of the budget. */
static void test_sweeps_follow_at_once(void **state)
{
	static const struct {
		uint64_t rtt; /* a multiple of 128 */
		uint64_t smooth, every, first, sweep;
	} one[] = {
		{ 0, 1, NBNIC_PULL_NS_LEAST, NBNIC_PULL_NS_LEAST, NBNIC_PULL_NS_LEAST / 8 },
		{ 128000, 128001, 384001, 384001, 384001 / 8 },
		{ 512000, 512001, 1536001, NBNIC_PULL_NS_DEFAULT, NBNIC_PULL_NS_DEFAULT / 2 },
		{ NET_SECOND, NET_BUDGET / 64, NET_BUDGET / 64, NBNIC_PULL_NS_DEFAULT,
		  NBNIC_PULL_NS_DEFAULT / 2 },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
		struct nbnic_group *g;
		struct net *w = begin(&g);
		const struct nbnic *nic = &w->n[0].nic;
		const struct nbnic_addr from = { { 1 } };

		net_post(w, 0, 0, 0, 1);
		for (uint32_t k = 0; !g->rtt.asked; k++) {
			require(k < 1000, "no PULL");
			net_round(w);
		}
		const struct nbfw_token t = { .type = NBFW_TOKEN,
					      .handle = g->handle,
					      .cookie = g->cookie,
					      .src = 1,
					      .epoch = 1,
					      .info = (uint32_t)(w->now >> NBNIC_STAMP_SHIFT) | 1 };

		w->now += one[i].rtt;
		w->n[0].nic.doubt_end = w->now + 1; /* else the NIC does not look at this token */
		nbnic_receive(&w->n[0].nic, &from, &t, w->now);
		assert_int_equal(g->rtt.smooth, one[i].smooth);
		assert_int_equal(g->rtt.every, one[i].every);
		assert_int_equal(g->first, one[i].first);
		assert_int_equal(nic->sweep_ns, one[i].sweep);
		if (one[i].first < NBNIC_PULL_NS_DEFAULT)
			assert_true(nic->sweep_next <= w->now + g->first / 2);
		net_free(w);
	}
}

/* Round trips longer than pull_ns are measured, too, up to four times pull_ns: then the early PULLs
 * go out between the TIMEOUTs, whose intervals grow. */
static void test_round_trips_longer_than_pull_ns(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);

	(void)state;
	w->delay = 9 * NET_MS / 10;
	lose_tokens = 1;
	barrier(w, 0);
	net_pass(w, 10 * NET_MS);
	assert_in_range(g->rtt.smooth, 2 * w->delay - 128, 2 * w->delay + 2 * NET_STEP);
	assert_int_equal(g->first, NBNIC_PULL_NS_DEFAULT);
	teach(w, 40);
	lose_tokens = 1;
	lose_pulls = 20;
	/* The TIMEOUTs alone would send the 21st PULL after a second. */
	assert_in_range(barrier(w, 0), 20 * 2 * w->delay, NET_SECOND / 5);
	assert_int_equal(lose_pulls, 0);
	net_free(w);
}

/* A LATER makes the interval a sixteenth longer, once in a step, if it gives no reason or an
 * unknown one, or if its sender names another member: it may not know yet that this member has
 * arrived. If a NIC says that its own host is late, the interval is twice as long. */
static void test_a_later_without_a_reason(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	const struct nbnic_addr from = { { 1 } };
	uint64_t first;

	(void)state;
	teach(w, 20);
	first = g->first;
	net_post(w, 0, 0, 0, 21);
	net_pass(w, first + 2 * NET_STEP);
	assert_true(g->rtt.asked);
	struct nbfw_token later = { .type = NBFW_LATER,
				    .handle = g->handle,
				    .cookie = g->cookie,
				    .src = 1,
				    .epoch = 21,
				    .arg = 1 };

	static const uint32_t kind[] = { NBAR_WHY_UNKNOWN, NBAR_WHY_END, NBAR_WHY_HOST_LATE };

	for (uint32_t i = 0; i < 3; i++) {
		later.info = kind[i] << 29;
		later.arg = i < 2 ? 1 : 0;
		nbnic_receive(&w->n[0].nic, &from, &later, w->now);
		assert_int_equal(g->first, first + first / 16);
	}
	later.arg = 1;
	nbnic_receive(&w->n[0].nic, &from, &later, w->now);
	assert_int_equal(g->first, 2 * (first + first / 16));
	net_free(w);
}

/* A barrier of NIC 0 that waits for `slots` members of NIC 2, which only counts frames. */
static struct nbnic_group *wait_for_many(struct net *w, uint32_t cell, uint32_t slots)
{
	struct nbnic_group *g = net_open(w, 0, 1, cell, "dissemination:1", slots + 1, 0,
					 net_plan(slots + 1, 0, 1, slots));

	w->n[2].sink = true;
	net_connect_phantoms(w, 0, g, 2);
	return g;
}

/* A step of more than 64 slots sends no early PULLs, even if its group has measured a round trip.
 */
static void test_a_large_step_has_no_early_pulls(void **state)
{
	const uint64_t *sent;
	struct nbnic_group *g;
	struct net *w = begin(&g);

	(void)state;
	sent = &w->n[0].nic.counter[NBAR_COUNTER_pulls_sent];
	g = wait_for_many(w, 0, NBFW_PULLS_MIN + 1);
	g->first = g->rtt.every = NBNIC_PULL_NS_DEFAULT / 8;
	net_post(w, 0, 1, 0, 1);
	net_pass(w, NBNIC_PULL_NS_DEFAULT - NET_STEP);
	assert_int_equal(*sent, 0);
	assert_int_equal(g->state->tries, 0);
	net_pass(w, NBNIC_PULL_NS_DEFAULT / 2 + 10 * NET_STEP);
	assert_int_equal(*sent, NBFW_PULLS_MIN);
	assert_int_equal(g->state->tries, 1);
	net_free(w);
	/* A step of 64 slots does. */
	w = begin(&g);
	sent = &w->n[0].nic.counter[NBAR_COUNTER_pulls_sent];
	g = wait_for_many(w, 0, NBFW_PULLS_MIN);
	g->first = g->rtt.every = NBNIC_PULL_NS_DEFAULT / 8;
	net_post(w, 0, 1, 0, 1);
	net_pass(w, NBNIC_PULL_NS_DEFAULT - NET_STEP);
	assert_true(*sent >= NBFW_PULLS_MIN);
	assert_int_equal(g->state->tries, 0);
	net_free(w);
}

/* While a source does not answer, the intervals are those of the round trip, then an eighth of the
 * time that the step has waited. */
static void test_intervals_grow_with_the_wait(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	uint64_t start, last = 0, before;
	uint32_t n = 0;

	(void)state;
	teach(w, 20);
	w->n[1].dead = true;
	start = w->now;
	before = pulls(w);
	net_post(w, 0, 0, 0, 21);
	for (; w->now < start + NET_SECOND / 4; net_round(w)) {
		uint64_t waited = last - start, gap = w->now - last;
		uint64_t most = waited / 8 > g->rtt.every ? waited / 8 : g->rtt.every;

		if (pulls(w) == before)
			continue;
		/* A TIMEOUT may come sooner. */
		if (last > 0)
			assert_true(gap <= most + g->first / 8 + 2 * NET_STEP);
		if (last > 0 && !g->rtt.is_timeout)
			assert_true(gap + 2 * NET_STEP >= most);
		n += !g->rtt.is_timeout;
		before = pulls(w);
		last = w->now;
	}
	assert_in_range(n, 30, 60);
	net_free(w);
}

/* Early PULLs wait while PULLs of timeouts wait, which have used up the pace. */
static void test_pulls_of_timeouts_go_first(void **state)
{
	struct nbnic_group *g;
	struct net *w = begin(&g);
	const struct nbnic *nic = &w->n[0].nic;
	uint64_t before;

	(void)state;
	teach(w, 20);
	for (uint32_t i = 0; i < 2; i++) {
		wait_for_many(w, i, NBFW_PULLS_MIN);
		net_post(w, 0, 1, i, 1);
	}
	for (uint32_t i = 0; nbnic_rota_empty(&nic->pulls); i++) {
		require(i < 1000, "no PULL waits for the pace");
		net_round(w);
	}
	lose_tokens = 1;
	net_post(w, 0, 0, 0, 21);
	net_post(w, 1, 0, 0, 21);
	for (uint64_t end = w->now + g->first + g->first / 2; w->now < end; net_round(w))
		assert_false(nbnic_rota_empty(&nic->pulls));
	assert_int_equal(g->rtt.epoch, 21); /* its timer was due */
	assert_false(g->rtt.asked);
	before = w->n[1].nic.counter[NBAR_COUNTER_pulls_received];
	net_pass(w, NBNIC_PULL_NS_DEFAULT);
	/* The early PULL waited for the pace, almost until the TIMEOUT: both go out. */
	assert_int_equal(w->n[1].nic.counter[NBAR_COUNTER_pulls_received] - before, 2);
	assert_int_equal(w->n[0].host[0][0].completions, 21);
	net_free(w);
}

/* An early PULL waits for the pace: the wait is no part of the round trip. If it waits until the
 * TIMEOUT is due, only the PULL of the TIMEOUT goes out. */
static void test_the_wait_for_the_pace_is_not_measured(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct nbnic_group *g;
		struct net *w = begin(&g);
		struct nbnic *nic = &w->n[0].nic;
		uint64_t before;

		teach(w, 20);
		before = pulls(w);
		lose_tokens = 1;
		net_post(w, 0, 0, 0, 21);
		net_post(w, 1, 0, 0, 21);
		nic->pull_left = 0;
		nic->pull_next = w->now + (i ? NBNIC_PULL_NS_DEFAULT + RTT : g->first + 3 * RTT);
		net_pass(w, 2 * NBNIC_PULL_NS_DEFAULT);
		assert_int_equal(w->n[0].host[0][0].completions, 21);
		assert_int_equal(pulls(w) - before, 1);
		assert_in_range(g->rtt.smooth, RTT - 128, RTT + 2 * NET_STEP);
		net_free(w);
	}
}

/* The time from the begin of a sweep over the timers of NIC 0 to the begin of the next sweep. The
 * groups in cell 1 wait for a host, so a timer is armed. The first sweep sets the time of the
 * second sweep. */
static uint64_t sweep_gap(struct net *w)
{
	struct nbnic *nic = &w->n[0].nic;

	for (uint32_t i = 0; i < 2; i++) {
		uint64_t last = nic->sweep_next;

		for (uint32_t j = 0; nic->sweep_next == last || nic->sweeping; j++) {
			uint64_t next = nbnic_next(nic);

			require(j < NET_CELLS, "a sweep does not begin, or does not end");
			w->now = next > w->now ? next : w->now;
			nbnic_work(nic, w->now);
		}
	}
	return nic->sweep_next - w->now;
}

/* NIC 0 with a group that has lost tokens, and a group whose timer is armed. */
static struct net *begin_sweeps(struct nbnic_group **g)
{
	struct net *w = begin(g);

	teach(w, 20);
	net_pair(w, 0, 0, 1, 0, 1);
	net_post(w, 0, 0, 1, 1);
	return w;
}

/* Groups that have lost tokens make sweeps frequent. With many groups a sweep takes long, so the
 * next sweep comes later. */
static void test_many_groups_are_swept_less_often(void **state)
{
	const uint32_t many = 900;
	struct nbnic_group *g;
	struct net *w = begin_sweeps(&g);

	(void)state;
	assert_int_equal(sweep_gap(w), g->first / 8);
	for (uint32_t i = 0; i < many; i++)
		net_open(w, 0, 1, i, "dissemination:1", 2, 0, NULL);
	assert_true(many * 64 > g->first / 8);
	assert_in_range(sweep_gap(w), many * 64, NBNIC_PULL_NS_DEFAULT / 2);
	net_free(w);
}

/* A group that lingers or has failed never asks early, so it does not make sweeps frequent. */
static void test_groups_that_have_ended_are_not_swept_for(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct nbnic_group *g;
		struct net *w = begin_sweeps(&g);

		if (i == 0)
			nbnic_group_close(&w->n[0].nic, g, NBAR_STATUS_CLOSED, w->now);
		else
			nbnic_group_fail(&w->n[0].nic, g, NBAR_STATUS_HOST_DIED, w->now);
		assert_int_equal(sweep_gap(w), NBNIC_PULL_NS_DEFAULT / 2);
		net_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_lost_token_costs_three_round_trips),
		cmocka_unit_test(test_not_one_extra_frame),
		cmocka_unit_test(test_needless_pulls_end),
		cmocka_unit_test(test_a_token_that_was_on_its_way),
		cmocka_unit_test(test_a_late_host_gets_few_pulls),
		cmocka_unit_test(test_a_token_lost_after_a_long_wait),
		cmocka_unit_test(test_a_lost_pull_is_repeated_soon),
		cmocka_unit_test(test_the_answer_to_a_second_pull),
		cmocka_unit_test(test_the_interval_has_limits),
		cmocka_unit_test(test_the_budget_stays),
		cmocka_unit_test(test_an_answer_without_a_question),
		cmocka_unit_test(test_other_answers_do_not_count),
		cmocka_unit_test(test_sweeps_follow_at_once),
		cmocka_unit_test(test_round_trips_longer_than_pull_ns),
		cmocka_unit_test(test_a_later_without_a_reason),
		cmocka_unit_test(test_a_large_step_has_no_early_pulls),
		cmocka_unit_test(test_intervals_grow_with_the_wait),
		cmocka_unit_test(test_pulls_of_timeouts_go_first),
		cmocka_unit_test(test_the_wait_for_the_pace_is_not_measured),
		cmocka_unit_test(test_many_groups_are_swept_less_often),
		cmocka_unit_test(test_groups_that_have_ended_are_not_swept_for),
	};

	return cmocka_run_group_tests_name("nic_rtt", tests, NULL, NULL);
}
