/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_request_latency.c - requests for the latency of barriers: of a NIC, and of a group with more
 * entries than a reply holds.
 */
#include "unit/nic/request_world.h"

static void test_nic(void **state)
{
	const struct nbar_rep_nic_latency *rep = body();
	struct nbnic_latency *latency = &w.device.nic.latency;

	/* The bytes behind the buckets do not count. */
	memset(&w.device.nic.sends_port[0], 0x55, sizeof(w.device.nic.sends_port[0]));
	latency->ns = 77;
	for (uint32_t i = 0; i < sizeof(latency->bucket) / sizeof(latency->bucket[0]); i++)
		latency->bucket[i] = 100 + i;
	assert_int_equal(request(&w.client, NBAR_OP_NIC_LATENCY, NULL, 0), 0);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*rep));
	assert_int_equal(rep->ns, 77);
	for (uint32_t i = 0; i < NBAR_LATENCY_BUCKETS - 1; i++)
		assert_int_equal(rep->bucket[i], 100 + i);
	/* The buckets 27 to 55 of the NIC. */
	assert_int_equal(rep->bucket[NBAR_LATENCY_BUCKETS - 1], 29 * 100 + 29 * (27 + 55) / 2);
}

static const struct nbar_last *ask(uint32_t cell, uint32_t first, uint32_t n, uint32_t next)
{
	const struct nbar_req_group_latency req = { .port = 5, .cell = cell, .first = first };
	const struct nbar_rep_group_latency *rep = body();

	assert_int_equal(request(&w.other, NBAR_OP_GROUP_LATENCY, &req, sizeof(req)), 0);
	assert_int_equal(rep->nlast, n);
	assert_int_equal(rep->next, next);
	assert_int_equal(rep->rank, 0);
	assert_int_equal(rep->index, w.client.port->cell[cell].group->handle & 0xffff);
	assert_int_equal(w.out.head.length,
			 sizeof(w.out.head) + sizeof(*rep) + n * sizeof(struct nbar_last));
	return (const void *)(rep + 1);
}

static void test_group(void **state)
{
	struct nbnic_group *g;
	const struct nbar_last *last;
	uint32_t cell;

	port_open(&w.client, 5);
	cell = group_open("linear", 0, 1000).cell;
	g = w.client.port->cell[cell].group;
	ask(cell, 0, 0, 512); /* no entry yet: one call looks at 512 slots */
	ask(cell, 512, 0, 0);
	for (uint32_t i = 0; i <= g->plan->nrecv; i++)
		g->last[i] = (struct nbnic_last){ 1 + i, 10 * i, 3 };
	last = ask(cell, 0, 64, 64);
	assert_int_equal(last[0].rank, 0);
	assert_int_equal(last[0].barriers, 1);
	assert_int_equal(last[7].rank, 7);
	assert_int_equal(last[7].barriers, 8);
	assert_int_equal(last[7].ns, 70);
	assert_int_equal(last[7].most_ns, 3 * 512);
	last = ask(cell, 960, 40, 0);
	assert_int_equal(last[39].rank, 999);
	ask(cell, 1000, 0, 0);
	ask(cell, UINT32_MAX, 0, 0);
}

static void test_no_group(void **state)
{
	struct nbar_req_group_latency req = { .port = NBNIC_PORTS_MAX };

	refuses(&w.client, NBAR_OP_GROUP_LATENCY, &req, sizeof(req), NBAR_ENOENT,
		"port 1024 of n0 has no group with barriers in cell 0; nbar stat");
	req.port = 5;
	refuses(&w.client, NBAR_OP_GROUP_LATENCY, &req, sizeof(req), NBAR_ENOENT, "port 5 of n0");
	port_open(&w.client, 5);
	req.cell = group_open("signal", 0, 2).cell;
	refuses(&w.client, NBAR_OP_GROUP_LATENCY, &req, sizeof(req), NBAR_ENOENT, "port 5 of n0");
	req.cell++;
	refuses(&w.client, NBAR_OP_GROUP_LATENCY, &req, sizeof(req), NBAR_ENOENT, "port 5 of n0");
	req.cell = UINT32_MAX;
	refuses(&w.client, NBAR_OP_GROUP_LATENCY, &req, sizeof(req), NBAR_ENOENT, "port 5 of n0");
}

UNIT_MAIN(NULL, NULL, REQUEST_TEST(test_nic), REQUEST_TEST(test_group), REQUEST_TEST(test_no_group))
