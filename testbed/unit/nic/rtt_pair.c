/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtt_pair.c - see rtt_pair.h.
 */
#include "unit/nic/rtt_pair.h"
#include "unit/unit.h"

#define LIMIT (10 * NET_SECOND)

uint32_t rtt_lose_tokens, rtt_lose_pulls;

static bool lose(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	uint32_t *left = from == 0 && t->type == NBFW_PULL                  ? &rtt_lose_pulls
			 : to == 0 && t->type == NBFW_TOKEN && t->info == 0 ? &rtt_lose_tokens
									    : NULL;

	if (!left || *left == 0)
		return false;
	--*left;
	return true;
}

struct net *rtt_begin(struct nbnic_group **g)
{
	struct net *w = net_new();

	w->delay = DELAY;
	w->lost = lose;
	rtt_lose_tokens = rtt_lose_pulls = 0;
	net_pair(w, 0, 0, 1, 0, 0);
	*g = w->n[0].host[0][0].group;
	return w;
}

uint64_t rtt_counted(const struct net *w, enum nbar_counter c)
{
	return w->n[0].nic.counter[c] + w->n[1].nic.counter[c];
}

uint64_t rtt_frames(const struct net *w)
{
	return rtt_counted(w, NBAR_COUNTER_tokens_sent) + rtt_counted(w, NBAR_COUNTER_pulls_sent) +
	       rtt_counted(w, NBAR_COUNTER_laters_sent) + rtt_counted(w, NBAR_COUNTER_aborts_sent);
}

uint64_t rtt_barrier(struct net *w, uint64_t late)
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

uint64_t rtt_pulls(const struct net *w)
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

void rtt_teach(struct net *w, uint32_t n)
{
	const struct nbnic_group *g = w->n[0].host[0][0].group;

	for (uint32_t i = 0; i < n; i++) {
		const struct nbnic_rtt was = g->rtt;
		uint64_t rtt, off, first;

		rtt_lose_tokens = 1;
		rtt_barrier(w, 0);
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
