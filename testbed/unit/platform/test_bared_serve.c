/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bared_serve.c - clients of nbar-bared without a machine: the clients that must make room for
 * others, and the memory that an attached client may get.
 *
 * nic_call here replaces the firmware: each reply carries `page`.
 */
#include "serve.c"

#include "unit/unit.h"

static struct bared_control control;
static const struct options options = { .set = { .name = "n0", .nport = 2 } };
static struct nic machine = { .options = &options, .control = &control };
static struct serve s;
static uint32_t page; /* 1 + port; 0: none */
static unsigned nrequest;
static int host[BARED_CLIENTS_MAX]; /* the other ends */

int nic_call(struct nic *n, enum bared_op op)
{
	n->control->answer = (struct bared_answer){ .length = sizeof(struct nbar_reply),
						    .page = op == BARED_REQUEST ? page : 0 };
	nrequest += op == BARED_REQUEST;
	return 0;
}

bool nic_heard(struct nic *n)
{
	return !n->failed;
}

void nic_stop(struct nic *n)
{
	n->stopping = true;
}

/* A connected client in place i. */
static struct client *connect_client(uint32_t i, uint32_t uid)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
	s.client[i] = (struct client){
		.fd = fd[0],
		.uid = uid,
		.port = NO_PORT,
		.attached = NO_PORT,
		.heard_at = ++s.nheard,
	};
	if (host[i] >= 0)
		close(host[i]);
	host[i] = fd[1];
	return &s.client[i];
}

/* False: the client must be dropped. */
static bool ask(struct client *c, uint32_t op, uint32_t port, uint32_t answer)
{
	struct nbar_request *q = (void *)control.in;
	struct nbar_req_port_open *open = (void *)(q + 1);

	memset(control.in, 0, sizeof(control.in));
	q->magic = NBAR_ABI_MAGIC;
	q->op = (uint16_t)op;
	open->port = port;
	page = answer;
	return serve_forward(&s, c, sizeof(*q) + sizeof(*open), false);
}

static int setup(void **state)
{
	memset(&s, 0, sizeof(s));
	s.nic = &machine;
	for (uint32_t i = 0; i < BARED_CLIENTS_MAX; i++)
		s.client[i].fd = host[i] = -1;
	for (uint32_t i = 0; i < options.set.nport; i++)
		machine.page_fd[i] = STDERR_FILENO;
	return 0;
}

static int teardown(void **state)
{
	for (uint32_t i = 0; i < BARED_CLIENTS_MAX; i++) {
		if (s.client[i].fd >= 0)
			close(s.client[i].fd);
		if (host[i] >= 0)
			close(host[i]);
	}
	return 0;
}

/* Clients of one port take all places. When the owner of the port has ended, these clients make
 * room. */
static void attached_make_room(void **state)
{
	struct client *owner = connect_client(0, 1000);

	assert_true(ask(owner, NBAR_OP_PORT_OPEN, NBAR_PORT_ANY, 1));
	for (uint32_t i = 1; i < BARED_CLIENTS_MAX; i++)
		assert_true(ask(connect_client(i, 1000), NBAR_OP_PORT_ATTACH, 0, 1));
	assert_null(client_place(&s));
	client_drop(&s, owner);
	assert_ptr_equal(client_place(&s), owner);
	connect_client(0, 1000);
	assert_ptr_equal(client_place(&s), &s.client[1]);
	assert_int_equal(s.client[1].fd, -1);
}

/* A client that was attached may open a port, under the same rules as any other client. */
static void attached_no_more(void **state)
{
	struct client *other = connect_client(0, 1001), *owner = connect_client(1, 1000);
	struct client *attached = connect_client(2, 1000);

	assert_true(ask(other, NBAR_OP_PORT_OPEN, 1, 2));
	client_drop(&s, other);
	assert_true(ask(owner, NBAR_OP_PORT_OPEN, 0, 1));
	assert_true(ask(attached, NBAR_OP_PORT_ATTACH, 0, 1));
	client_drop(&s, owner);
	nrequest = 0;
	assert_true(ask(attached, NBAR_OP_PORT_OPEN, 1, 2)); /* port 1 is for uid 1001 */
	assert_int_equal(nrequest, 0);
	assert_int_equal(attached->port, NO_PORT);
	assert_true(ask(attached, NBAR_OP_PORT_OPEN, NBAR_PORT_ANY, 1));
	assert_int_equal(nrequest, 1);
	assert_int_equal(attached->port, 0);
}

UNIT_MAIN(NULL, NULL, UNIT_IN(attached_make_room, setup, teardown),
	  UNIT_IN(attached_no_more, setup, teardown))
