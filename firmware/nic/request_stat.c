/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_stat.c - what a NIC says of itself: its counters, and the state of its groups. Clients
 * need no port for these requests.
 */
#include "request.h"
#include "text.h"

/* What one call looks at, so that the pass does not wait for long. */
#define TAKES_A_CALL 16u
#define INFOS_A_CALL 2u
#define HANDLES_A_CALL 256u

struct stat_call {
	struct nbnic_device *device;
	struct nbar_rep_nic_stat *out;
	uint32_t next; /* the handle that run_lent_take looks at next */
	bool taken;    /* the counts of all lent groups */
};

/* Moves the counters of the wire to the counters of the NIC. */
static void count_wire(struct nbnic_device *d)
{
	struct wire_base *w = d->wire;

	d->nic.counter[NBAR_COUNTER_wire_errors] += w->errors;
	d->nic.counter[NBAR_COUNTER_frames_malformed] += w->malformed;
	d->nic.counter[NBAR_COUNTER_rdma_writes] += w->writes;
	d->nic.counter[NBAR_COUNTER_wire_drops] += w->drops;
	d->nic.counter[NBAR_COUNTER_wire_refused] += w->refused;
	w->errors = 0;
	w->malformed = 0;
	w->writes = 0;
	w->drops = 0;
	w->refused = 0;
}

static void run_lent_take(void *arg, uint64_t now)
{
	struct stat_call *call = arg;
	struct nbnic *nic = &call->device->nic;
	uint32_t n = 0, looked = 0;

	for (; call->next < nic->high && n < TAKES_A_CALL && looked < HANDLES_A_CALL; looked++) {
		struct nbnic_group *g = nic->group[call->next++];

		n += g && g->lent;
		if (g)
			nbnic_take(nic, g, now);
	}
	call->taken = call->next >= nic->high;
}

static void run_nic_stat(void *arg, uint64_t now)
{
	struct stat_call *call = arg;
	const struct nbnic *nic = &call->device->nic;

	(void)now;
	count_wire(call->device);
	call->out->nport = call->device->nopen;
	call->out->ngroup = nic->nopen;
	call->out->nlinger = nic->nlinger;
	__builtin_memcpy(call->out->counter, nic->counter, sizeof(nic->counter));
}

int nbnic_request_nic_stat(struct nbnic_request *r)
{
	struct nbnic_device *d = r->device;
	struct stat_call call = { .device = d, .out = nbnic_request_reply(r, sizeof(*call.out)) };

	nbnic_text_copy(call.out->nic, sizeof(call.out->nic), d->name);
	nbnic_text_copy(call.out->wire, sizeof(call.out->wire), d->wire->name);
	nbnic_text_copy(call.out->address, sizeof(call.out->address), d->wire->text);
	nbnic_text_copy(call.out->address_why, sizeof(call.out->address_why), d->wire->why);
	call.out->pid = d->pid;
	while (NBNIC_LEND && d->wire->ops->lend && !call.taken)
		nbnic_request_call(d, run_lent_take, &call);
	nbnic_request_call(d, run_nic_stat, &call);
	return 0;
}

struct info_call {
	struct nbnic_device *device;
	uint32_t first, next, ninfo;
	struct nbar_group_info *info; /* room for INFOS_A_CALL */
};

static void run_group_stat(void *arg, uint64_t now)
{
	struct info_call *call = arg;
	struct nbnic *nic = &call->device->nic;
	uint32_t i = call->first, looked = 0;

	for (; i < nic->high && call->ninfo < INFOS_A_CALL && looked < HANDLES_A_CALL; i++) {
		struct nbnic_group *g = nic->group[i];
		struct nbar_group_info *info = &call->info[call->ninfo];
		const struct nbnic_port *p = g ? call->device->port[g->port] : NULL;

		looked++;
		if (!g)
			continue;
		nbnic_take(nic, g, now);
		nbnic_group_info(g, info);
		/* The port of a group that lingers may have another owner by now. */
		if (p && g->life != NBAR_LIFE_LINGER) {
			info->pid = p->pid;
			info->uid = p->uid;
		}
		call->ninfo++;
	}
	call->next = i < nic->high ? i : 0;
}

int nbnic_request_group_stat(struct nbnic_request *r)
{
	const struct nbar_req_group_stat *req = r->body;
	struct info_call call = { .device = r->device, .first = req->first };
	struct nbar_rep_group_stat *rep = nbnic_request_reply(r, sizeof(*rep));

	call.info = nbnic_request_reply(r, INFOS_A_CALL * sizeof(*call.info));
	nbnic_request_call(r->device, run_group_stat, &call);
	rep->ninfo = call.ninfo;
	rep->next = call.next;
	r->reply->length -= (uint32_t)((INFOS_A_CALL - call.ninfo) * sizeof(*call.info));
	return 0;
}
