/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_latency.c - answers requests for latency: how long the barriers of a NIC took, and from
 * which ranks their last tokens came. Clients need no port for these requests. Never on the path
 * from token to completion.
 */
#include "request.h"

#if NBNIC_LATENCY

/* Limits, so that the pass does not wait for long. */
#define LOOKS_A_CALL 512u /* slots that one call looks at */
#define LASTS_A_CALL 64u  /* entries that one call returns */

struct nic_call {
	const struct nbnic_device *device;
	struct nbar_rep_nic_latency *out;
};

static void run_nic_latency(void *arg, uint64_t now)
{
	const struct nic_call *call = arg;
	const struct nbnic_latency *latency = &call->device->nic.latency;
	const uint32_t n = sizeof(latency->bucket) / sizeof(latency->bucket[0]);

	(void)now;
	call->out->ns = latency->ns;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t to = i < NBAR_LATENCY_BUCKETS ? i : NBAR_LATENCY_BUCKETS - 1;

		call->out->bucket[to] += latency->bucket[i];
	}
}

int nbnic_request_nic_latency(struct nbnic_request *r)
{
	struct nic_call call = { .device = r->device };

	call.out = nbnic_request_reply(r, sizeof(*call.out));
	nbnic_request_call(r->device, run_nic_latency, &call);
	return 0;
}

struct group_call {
	const struct nbnic_device *device;
	const struct nbar_req_group_latency *req;
	struct nbar_rep_group_latency *rep;
	struct nbar_last *last; /* room for LASTS_A_CALL */
	bool found;
};

/* The group that a client may ask about: an open one with a plan. */
static const struct nbnic_group *find(const struct nbnic_device *d,
				      const struct nbar_req_group_latency *req)
{
	const struct nbnic_port *p = req->port < NBNIC_PORTS_MAX ? d->port[req->port] : NULL;
	const struct nbnic_group *g = p ? nbnic_cell_group(p, req->cell) : NULL;

	return g && g->plan ? g : NULL;
}

static void run_group_latency(void *arg, uint64_t now)
{
	struct group_call *call = arg;
	const struct nbnic_group *g = find(call->device, call->req);
	uint32_t i = call->req->first, looked = 0;

	(void)now;
	if (!g)
		return;
	call->found = true;
	call->rep->index = g->handle & 0xffff;
	call->rep->rank = g->rank;
	for (; i <= g->plan->nrecv && looked < LOOKS_A_CALL && call->rep->nlast < LASTS_A_CALL;
	     i++) {
		const struct nbnic_last *l = &g->last[i];

		looked++;
		if (l->barriers == 0)
			continue;
		call->last[call->rep->nlast++] = (struct nbar_last){
			.rank = i == 0 ? g->rank : nbfw_plan_recvs(g->plan)[i - 1].src,
			.barriers = l->barriers,
			.ns = l->ns,
			.most_ns = l->most << NBNIC_LATENCY_SHIFT,
		};
	}
	call->rep->next = i <= g->plan->nrecv ? i : 0;
}

int nbnic_request_group_latency(struct nbnic_request *r)
{
	struct group_call call = { .device = r->device, .req = r->body };

	call.rep = nbnic_request_reply(r, sizeof(*call.rep));
	call.last = nbnic_request_reply(r, LASTS_A_CALL * sizeof(*call.last));
	nbnic_request_call(r->device, run_group_latency, &call);
	if (!call.found)
		return nbnic_request_fail(r, -NBAR_ENOENT,
					  "port %u of %s has no group with barriers in cell %u; "
					  "nbar stat shows the groups",
					  call.req->port, r->device->name, call.req->cell);
	r->reply->length -= (uint32_t)((LASTS_A_CALL - call.rep->nlast) * sizeof(*call.last));
	return 0;
}

#endif
