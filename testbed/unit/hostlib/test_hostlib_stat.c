/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_stat.c - latency and last tokens, as programs and monitors get them from a NIC.
 */
#include "unit/hostlib/cluster.h"
#include "unit/nics.h"

#define BARRIERS 20u

static void run(struct cluster *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t r = 0; r < c->size; r++)
			require_ok(nbar_post(c->g[r], NULL));
		for (uint32_t r = 0; r < c->size; r++)
			require_ok(nbar_wait(c->g[r], i + 1, UINT64_MAX));
	}
}

static uint32_t looked;

/* In a tree, the root hears of all others; each other member hears of the root last. */
static int look(void *arg, const struct nbar_group_info *info, const struct nbar_group_stat *stat)
{
	const uint32_t *expected = arg;
	uint64_t barriers = 0;

	if (!stat) /* a group that lingers */
		return 0;
	looked++;
	assert_int_equal(stat->barriers, *expected);
	assert_in_range(stat->nlast, *expected ? 1 : 0, *expected ? NBAR_LAST_MAX : 0);
	for (uint32_t i = 0; i < stat->nlast; i++) {
		barriers += stat->last[i].barriers;
		assert_true(stat->last[i].most_ns <= stat->last[i].ns);
		assert_true(i == 0 || stat->last[i].ns <= stat->last[i - 1].ns);
		assert_in_range(stat->last[i].rank, 0, info->rank ? 0 : info->size - 1);
	}
	assert_true(info->rank == 0 || stat->nrank <= 1);
	assert_true(stat->nrank > stat->nlast ? barriers < *expected : barriers == *expected);
	return 0;
}

static void look_at_all(uint32_t expected)
{
	looked = 0;
	require_ok(nbar_nic_group_stats("n0", look, &expected));
	require_ok(nbar_nic_group_stats("n1", look, &expected));
	require_ok(nbar_nic_group_stats("n2", look, &expected));
	assert_int_equal(looked, 12);
}

static void members_know_their_last_tokens(void **state)
{
	struct cluster c;

	cluster_start(&c, 12, 3, "linear");
	look_at_all(0);
	run(&c, BARRIERS);
	look_at_all(BARRIERS);
	cluster_end(&c);
}

static int count(void *arg, const struct nbar_group_info *info, const struct nbar_group_stat *stat)
{
	uint32_t *n = arg;

	if (strcmp(info->alg, "signal") == 0)
		assert_null(stat);
	else
		assert_int_equal(stat->barriers, 5);
	return ++*n == 100 ? 7 : 0;
}

static void monitors_see_the_latency(void **state)
{
	struct nbar_rep_nic_latency before, after;
	struct nbar_group_attr signal = { .size = 2, .alg = "signal" };
	struct nbar_endpoint endpoint;
	struct nbar_group *g;
	struct cluster c;
	uint64_t n = 0;
	uint32_t groups = 0;

	require_ok(nbar_nic_latency("n0", &before));
	cluster_start(&c, 4, 1, "dissemination:1");
	run(&c, 5);
	require_ok(nbar_nic_latency("n0", &after));
	for (uint32_t i = 0; i < NBAR_LATENCY_BUCKETS; i++)
		n += after.bucket[i] - before.bucket[i];
	assert_int_equal(n, 4 * 5);
	assert_true(after.ns >= before.ns);
	require_ok(nbar_group_open(c.port[0], &signal, &g, &endpoint));
	require_ok(nbar_nic_group_stats("n0", count, &groups));
	assert_true(groups >= 5);
	groups = 99;
	assert_int_equal(nbar_nic_group_stats("n0", count, &groups), 7);
	cluster_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(monitors_see_the_latency),
		UNIT(members_know_their_last_tokens),
	};

	return run_with_nics(3, tests);
}
