/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_remote.c - the control messages of remote hosts, which come over TCP (--attach).
 *
 * Called by the control thread when a host connects, then by the thread of the one user that all
 * remote hosts are. TCP has no messages: the length in the head of each tells where it ends. A host
 * first names the NIC; what its page needs is in remote.c.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control_internal.h"
#include "nbar_rdma.h"
#include "remote.h"

/* Bytes of the longest request of a host that has not proven itself. */
#define HELLO_MAX (sizeof(struct nbar_request) + sizeof(struct nbar_req_link_open))
_Static_assert(sizeof(struct nbar_req_link_prove) <= sizeof(struct nbar_req_link_open), "longest");

enum hello {
	HELLO_NEW,   /* the host has not named the NIC */
	HELLO_NAMED, /* it has, and must prove that it knows the key */
	HELLO_PROVEN /* it has; or the NIC has no key */
};

struct control_remote {
	enum hello hello;
	bool over;                          /* the reply is the last */
	uint8_t nonce[2 * NBAR_NONCE_SIZE]; /* of the NIC, and of the host */
	uint32_t have;
	union {
		struct nbar_request head;
		uint8_t byte[NBAR_MESSAGE_MAX];
	} in;
};

static void tcp_set(int fd, int level, int option, int value)
{
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

bool control_remote_begin(struct control_client *c)
{
	c->remote = calloc(1, sizeof(*c->remote));
	if (!c->remote)
		return false;
	tcp_set(c->fd, IPPROTO_TCP, TCP_NODELAY, 1);
	tcp_set(c->fd, SOL_SOCKET, SO_SNDBUF, 2 * NBAR_MESSAGE_MAX); /* a reply is sent whole */
	tcp_set(c->fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	tcp_set(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	tcp_set(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	tcp_set(c->fd, IPPROTO_TCP, TCP_KEEPCNT, NBAR_RDMA_SILENCE_S);
	tcp_set(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * NBAR_RDMA_SILENCE_S);
	return true;
}

bool control_remote_is_proven(const struct control_client *c)
{
	return !c->remote || c->remote->hello == HELLO_PROVEN;
}

bool control_remote_is_over(const struct control_client *c)
{
	return c->remote && c->remote->over;
}

ssize_t control_remote_receive(struct control_client *c, struct control_room *room)
{
	struct control_remote *r = c->remote;
	const uint32_t most = r->hello == HELLO_PROVEN ? NBAR_MESSAGE_MAX : HELLO_MAX;
	uint32_t wanted;
	ssize_t n;

	for (;;) {
		wanted = r->have < sizeof(r->in.head) ? sizeof(r->in.head) : r->in.head.length;
		if (wanted < sizeof(r->in.head) || wanted > most)
			return 0;
		if (r->have >= sizeof(r->in.head) && r->have == wanted)
			break;
		n = recv(c->fd, r->in.byte + r->have, wanted - r->have, MSG_DONTWAIT);
		if (n <= 0)
			return n;
		r->have += (uint32_t)n;
	}
	memcpy(room->in.byte, r->in.byte, wanted);
	r->have = 0;
	return wanted;
}

static void answer(struct control_room *room, int status, const char *text)
{
	nbnic_refuse(status, text, room->out.byte);
	room->out.head.seq = room->in.head.seq;
	room->out.head.op = room->in.head.op;
}

static void body_add(struct control_room *room, const void *body, size_t size)
{
	memcpy(&room->out.head + 1, body, size);
	room->out.head.length += (uint32_t)size;
}

/* The first request. */
static void link_open(struct control_client *c, struct control_room *room)
{
	const struct nbar_req_link_open *req = (const void *)(&room->in.head + 1);
	const struct nbar_request *q = &room->in.head;
	struct control *k = c->at->control;
	struct control_remote *r = c->remote;
	struct nbar_rep_link_open reply = { .keyed = 0 };
	const struct wire_auth *auth;
	char text[NBAR_NAME_MAX + 64];
	uint32_t i = 0;

	if (q->magic != NBAR_ABI_MAGIC || q->version != NBAR_ABI_VERSION ||
	    q->length != sizeof(*q) + sizeof(*req) || req->nic[NBAR_NAME_MAX - 1]) {
		answer(room, -NBAR_EPROTO, "install the same nbar for the host and for its NIC");
		return;
	}
	while (i < k->nnic && strcmp(k->nic[i].nic->device.name, req->nic) != 0)
		i++;
	if (i == k->nnic) {
		snprintf(text, sizeof(text), "there is no NIC %s in this daemon", req->nic);
		answer(room, -NBAR_ENOENT, text);
		return;
	}
	c->goes_to = &k->nic[i];
	auth = remote_auth(k->nicd->remote);
	memcpy(r->nonce + NBAR_NONCE_SIZE, req->nonce, NBAR_NONCE_SIZE);
	if (getrandom(r->nonce, NBAR_NONCE_SIZE, 0) != NBAR_NONCE_SIZE) {
		answer(room, -NBAR_EIO, "this machine gives no random numbers");
		return;
	}
	memcpy(reply.nonce, r->nonce, NBAR_NONCE_SIZE);
	reply.keyed = auth != NULL;
	if (auth)
		wire_auth_prove(auth, "nbar nic", r->nonce, reply.proof);
	r->hello = auth ? HELLO_NAMED : HELLO_PROVEN;
	answer(room, 0, "");
	body_add(room, &reply, sizeof(reply));
}

static void link_prove(struct control_client *c, struct control_room *room)
{
	const struct nbar_req_link_prove *req = (const void *)(&room->in.head + 1);
	uint8_t proof[NBAR_PROOF_SIZE], differs = 0;

	if (room->in.head.length != sizeof(room->in.head) + sizeof(*req)) {
		answer(room, -NBAR_EPROTO, "that is not the length of a proof");
		return;
	}
	wire_auth_prove(remote_auth(c->at->control->nicd->remote), "nbar host", c->remote->nonce,
			proof);
	for (uint32_t i = 0; i < NBAR_PROOF_SIZE; i++)
		differs |= proof[i] ^ req->proof[i];
	if (!differs)
		c->remote->hello = HELLO_PROVEN;
	answer(room, differs ? -NBAR_EACCES : 0,
	       differs ? "the host has another key than the NIC" : "");
}

static void port_join(struct control_client *c, struct control_room *room)
{
	const struct nbar_rdma_end *its = (const void *)(&room->in.head + 1);
	struct nicd_nic *nic = c->at->nic;
	char text[REMOTE_TEXT] =
		"this connection cannot have a page now: open a port, and no group";
	struct nbar_rdma_end mine;
	uint32_t port;
	int rc = -EALREADY;

	if (room->in.head.length != sizeof(room->in.head) + sizeof(*its)) {
		answer(room, -NBAR_EBADMSG, "that is not the length of this request");
		return;
	}
	port = c->client.port ? c->client.port->number : 0;
	if (c->client.port && !nic->remote[port])
		rc = remote_join(nic, port, c->fd, its, &mine, text);
	if (rc == 0) {
		const char *why = nbnic_client_mirror(&c->client);

		if (why) {
			rc = -EALREADY;
			remote_leave(nic, port);
			snprintf(text, sizeof(text), "%s", why);
		}
	}
	answer(room, rc < 0 ? -NBAR_EIO : 0, rc < 0 ? text : "");
	if (rc < 0)
		return;
	body_add(room, &mine, sizeof(mine));
}

/* A host has one try: the reply that refuses it is the last. */
static void hello_answer(struct control_client *c, struct control_room *room)
{
	uint16_t op = room->in.head.op;

	if (c->remote->hello == HELLO_NEW && op == NBAR_OP_LINK_OPEN)
		link_open(c, room);
	else if (c->remote->hello == HELLO_NEW)
		answer(room, -NBAR_EPROTO, "a remote host first names the NIC");
	else if (op == NBAR_OP_LINK_PROVE)
		link_prove(c, room);
	else
		answer(room, -NBAR_EACCES, "a remote host first proves that it knows the key");
	c->remote->over = room->out.head.status < 0;
}

bool control_remote_request(struct control_client *c, struct control_room *room)
{
	uint16_t op = room->in.head.op;

	if (c->remote->hello != HELLO_PROVEN)
		hello_answer(c, room);
	else if (op == NBAR_OP_LINK_OPEN || op == NBAR_OP_LINK_PROVE)
		answer(room, -NBAR_EALREADY, "this connection has a NIC");
	else if (op == NBAR_OP_PORT_JOIN)
		port_join(c, room);
	else if (op == NBAR_OP_GROUP_EVENTS)
		answer(room, -NBAR_EOPNOTSUPP,
		       "the library of a remote host makes this descriptor itself");
	else
		return false;
	return true;
}
