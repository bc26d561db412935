/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_reply.c - the end of a request: its reply or its refusal; and calls that never run at the
 * same time as a pass. The lowest layer of the files request*.c.
 */
#include "request.h"
#include "text.h"

int nbnic_request_fail(struct nbnic_request *r, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	nbnic_text_format(r->reply->text, sizeof(r->reply->text), format, args);
	va_end(args);
	r->reply->length = sizeof(*r->reply);
	return error;
}

void *nbnic_request_reply(struct nbnic_request *r, size_t size)
{
	void *at = (uint8_t *)r->reply + r->reply->length;

	__builtin_memset(at, 0, size);
	r->reply->length += (uint32_t)size;
	return at;
}

uint32_t nbnic_refuse(int error, const char *text, void *out)
{
	struct nbar_reply *reply = out;

	*reply = (struct nbar_reply){
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.length = sizeof(*reply),
		.status = error,
	};
	nbnic_text_copy(reply->text, sizeof(reply->text), text);
	return reply->length;
}

struct call {
	struct nbnic_device *device;
	nbnic_fn *fn;
	void *arg;
	struct nbnic_released *released;
};

static void run_call(void *arg, uint64_t now)
{
	struct call *c = arg;

	if (c->fn)
		c->fn(c->arg, now);
	c->released = c->device->released;
	c->device->released = NULL;
}

/* Tells the wire that a group has these peers no more. */
static void peers_end(struct wire_base *w, const struct nbnic_group *g)
{
	for (uint32_t i = 0; w->ops->peer_end && i < g->nconnected; i++)
		w->ops->peer_end(w, &g->peer[i].addr);
}

void nbnic_request_call(struct nbnic_device *d, nbnic_fn *fn, void *arg)
{
	struct call c = { .device = d, .fn = fn, .arg = arg };

	d->platform->exclusive(d->ctx, run_call, &c);
	while (c.released) {
		struct nbnic_released *next = c.released->next;

		if (!d->wire_closed)
			peers_end(d->wire, (const void *)c.released);
		d->platform->free(d->ctx, c.released);
		d->nblock--;
		c.released = next;
	}
}

void nbnic_device_reclaim(struct nbnic_device *d)
{
	nbnic_request_call(d, NULL, NULL);
}
