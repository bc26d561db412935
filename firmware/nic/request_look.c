/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_look.c - what the processes of hosts do that others wait for.
 *
 * On the side of requests, after platform->look. A platform whose processes cannot be looked at
 * never calls it: then a host that has not arrived is late, and nothing else is known.
 */
#include "request.h"

struct look_call {
	struct nbnic_device *device;
	uint64_t asked[(NBNIC_PORTS_MAX + 63) / 64];
	uint8_t what[NBNIC_PORTS_MAX];
};

/* Takes the ports that were asked for. */
static void run_asked(void *arg, uint64_t now)
{
	struct look_call *call = arg;

	(void)now;
	for (uint32_t i = 0; i < call->device->nopen; i++) {
		struct nbnic_port *p = call->device->open[i];

		if (p->asked)
			call->asked[p->number / 64] |= UINT64_C(1) << p->number % 64;
		p->asked = false;
	}
}

static void run_tell(void *arg, uint64_t now)
{
	const struct look_call *call = arg;

	for (uint32_t i = 0; i < call->device->nopen; i++) {
		struct nbnic_port *p = call->device->open[i];

		if (!call->what[p->number])
			continue;
		p->host = call->what[p->number];
		p->host_at = now;
	}
}

void nbnic_device_look(struct nbnic_device *d, uint8_t (*what)(uint32_t pid))
{
	struct look_call call = { .device = d };

	nbnic_request_call(d, run_asked, &call);
	/* Of a port with several processes, the one that is worst off. */
	for (const struct nbnic_client *c = d->client; c; c = c->next) {
		const struct nbnic_port *p = c->owner ? c->owner->port : c->port;

		if (!p || !(call.asked[p->number / 64] >> p->number % 64 & 1))
			continue;
		uint8_t is = what(c->pid);

		if (is > call.what[p->number])
			call.what[p->number] = is;
	}
	nbnic_request_call(d, run_tell, &call);
}
