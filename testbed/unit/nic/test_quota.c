/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_quota.c - the share of a NIC that one user may take: ports, groups, memory, attachments, and
 * the time that closed groups linger. Another user always finds room.
 */
#include "device_world.h"

#define HALF 50u
#define GREEDY 1u
#define OTHER 2u

static struct nbnic_client client[NBNIC_PORTS_MAX + 8];

static bool refused(const char *part)
{
	return w.out.head.status == -NBAR_ENOSPC && strstr(w.out.head.text, part) &&
	       strstr(w.out.head.text, "--user-percent");
}

static void clients_end(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		nbnic_client_end(&client[i], NBAR_STATUS_HOST_DIED);
}

static void ports_of_a_user(void **state)
{
	const uint32_t most = NBNIC_PORTS_MAX / 2;

	world_begin(0, HALF);
	for (uint32_t i = 0; i < most; i++)
		assert_int_equal(port_open_as(&client[i], GREEDY), 0);
	assert_true(port_open_as(&client[most], GREEDY) < 0 &&
		    refused("uid 1 has 512 ports of n0, and one user may have 512;"));
	assert_int_equal(w.device.nic.counter[NBAR_COUNTER_quota_refused], 1);
	assert_int_equal(port_open_as(&client[most + 1], OTHER), 0);
	/* A port that is given back can be taken again. */
	nbnic_client_end(&client[0], NBAR_STATUS_CLOSED);
	assert_int_equal(port_open_as(&client[0], GREEDY), 0);
	clients_end(most + 2);
	assert_int_equal(w.device.user[0].nport + w.device.user[1].nport, 0);
	world_end();
}

static void groups_of_a_user(void **state)
{
	const uint32_t most = NBNIC_GROUPS_MAX / 2;

	world_begin(0, HALF);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(port_open_as(&client[i], i < 2 ? GREEDY : OTHER), 0);
	for (uint32_t i = 0; i < most; i++)
		assert_int_equal(group_open(&client[i % 2], "pairwise", 0, 1), 0);
	assert_true(group_open(&client[0], "pairwise", 0, 1) < 0 && refused("has 512 groups"));
	assert_true(group_open(&client[1], "pairwise", 0, 1) < 0 && refused("has 512 groups"));
	for (uint32_t i = 0; i < most; i++)
		assert_int_equal(group_open(&client[2], "pairwise", 0, 1), 0);
	clients_end(3);
	for (uint32_t i = 0; i < NBNIC_USERS_MAX; i++)
		assert_int_equal(w.device.user[i].ngroup, 0);
	world_end();
}

/* Two users at their limits: each has an account of its own, whose text has its own numbers. */
static void each_user_has_an_account(void **state)
{
	const uint32_t most = NBNIC_PORTS_MAX / 4;
	struct nbnic_client *second = &client[most];
	char text[80];

	world_begin(0, 25);
	for (uint32_t i = 0; i < most; i++) {
		assert_int_equal(port_open_as(&client[i], GREEDY), 0);
		assert_int_equal(port_open_as(&second[i], OTHER), 0);
	}
	for (uint32_t uid = GREEDY; uid <= OTHER; uid++) {
		snprintf(text, sizeof(text), "uid %u has %u ports of n0, and one user may have %u;",
			 uid, most, most);
		assert_true(port_open_as(&client[2 * most + uid], uid) < 0 && refused(text));
		assert_int_equal(w.device.nic.counter[NBAR_COUNTER_quota_refused], uid);
	}
	assert_int_equal(w.device.user[second->user].uid, OTHER);
	assert_int_equal(w.device.user[second->user].nport, most);
	/* What the second user gives back, the first user does not get. */
	nbnic_client_end(&second[0], NBAR_STATUS_CLOSED);
	assert_true(port_open_as(&client[2 * most], GREEDY) < 0);
	assert_int_equal(port_open_as(&second[0], OTHER), 0);
	/* The groups of each user count at that user. */
	for (uint32_t i = 0; i < NBNIC_GROUPS_MAX / 4; i++)
		assert_int_equal(group_open(&second[i % most], "pairwise", 0, 1), 0);
	assert_true(group_open(&second[0], "pairwise", 0, 1) < 0 &&
		    refused("uid 2 has 256 groups"));
	assert_int_equal(group_open(&client[0], "pairwise", 0, 1), 0);
	assert_int_equal(w.device.user[client[0].user].ngroup, 1);
	clients_end(2 * most + OTHER + 1);
	for (uint32_t i = 0; i < NBNIC_USERS_MAX; i++)
		assert_int_equal(w.device.user[i].nport + w.device.user[i].ngroup, 0);
	world_end();
}

/* A user's part of each resource, in its unit; of a small one, at least 1. */
static void parts_of_a_user(void **state)
{
	static const uint32_t percents[] = { 1, 30, 99 };

	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		const uint32_t percent = percents[i];
		const struct nbnic_user *most = &w.device.user_max;

		world_begin(UINT64_C(32) << 20, percent);
		assert_int_equal(most->nport, NBNIC_PORTS_MAX * percent / 100);
		assert_int_equal(most->ngroup, NBNIC_GROUPS_MAX * percent / 100);
		assert_int_equal(most->nattached, NBNIC_ATTACHED_MAX * percent / 100);
		assert_int_equal(most->bytes,
				 (w.device.open_bytes_max >> 16) * percent / 100 << 16);
		w.device.open_bytes_max = 3 << 16;
		nbnic_users_init(&w.device, percent);
		assert_int_equal(most->bytes, percent == 99 ? 2 << 16 : 1 << 16);
		world_end();
	}
	world_begin(0, 100);
	assert_int_equal(w.device.user_max.nport, UINT32_MAX);
	assert_true(w.device.user_max.bytes == UINT64_MAX);
	world_end();
}

/* Many ports, each within the limit of a port. */
static void memory_of_a_user(void **state)
{
	enum { PORTS = 8 };
	const struct nbnic_user *greedy;
	uint32_t opened = 0;
	char text[80];

	world_begin(UINT64_C(8) << 20, HALF);
	for (uint32_t i = 0; i < PORTS; i++) {
		assert_int_equal(port_open_as(&client[i], GREEDY), 0);
		while (group_open(&client[i], "linear", 0, NBFW_ROOT_MAX) == 0)
			opened++;
	}
	greedy = &w.device.user[client[0].user];
	snprintf(text, sizeof(text), "uid 1 has %u KiB of groups of n0, and one user may have %u;",
		 (unsigned)(greedy->bytes / 1024), (unsigned)(w.device.user_max.bytes / 1024));
	assert_true(opened > 0 && refused(text));
	assert_in_range(greedy->bytes, 1, w.device.user_max.bytes);
	assert_int_equal(port_open_as(&client[PORTS], OTHER), 0);
	assert_int_equal(group_open(&client[PORTS], "linear", 0, NBFW_ROOT_MAX), 0);
	clients_end(PORTS + 1);
	for (uint32_t i = 0; i < NBNIC_USERS_MAX; i++)
		assert_int_equal(w.device.user[i].bytes, 0);
	world_end();
}

static void attachments_of_a_user(void **state)
{
	static struct nbnic_client more[2];
	struct nbar_req_port_attach req = { .port = 0 };

	world_begin(0, HALF);
	w.device.user_max.nattached = 1;
	assert_int_equal(port_open_as(&client[0], GREEDY), 0);
	memcpy(req.secret, client[0].secret, sizeof(req.secret));
	for (uint32_t i = 0; i < 2; i++)
		nbnic_client_begin(&w.device, &more[i], 1, GREEDY, false);
	assert_int_equal(request(&more[0], NBAR_OP_PORT_ATTACH, &req, sizeof(req)), 0);
	assert_true(request(&more[1], NBAR_OP_PORT_ATTACH, &req, sizeof(req)) < 0 &&
		    refused("has 1 processes attached to ports of n0, and one user may have 1;"));
	nbnic_client_end(&more[0], NBAR_STATUS_CLOSED);
	assert_int_equal(request(&more[1], NBAR_OP_PORT_ATTACH, &req, sizeof(req)), 0);
	/* The owner ends before the attached client: the account stays right. */
	nbnic_client_end(&client[0], NBAR_STATUS_HOST_DIED);
	nbnic_client_end(&more[1], NBAR_STATUS_CLOSED);
	assert_int_equal(w.device.user[0].nattached, 0);
	world_end();
}

/* Opens and closes a group so many times: each time leaves a group that lingers. */
static void open_and_close(struct nbnic_client *c, uint32_t size, uint32_t times)
{
	while (times-- > 0) {
		assert_int_equal(group_open(c, "linear", 0, size), 0);
		group_close(c, 0);
	}
}

static const struct nbnic_user_linger *lingering(const struct nbnic_client *c)
{
	return &w.device.nic.user[c->user];
}

/* Handles have a limit. The other user has few lingering groups; the greedy user loses its own
 * lingering groups. */
static void handles_of_another_user_stay(void **state)
{
	world_begin(0, HALF);
	assert_int_equal(port_open_as(&client[0], GREEDY), 0);
	assert_int_equal(port_open_as(&client[1], OTHER), 0);
	open_and_close(&client[1], 2, 100);
	open_and_close(&client[0], 2, 2 * NBNIC_HANDLES);
	assert_true(w.device.nic.counter[NBAR_COUNTER_linger_cut] > NBNIC_HANDLES);
	assert_int_equal(lingering(&client[1])->n, 100);
	assert_int_equal(lingering(&client[0])->n, NBNIC_HANDLES - 100);
	clients_end(2);
	world_end();
}

/* A user that has as many lingering groups as another, or as many bytes, loses its own. */
static void equal_parts_stay(void **state)
{
	for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
		const uint32_t each = by_bytes ? 2 : NBNIC_HANDLES / 2;

		world_begin(0, HALF);
		for (uint32_t i = 0; i < 2; i++) {
			assert_int_equal(port_open_as(&client[i], i ? OTHER : GREEDY), 0);
			open_and_close(&client[i], 2, each);
		}
		if (by_bytes)
			w.device.nic.linger_bytes_max = w.device.nic.linger_bytes;
		for (uint32_t i = 0; i < 2; i++) {
			open_and_close(&client[i], 2, 1);
			assert_int_equal(w.device.nic.counter[NBAR_COUNTER_linger_cut], i + 1);
			assert_int_equal(lingering(&client[0])->n, each);
			assert_int_equal(lingering(&client[1])->n, each);
		}
		clients_end(2);
		world_end();
	}
}

/* Memory has a limit: few groups, but large groups. */
static void memory_of_another_user_stays(void **state)
{
	world_begin(UINT64_C(8) << 20, HALF);
	assert_int_equal(port_open_as(&client[0], GREEDY), 0);
	assert_int_equal(port_open_as(&client[1], OTHER), 0);
	open_and_close(&client[1], NBFW_ROOT_MAX, 2);
	open_and_close(&client[0], NBFW_ROOT_MAX, 100);
	assert_true(w.device.nic.counter[NBAR_COUNTER_linger_cut] > 0);
	assert_int_equal(lingering(&client[1])->n, 2);
	/* A later user has the same right: the NIC releases lingering groups of the greedy user. */
	assert_int_equal(port_open_as(&client[2], 3), 0);
	open_and_close(&client[2], NBFW_ROOT_MAX, 1);
	assert_int_equal(lingering(&client[2])->n, 1);
	assert_int_equal(lingering(&client[1])->n, 2);
	assert_true(w.device.nic.linger_bytes <= w.device.nic.linger_bytes_max);
	clients_end(3);
	world_end();
}

/* The account of a user stays while groups of the user linger, unless another user needs it. */
static void accounts_are_used_again(void **state)
{
	world_begin(0, HALF);
	for (uint32_t i = 0; i < NBNIC_USERS_MAX; i++)
		assert_int_equal(port_open_as(&client[i], 100 + i), 0);
	assert_true(port_open_as(&client[NBNIC_USERS_MAX], 99) < 0);
	assert_non_null(strstr(w.out.head.text, "no room for another user: 64 have"));
	assert_int_equal(w.device.nopen, NBNIC_USERS_MAX);
	assert_false(nbnic_device_lingers(&w.device));
	assert_int_equal(group_open(&client[0], "linear", 0, 2), 0);
	nbnic_client_end(&client[0], NBAR_STATUS_HOST_DIED);
	assert_int_equal(port_open_as(&client[0], 100), 0); /* its own account */
	assert_int_equal(client[0].user, 0);
	assert_int_equal(lingering(&client[0])->n, 1);
	nbnic_client_end(&client[0], NBAR_STATUS_CLOSED);
	/* Of two accounts that only linger, the one with fewer groups goes. */
	assert_int_equal(group_open(&client[1], "linear", 0, 2), 0);
	assert_int_equal(group_open(&client[1], "linear", 0, 2), 0);
	nbnic_client_end(&client[1], NBAR_STATUS_CLOSED);
	assert_int_equal(port_open_as(&client[0], 99), 0);
	assert_int_equal(client[0].user, 0);
	assert_int_equal(lingering(&client[0])->n, 0);
	assert_int_equal(w.device.nic.counter[NBAR_COUNTER_linger_cut], 1);
	assert_int_equal(port_open_as(&client[1], 98), 0);
	assert_int_equal(client[1].user, 1);
	assert_int_equal(w.device.nic.counter[NBAR_COUNTER_linger_cut], 3);
	assert_int_equal(w.device.nic.nlinger, 0);
	passes(2);
	assert_true(port_open_as(&client[NBNIC_USERS_MAX + 1], 97) < 0);
	clients_end(NBNIC_USERS_MAX + 2);
	world_end();
}

/* One user may have all of a NIC: only the limits of the NIC itself apply. */
static void one_user_may_have_all(void **state)
{
	world_begin(0, 0);
	for (uint32_t i = 0; i < NBNIC_PORTS_MAX; i++)
		assert_int_equal(port_open_as(&client[i], GREEDY), 0);
	for (uint32_t i = 0; i < NBNIC_GROUPS_MAX; i++)
		assert_int_equal(group_open(&client[i], "pairwise", 0, 1), 0);
	assert_true(group_open(&client[0], "pairwise", 0, 1) < 0);
	assert_non_null(strstr(w.out.head.text, "n0 is full"));
	/* The group that did not open counts nowhere. */
	assert_int_equal(w.device.ngroup, NBNIC_GROUPS_MAX);
	assert_int_equal(w.device.nblock, NBNIC_GROUPS_MAX);
	assert_int_equal(w.device.user[0].ngroup, NBNIC_GROUPS_MAX);
	assert_int_equal(w.device.user[0].bytes, w.device.open_bytes);
	assert_int_equal(client[0].ngroup, 1);
	assert_int_equal(client[0].bytes, client[1].bytes);
	assert_int_equal(w.device.open_bytes, NBNIC_GROUPS_MAX * client[0].bytes);
	assert_int_equal(w.device.nic.counter[NBAR_COUNTER_quota_refused], 0);
	clients_end(NBNIC_PORTS_MAX);
	world_end();
}

UNIT_MAIN(NULL, NULL, UNIT(ports_of_a_user), UNIT(groups_of_a_user), UNIT(each_user_has_an_account),
	  UNIT(parts_of_a_user), UNIT(memory_of_a_user), UNIT(attachments_of_a_user),
	  UNIT(handles_of_another_user_stay), UNIT(equal_parts_stay),
	  UNIT(memory_of_another_user_stays), UNIT(accounts_are_used_again),
	  UNIT(one_user_may_have_all))
