/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * look.c - finds out why a host has not arrived: its processes run, are stopped, or have ended.
 *
 * Called by the control thread after a pass has written to nicd.look_fd, because some member waits
 * for such a host. Never called in a pass, because it reads /proc.
 */
#include "control_internal.h"
#include "nbar_host.h"

#define PORTS 64u

/* The PORTS ports of a NIC from `first` on. */
struct look_call {
	struct nbnic_device *device;
	uint32_t first;
	uint64_t asked; /* a bit for each port */
	uint8_t why[PORTS];
};

/* Polling thread: collects the ports for whose hosts others wait. */
static void run_asked(void *arg, uint64_t now)
{
	struct look_call *call = arg;

	(void)now;
	for (uint32_t i = 0; i < PORTS; i++) {
		struct nbnic_port *p = call->device->port[call->first + i];

		if (p && p->asked) {
			p->asked = false;
			call->asked |= UINT64_C(1) << i;
		}
	}
}

/* Polling thread: gives the states to the ports. */
static void run_tell(void *arg, uint64_t now)
{
	const struct look_call *call = arg;

	for (uint32_t i = 0; i < PORTS; i++) {
		struct nbnic_port *p = call->device->port[call->first + i];

		if (!p || !call->why[i])
			continue;
		p->host = call->why[i];
		p->host_at = now;
	}
}
_Static_assert(NBNIC_PORTS_MAX % PORTS == 0, "the last call has as many ports as the others");

static uint8_t process_why(uint32_t pid)
{
	switch (nbar_process_state(pid)) {
	case 'T':
	case 't':
		return NBAR_WHY_HOST_STOPPED;
	case 'Z':
	case 'X':
	case 0:
		return NBAR_WHY_HOST_ENDED;
	}
	return NBAR_WHY_HOST_LATE;
}

/* If a port has several processes, the most serious state counts: ended, then stopped, then late.
 */
static void look_at_ports(struct look_call *call)
{
	for (const struct nbnic_client *c = call->device->client; c; c = c->next) {
		const struct nbnic_port *p = c->owner ? c->owner->port : c->port;
		uint32_t i = p ? p->number - call->first : PORTS;
		uint8_t why;

		if (i >= PORTS || !(call->asked >> i & 1))
			continue;
		why = c->pid ? process_why(c->pid) : NBAR_WHY_HOST_LATE;
		if (why > call->why[i])
			call->why[i] = why;
	}
}

/* True if one of these ports has an owner. This needs no mailbox_call, because the control thread
 * owns the table of owners. */
static bool is_used(const struct look_call *call)
{
	for (uint32_t i = 0; i < PORTS; i++)
		if (call->device->owner[call->first + i])
			return true;
	return false;
}

void control_look(struct control *k)
{
	uint64_t n;

	(void)!read(k->nicd->look_fd, &n, sizeof(n));
	for (uint32_t i = 0; i < k->nnic; i++)
		for (uint32_t first = 0; first < NBNIC_PORTS_MAX; first += PORTS) {
			struct look_call call = { .device = &k->nic[i].nic->device,
						  .first = first };

			if (!is_used(&call))
				continue;
			mailbox_call(&k->nicd->mailbox, run_asked, &call);
			if (!call.asked)
				continue;
			look_at_ports(&call);
			mailbox_call(&k->nicd->mailbox, run_tell, &call);
		}
}
