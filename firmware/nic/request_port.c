/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_port.c - opens a port for a client, and closes the port when the client ends.
 */
#include "mirror.h"
#include "request.h"

struct port_call {
	struct nbnic_device *device;
	struct nbnic_port *port;
	uint8_t cause;
	bool done;
	uint32_t uid, user; /* user: index of the account of uid */
};

static void run_port_open(void *arg, uint64_t now)
{
	struct port_call *call = arg;
	struct nbnic_device *d = call->device;

	(void)now;
	call->user = nbnic_user_find(d, call->uid);
	if (call->user == NBNIC_USERS_MAX)
		return;
	d->port[call->port->number] = call->port;
	call->port->open_index = d->nopen;
	d->open[d->nopen++] = call->port;
}

static void run_port_close(void *arg, uint64_t now)
{
	struct port_call *call = arg;

	call->done = nbnic_device_port_end(call->device, call->port, call->cause, now);
}

void nbnic_client_port_close(struct nbnic_client *c, uint8_t cause)
{
	struct nbnic_device *d = c->device;
	struct port_call call = { .device = d, .port = c->port, .cause = cause };

	d->ngroup -= c->ngroup;
	d->open_bytes -= c->bytes;
	d->user[c->user].ngroup -= c->ngroup;
	d->user[c->user].bytes -= c->bytes;
	while (!call.done)
		nbnic_request_call(d, run_port_close, &call);
	nbnic_client_detach_all(c);
	nbnic_client_abandon(c);
}

static void port_free(struct nbnic_device *d, struct nbnic_port *p)
{
	if (d->wire->ops->port_end)
		d->wire->ops->port_end(d->wire, p->number);
	d->platform->page_drop(d->ctx, p->number, p->page);
	if (nbnic_mirrors(p))
		d->platform->free(d->ctx, p->mirror);
	d->platform->free(d->ctx, p);
}

void nbnic_client_abandon(struct nbnic_client *c)
{
	struct nbnic_device *d = c->device;

	if (!c->port)
		return;
	d->owner[c->port->number] = NULL;
	d->user[c->user].nport--;
	port_free(d, c->port);
	c->port = NULL;
}

#if NBNIC_REMOTE
struct mirror_call {
	struct nbnic_port *port;
	struct nbnic_mirror *mirror;
};

static void run_mirror(void *arg, uint64_t now)
{
	const struct mirror_call *call = arg;

	/* The host starts its end of the connection meanwhile. */
	call->mirror->life_at = now + NBNIC_MIRROR_LIFE_NS;
	call->port->mirror = call->mirror;
}

const char *nbnic_client_mirror(struct nbnic_client *c)
{
	const struct nbnic_device *d = c->device;
	struct mirror_call call = { .port = c->port };

	if (!c->port || c->port->mirror || c->port->nlive > 0)
		return "the port has groups, or has a remote host already";
	if (c->port->completion != c->port->page->completion)
		return "no remote host can use a NIC on this wire; use another wire";
	call.mirror = d->platform->alloc(d->ctx, sizeof(*call.mirror));
	if (!call.mirror)
		return "no memory for the port of a remote host";
	__builtin_memset(call.mirror, 0, sizeof(*call.mirror));
	nbnic_request_call(c->device, run_mirror, &call);
	return NULL;
}

struct settle_call {
	struct nbnic_port *port;
	uint32_t seq;
};

static void run_settle(void *arg, uint64_t now)
{
	const struct settle_call *call = arg;

	(void)now;
	nbnic_mirror_settle(call->port, call->seq);
}

void nbnic_request_settle(struct nbnic_client *c, uint32_t seq)
{
	nbnic_request_call(c->device, run_settle, &(struct settle_call){ c->port, seq });
}
#endif

/* Replaces NBAR_PORT_ANY by a free port. A wanted port that is busy is an error. */
static int port_choose(struct nbnic_request *r, uint32_t *port)
{
	const struct nbnic_client *c = r->client;
	const struct nbnic_device *d = r->device;
	uint32_t wanted = *port, number = 0;

	if (c->port || c->owner)
		return nbnic_request_fail(r, -NBAR_EALREADY,
					  "this connection has port %u of %s already; open "
					  "another connection for another port",
					  c->port ? c->port->number : c->owner->port->number,
					  d->name);
	if (wanted != NBAR_PORT_ANY && wanted >= NBNIC_PORTS_MAX)
		return nbnic_request_fail(r, -NBAR_ERANGE, "port %u: %s has ports 0 to %u", wanted,
					  d->name, NBNIC_PORTS_MAX - 1);
	if (wanted != NBAR_PORT_ANY && d->owner[wanted] && !d->owner[wanted]->pid)
		return nbnic_request_fail(
			r, -NBAR_EBUSY,
			"port %u of %s is in use by a remote host, or by a process of another PID "
			"namespace; take another, or name none to get a free one",
			wanted, d->name);
	if (wanted != NBAR_PORT_ANY && d->owner[wanted])
		return nbnic_request_fail(r, -NBAR_EBUSY,
					  "port %u of %s is in use by process %u; take another, "
					  "or name none to get a free one",
					  wanted, d->name, d->owner[wanted]->pid);
	while (wanted == NBAR_PORT_ANY && number < NBNIC_PORTS_MAX && d->owner[number])
		number++;
	if (number == NBNIC_PORTS_MAX)
		return nbnic_request_fail(r, -NBAR_ENOSPC,
					  "all %u ports of %s are in use; use another NIC, or "
					  "end a process that has one (see nbar stat)",
					  NBNIC_PORTS_MAX, d->name);
	*port = wanted == NBAR_PORT_ANY ? number : wanted;
	return 0;
}

/* Makes a port and its page. */
static int port_make(struct nbnic_request *r, uint32_t number, struct nbnic_port **out)
{
	struct nbnic_device *d = r->device;
	struct nbnic_port *p = d->platform->alloc(d->ctx, sizeof(*p));
	struct nbar_results *results = NULL;
	int rc = -NBAR_ENOMEM;

	if (p) {
		__builtin_memset(p, 0, sizeof(*p));
		rc = d->platform->page_make(d->ctx, number, &p->page);
	}
	if (rc)
		d->platform->free(d->ctx, p);
	if (rc == -NBAR_EMFILE)
		return nbnic_request_fail(r, rc,
					  "no file descriptor for port %u of %s: uid %u or the "
					  "daemon has used all that it may; close ports, or "
					  "restart the daemon with a higher limit (ulimit -n)",
					  number, d->name, r->client->uid);
	if (rc)
		return nbnic_request_fail(r, rc,
					  "no memory for port %u of %s (error %d): close other "
					  "ports, or use another NIC",
					  number, d->name, -rc);
	if (d->wire->ops->port_begin)
		results = d->wire->ops->port_begin(d->wire, number);
	p->completion = results ? results->completion : p->page->completion;
	p->value = results ? results->value : p->page->value;
	p->platform = d->platform;
	p->ctx = d->ctx;
	p->number = number;
	p->pid = r->client->pid;
	p->uid = r->client->uid;
	nbnic_page_begin(p);
	*out = p;
	return 0;
}

int nbnic_request_port_open(struct nbnic_request *r)
{
	const struct nbar_req_port_open *req = r->body;
	struct nbnic_client *c = r->client;
	struct nbnic_device *d = r->device;
	struct port_call call = { .device = d, .uid = c->uid };
	uint32_t number = req->port;
	int rc;

	if (c->attach_only)
		return nbnic_request_fail(
			r, -NBAR_EACCES,
			"%s is inside process %u, and only that process opens its ports; "
			"attach to a port that it shares, or open a NIC of your own",
			d->name, d->pid);
	rc = port_choose(r, &number);
	if (rc == 0)
		rc = nbnic_user_check_port(r);
	if (rc)
		return rc;
	if (!d->platform->random(d->ctx, &c->secret[0]) ||
	    !d->platform->random(d->ctx, &c->secret[1]))
		return nbnic_request_fail(r, -NBAR_EIO,
					  "the machine of %s gives no random numbers for a secret",
					  d->name);
	rc = port_make(r, number, &call.port);
	if (rc)
		return rc;
	nbnic_request_call(d, run_port_open, &call);
	if (call.user == NBNIC_USERS_MAX) {
		port_free(d, call.port);
		return nbnic_request_fail(
			r, -NBAR_ENOSPC,
			"%s has no room for another user: %u have ports; use another NIC", d->name,
			NBNIC_USERS_MAX);
	}
	c->user = call.user;
	d->user[c->user].nport++;
	c->port = call.port;
	d->owner[number] = c;
	nbnic_request_port_reply(r, c);
	return 0;
}
