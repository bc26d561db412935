/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicd.c - the soft NICs of one daemon: what nbnic_ops asks for, and the polling turn.
 *
 * Called by the polling thread. On the path from token to completion: no allocation, no lock, and
 * no system call but those of a wire and of waking a sleeper.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nicd.h"

#define YIELD_NS UINT64_C(200000) /* idle policy "sleep": from the last work to the first sleep */
#define DOZE_MIN_NS UINT64_C(10000)
#define FRAMES_A_TURN 64u         /* that a NIC takes from its wire */
#define CLOSES_A_CALL 16u         /* each may send frames to many peers: others come in between */
#define STOP_NS UINT64_C(5000000) /* that peers have left to ask: some pull intervals */

uint64_t nicd_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool on_transmit(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	struct nicd_nic *n = ctx;

	return n->wire->ops->transmit(n->wire, to, t);
}

static void on_complete(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, uint32_t status,
			uint32_t culprit)
{
	struct nicd_nic *n = ctx;

	page_complete(n->port[port], &n->nic, cell, epoch, status, culprit);
}

static void on_late(void *ctx, uint32_t port, uint32_t cell, const struct nbnic_late *late,
		    uint32_t nlate)
{
	struct nicd_nic *n = ctx;

	page_late(n->port[port], cell, late, nlate);
}

static bool on_deliver(void *ctx, uint32_t port, uint32_t cell, uint32_t src,
		       const uint32_t word[NBAR_SIGNAL_WORDS])
{
	struct nicd_nic *n = ctx;

	return page_deliver(n->port[port], cell, src, word);
}

/* The wire may have something for each of the peers. */
static void peers_end(const struct nicd_released *r)
{
	const struct nbnic_group *g = (const void *)r;
	struct wire_base *w = r->nic->wire;

	for (uint32_t i = 0; w->ops->peer_end && i < g->nconnected; i++)
		w->ops->peer_end(w, &g->peer[i].addr);
}

/* free() can take long: blocks wait on a list until the control thread takes them. */
static void on_release(void *ctx, struct nbnic_group *block)
{
	struct nicd_nic *n = ctx;
	struct nicd_released *r = (void *)block;

	r->nic = n;
	r->next = n->nicd->released;
	n->nicd->released = r;
}

static const struct nbnic_ops nic_ops = {
	.transmit = on_transmit,
	.complete = on_complete,
	.late = on_late,
	.deliver = on_deliver,
	.release = on_release,
};

void nicd_init(struct nicd *d, const struct nbnic_config *config)
{
	*d = (struct nicd){ .config = *config };
}

/* Of a wire, by the control thread. */
static void call(struct wire_base *w, wire_fn *fn, void *arg)
{
	struct nicd_nic *n = w->platform;

	mailbox_call(&n->nicd->mailbox, fn, arg);
}

int nicd_add(struct nicd *d, const char *name, struct wire_base *wire)
{
	struct nicd_nic *n;
	int rc;

	if (d->nnic == NBAR_NICS_MAX)
		return -ENOSPC;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	rc = nbnic_init(&n->nic, &nic_ops, n, wire->kind, &wire->addr, &d->config);
	if (rc < 0) {
		free(n);
		return rc;
	}
	strncpy(n->name, name, sizeof(n->name) - 1);
	n->wire = wire;
	wire->call = call;
	wire->platform = n;
	n->nicd = d;
	d->nic[d->nnic++] = n;
	return 0;
}

void nicd_count_wire(struct nicd_nic *n)
{
	n->nic.counter[NBAR_COUNTER_wire_errors] += n->wire->errors;
	n->nic.counter[NBAR_COUNTER_frames_malformed] += n->wire->malformed;
	n->nic.counter[NBAR_COUNTER_rdma_writes] += n->wire->writes;
	n->nic.counter[NBAR_COUNTER_wire_drops] += n->wire->drops;
	n->nic.counter[NBAR_COUNTER_wire_refused] += n->wire->refused;
	n->wire->errors = 0;
	n->wire->malformed = 0;
	n->wire->writes = 0;
	n->wire->drops = 0;
	n->wire->refused = 0;
}

bool nicd_turn(struct nicd *d, uint64_t now)
{
	bool work = mailbox_serve(&d->mailbox, now);

	for (uint32_t i = 0; i < d->nnic; i++) {
		struct nicd_nic *n = d->nic[i];

		for (uint32_t p = 0; p < n->nopen; p++)
			work |= page_scan(n->open[p], &n->nic, now);
		work |= n->wire->ops->poll(n->wire, &n->nic, now, FRAMES_A_TURN) > 0;
		if (now >= n->next_tick) {
			n->next_tick = now + d->config.pull_ns / 2;
			nbnic_tick(&n->nic, now);
			nicd_count_wire(n);
		}
	}
	return work;
}

/* The longer idle, the longer asleep: what comes soon is met soon. */
static void doze(struct nicd *d, uint64_t idle_ns)
{
	uint64_t ns = idle_ns / 8;

	if (ns < DOZE_MIN_NS)
		ns = DOZE_MIN_NS;
	mailbox_doze(&d->mailbox, ns < NICD_DOZE_MAX_NS ? ns : NICD_DOZE_MAX_NS);
}

void nicd_run(struct nicd *d, enum nicd_idle idle, uint64_t spin_ns)
{
	uint64_t now = nicd_clock(), work_at = now;

	for (; !d->stop_at || now < d->stop_at; now = nicd_clock()) {
		if (nicd_turn(d, now)) {
			work_at = now;
			continue;
		}
		if (now - work_at < spin_ns)
			continue;
		switch (idle) {
		case NICD_IDLE_SPIN:
			break;
		case NICD_IDLE_SLEEP:
			if (now - work_at < YIELD_NS)
				sched_yield();
			else
				doze(d, now - work_at);
			break;
		case NICD_IDLE_YIELD:
			sched_yield();
			break;
		}
	}
}

void nicd_stop(struct nicd *d, uint64_t now)
{
	for (uint32_t i = 0; i < d->nnic; i++) {
		struct nicd_nic *n = d->nic[i];

		for (uint32_t p = 0; p < n->nopen; p++)
			nbnic_port_close(&n->nic, n->open[p]->number, NBAR_STATUS_NIC_DOWN, now);
		n->nopen = 0; /* from now on no doorbell counts */
	}
	d->stop_at = now + STOP_NS;
}

void nicd_port_begin(struct nicd_nic *n, struct port *p)
{
	n->port[p->number] = p;
	n->open[n->nopen++] = p;
}

bool nicd_port_end(struct nicd_nic *n, struct port *p, uint8_t cause, uint64_t now)
{
	for (uint32_t i = 0; i < CLOSES_A_CALL && p->ncell > 0; i++) {
		uint32_t cell = p->ncell - 1; /* the highest in use */
		struct nbnic_group *g = p->group[cell];

		/* Processes that are attached to it stay, and are told. */
		if (p->held[cell])
			nbnic_group_fail(&n->nic, g, cause, now);
		page_cell_end(p, cell);
		nbnic_group_close(&n->nic, g, cause, now);
	}
	if (p->ncell > 0)
		return false;
	n->port[p->number] = NULL;
	for (uint32_t i = 0; i < n->nopen; i++) {
		if (n->open[i] == p) {
			n->open[i] = n->open[--n->nopen];
			break;
		}
	}
	return true;
}

struct nicd_released *nicd_take_released(struct nicd *d)
{
	struct nicd_released *list = d->released;

	d->released = NULL;
	return list;
}

uint32_t nicd_free_released(struct nicd_released *list, bool polled)
{
	uint32_t n = 0;

	for (; list; n++) {
		struct nicd_released *next = list->next;

		if (polled)
			peers_end(list);
		free(list);
		list = next;
	}
	return n;
}

void nicd_fini(struct nicd *d)
{
	for (uint32_t i = 0; i < d->nnic; i++) {
		struct nicd_nic *n = d->nic[i];

		nbnic_fini(&n->nic);
		n->wire->ops->close(n->wire);
		free(n);
	}
	d->nnic = 0;
	nicd_free_released(nicd_take_released(d), false);
}
