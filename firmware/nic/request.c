/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - clients, and the checks that all their requests share: length, version, op.
 */
#include "mirror.h"
#include "request.h"

/* The last op that this NIC knows. */
#define OP_LAST (NBNIC_LATENCY ? NBAR_OP_GROUP_LATENCY : NBAR_OP_GROUP_REACH)

/* Who may ask for an op. */
enum op_for { FOR_ALL, FOR_PORT, FOR_ATTACHED /* or for the port */ };

/* NULL, 0: an op that no client may ask for. */
static const struct op {
	int (*run)(struct nbnic_request *r);
	enum op_for whom;
	uint32_t length; /* of the body */
	bool longer;     /* the body may be longer */
} ops[] = {
	[NBAR_OP_PORT_OPEN] = { nbnic_request_port_open, FOR_ALL, sizeof(struct nbar_req_port_open),
				false },
	[NBAR_OP_GROUP_OPEN] = { nbnic_request_group_open, FOR_PORT,
				 sizeof(struct nbar_req_group_open), true },
	[NBAR_OP_GROUP_CONNECT] = { nbnic_request_group_connect, FOR_PORT,
				    sizeof(struct nbar_req_group_connect), true },
	[NBAR_OP_GROUP_CLOSE] = { nbnic_request_group_close, FOR_ATTACHED,
				  sizeof(struct nbar_req_group_close), false },
	[NBAR_OP_NIC_STAT] = { nbnic_request_nic_stat, FOR_ALL, 0, false },
	[NBAR_OP_GROUP_STAT] = { nbnic_request_group_stat, FOR_ALL,
				 sizeof(struct nbar_req_group_stat), false },
	[NBAR_OP_PORT_ATTACH] = { nbnic_request_port_attach, FOR_ALL,
				  sizeof(struct nbar_req_port_attach), false },
	[NBAR_OP_GROUP_ATTACH] = { nbnic_request_group_attach, FOR_ALL,
				   sizeof(struct nbar_req_group_attach), false },
	[NBAR_OP_GROUP_EVENTS] = { nbnic_request_group_events, FOR_PORT,
				   sizeof(struct nbar_req_group_events), false },
	[NBAR_OP_GROUP_ABORT] = { nbnic_request_group_abort, FOR_ATTACHED,
				  sizeof(struct nbar_req_group_abort), false },
	[NBAR_OP_GROUP_REACH] = { nbnic_request_group_reach, FOR_ATTACHED,
				  sizeof(struct nbar_req_group_reach), false },
	[NBAR_OP_NIC_LATENCY] = { NBNIC_LATENCY ? nbnic_request_nic_latency : NULL, FOR_ALL, 0,
				  false },
	[NBAR_OP_GROUP_LATENCY] = { NBNIC_LATENCY ? nbnic_request_group_latency : NULL, FOR_ALL,
				    sizeof(struct nbar_req_group_latency), false },
};

/* 0 if the client has the port that the op needs; otherwise the refusal. */
static int check_port(struct nbnic_request *r, const struct op *op)
{
	const struct nbnic_client *c = r->client;

	if (op->whom == FOR_ALL || c->port || (c->owner && op->whom == FOR_ATTACHED))
		return 0;
	if (c->owner)
		return nbnic_request_fail(r, -NBAR_EPERM,
					  "this process is only attached to port %u of %s; the "
					  "process that opened the port must do that",
					  c->owner->port->number, r->device->name);
	return nbnic_request_fail(r, -NBAR_ENXIO,
				  "no port of %s is open on this connection; open one "
				  "first",
				  r->device->name);
}

static int request_dispatch(struct nbnic_request *r, uint32_t number)
{
	const struct op *op = &ops[number];
	int rc;

	if (!op->run || r->length < op->length || (r->length > op->length && !op->longer))
		return nbnic_request_fail(r, -NBAR_EBADMSG,
					  "op %u with a body of %u bytes: that is not its "
					  "length; is the client of another version?",
					  number, r->length);
	rc = check_port(r, op);
	return rc ? rc : op->run(r);
}

static int request_check_head(struct nbnic_request *r, const struct nbar_request *q, size_t length,
			      bool truncated)
{
	if (length < sizeof(*q))
		return nbnic_request_fail(r, -NBAR_EBADMSG,
					  "a request of %u bytes is shorter than its head of "
					  "%u; send each request as one message",
					  (uint32_t)length, (uint32_t)sizeof(*q));
	if (q->magic != NBAR_ABI_MAGIC)
		return nbnic_request_fail(r, -NBAR_EPROTO,
					  "not an nbar request (it begins with 0x%x, "
					  "not 0x%x); use libnbar to talk to a NIC",
					  q->magic, NBAR_ABI_MAGIC);
	if (q->version != NBAR_ABI_VERSION)
		return nbnic_request_fail(r, -NBAR_EPROTO,
					  "the client speaks version %u, this daemon version "
					  "%u; install nbar-nicd and libnbar of one release",
					  q->version, NBAR_ABI_VERSION);
	if (truncated || q->length > NBAR_MESSAGE_MAX)
		return nbnic_request_fail(r, -NBAR_EMSGSIZE,
					  "the request is longer than %u bytes; send it in "
					  "parts",
					  NBAR_MESSAGE_MAX);
	if (q->length != length)
		return nbnic_request_fail(r, -NBAR_EBADMSG,
					  "a request that says it has %u bytes came with %u; "
					  "send each request whole, as one message",
					  q->length, (uint32_t)length);
	if (q->op < NBAR_OP_PORT_OPEN || q->op > OP_LAST)
		return nbnic_request_fail(r, -NBAR_EOPNOTSUPP, "unknown op %u: there are %u to %u",
					  q->op, NBAR_OP_PORT_OPEN, OP_LAST);
	return 0;
}

uint32_t nbnic_client_request(struct nbnic_client *c, const void *in, size_t length, bool truncated,
			      void *out)
{
	const struct nbar_request *q = in;
	struct nbnic_request r = {
		.client = c,
		.device = c->device,
		.body = q + 1,
		.reply = out,
	};
	int rc;

	c->gives_page = false;
	c->gives_events = false;
	__builtin_memset(r.reply, 0, sizeof(*r.reply));
	r.reply->magic = NBAR_ABI_MAGIC;
	r.reply->version = NBAR_ABI_VERSION;
	r.reply->op = length >= sizeof(*q) ? q->op : 0;
	r.reply->seq = length >= sizeof(*q) ? q->seq : 0;
	r.reply->length = sizeof(*r.reply);
	rc = request_check_head(&r, q, length, truncated);
	if (rc == 0) {
		r.length = (uint32_t)(length - sizeof(*q));
		rc = request_dispatch(&r, q->op);
	}
	r.reply->status = rc;
	if (c->port && nbnic_mirrors(c->port) && r.reply->seq)
		nbnic_request_settle(c, r.reply->seq);
	return r.reply->length;
}

void nbnic_client_begin(struct nbnic_device *d, struct nbnic_client *c, uint32_t pid, uint32_t uid,
			bool attach_only)
{
	__builtin_memset(c, 0, sizeof(*c));
	c->device = d;
	c->pid = pid;
	c->uid = uid;
	c->attach_only = attach_only;
	c->next = d->client;
	d->client = c;
}

void nbnic_client_end(struct nbnic_client *c, uint8_t cause)
{
	struct nbnic_client **at = &c->device->client;

	if (c->port)
		nbnic_client_port_close(c, cause);
	if (c->owner)
		nbnic_client_detach(c, cause);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
}
