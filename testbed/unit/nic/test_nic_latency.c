/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_latency.c - the counts that NICs keep of barriers: their latency, and the rank of the
 * last token. Over a simulated wire and clock, in groups of every algorithm.
 */
#include "unit/core/group_plans.h"
#include "unit/nic/nic_world.h"

#define LATE UINT64_C(1000)

static const struct nbnic_latency *latency(struct world *w, uint32_t i)
{
	return &w->member[i].nic.latency;
}

/* A barrier of two that takes `ns` at rank 0, which arrives first. */
static void barrier_of(struct world *w, uint64_t ns)
{
	uint32_t epoch = w->member[0].epoch + 1;

	post(w, 0, epoch);
	settle(w);
	w->now += ns;
	post(w, 1, epoch);
	settle(w);
	assert_int_equal(w->member[0].epoch, epoch);
	assert_int_equal(w->member[1].epoch, epoch);
}

/* Finds by division, not by bits, the first bucket whose bound is above ns. */
static uint32_t bucket_of(uint64_t ns)
{
	uint32_t i = 0;

	for (ns /= 512; ns > 0; ns /= 2)
		i++;
	return i;
}

static void counts_in(struct world *w, uint64_t ns)
{
	uint32_t bucket = bucket_of(ns);
	uint64_t n = latency(w, 0)->bucket[bucket], sum = latency(w, 0)->ns;

	barrier_of(w, ns);
	require(latency(w, 0)->bucket[bucket] == n + 1, "%llu ns: bucket %u",
		(unsigned long long)ns, bucket);
	assert_true(latency(w, 0)->ns == sum + ns);
}

static void buckets(void **state)
{
	struct world *w = world_connected(2, "dissemination:1");
	uint64_t n = 0, most = 0;

	assert_int_equal(bucket_of(511), 0);
	assert_int_equal(bucket_of(512), 1);
	counts_in(w, 0);
	counts_in(w, 1);
	for (uint32_t bit = 1; bit < 60; bit++)
		for (int32_t off = -1; off <= 1; off++)
			counts_in(w, (UINT64_C(1) << bit) + (uint64_t)(int64_t)off);
	for (uint32_t i = 0; i < sizeof(latency(w, 0)->bucket) / sizeof(uint64_t); i++)
		n += latency(w, 0)->bucket[i];
	assert_int_equal(n, 2 + 59 * 3);
	assert_int_equal(n, counted(w, NBAR_COUNTER_barriers_completed) / 2);
	most = w->member[0].group->last[1].most;
	assert_true(most == ((UINT64_C(1) << 59) + 1) >> NBNIC_LATENCY_SHIFT);
	/* Rank 1 came last each time: its barriers took no time. */
	assert_int_equal(latency(w, 1)->bucket[0], n);
	assert_true(latency(w, 1)->ns == 0);
	assert_int_equal(w->member[1].group->last[0].barriers, n);
	world_close(w);
}

/* The longest latency that 64 bits can hold has a bucket. */
static void the_longest(void **state)
{
	struct world *w = world_connected(2, "pairwise");

	w->now = 0;
	barrier_of(w, UINT64_MAX);
	assert_int_equal(latency(w, 0)->bucket[64 - NBNIC_LATENCY_SHIFT], 1);
	world_close(w);
}

/* Barriers that are posted ahead: each barrier begins when the barrier before it is complete. */
static void posted_ahead(void **state)
{
	struct world *w = world_connected(2, "pairwise");

	post(w, 0, 3);
	settle(w);
	for (uint32_t e = 1; e <= 3; e++) {
		w->now += LATE;
		post(w, 1, e);
		settle(w);
	}
	assert_int_equal(w->member[0].epoch, 3);
	assert_true(latency(w, 0)->ns == 3 * LATE);
	assert_int_equal(w->member[0].group->last[1].barriers, 3);
	world_close(w);
}

static void alone(void **state)
{
	struct world *w = world_connected(1, "auto");

	post_all(w, 5);
	assert_int_equal(latency(w, 0)->bucket[0], 5);
	assert_int_equal(w->member[0].group->last[0].barriers, 5);
	world_close(w);
}

/* The sources of last tokens, as the test sees them: a member's own rank if it completes at its
 * start. */
struct seen {
	uint32_t last[MEMBERS_MAX]; /* of the last barrier */
	uint64_t barriers[MEMBERS_MAX][MEMBERS_MAX];
};

static void note(struct world *w, struct seen *s, uint32_t member, uint32_t before, uint32_t from)
{
	if (w->member[member].completions == before)
		return;
	assert_int_equal(w->member[member].completions, before + 1);
	s->last[member] = from;
	s->barriers[member][from]++;
}

/* Ends a pass of each NIC. True: there may be more to do. */
static bool work(struct world *w)
{
	bool more = false;

	for (uint32_t i = 0; i < w->size; i++)
		more |= nbnic_work(&w->member[i].nic, w->now);
	return more || w->head != w->tail;
}

/* Posts for a member, and carries frames until there are none. */
static void post_seen(struct world *w, struct seen *s, uint32_t member, uint32_t epoch)
{
	uint32_t before = w->member[member].completions;

	post(w, member, epoch);
	note(w, s, member, before, member);
	while (w->head != w->tail || work(w)) {
		if (w->head == w->tail)
			continue;
		const struct frame *f = &w->queue[w->head++ % QUEUE_MAX];
		const struct nbnic_addr from = { { (uint8_t)f->from } };
		struct member *m = &w->member[f->to];

		before = m->completions;
		nbnic_receive(&m->nic, &from, &f->token, w->now);
		note(w, s, f->to, before, f->from);
	}
}

/* The counts of the NIC of a member for a rank. */
static struct nbnic_last counted_of(const struct nbnic_group *g, uint32_t rank)
{
	struct nbnic_last sum = { 0 };

	for (uint32_t i = 0; i <= g->plan->nrecv; i++) {
		if ((i ? nbfw_plan_recvs(g->plan)[i - 1].src : g->rank) != rank)
			continue;
		sum.barriers += g->last[i].barriers;
		sum.ns += g->last[i].ns;
	}
	return sum;
}

/* In each barrier another rank comes late: all other ranks wait for it, it waits for no rank, and
 * the NICs count the last tokens that the test has seen. */
static void one_is_late(const char *alg, uint32_t size)
{
	struct world *w = world_connected(size, alg);
	struct seen s = { 0 };

	for (uint32_t late = 0; late < size; late++) {
		for (uint32_t i = 0; i < size; i++)
			if (i != late)
				post_seen(w, &s, i, late + 1);
		w->now += LATE;
		post_seen(w, &s, late, late + 1);
	}
	for (uint32_t i = 0; i < size; i++) {
		require(w->member[i].completions == size, "%s, %u", alg, size);
		require(latency(w, i)->ns == (size - 1) * LATE, "%s, %u: rank %u", alg, size, i);
		require(latency(w, i)->bucket[0] == 1, "%s, %u: rank %u", alg, size, i);
		for (uint32_t r = 0; r < size; r++)
			require(counted_of(w->member[i].group, r).barriers == s.barriers[i][r],
				"%s, %u: rank %u of rank %u", alg, size, i, r);
	}
	world_close(w);
}

static void in_all_plans(void **state)
{
	uint32_t n = 0;

	group_plans_each (alg) {
		char name[NBAR_NAME_MAX];

		if (alg.n > 4)
			continue;
		nbfw_alg_name(alg, name);
		for (uint32_t size = 1; size <= 17; size++, n++)
			one_is_late(name, size);
	}
	print_message("%u groups\n", n);
}

/* From each rank, the last tokens of the barrier lead to the late rank. */
static void leads(const char *alg, uint32_t size)
{
	struct world *w = world_connected(size, alg);
	struct seen s = { 0 };

	for (uint32_t late = 0; late < size; late++) {
		for (uint32_t i = 0; i < size; i++)
			if (i != late)
				post_seen(w, &s, i, late + 1);
		post_seen(w, &s, late, late + 1);
		for (uint32_t i = 0; i < size; i++) {
			uint32_t at = i, hops = 0;

			for (; at != late && hops < size; hops++)
				at = s.last[at];
			require(at == late, "%s, %u: rank %u, late %u", alg, size, i, late);
		}
	}
	world_close(w);
}

/* Checks what the manual says of exchanges with a full number of ranks. */
static void exchanges_lead_to_the_late_rank(void **state)
{
	static const struct {
		const char *alg;
		uint32_t factor;
	} row[] = { { "pairwise", 2 },
		    { "dissemination:1", 2 },
		    { "dissemination:2", 3 },
		    { "dissemination:3", 4 } };

	for (uint32_t k = 0; k < sizeof(row) / sizeof(row[0]); k++)
		for (uint32_t size = row[k].factor; size <= MEMBERS_MAX; size *= row[k].factor)
			leads(row[k].alg, size);
}

/* In trees, the root knows the child in whose subtree the late rank is. All other ranks get the
 * release last. */
static void the_root_of_a_tree_knows_the_late_child(void **state)
{
	struct world *w = world_connected(8, "linear");
	struct seen s = { 0 };

	for (uint32_t late = 0; late < 8; late++) {
		for (uint32_t i = 0; i < 8; i++)
			if (i != late)
				post_seen(w, &s, i, late + 1);
		post_seen(w, &s, late, late + 1);
		assert_int_equal(s.last[0], late);
		for (uint32_t i = 1; i < 8; i++)
			assert_int_equal(s.last[i], 0);
	}
	world_close(w);
}

UNIT_MAIN(NULL, NULL, UNIT(buckets), UNIT(the_longest), UNIT(posted_ahead), UNIT(alone),
	  UNIT(in_all_plans), UNIT(exchanges_lead_to_the_late_rank),
	  UNIT(the_root_of_a_tree_knows_the_late_child))
