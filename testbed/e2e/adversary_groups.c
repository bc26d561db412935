/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adversary_groups.c - invalid groups and plans, endpoint addresses of other groups, and a full
 * NIC.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adversary.h"

static void bad_groups(void)
{
	struct raw r;

	dial(&r, "n0");
	raw_port_open(&r, NBAR_PORT_ANY);
	ok(refused(&r, raw_group_open(&r, "auto", 0, 0, 0), -ERANGE, "1 to 1048576"), "size 0");
	ok(refused(&r, raw_group_open(&r, "auto", 0, NBAR_SIZE_MAX + 1, 0), -ERANGE, "1048577"),
	   "a size out of range");
	ok(refused(&r, raw_group_open(&r, "auto", 4, 4, 0), -ERANGE, "ranks 0 to 3"),
	   "a rank out of range");
	ok(refused(&r, raw_group_open(&r, "magic\n", 0, 2, 0), -EINVAL, "\"magic?\""),
	   "an unknown algorithm");
	ok(refused(&r, raw_group_open(&r, "dissemination:17", 0, 2, 0), -ERANGE, "1 to 16"),
	   "a number out of range");
	ok(refused(&r, raw_group_open(&r, "linear", 0, 4098, 0), -ERANGE, "at most 4097"),
	   "a linear barrier out of range");
	ok(refused(&r, raw_group_open(&r, "0123456789abcdef0123456789abcdef", 0, 2, 0), -EINVAL,
		   "at most 31"),
	   "a name without an end");
	ok(refused(&r, raw_group_close(&r, 0), -ENOENT, "no group in cell 0"),
	   "close, but nothing is open");
	ok(refused(&r, raw_group_close(&r, 0xffffffff), -ENOENT, "no group"), "close far outside");
	ok(others_work(), "all goes on");
	raw_close(&r);
}

/* A valid plan for rank 0 of 2: it sends to rank 1, and waits for rank 1. */
struct plan {
	struct nbar_plan head;
	struct nbar_step step;
	struct nbar_send send;
	struct nbar_recv recv;
};

struct plan_request {
	struct nbar_req_group_open open;
	struct plan plan;
};

static const struct plan_request right_plan = {
	.open = { .alg = "custom", .rank = 0, .size = 2, .plan_length = sizeof(struct plan) },
	.plan = {
		.head = { NBAR_PLAN_MAGIC, 0, 2, 1, 1, 1 },
		.step = { 0, 1, 0, 1 },
		.send = { 1, 0 },
		.recv = { 1 },
	},
};

static void bad_plans(void)
{
	struct plan_request x;
	struct raw r;

	dial(&r, "n0");
	raw_port_open(&r, NBAR_PORT_ANY);
#define PLAN(change)             \
	(x = right_plan, change, \
	 refused(&r, raw_ask(&r, NBAR_OP_GROUP_OPEN, &x, sizeof(x)), -EINVAL, "plan"))
#define HUGE_PLAN(change)        \
	(x = right_plan, change, \
	 refused(&r, raw_ask(&r, NBAR_OP_GROUP_OPEN, &x, sizeof(x)), -ENOSPC, "plan"))
	ok(PLAN(x.plan.head.magic = 0), "plan: wrong magic");
	ok(PLAN(x.plan.head.nsend = 2), "plan: shorter than it says");
	ok(PLAN(x.plan.head.rank = 1), "plan: of another rank");
	ok(PLAN(x.plan.head.size = 3), "plan: of another size");
	ok(HUGE_PLAN(x.plan.head.nstep = 0x10000000), "plan: 2^28 steps");
	ok(HUGE_PLAN(x.plan.head.nrecv = 0xffffffff), "plan: 2^32 - 1 slots");
	ok(PLAN(x.plan.step.first_send = 1), "plan: a step begins outside");
	ok(PLAN(x.plan.step.nsend = 0xffffffff), "plan: a step ends outside");
	ok(PLAN(x.plan.step.nslot = 0), "plan: a slot that no step waits for");
	ok(PLAN(x.plan.send.dst = 2), "plan: a send outside the group");
	ok(PLAN(x.plan.send.dst = 0), "plan: a send to oneself");
	ok(PLAN(x.plan.send.slot = NBAR_SLOTS_MAX), "plan: a slot out of range");
	ok(PLAN(x.plan.recv.src = 0x80000000), "plan: a source outside the group");
	ok(PLAN(strcpy(x.open.alg, "pairwise")), "plan: for an algorithm that has its own");
	x = right_plan;
	ok(refused(&r, raw_ask(&r, NBAR_OP_GROUP_OPEN, &x, sizeof(x) - 4), -EBADMSG, "plan"),
	   "plan: cut off");
	ok(raw_ask(&r, NBAR_OP_GROUP_OPEN, &right_plan, sizeof(right_plan)) == 0,
	   "plan: the right one is taken");
	ok(others_work(), "all goes on");
	raw_close(&r);
#undef PLAN
#undef HUGE_PLAN
}

static void bad_endpoints(void)
{
	struct nbar_rep_group_open own, other;
	struct nbar_endpoint endpoint[2];
	struct raw a, b;

	dial(&a, "n0");
	dial(&b, "n1");
	raw_port_open(&a, NBAR_PORT_ANY);
	raw_port_open(&b, NBAR_PORT_ANY);
	raw_group_open(&a, "pairwise", 0, 2, 7);
	memcpy(&own, a.reply.body, sizeof(own));
	raw_group_open(&b, "pairwise", 1, 2, 8);
	memcpy(&other, b.reply.body, sizeof(other));
#define CONNECT(cell, n) raw_group_connect(&a, cell, endpoint, n)
	memset(endpoint, 0x5a, sizeof(endpoint));
	ok(refused(&a, CONNECT(0, 1), -EPROTO, "rank 1 is refused: not the endpoint address"),
	   "endpoint address: garbage");
	ok(refused(&a, CONNECT(NBAR_GROUPS_MAX, 1), -ENOENT, "no group"),
	   "endpoint address: for a cell beyond");
	endpoint[0] = own.endpoint;
	ok(refused(&a, CONNECT(0, 1), -EPROTO, "rank 1 is refused"), "endpoint address: one's own");
	endpoint[0] = other.endpoint;
	ok(refused(&a, CONNECT(0, 1), -EPROTO, "tag"),
	   "endpoint address: of a group with another tag");
	ok(refused(&a, CONNECT(5, 1), -ENOENT, "no group in cell 5"),
	   "endpoint address: for a cell that is empty");
	ok(refused(&a, CONNECT(0xffffffff, 1), -ENOENT, "no group"),
	   "endpoint address: for a cell that is none");
	ok(refused(&a, CONNECT(0, 2), -ERANGE, "lacks 1"), "endpoint address: one too many");
	raw_group_close(&b, 0);
	raw_group_open(&b, "pairwise", 1, 2, 7);
	memcpy(&other, b.reply.body, sizeof(other));
	endpoint[0] = other.endpoint;
	ok(CONNECT(0, 1) == 0, "endpoint address: the right one is taken");
	ok(refused(&a, CONNECT(0, 1), -EISCONN, "connected already"),
	   "endpoint address: once more");
#undef CONNECT
	ok(others_work(), "all goes on");
	raw_close(&a);
	raw_close(&b);
}

static int attach(struct raw *r, const struct nbar_req_port_attach *req)
{
	return raw_ask(r, NBAR_OP_PORT_ATTACH, req, sizeof(*req));
}

static void bad_attachments(void)
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
#define ATTACH_GROUP() raw_ask(&r, NBAR_OP_GROUP_ATTACH, &group, sizeof(group))
	ok(refused(&r, attach(&r, &port), -ENOENT, "is not shared"), "attach: without the secret");
	ok(refused(&r, ATTACH_GROUP(), -ENXIO, "not attached"), "attach: to a group before a port");
	memcpy(port.secret, opened.secret, sizeof(port.secret));
	port.port = 0xffffffff;
	ok(refused(&r, attach(&r, &port), -ENOENT, "is not shared"), "attach: to no port");
	port.port = opened.port;
	ok(attach(&r, &port) == 0 && r.page, "attach: with the secret");
	ok(refused(&r, attach(&r, &port), -EALREADY, "already"), "attach: twice");
	ok(refused(&r, raw_group_open(&r, "auto", 0, 2, 0), -EPERM, "only attached"),
	   "attached: opens a group");
	ok(refused(&r, raw_group_close(&r, 0), -ENOENT, "not attached"),
	   "attached: closes a group of others");
	ok(refused(&r, ATTACH_GROUP(), -ENOENT, "not in cell 0"),
	   "attach: to a group of another endpoint address");
	group.cell = 0xffffffff;
	ok(refused(&r, ATTACH_GROUP(), -ENOENT, "not in cell"), "attach: to no cell");
	group.cell = own.cell;
	group.endpoint = own.endpoint;
	ok(ATTACH_GROUP() == 0, "attach: to the right group");
	raw_close(&r);
	ok(raw_await(&owner, 0, 1) >> 32 == NBAR_STATUS_HOST_DIED,
	   "an attached process that ends: the group has failed");
#undef ATTACH_GROUP
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
	bad_plans();
	bad_endpoints();
	bad_attachments();
	full_nic();
	if (!adversary_limits.daemon)
		full_memory();
}
