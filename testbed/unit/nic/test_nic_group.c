/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_group.c - groups of one NIC, in each byte and at each moment: endpoint addresses,
 * digests, handles, statistics, lingering, and the groups that end with a port.
 */
#include "unit/nic/nic_trace.h"

static uint32_t get(const uint8_t *at, uint32_t n)
{
	uint32_t v = 0;

	for (uint32_t i = 0; i < n; i++)
		v |= (uint32_t)at[i] << (8 * i);
	return v;
}

/* FNV-1a of the bytes of the words, as its definition says. */
static uint32_t digest(uint32_t kind, uint32_t n, uint32_t size, uint32_t tag)
{
	const uint32_t word[] = { kind, n, size, tag };
	uint32_t hash = 0x811c9dc5;

	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t shift = 0; shift < 32; shift += 8)
			hash = (hash ^ (word[i] >> shift & 0xff)) * 0x01000193;
	return hash;
}

static void test_endpoint(void **state)
{
	struct nbar_endpoint e;
	struct nbnic_addr addr;
	uint32_t rank = 77;

	trace_open("dissemination:3", 1000, 500);
	nbnic_group_endpoint(&trace.nic, trace.group, &e);
	assert_memory_equal(e.byte, "nbbl", 4);
	assert_int_equal(get(e.byte + 4, 2), NBFW_FRAME_VERSION);
	assert_int_equal(get(e.byte + 6, 2), TRACE_WIRE);
	assert_int_equal(get(e.byte + 8, 4), trace.group->handle);
	assert_int_equal(get(e.byte + 12, 4), 500);
	assert_int_equal(get(e.byte + 16, 4), 1000);
	assert_int_equal(get(e.byte + 20, 4), digest(NBFW_ALG_DISSEMINATION, 3, 1000, 9));
	assert_int_equal(get(e.byte + 24, 4), TRACE_COOKIE & 0xffffffff);
	assert_int_equal(get(e.byte + 28, 4), TRACE_COOKIE >> 32);
	assert_memory_equal(e.byte + 32, trace.nic.addr.byte, NBNIC_ADDR_SIZE);
	for (uint32_t i = 32 + NBNIC_ADDR_SIZE; i < NBAR_ENDPOINT_SIZE; i++)
		assert_int_equal(e.byte[i], 0);
	assert_true(nbnic_endpoint_addr(&e, TRACE_WIRE, &addr, &rank));
	assert_memory_equal(&addr, &trace.nic.addr, sizeof(addr));
	assert_int_equal(rank, 500);
	assert_false(nbnic_endpoint_addr(&e, TRACE_WIRE + 1, &addr, &rank));
	for (uint32_t i = 0; i < 8; i++) {
		e.byte[i] ^= 0x80;
		assert_false(nbnic_endpoint_addr(&e, TRACE_WIRE, &addr, &rank));
		e.byte[i] ^= 0x80;
	}
	trace_end();
}

/* Groups of another algorithm, parameter, size or tag have another digest. */
static void test_digests(void **state)
{
	static const struct {
		const char *alg;
		uint32_t kind, n, size, tag;
	} one[] = {
		{ "dissemination:1", NBFW_ALG_DISSEMINATION, 1, 8, 0 },
		{ "dissemination:2", NBFW_ALG_DISSEMINATION, 2, 8, 0 },
		{ "pairwise", NBFW_ALG_PAIRWISE, 0, 8, 0 },
		{ "pairwise", NBFW_ALG_PAIRWISE, 0, 9, 0 },
		{ "pairwise", NBFW_ALG_PAIRWISE, 0, 9, 1 },
		{ "pairwise", NBFW_ALG_PAIRWISE, 0, 9, UINT32_C(1) << 31 },
	};

	trace_open("pairwise", 2, 0);
	for (uint32_t i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
		const struct nbnic_group *g =
			trace_group(one[i].alg, one[i].size, 1, one[i].tag, i);

		assert_int_equal(g->digest, digest(one[i].kind, one[i].n, one[i].size, one[i].tag));
	}
	trace_end();
}

/* An index is given out again with the next generation; no handle is ever 0. */
static void test_handles(void **state)
{
	struct nbnic_group *g;

	trace_connected("signal", 2, 0);
	assert_int_equal(trace.group->handle, 0x10000);
	g = trace_group("signal", 2, 0, 0, 1);
	assert_int_equal(g->handle, 0x10001);
	assert_int_equal(trace.nic.high, 2);
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_CLOSED, trace.now);
	trace_expect("released; ");
	assert_int_equal(trace.nic.high, 2);
	assert_int_equal(trace.nic.nopen, 1);
	nbnic_fail(&trace.nic, NBAR_STATUS_NIC_DOWN, trace.now); /* index 0 has no group */
	trace_expect("failed @0 cause 4 rank 0; ");
	trace.group = trace_group("signal", 2, 0, 0, 1);
	assert_int_equal(trace.group->handle, 0x20000);
	nbnic_group_close(&trace.nic, g, NBAR_STATUS_CLOSED, trace.now);
	assert_int_equal(trace.nic.high, 1);
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_CLOSED, trace.now);
	assert_int_equal(trace.nic.high, 0);
	trace.nic.generation[0] = trace.nic.generation[1] = UINT16_MAX;
	trace.group = trace_group("signal", 2, 0, 0, 1);
	assert_int_equal(trace.group->handle, 0x10000);
	trace_end();
}

/* Connect: refusals, limits, and endpoint addresses that come in parts. */
static void test_connect(void **state)
{
	struct nbar_endpoint e[4];
	struct nbnic_group *g;
	uint32_t bad;
	const char *why;

	trace_open("linear", 4, 0);
	g = trace.group;
	for (uint32_t i = 0; i < 3; i++)
		e[i] = trace_endpoint(i + 1);
	assert_int_equal(nbnic_group_connect(&trace.nic, g, e, 1, trace.now, &bad, &why), 0);
	assert_int_equal(g->life, NBAR_LIFE_OPEN);
	assert_int_equal(g->nconnected, 1);
	assert_int_equal(nbnic_group_check(&trace.nic, g, 1, e + 2, 1, &bad, &why), 0);
	assert_int_equal(nbnic_group_check(&trace.nic, g, 1, e + 1, 1, &bad, &why), -NBNIC_EPROTO);
	assert_int_equal(bad, 1);
	assert_int_equal(nbnic_group_check(&trace.nic, g, 2, e + 2, 1, &bad, &why), -NBNIC_EPROTO);
	assert_int_equal(bad, 2);
	assert_string_equal(why, "these are more endpoint addresses than the group has peers");
	e[3] = e[2];
	memset(e[3].byte + 8, 0, 4); /* no handle is 0 */
	assert_int_equal(nbnic_group_check(&trace.nic, g, 1, e + 3, 1, &bad, &why), -NBNIC_EPROTO);
	trace_post(1);
	trace_expect("");
	assert_int_equal(nbnic_group_connect(&trace.nic, g, e + 1, 2, trace.now, &bad, &why), 0);
	assert_int_equal(g->life, NBAR_LIFE_CONNECTED);
	assert_int_equal(g->state->epoch, 1); /* the posted barrier starts */
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(g->peer[i].rank, i + 1);
		assert_int_equal(g->peer[i].handle, trace_handle(i + 1));
		assert_true(g->peer[i].cookie == trace_cookie(i + 1));
		assert_memory_equal(&g->peer[i].addr, e[i].byte + 32, NBNIC_ADDR_SIZE);
	}
	trace_end();

	trace_open("signal", 4, 1); /* may name all other ranks of the group as peers */
	g = trace.group;
	e[0] = trace_endpoint(1);
	assert_int_equal(nbnic_group_connect(&trace.nic, g, e, 1, 0, &bad, &why), -NBNIC_EPROTO);
	e[0] = trace_endpoint(4);
	assert_int_equal(nbnic_group_connect(&trace.nic, g, e, 1, 0, &bad, &why), -NBNIC_EPROTO);
	assert_string_equal(why, "its rank is not that of a peer");
	for (uint32_t i = 0; i < 3; i++) {
		e[0] = trace_endpoint(3);
		assert_int_equal(nbnic_group_connect(&trace.nic, g, e, 1, 0, &bad, &why), 0);
		assert_int_equal(g->npeer, i + 1);
	}
	assert_int_equal(nbnic_group_connect(&trace.nic, g, e, 1, 0, &bad, &why), -NBNIC_EPROTO);
	assert_int_equal(bad, 0);
	trace_end();
}

static void test_info(void **state)
{
	static const char name[] = "a name of thirty-two characters.";
	const struct nbnic_open longest = { .size = 2, .alg = name };
	struct nbar_group_info info;
	void *block = malloc(nbnic_group_size(NULL, 2));

	nbnic_group_info(nbnic_group_build(&longest, block), &info);
	assert_memory_equal(info.alg, name, NBAR_NAME_MAX - 1);
	assert_int_equal(info.alg[NBAR_NAME_MAX - 1], 0);
	free(block);
	trace_connected("dissemination:1", 4, 0);
	nbnic_group_info(trace.group, &info);
	assert_string_equal(info.alg, "dissemination:1");
	assert_int_equal(info.index, 0);
	assert_int_equal(info.port, TRACE_PORT);
	assert_int_equal(info.cell, TRACE_CELL);
	assert_int_equal(info.life, NBAR_LIFE_CONNECTED);
	assert_int_equal(info.rank, 0);
	assert_int_equal(info.size, 4);
	assert_int_equal(info.nstep, 2);
	assert_int_equal(info.running, 0);
	assert_int_equal(info.waits_for, NBAR_RANK_NONE);
	assert_int_equal(info.failed_rank, NBAR_RANK_NONE);
	trace_post(2);
	trace_hear(NBFW_TOKEN, 3, 1, 0, 0, 0);
	trace_hear(NBFW_LATER, 2, 1, 1, 1, NBAR_WHY_HOST_LATE << 29);
	trace.group->straggler[1] = trace.group->straggler[0]; /* not in the list */
	nbnic_group_info(trace.group, &info);
	assert_int_equal(info.posted, 2);
	assert_int_equal(info.epoch, 1);
	assert_int_equal(info.running, 1);
	assert_int_equal(info.step, 1);
	assert_int_equal(info.waits_for, 2);
	assert_int_equal(info.nmissing, 1);
	assert_int_equal(info.nstragglers, 1);
	assert_int_equal(info.straggler[0], 1);
	assert_int_equal(info.why[0], NBAR_WHY_HOST_LATE << 13);
	assert_int_equal(info.straggler[1], 0);
	trace.group->straggler[1].rank = 3;
	trace.group->straggler[1].why = NBAR_WHY_NIC_SILENT << 13 | 9;
	trace.group->nstragglers = 2;
	nbnic_group_info(trace.group, &info);
	assert_int_equal(info.straggler[0], 1);
	assert_int_equal(info.straggler[1], 3);
	assert_int_equal(info.why[0], NBAR_WHY_HOST_LATE << 13);
	assert_int_equal(info.why[1], NBAR_WHY_NIC_SILENT << 13 | 9);
	trace_hear(NBFW_TOKEN, 2, 1, 1, 0, 0); /* the barrier is complete, and the next one runs */
	nbnic_group_info(trace.group, &info);
	assert_int_equal(info.epoch, 2);
	assert_int_equal(info.nstragglers, 0);
	nbnic_group_fail(&trace.nic, trace.group, NBAR_STATUS_ABORTED, trace.now);
	nbnic_group_info(trace.group, &info);
	assert_int_equal(info.status, NBAR_STATUS_ABORTED);
	assert_int_equal(info.failed_rank, 0);
	trace_end();

	trace_connected("signal", 4, 0);
	nbnic_group_info(trace.group, &info);
	assert_string_equal(info.alg, "signal");
	assert_int_equal(info.epoch, 0);
	assert_int_equal(info.waits_for, NBAR_RANK_NONE);
	trace_end();
}

/* A closed group answers for the retry budget, to the nanosecond, and longer while its sends still
 * go out. */
static void test_linger(void **state)
{
	trace_connected("linear", 4, 0);
	trace_post(1);
	for (uint32_t i = 0; i < 3; i++)
		trace_hear(NBFW_TOKEN, i + 1, 1, i, 0, 0);
	trace_take();
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_CLOSED, trace.now);
	trace_expect("");
	assert_int_equal(trace.nic.nlinger, 1);
	assert_int_equal(trace.nic.nopen, 0);
	assert_int_equal(trace.nic.linger_bytes, trace.group->bytes);
	assert_int_equal(trace.nic.linger_bytes_max, NBNIC_MEMORY_BYTES / 4);
	assert_true(nbnic_next(&trace.nic) <= trace.now + TRACE_BUDGET);
	trace_work(TRACE_BUDGET - 1);
	trace_hear(NBFW_PULL, 2, 1, 0, 0, 0);
	trace_expect("token @1 slot 0 to 2; ");
	trace_hear(NBFW_PULL, 2, 2, 0, 0, 0);
	trace_expect("abort @2 slot 0 to 2 rank 0 cause 3; ");
	assert_true(nbnic_next(&trace.nic) == trace.now + 1);
	trace.now++;
	assert_true(nbnic_work(&trace.nic, trace.now));
	trace_expect("released; ");
	assert_int_equal(trace.nic.nlinger, 0);
	assert_int_equal(trace.nic.linger_bytes, 0);
	assert_true(nbnic_next(&trace.nic) == UINT64_MAX);
	assert_int_equal(trace_counter(NBAR_COUNTER_barriers_failed), 0);
	trace_end();

	trace_connected("linear", 4, 0);
	trace_post(1);
	trace_take();
	trace.room = 0;
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_CLOSED, trace.now);
	trace_work(TRACE_BUDGET);
	trace_expect(""); /* three ABORTs wait: the group stays */
	trace.room = 1;
	trace_work(TRACE_BUDGET - 1);
	trace_expect("abort @1 slot 0 to 1 rank 0 cause 3; ");
	trace_work(1); /* two ABORTs wait: the group stays */
	trace_expect("");
	trace_work(TRACE_BUDGET);
	trace_expect("released; "); /* no ABORT has left since */
	assert_true(nbnic_link_empty(&trace.nic.user[0].groups));
	assert_int_equal(trace_counter(NBAR_COUNTER_barriers_failed), 1);
	trace_end();

	trace_connected("linear", 4, 0);
	trace_post(1);
	trace.room = 0;
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_CLOSED, trace.now);
	trace_work(TRACE_BUDGET);
	trace.room = 3;
	trace_work(1);
	trace_take();
	trace_work(TRACE_BUDGET - 1);
	trace_expect("released; "); /* all ABORTs have left */
	trace_end();
}

/* Closed groups linger as long as their memory is within the limit; then the oldest ends. */
static void test_linger_limit(void **state)
{
	struct nbnic_group *newer;

	trace_connected("linear", 4, 0);
	newer = trace_group("linear", 4, 0, 9, 1);
	trace.nic.linger_bytes_max = trace.group->bytes;
	/* They lie behind the accounts of the users, but are no account. */
	memset(trace.nic.counter, 0x7f, sizeof(trace.nic.counter));
	trace.nic.counter[NBAR_COUNTER_linger_cut] = 0;
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_CLOSED, trace.now);
	trace_expect("");
	assert_int_equal(trace.nic.nlinger, 1);
	nbnic_group_close(&trace.nic, newer, NBAR_STATUS_CLOSED, trace.now);
	trace_expect("released; ");
	assert_null(trace.group);
	assert_int_equal(trace.nic.nlinger, 1);
	assert_int_equal(trace.nic.counter[NBAR_COUNTER_linger_cut], 1);
	trace_end();
}

/* A group whose lingering is cut sends no frame of those that still wait. */
static void test_a_cut_group_sends_no_more(void **state)
{
	struct nbnic_group *newer;

	trace_connected("linear", 4, 0);
	newer = trace_group("linear", 4, 0, 9, 1);
	trace.nic.linger_bytes_max = trace.group->bytes;
	trace.room = 0;
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_HOST_DIED, trace.now);
	trace_work(1);
	assert_int_equal(trace.nic.sends.nport, 1);
	trace_take();
	nbnic_group_close(&trace.nic, newer, NBAR_STATUS_CLOSED, trace.now);
	trace_expect("released; ");
	assert_int_equal(trace.nic.sends.nport, 0);
	trace.room = UINT32_MAX;
	trace_work(1);
	trace_expect("");
	trace_end();
}

/* A pass ends the lingering of 16 groups at most, so that it stays short. */
static void test_lingering_ends_in_parts(void **state)
{
	trace_connected("linear", 4, 0);
	for (uint32_t i = 1; i <= 40; i++)
		nbnic_group_close(&trace.nic, trace_group("linear", 4, 0, 9, i), NBAR_STATUS_CLOSED,
				  trace.now);
	assert_int_equal(trace.nic.nlinger, 40);
	trace_work(2 * TRACE_BUDGET);
	assert_int_equal(trace.nic.nlinger, 40 - 16);
	trace_work(1);
	assert_int_equal(trace.nic.nlinger, 40 - 32);
	trace_work(1);
	assert_int_equal(trace.nic.nlinger, 0);
	trace_end();
}

/* A NIC that stops tells each host, once. */
static void test_a_stop_is_told(void **state)
{
	trace_connected("dissemination:1", 4, 0);
	trace_post(1);
	trace_take();
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_NIC_DOWN, trace.now);
	trace_expect("failed @0 cause 4 rank 0; abort @1 slot 1 to 2 rank 0 cause 4; ");
	trace_end();

	trace_connected("dissemination:1", 4, 0); /* a failed group is not told again */
	nbnic_group_fail(&trace.nic, trace.group, NBAR_STATUS_ABORTED, trace.now);
	trace_take();
	assert_int_equal(trace_counter(NBAR_COUNTER_barriers_failed), 1);
	nbnic_group_close(&trace.nic, trace.group, NBAR_STATUS_NIC_DOWN, trace.now);
	trace_expect("");
	trace_end();
}

/* The parts of a group's block lie in order, and do not overlap. */
static void test_block(void **state)
{
	static const char *const alg[] = { "linear", "dissemination:3", "mcs", "signal" };

	trace_open("pairwise", 2, 0);
	for (uint32_t i = 0; i < 4; i++) {
		const struct nbnic_group *g = trace_group(alg[i], 33, 0, 0, 0);
		const uint8_t *end = (const uint8_t *)g + g->bytes;

		assert_int_equal(g->bytes, nbnic_group_size(g->plan, 33));
		if (!g->plan) {
			assert_ptr_equal(g->recv_peer, g->peer + 32);
			assert_ptr_equal(g->recv_peer + 32, end);
			continue;
		}
		assert_ptr_equal(g->send_peer + g->plan->nsend, g->reached);
		assert_ptr_equal(g->reached + g->npeer_max, end);
		assert_ptr_equal(g->last, g->peer + g->npeer_max);
		assert_ptr_equal(g->last + 1 + g->plan->nrecv, g->state);
		assert_int_equal((uintptr_t)g->plan % 8, 0);
		assert_int_equal((uintptr_t)g->recv_nic % 8, 0);
		assert_in_range(g->npeer, 1, g->plan->nsend + g->plan->nrecv);
		for (uint32_t k = 0; k < g->plan->nsend; k++)
			assert_int_equal(g->peer[g->send_peer[k]].rank,
					 nbfw_plan_sends(g->plan)[k].dst);
		for (uint32_t k = 0; k < g->plan->nrecv; k++)
			assert_int_equal(g->peer[g->recv_peer[k]].rank,
					 nbfw_plan_recvs(g->plan)[k].src);
		for (uint32_t k = 0; k < g->plan->nrecv; k++)
			assert_int_equal(g->recv_nic[k], 0); /* not connected: no NIC */
		for (uint32_t k = 1; k < g->npeer; k++)
			assert_true(g->peer[k - 1].rank < g->peer[k].rank);
		for (uint32_t k = 0; k < g->npeer; k++) {
			assert_int_equal(g->peer[k].handle, 0);
			assert_int_equal(g->peer[k].cookie, 0);
		}
	}
	trace_end();
}

UNIT_MAIN(NULL, NULL, UNIT(test_endpoint), UNIT(test_digests), UNIT(test_handles),
	  UNIT(test_connect), UNIT(test_info), UNIT(test_linger), UNIT(test_a_stop_is_told),
	  UNIT(test_block), UNIT(test_linger_limit), UNIT(test_a_cut_group_sends_no_more),
	  UNIT(test_lingering_ends_in_parts))
