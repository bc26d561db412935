/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_value.c - groups with values at whole NICs: every host gets the sum, whatever is lost;
 * values that do not fit end the group; NICs without values meet only NICs without.
 */
#include "unit/nic/nic_net.h"
#include "unit/unit.h"

#define MEMBERS 9u /* of a group: three cells of each NIC */
#define BARRIERS 40u

static struct rng rng;
static uint32_t loss;                                    /* percent of frames */
static uint32_t odd_member, odd_epoch;                   /* this host posts something else there */
static uint64_t result[MEMBERS][BARRIERS + 1];           /* the first element */
static uint32_t nresult[MEMBERS], nvalued[BARRIERS + 1]; /* results; members that had a value */

static bool lose(struct net *w, uint32_t from, uint32_t to, const struct nbfw_token *t)
{
	(void)w, (void)from, (void)to, (void)t;
	return rng_percent(&rng, loss);
}

static uint32_t member_of(uint32_t nic, uint32_t cell)
{
	return nic + NET_NICS * cell;
}

/* Each third barrier carries no value. Values have two elements. */
static int operand(struct net *w, uint32_t nic, uint32_t cell, uint32_t epoch,
		   struct nbfw_value *out)
{
	uint32_t member = member_of(nic, cell);
	uint64_t mine[2] = { epoch * 1000 + member, member == 0 };

	(void)w;
	if (epoch % 3 == 0)
		return 0;
	*out = (struct nbfw_value){ .op = NBAR_SUM, .type = NBAR_UINT64, .count = { 2 } };
	memcpy(out->byte, mine, sizeof(mine));
	nvalued[epoch]++;
	if (member != odd_member || epoch != odd_epoch)
		return 16;
	out->count[0] = 1;
	return 8;
}

static void see(struct net *w, uint32_t nic, uint32_t cell, uint32_t epoch,
		const struct nbfw_value *v)
{
	uint32_t member = member_of(nic, cell);

	require(w->n[nic].host[0][cell].completions == epoch - 1, "the result comes first");
	assert_int_equal(nbfw_value_length(v), 16);
	assert_int_equal(v->byte[8], 1);
	memcpy(&result[member][epoch], v->byte, 8);
	nresult[member]++;
}

static struct net *net_of(const char *alg, uint32_t members)
{
	struct net *w = net_new();
	struct nbar_endpoint endpoint[MEMBERS];
	struct nbnic_group *g[MEMBERS];

	w->operand = operand;
	w->result = see;
	w->value_max = 16;
	w->lost = lose;
	rng = (struct rng){ unit_seed() };
	odd_member = NBAR_RANK_NONE;
	loss = 0;
	memset(nresult, 0, sizeof(nresult));
	memset(nvalued, 0, sizeof(nvalued));
	memset(result, 0, sizeof(result));
	for (uint32_t i = 0; i < members; i++) {
		g[i] = net_open(w, i % NET_NICS, 0, i / NET_NICS, alg, members, i, NULL);
		nbnic_group_endpoint(&w->n[i % NET_NICS].nic, g[i], &endpoint[i]);
	}
	for (uint32_t i = 0; i < members; i++)
		net_connect(w, i % NET_NICS, g[i], endpoint);
	return w;
}

static void post_all(struct net *w, uint32_t members, uint32_t epoch)
{
	for (uint32_t i = 0; i < members; i++)
		net_post(w, i % NET_NICS, 0, i / NET_NICS, epoch);
}

static void run(const char *alg, uint32_t members, uint32_t percent)
{
	struct net *w = net_of(alg, members);

	loss = percent;
	/* Eight barriers at a time: tokens of the next barrier come early. */
	for (uint32_t epoch = 8; epoch <= BARRIERS; epoch += 8) {
		post_all(w, members, epoch);
		for (uint32_t i = 0; i < members; i++)
			net_rounds_until(w, i % NET_NICS, 0, i / NET_NICS, epoch, 2000000);
	}
	for (uint32_t i = 0; i < members; i++) {
		assert_int_equal(nresult[i], BARRIERS - BARRIERS / 3);
		for (uint32_t epoch = 1; epoch <= BARRIERS; epoch++)
			require(result[i][epoch] == (epoch % 3 ? members * epoch * 1000 +
									 members * (members - 1) / 2
							       : 0),
				"%s: member %u, barrier %u: %llu", alg, i, epoch,
				(unsigned long long)result[i][epoch]);
	}
	net_free(w);
}

static void test_every_host_gets_the_sum(void **state)
{
	static const char *const alg[] = { "pairwise", "mcs",    "tournament", "binomial",
					   "linear",   "tree:2", "tree:4" };

	(void)state;
	for (uint32_t i = 0; i < sizeof(alg) / sizeof(alg[0]); i++) {
		for (uint32_t members = 1; members <= MEMBERS; members++) {
			run(alg[i], members, 0);
			run(alg[i], members, 20);
		}
	}
}

/* Sends that wait for the wire keep the value of their step. */
static void test_a_wire_without_room(void **state)
{
	struct net *w = net_of("linear", MEMBERS);

	(void)state;
	for (uint32_t i = 0; i < NET_NICS; i++) {
		w->n[i].limit = 1;
		w->n[i].refuses = true;
	}
	post_all(w, MEMBERS, 8);
	for (uint32_t i = 0; i < MEMBERS; i++)
		net_rounds_until(w, i % NET_NICS, 0, i / NET_NICS, 8, 100000);
	for (uint32_t i = 0; i < MEMBERS; i++)
		assert_int_equal(result[i][8], 9 * 8000 + 36);
	assert_true(w->n[0].refused + w->n[1].refused + w->n[2].refused > 0);
	net_free(w);
}

/* A host that posts another count: all hosts learn it. */
static void test_values_that_differ(void **state)
{
	(void)state;
	for (uint32_t odd = 0; odd < MEMBERS; odd++) {
		struct net *w = net_of("pairwise", MEMBERS);

		odd_member = odd;
		odd_epoch = 4;
		post_all(w, MEMBERS, 8);
		net_pass(w, NET_SECOND);
		for (uint32_t i = 0; i < MEMBERS; i++) {
			const struct net_host *h = &w->n[i % NET_NICS].host[0][i / NET_NICS];

			assert_int_equal(h->status, NBAR_STATUS_MISMATCH);
			assert_int_equal(h->completions, 3);
		}
		net_free(w);
	}
}

static int no_operand(struct net *w, uint32_t nic, uint32_t cell, uint32_t epoch,
		      struct nbfw_value *out)
{
	(void)w, (void)cell, (void)epoch;
	*out = (struct nbfw_value){ .op = NBAR_SUM, .type = NBAR_UINT64, .count = { 3 } };
	return nic ? -NBAR_EINVAL : 24; /* senseless; longer than value_max */
}

/* A host that posts no correct value: its group fails and names it. */
static void test_a_senseless_value(void **state)
{
	(void)state;
	for (uint32_t nic = 0; nic < 2; nic++) {
		struct net *w = net_of("pairwise", 2);

		w->operand = no_operand;
		net_post(w, nic, 0, 0, 1);
		net_pass(w, NET_SECOND);
		assert_int_equal(w->n[nic].host[0][0].status, NBAR_STATUS_MISMATCH);
		assert_int_equal(w->n[nic].host[0][0].failed_rank, nic);
		net_free(w);
	}
}

/* A stranger to the group's values: one too long is bad; a value for a group without is ignored. */
static void test_forged_values(void **state)
{
	struct net *w = net_of("pairwise", 2);
	struct nbnic_group *g = w->n[0].host[0][0].group;
	struct nbfw_value v = { .op = NBAR_SUM, .type = NBAR_UINT64, .count = { 3 } };
	const struct nbnic_addr from = { { 1 } };
	struct nbfw_token t = { .type = NBFW_TOKEN,
				.value_length = NBFW_VALUE_HEAD + 24,
				.handle = g->handle,
				.cookie = g->cookie,
				.src = 1,
				.sender = w->n[1].host[0][0].group->handle,
				.epoch = 1,
				.value = &v };

	(void)state;
	nbnic_receive(&w->n[0].nic, &from, &t, w->now);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_frames_bad], 1);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_tokens_received], 0);
	t.value_length = NBFW_VALUE_HEAD + 16;
	v.count[0] = 2;
	v.byte[0] = 5;
	nbnic_receive(&w->n[0].nic, &from, &t, w->now);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_tokens_received], 1);
	t.sender++; /* another member of that NIC */
	t.epoch = 2;
	nbnic_receive(&w->n[0].nic, &from, &t, w->now);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_frames_bad], 2);
	t.sender--;
	w->n[0].nic.doubt_end = UINT64_MAX; /* the NIC looks at each frame's source */
	t.value_length = NBFW_VALUE_HEAD + 24;
	v.count[0] = 3;
	nbnic_receive(&w->n[0].nic, &from, &t, w->now);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_frames_bad], 3);
	w->n[0].nic.doubt_end = 0;
	t.epoch = 1;
	t.value_length = NBFW_VALUE_HEAD + 16;
	v.count[0] = 2;
	v.byte[0] = 7; /* comes twice: the first one counts */
	nbnic_receive(&w->n[0].nic, &from, &t, w->now);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_tokens_duplicate], 1);
	net_free(w);

	w = net_new();
	net_pair(w, 0, 0, 1, 0, 0);
	g = w->n[0].host[0][0].group;
	t.handle = g->handle;
	t.cookie = g->cookie;
	t.sender = w->n[1].host[0][0].group->handle;
	nbnic_receive(&w->n[0].nic, &from, &t, w->now);
	assert_int_equal(w->n[0].nic.counter[NBAR_COUNTER_tokens_received], 1);
	net_post(w, 0, 0, 0, 1);
	net_rounds_until(w, 0, 0, 0, 1, 10);
	net_free(w);
}

/* A group with values has endpoint addresses of version 3, and its length in the digest. */
static void test_endpoints(void **state)
{
	static const uint32_t max[] = { 0, 16, 24 };
	struct net *w = net_new();
	struct nbnic_group *g[3];
	struct nbar_endpoint endpoint[3];
	uint32_t bad;
	const char *why;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		w->value_max = max[i];
		g[i] = net_open(w, i, 0, 0, "pairwise", 2, 0, NULL);
		endpoint[i] = net_endpoint(w, g[i], i, 1, 7, 7);
		assert_int_equal(endpoint[i].byte[4], i ? 3 : 2);
	}
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t j = 0; j < 3; j++) {
			int rc = nbnic_group_check(&w->n[i].nic, g[i], 0, &endpoint[j], 1, &bad,
						   &why);

			assert_int_equal(rc, i == j ? 0 : -NBNIC_EPROTO);
			if (i == 0 && j > 0)
				assert_non_null(strstr(why, "with values"));
			if (i > 0 && j == 0)
				assert_non_null(strstr(why, "without values"));
		}
	}
	net_free(w);
}

UNIT_MAIN(NULL, NULL, UNIT(test_every_host_gets_the_sum), UNIT(test_a_wire_without_room),
	  UNIT(test_values_that_differ), UNIT(test_a_senseless_value), UNIT(test_forged_values),
	  UNIT(test_endpoints))
