/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_request_attach.c - requests of clients that attach to a port, of pollers, and for
 * statistics; and the texts of replies.
 */
#include "text.h"
#include "unit/nic/request_world.h"

static void test_attach(void **state)
{
	struct nbar_req_port_attach attach = { .port = 3 };
	struct nbar_req_group_attach hold = { .cell = 70 };
	const struct nbar_req_group_close cell = { .cell = 70 };

	port_open(&w.client, 3);
	for (uint32_t i = 0; i < 70; i++)
		group_open("pairwise", 0, 2);
	hold.endpoint = group_open("pairwise", 0, 2).endpoint;
	refuses(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold), NBAR_ENXIO,
		"this connection is not attached to a port of n0; attach");
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_ENOENT,
		"port 3 of n0 is not shared under this secret: has");
	attach.port = NBAR_PORTS_MAX;
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_ENOENT, "port 1024");
	attach.port = 3;
	memcpy(attach.secret, w.client.secret, sizeof(attach.secret));
	attach.secret[1] ^= UINT64_C(1) << 63;
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_ENOENT, "port 3");
	attach.secret[1] ^= UINT64_C(1) << 63;
	w.other.uid = 8;
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_EACCES,
		"port 3 of n0 belongs to uid 7, not to uid 8; a");
	w.other.uid = 7;
	w.device.nattached = NBAR_ATTACHED_MAX;
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_ENOSPC,
		"8192 processes are attached to ports of n0; have");
	w.device.nattached = 0;
	assert_int_equal(request(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	assert_int_equal(w.device.nattached, 1);
	assert_true(w.other.gives_page && w.other.page_port == 3);
	refuses(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach), NBAR_EALREADY, "this con");
	refuses(&w.other, NBAR_OP_PORT_OPEN, &cell, sizeof(cell), NBAR_EALREADY,
		"this connection has port 3 of n0 already; open");
	refuses(&w.other, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell), NBAR_EPERM,
		"this process is only attached to port 3 of n0; the");
	refuses(&w.other, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell), NBAR_ENOENT,
		"not attached to a group in cell 70");
	hold.cell = 69;
	refuses(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold), NBAR_ENOENT,
		"the group is not in cell 69 of port 3; was");
	hold.cell = 70;
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	assert_int_equal(w.client.port->cell[70].held, 1);
	assert_true(nbnic_client_holds(&w.other, 70));
	for (uint32_t i = 0; i < 70; i++)
		assert_false(nbnic_client_holds(&w.other, i));
	refuses(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold), NBAR_EALREADY,
		"attached to the group in cell 70 already");
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	assert_int_equal(w.client.port->cell[70].held, 0);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	/* The end of a client ends the group that it holds, and no other group. */
	nbnic_client_end(&w.other, NBAR_STATUS_HOST_DIED);
	assert_int_equal(w.device.nattached, 0);
	for (uint32_t i = 0; i <= 70; i++)
		assert_int_equal(w.client.port->page->completion[i].word >> 32,
				 i == 70 ? NBAR_STATUS_HOST_DIED : NBAR_STATUS_OK);
	nbnic_client_begin(&w.device, &w.other, 200, 7, false);
}

/* A cell that a client holds is given to no other group. */
static void test_held_cell(void **state)
{
	struct nbar_req_port_attach attach = { .port = 3 };
	struct nbar_req_group_attach hold = { .cell = 0 };
	struct nbar_req_group_close cell = { .cell = 0 };

	port_open(&w.client, 3);
	hold.endpoint = group_open("pairwise", 0, 2).endpoint;
	memcpy(attach.secret, w.client.secret, sizeof(attach.secret));
	assert_int_equal(request(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	assert_int_equal(w.client.port->page->completion[0].word >> 32, NBAR_STATUS_CLOSED);
	assert_int_equal(w.client.bytes, 0);
	refuses(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell), NBAR_ENOENT,
		"there is no group in cell 0 of port 3; was");
	assert_int_equal(group_open("pairwise", 0, 2).cell, 1);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	hold.endpoint = group_open("pairwise", 0, 2).endpoint;
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	nbnic_client_end(&w.other, NBAR_STATUS_HOST_DIED); /* no group is in its cell any more */
	nbnic_client_begin(&w.device, &w.other, 200, 7, false);
	assert_int_equal(group_open("pairwise", 0, 2).cell, 0);
}

/* A client holds the cells of the groups that it has attached to, and no other cell. */
static void test_held_cells(void **state)
{
	enum { CELLS = 129 };
	static const uint32_t cells[] = { 0, 63, 64, 127, 128 };
	const uint32_t n = sizeof(cells) / sizeof(cells[0]);
	struct nbar_req_port_attach attach = { .port = 3 };
	struct nbar_endpoint endpoint[CELLS];
	bool held[CELLS] = { false };

	port_open(&w.client, 3);
	for (uint32_t i = 0; i < CELLS; i++)
		endpoint[i] = group_open("pairwise", 0, 2).endpoint;
	memcpy(attach.secret, w.client.secret, sizeof(attach.secret));
	assert_int_equal(request(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)), 0);
	for (uint32_t k = 0; k < 2 * n; k++) { /* first attaches to all, then detaches */
		const uint32_t cell = cells[k % n];
		const struct nbar_req_group_attach hold = { .cell = cell,
							    .endpoint = endpoint[cell] };
		const struct nbar_req_group_close leave = { .cell = cell };

		held[cell] = k < n;
		assert_int_equal(
			k < n ? request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold))
			      : request(&w.other, NBAR_OP_GROUP_CLOSE, &leave, sizeof(leave)),
			0);
		for (uint32_t i = 0; i < CELLS; i++) {
			assert_int_equal(nbnic_client_holds(&w.other, i), held[i]);
			assert_int_equal(w.client.port->cell[i].held, held[i]);
		}
	}
	assert_false(nbnic_client_holds(&w.other, NBNIC_GROUPS_MAX));
	assert_true(w.client.secret[0] && w.client.secret[1]);
}

/* After the end of the port's owner, an attached client holds nothing, and may attach again. */
static void test_attach_again(void **state)
{
	struct nbar_req_port_attach attach = { .port = 3 };
	struct nbar_req_group_attach hold = { .cell = 0 };

	for (uint32_t i = 0; i < 2; i++) {
		port_open(&w.client, 3);
		hold.endpoint = group_open("pairwise", 0, 2).endpoint;
		memcpy(attach.secret, w.client.secret, sizeof(attach.secret));
		assert_int_equal(request(&w.other, NBAR_OP_PORT_ATTACH, &attach, sizeof(attach)),
				 0);
		assert_false(nbnic_client_holds(&w.other, 0));
		assert_int_equal(request(&w.other, NBAR_OP_GROUP_ATTACH, &hold, sizeof(hold)), 0);
		nbnic_client_end(&w.client, NBAR_STATUS_CLOSED);
		assert_int_equal(w.device.nattached, 0);
		nbnic_client_begin(&w.device, &w.client, 100, 7, false);
	}
}

static void test_events(void **state)
{
	struct nbar_req_group_events cell = { .cell = 0 };

	port_open(&w.client, 3);
	refuses(&w.client, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell), NBAR_ENOENT,
		"there is no group of barriers in cell 0 of this port of n0; was");
	group_open("pairwise", 0, 2);
	w.events_error = -NBAR_EMFILE;
	refuses(&w.client, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell), NBAR_EMFILE,
		"no socket for the group in cell 0 of n0 (error 24); poll");
	w.events_error = -NBAR_EPERM;
	refuses(&w.client, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell), NBAR_EPERM,
		"no socket for the group in cell 0 of n0 (error 1); poll");
	w.events_error = 0;
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_EVENTS, &cell, sizeof(cell)), 0);
	assert_true(w.client.gives_events && w.events && !w.client.gives_page);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	assert_false(w.client.gives_events || w.events);
}

static void test_statistics(void **state)
{
	const struct nbar_rep_nic_stat *stat = body();
	const struct nbar_rep_group_stat *rep = body();
	const struct nbar_group_info *info = (const void *)(rep + 1);
	struct nbar_req_group_stat req = { 0 };
	struct nbar_req_group_close cell = { .cell = 1 };

	port_open(&w.client, 3);
	for (uint32_t i = 0; i < 4; i++)
		group_open("pairwise", 0, 2);
	assert_int_equal(request(&w.client, NBAR_OP_GROUP_CLOSE, &cell, sizeof(cell)), 0);
	w.wire.errors = 5;
	w.wire.malformed = 6;
	w.wire.drops = 7;
	w.wire.refused = 8;
	w.wire.writes = 9;
	assert_int_equal(request(&w.other, NBAR_OP_NIC_STAT, "", 0), 0);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*stat));
	assert_string_equal(stat->nic, "n0");
	assert_string_equal(stat->wire, "road");
	assert_string_equal(stat->address, "a.b.c");
	assert_int_equal(stat->pid, 4711);
	assert_int_equal(stat->nport, 1);
	assert_int_equal(stat->ngroup, 3);
	assert_int_equal(stat->nlinger, 1);
	assert_int_equal(stat->counter[NBAR_COUNTER_wire_errors], 5);
	assert_int_equal(stat->counter[NBAR_COUNTER_frames_malformed], 6);
	assert_int_equal(stat->counter[NBAR_COUNTER_wire_drops], 7);
	assert_int_equal(stat->counter[NBAR_COUNTER_wire_refused], 8);
	assert_int_equal(stat->counter[NBAR_COUNTER_rdma_writes], 9);
	assert_int_equal(w.wire.errors + w.wire.malformed + w.wire.drops + w.wire.refused +
				 w.wire.writes,
			 0);
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_STAT, &req, sizeof(req)), 0);
	assert_int_equal(rep->ninfo, 2);
	assert_int_equal(rep->next, 2);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*rep) + 2 * sizeof(*info));
	assert_int_equal(info[0].pid, 100);
	assert_int_equal(info[0].uid, 7);
	assert_int_equal(info[0].cell, 0);
	assert_int_equal(info[1].life, NBAR_LIFE_LINGER);
	assert_int_equal(info[1].pid, 0); /* its port may have another owner by now */
	req.first = 3;
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_STAT, &req, sizeof(req)), 0);
	assert_int_equal(rep->ninfo, 1);
	assert_int_equal(rep->next, 0);
	assert_int_equal(info[0].index, 3);
	assert_int_equal(w.out.head.length, sizeof(w.out.head) + sizeof(*rep) + sizeof(*info));
	req.first = 4;
	assert_int_equal(request(&w.other, NBAR_OP_GROUP_STAT, &req, sizeof(req)), 0);
	assert_int_equal(rep->ninfo, 0);
	assert_int_equal(rep->next, 0);
}

static void format(char *out, size_t size, const char *text, ...)
{
	va_list args;

	va_start(args, text);
	nbnic_text_format(out, size, text, args);
	va_end(args);
}

static void test_texts(void **state)
{
	char text[64];

	format(text, sizeof(text), "%s %u %u %x %d %d %d %%", "a", 0u, UINT32_MAX, 0xcafe09u,
	       INT32_MIN, 0, 10);
	assert_string_equal(text, "a 0 4294967295 cafe09 -2147483648 0 10 %");
	format(text, sizeof(text), "50%");
	assert_string_equal(text, "50");
	memset(text, 'z', sizeof(text));
	format(text, 4, "%s", "abcdef");
	assert_string_equal(text, "abc");
	assert_int_equal(text[4], 'z');
	nbnic_text_copy(text, 4, "abcdef");
	assert_string_equal(text, "abc");
	nbnic_text_copy(text, 8, "ab");
	assert_memory_equal(text, "ab\0\0\0\0\0\0z", 9);
	assert_int_equal(nbnic_refuse(-NBAR_EMFILE, "no more", &w.out), sizeof(struct nbar_reply));
	assert_int_equal(w.out.head.status, -NBAR_EMFILE);
	assert_int_equal(w.out.head.magic, NBAR_ABI_MAGIC);
	assert_int_equal(w.out.head.version, NBAR_ABI_VERSION);
	assert_int_equal(w.out.head.length, sizeof(w.out.head));
	assert_string_equal(w.out.head.text, "no more");
}

UNIT_MAIN(NULL, NULL, REQUEST_TEST(test_attach), REQUEST_TEST(test_held_cell),
	  REQUEST_TEST(test_events), REQUEST_TEST(test_statistics), REQUEST_TEST(test_texts),
	  REQUEST_TEST(test_held_cells), REQUEST_TEST(test_attach_again))
