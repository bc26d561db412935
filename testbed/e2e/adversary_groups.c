/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adversary_groups.c - invalid groups and plans, impostors, and a full NIC.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adversary.h"

/* A refusal of each kind; test_request, test_request_attach and test_plan_check have the others,
 * with their texts. */
static void bad_groups(void)
{
	const struct {
		struct nbar_req_group_open open;
		struct nbar_plan plan;
	} custom = {
		.open = { .alg = "custom", .size = 2, .plan_length = sizeof(custom.plan) },
		.plan = { .size = 2 }, /* without the magic number */
	};
	struct nbar_endpoint endpoint;
	struct raw r;

	dial(&r, "n0");
	raw_port_open(&r, NBAR_PORT_ANY);
	ok(refused(&r, raw_group_open(&r, "magic\n", 0, 2, 0), -EINVAL, "\"magic?\""),
	   "an unknown algorithm");
	ok(refused(&r, raw_ask(&r, NBAR_OP_GROUP_OPEN, &custom, sizeof(custom)), -EINVAL, "plan"),
	   "plan: wrong magic");
	raw_group_open(&r, "pairwise", 0, 2, 7);
	memset(&endpoint, 0x5a, sizeof(endpoint));
	ok(refused(&r, raw_group_connect(&r, 0, &endpoint, 1), -EPROTO,
		   "rank 1 is refused: not the endpoint address"),
	   "endpoint address: garbage");
	ok(others_work(), "all goes on");
	raw_close(&r);
}

static void attached(void)
{
	struct nbar_req_port_attach port = { 0 };
	struct nbar_req_group_attach group = { 0 };
	struct nbar_rep_port_open opened;
	struct nbar_rep_group_open own;
	struct raw owner, r;

	dial(&owner, "n0");
	dial(&r, "n0");
	raw_port_open(&owner, NBAR_PORT_ANY);
	memcpy(&opened, owner.reply.body, sizeof(opened));
	raw_group_open(&owner, "pairwise", 0, 2, 9);
	memcpy(&own, owner.reply.body, sizeof(own));
	port.port = opened.port;
	ok(refused(&r, raw_ask(&r, NBAR_OP_PORT_ATTACH, &port, sizeof(port)), -ENOENT,
		   "is not shared"),
	   "attach: without the secret");
	memcpy(port.secret, opened.secret, sizeof(port.secret));
	group.endpoint = own.endpoint;
	ok(raw_ask(&r, NBAR_OP_PORT_ATTACH, &port, sizeof(port)) == 0 && r.page &&
		   raw_ask(&r, NBAR_OP_GROUP_ATTACH, &group, sizeof(group)) == 0,
	   "attach: with the secret");
	raw_close(&r);
	ok(raw_await(&owner, 0, 1) >> 32 == NBAR_STATUS_HOST_DIED,
	   "an attached process that ends: the group has failed");
	ok(others_work(), "all goes on");
	raw_close(&owner);
}

/* The good member already has one group. */
static void full_nic(void)
{
	const uint32_t most = adversary_limits.groups;
	struct raw r;
	char full[40];
	uint32_t n = 0;

	snprintf(full, sizeof(full), "full: it has %u groups", most);
	dial(&r, "n0");
	raw_port_open(&r, NBAR_PORT_ANY);
	while (n < most && raw_group_open(&r, "dissemination:3", 5, 64, n) == 0)
		n++;
	ok(n == most - 1, "%u groups in all can be open", most);
	ok(refused(&r, r.reply.head.status, -ENOSPC, full), "one more is refused");
	ok(others_work(), "all goes on");
	while (n > 0 && raw_group_close(&r, n - 1) == 0)
		n--;
	ok(n == 0 && raw_group_open(&r, "auto", 0, 2, 0) == 0,
	   "after they are closed there is room");
	raw_close(&r);
}

/* A NIC with little memory: large groups fill its memory before they reach the limit of groups. */
static void full_memory(void)
{
	struct raw r;
	uint32_t n = 0;

	dial(&r, "n0");
	raw_port_open(&r, NBAR_PORT_ANY);
	while (n < adversary_limits.groups && raw_group_open(&r, "linear", 0, 64, n) == 0)
		n++;
	ok(n > 0 && n + 1 < adversary_limits.groups &&
		   refused(&r, r.reply.head.status, -ENOSPC, "close some"),
	   "memory is full after %u groups of 64, linear", n);
	ok(raw_group_open(&r, "linear", 0, 4097, n) < 0 && r.reply.head.text[0],
	   "a group that is larger than all memory is refused");
	ok(raw_group_open(&r, "pairwise", 0, 1 << 20, n) <= 0, "one of 2^20 ranks is answered");
	ok(others_work(), "all goes on");
	while (n > 0 && raw_group_close(&r, n - 1) == 0)
		n--;
	ok(n == 0 && raw_group_open(&r, "linear", 0, 64, 0) == 0,
	   "after they are closed there is room");
	raw_close(&r);
}

/* Another client of the NIC of rank 1 knows the endpoint address of rank 0, and speaks as rank 1.
 */
static void impostors(void)
{
	struct nbar_endpoint endpoint[2];
	struct raw r[3];
	uint64_t bad;

	for (int i = 0; i < 3; i++)
		dial(&r[i], i ? "n1" : "n0");
	if (!ok(pair(&r[0], &r[1], 11, endpoint) && raw_port_open(&r[2], NBAR_PORT_ANY) == 0 &&
			raw_group_open(&r[2], "pairwise", 1, 2, 11) == 0 &&
			raw_group_connect(&r[2], 0, endpoint, 1) == 0,
		"an impostor"))
		return;
	bad = raw_counter(&r[0], NBAR_COUNTER_frames_bad) + 1;
	raw_post(&r[0], 0, 1);
	raw_post(&r[2], 0, 1);
	ok(raw_await_counter(&r[0], NBAR_COUNTER_frames_bad, bad) >= bad &&
		   __atomic_load_n(&r[0].page->completion[0].word, __ATOMIC_RELAXED) == 0,
	   "its token is refused, and rank 0 still waits for rank 1");
	raw_post(&r[1], 0, 1);
	ok(raw_await(&r[0], 0, 1) == 1 && raw_await(&r[1], 0, 1) == 1, "the barrier completes");
	for (int i = 0; i < 3; i++)
		raw_close(&r[i]);
}

void adversary_groups(void)
{
	impostors();
	bad_groups();
	attached();
	full_nic();
	if (!adversary_limits.daemon)
		full_memory();
}
