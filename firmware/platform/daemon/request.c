/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c - what clients ask for: the checks all requests share, ports, and the NIC's counters.
 *
 * Called by control.c, in the control thread; functions named run_* are handed to the polling
 * thread. Nothing in a request is believed: each is checked here in full before it gets there. A
 * refusal says what is wrong and what to do about it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "control_internal.h"

int request_fail(struct control *k, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(k->out.head.text, sizeof(k->out.head.text), format, args);
	va_end(args);
	k->out.head.length = sizeof(k->out.head);
	k->out.head.status = error;
	k->out_fd = -1;
	return error;
}

void *request_reply(struct control *k, size_t size)
{
	void *at = k->out.byte + k->out.head.length;

	memset(at, 0, size);
	k->out.head.length += (uint32_t)size;
	return at;
}

struct port_call {
	struct nicd_nic *nic;
	struct port *port;
	uint8_t cause;
	bool done;
};

static void run_port_open(void *arg, uint64_t now)
{
	struct port_call *call = arg;

	(void)now;
	nicd_port_begin(call->nic, call->port);
}

static void run_port_close(void *arg, uint64_t now)
{
	struct port_call *call = arg;

	call->done = nicd_port_end(call->nic, call->port, call->cause, now);
}

void request_port_close(struct control_client *c, uint8_t cause)
{
	struct control *k = c->at->control;
	struct port_call call = { .nic = c->at->nic, .port = c->port, .cause = cause };

	k->ngroup -= c->ngroup;
	c->ngroup = 0;
	while (!call.done)
		control_call(k, run_port_close, &call);
	request_detach_all(c);
	c->at->owner[c->port->number] = NULL;
	page_destroy(c->port);
	free(c->port);
	c->port = NULL;
}

void request_port_reply(struct control_client *c, const struct control_client *owner)
{
	struct control *k = c->at->control;
	struct nbar_rep_port_open *rep = request_reply(k, sizeof(*rep));

	rep->port = owner->port->number;
	rep->page_size = sizeof(struct nbar_page);
	rep->pid = (uint32_t)getpid();
	memcpy(rep->secret, owner->secret, sizeof(rep->secret));
	memcpy(rep->nic, c->at->nic->name, sizeof(rep->nic));
	k->out_fd = owner->port->fd;
}

/* The port wanted, if it is free, or any. */
static int port_choose(struct control_client *c, uint32_t wanted, uint32_t *out)
{
	struct control *k = c->at->control;
	const char *nic = c->at->nic->name;
	uint32_t number = 0;

	if (c->port || c->owner)
		return request_fail(k, -EALREADY,
				    "this connection has port %u of %s already; open "
				    "another connection for another port",
				    c->port ? c->port->number : c->owner->port->number, nic);
	if (wanted != NBAR_PORT_ANY && wanted >= NBAR_PORTS_MAX)
		return request_fail(k, -ERANGE, "port %u: %s has ports 0 to %u", wanted, nic,
				    NBAR_PORTS_MAX - 1);
	if (wanted != NBAR_PORT_ANY && c->at->owner[wanted])
		return request_fail(k, -EBUSY,
				    "port %u of %s is in use by process %u; take another, "
				    "or name none to get a free one",
				    wanted, nic, c->at->owner[wanted]->pid);
	while (wanted == NBAR_PORT_ANY && number < NBAR_PORTS_MAX && c->at->owner[number])
		number++;
	if (number == NBAR_PORTS_MAX)
		return request_fail(k, -ENOSPC,
				    "all %u ports of %s are in use; use another NIC, or "
				    "end a process that has one (see nbar stat)",
				    NBAR_PORTS_MAX, nic);
	*out = wanted == NBAR_PORT_ANY ? number : wanted;
	return 0;
}

static int port_open(struct control_client *c, const struct nbar_req_port_open *req)
{
	struct control *k = c->at->control;
	struct port_call call = { .nic = c->at->nic };
	uint32_t number = 0;
	int rc = port_choose(c, req->port, &number);

	if (rc < 0)
		return rc;
	if (getrandom(c->secret, sizeof(c->secret), 0) != sizeof(c->secret))
		return request_fail(k, -EIO, "the kernel gives no random numbers for a secret");
	call.port = calloc(1, sizeof(*call.port));
	rc = call.port ? page_create(call.port, number) : -ENOMEM;
	if (rc < 0) {
		free(call.port);
		return request_fail(k, rc, "no memory for port %u of %s: %s", number,
				    c->at->nic->name, strerror(-rc));
	}
	call.port->pid = c->pid;
	call.port->uid = c->uid;
	control_call(k, run_port_open, &call);
	c->port = call.port;
	c->at->owner[number] = c;
	request_port_reply(c, c);
	return 0;
}

struct stat_call {
	struct nicd_nic *nic;
	struct nbar_rep_nic_stat *out;
};

static void run_nic_stat(void *arg, uint64_t now)
{
	struct stat_call *call = arg;

	(void)now;
	nicd_count_wire(call->nic);
	call->out->nport = call->nic->nopen;
	call->out->ngroup = call->nic->nic.nopen;
	call->out->nlinger = call->nic->nic.nlinger;
	memcpy(call->out->counter, call->nic->nic.counter, sizeof(call->nic->nic.counter));
}

static int nic_stat(struct control_client *c)
{
	struct control *k = c->at->control;
	const struct wire_base *wire = c->at->nic->wire;
	struct stat_call call = { .nic = c->at->nic, .out = request_reply(k, sizeof(*call.out)) };

	memcpy(call.out->nic, c->at->nic->name, sizeof(call.out->nic));
	snprintf(call.out->wire, sizeof(call.out->wire), "%s", wire->ops->name);
	memcpy(call.out->address, wire->text, sizeof(call.out->address));
	call.out->address[sizeof(call.out->address) - 1] = '\0';
	call.out->pid = (uint32_t)getpid();
	control_call(k, run_nic_stat, &call);
	return 0;
}

/* Length of the body that an op has at least, and whether more may follow it. */
static bool body_fits(enum nbar_op op, size_t length)
{
	switch (op) {
	case NBAR_OP_PORT_OPEN:
		return length == sizeof(struct nbar_req_port_open);
	case NBAR_OP_GROUP_OPEN:
		return length >= sizeof(struct nbar_req_group_open);
	case NBAR_OP_GROUP_CONNECT:
		return length >= sizeof(struct nbar_req_group_connect);
	case NBAR_OP_GROUP_CLOSE:
		return length == sizeof(struct nbar_req_group_close);
	case NBAR_OP_NIC_STAT:
		return length == 0;
	case NBAR_OP_GROUP_STAT:
		return length == sizeof(struct nbar_req_group_stat);
	case NBAR_OP_PORT_ATTACH:
		return length == sizeof(struct nbar_req_port_attach);
	case NBAR_OP_GROUP_ATTACH:
		return length == sizeof(struct nbar_req_group_attach);
	}
	return false;
}

static int dispatch(struct control_client *c, enum nbar_op op, const void *body, size_t length)
{
	struct control *k = c->at->control;
	bool needs_port = op == NBAR_OP_GROUP_OPEN || op == NBAR_OP_GROUP_CONNECT ||
			  op == NBAR_OP_GROUP_CLOSE;

	if (!body_fits(op, length))
		return request_fail(k, -EBADMSG,
				    "op %u with a body of %zu bytes: that is not its "
				    "length; is the client of another version?",
				    op, length);
	if (c->owner && op == NBAR_OP_GROUP_CLOSE)
		return request_group_let_go(c, body);
	if (c->owner && needs_port)
		return request_fail(k, -EPERM,
				    "this process is only attached to port %u of %s; groups "
				    "are opened by the one that opened the port",
				    c->owner->port->number, c->at->nic->name);
	if (needs_port && !c->port)
		return request_fail(k, -ENXIO,
				    "no port of %s is open on this connection; open one "
				    "first",
				    c->at->nic->name);
	if (op == NBAR_OP_PORT_OPEN && c->by_door)
		return request_fail(k, -EACCES,
				    "%s is inside process %d, which alone can open its ports; "
				    "attach to one that it shares, or open a NIC of your own",
				    c->at->nic->name, (int)getpid());
	switch (op) {
	case NBAR_OP_PORT_OPEN:
		return port_open(c, body);
	case NBAR_OP_GROUP_OPEN:
		return request_group_open(c, body, length);
	case NBAR_OP_GROUP_CONNECT:
		return request_group_connect(c, body, length);
	case NBAR_OP_GROUP_CLOSE:
		return request_group_close(c, body);
	case NBAR_OP_NIC_STAT:
		return nic_stat(c);
	case NBAR_OP_GROUP_STAT:
		return request_group_stat(c, body);
	case NBAR_OP_PORT_ATTACH:
		return request_port_attach(c, body);
	case NBAR_OP_GROUP_ATTACH:
		return request_group_attach(c, body);
	}
	return 0;
}

static int check_head(struct control *k, size_t length, bool truncated)
{
	const struct nbar_request *q = &k->in.head;

	if (length < sizeof(*q))
		return request_fail(k, -EBADMSG,
				    "a request of %zu bytes is shorter than its head of "
				    "%zu; send each request as one message",
				    length, sizeof(*q));
	if (q->magic != NBAR_ABI_MAGIC)
		return request_fail(k, -EPROTO,
				    "this is no request of nbar (it begins with 0x%08x, "
				    "not 0x%08x); use libnbar to talk to a NIC",
				    q->magic, NBAR_ABI_MAGIC);
	if (q->version != NBAR_ABI_VERSION)
		return request_fail(k, -EPROTO,
				    "the client speaks version %u, this daemon version "
				    "%u; install nbar-nicd and libnbar of one release",
				    q->version, NBAR_ABI_VERSION);
	if (truncated || q->length > NBAR_MESSAGE_MAX)
		return request_fail(k, -EMSGSIZE,
				    "the request is longer than %u bytes; send it in "
				    "parts",
				    NBAR_MESSAGE_MAX);
	if (q->length != length)
		return request_fail(k, -EBADMSG,
				    "a request that says it has %u bytes came with %zu; "
				    "send each request whole, as one message",
				    q->length, length);
	if (q->op < NBAR_OP_PORT_OPEN || q->op > NBAR_OP_GROUP_ATTACH)
		return request_fail(k, -EOPNOTSUPP, "unknown op %u: there are %u to %u", q->op,
				    NBAR_OP_PORT_OPEN, NBAR_OP_GROUP_ATTACH);
	return 0;
}

void request_answer(struct control_client *c, size_t length, bool truncated)
{
	struct control *k = c->at->control;

	k->out_fd = -1;
	k->out.head = (struct nbar_reply){
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = length >= sizeof(k->in.head) ? k->in.head.op : 0,
		.length = sizeof(k->out.head),
		.seq = length >= sizeof(k->in.head) ? k->in.head.seq : 0,
	};
	if (check_head(k, length, truncated) == 0)
		dispatch(c, k->in.head.op, &k->in.head + 1, length - sizeof(k->in.head));
}
