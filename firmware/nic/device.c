/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - one whole NIC: joins groups, pages and wire, and runs the poll pass. See device.h.
 *
 * On the path from token to completion: no allocation, no lock, and no loop without a budget.
 */
#include "device.h"
#include "mirror.h"
#include "text.h"

#define CLOSES_A_CALL 16u /* groups that one call of nbnic_device_port_end closes */
/* While the wire has more frames than a pass takes, one of SIGNALS_EVERY passes still sends
 * signals: a stranger that floods the wire must not stop the signals of the hosts here. */
#define SIGNALS_EVERY 8u

/* Each TIMEOUT of a lent group wakes a daemon, and its PULLs wake others. */
#define LEND_PATIENCE 7u
#define TICK_NS UINT64_C(10000000)       /* between two ticks, at most */
#define LIVES_A_TICK 64u                 /* ports whose `life` word one tick changes */
#define LOOK_NS UINT64_C(100000000)      /* between two looks at the processes of hosts */
#define LOOK_OLD_NS UINT64_C(1000000000) /* the result of a look is too old after this time */

static bool on_transmit(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	const struct nbnic_device *d = ctx;

	return d->wire->ops->transmit(d->wire, to, t);
}

static void on_complete(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, uint32_t status,
			uint32_t failed_rank)
{
	struct nbnic_device *d = ctx;

	nbnic_page_complete(d->port[port], &d->nic, cell, epoch, status, failed_rank);
}

static int on_operand(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch,
		      struct nbfw_value *out, uint32_t most)
{
	const struct nbnic_device *d = ctx;

	return nbnic_page_operand(d->port[port], cell, epoch, out, most);
}

static void on_result(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch,
		      const struct nbfw_value *v, uint32_t length)
{
	const struct nbnic_device *d = ctx;

	nbnic_page_result(d->port[port], cell, epoch, v, length);
}

static void on_stragglers(void *ctx, uint32_t port, uint32_t cell,
			  const struct nbnic_straggler *straggler, uint32_t n)
{
	const struct nbnic_device *d = ctx;

	nbnic_page_stragglers(d->port[port], cell, straggler, n);
}

static bool on_deliver(void *ctx, uint32_t port, uint32_t cell, uint32_t src,
		       const uint32_t word[NBAR_SIGNAL_WORDS])
{
	const struct nbnic_device *d = ctx;

	return nbnic_page_deliver(d->port[port], cell, src, word);
}

/* Freeing memory can take long, so it is done with the requests, outside the pass. */
static void on_release(void *ctx, struct nbnic_group *block)
{
	struct nbnic_device *d = ctx;
	struct nbnic_released *r = (void *)block;

	r->next = d->released;
	d->released = r;
}

/* Returns why the host of a port has not arrived. Called for each PULL of a peer that waits for the
 * host, so it asks the platform to look at processes at most once in LOOK_NS. */
static uint8_t on_host(void *ctx, uint32_t port, uint64_t now)
{
	struct nbnic_device *d = ctx;
	struct nbnic_port *p = d->port[port];

	p->asked = true;
	if (d->platform->look && now >= d->look_next) {
		d->look_next = now + LOOK_NS;
		d->platform->look(d->ctx);
	}
	return p->host && now - p->host_at < LOOK_OLD_NS ? p->host : NBAR_WHY_HOST_LATE;
}

#if NBNIC_LEND
static void on_take(void *ctx, struct nbnic_group *g, uint64_t now)
{
	nbnic_lend_take(ctx, g, now);
}
#endif

static void on_trace(void *ctx, const struct nbar_trace_event *e)
{
	const struct nbnic_device *d = ctx;

	d->platform->trace(d->ctx, e);
}

static const struct nbnic_ops device_ops = {
	.transmit = on_transmit,
	.complete = on_complete,
	.operand = NBNIC_VALUES ? on_operand : NULL,
	.result = NBNIC_VALUES ? on_result : NULL,
	.stragglers = on_stragglers,
	.deliver = on_deliver,
#if NBNIC_LEND
	.take = on_take,
#endif
	.release = on_release,
	.host = on_host,
	.trace = NBNIC_TRACE ? on_trace : NULL,
};

int nbnic_device_init(struct nbnic_device *d, const char *name, struct wire_base *wire,
		      const struct nbnic_platform *platform, void *ctx,
		      const struct nbnic_config *config)
{
	uint64_t bytes = config->memory_bytes ? config->memory_bytes : NBNIC_MEMORY_BYTES;
	struct nbnic_config nic_config = *config;

	__builtin_memset(d, 0, sizeof(*d));
	nic_config.linger_bytes = bytes / 4;
	if (NBNIC_LEND && wire->ops->lend && !wire->auth)
		nic_config.patience = LEND_PATIENCE;
	d->wire = wire;
	d->platform = platform;
	d->ctx = ctx;
	d->pull_ns = config->pull_ns;
	d->open_bytes_max = bytes - bytes / 4;
	d->port_bytes_max = bytes / 4;
	nbnic_users_init(d, config->user_percent);
	nbnic_text_copy(d->name, sizeof(d->name), name);
	return nbnic_init(&d->nic, &device_ops, d, wire->kind, &wire->addr, &nic_config);
}

/* Sends the messages in the send rings of the hosts, round robin over the ports. Received frames go
 * first, because signals cause more frames; `received` is their number. */
__attribute__((noinline)) static bool send_signals(struct nbnic_device *d, unsigned received)
{
	uint32_t quota = d->nic.quota, budget = quota, at;

	if (received >= NBNIC_PASS_FRAMES(quota) && ++d->nwaited % SIGNALS_EVERY != 0)
		return false;
	if (d->signals_at >= d->nbusy)
		d->signals_at = 0;
	at = d->signals_at++;
	for (uint32_t i = 0; i < d->nbusy && budget; i++) {
		struct nbnic_port *p = d->open[at];
		uint32_t share = (quota + 1) / 2, most = budget < share ? budget : share;

		if (p->nsignal)
			budget -= nbnic_page_signals(p, &d->nic, most);
		at = at + 1 < d->nbusy ? at + 1 : 0;
	}
	return budget < quota;
}

/* Regular work that need not be done in each pass. Kept out of the path of a token. */
__attribute__((cold, noinline)) static bool tick(struct nbnic_device *d, uint64_t now)
{
	uint64_t half = d->pull_ns / 2;
	bool any = false, kicked = d->next_tick == 0;

	/* Hosts doubt a NIC that shows them no sign of life for a second, whatever pull_ns is. */
	d->next_tick = now + (half < TICK_NS ? half : TICK_NS);
	for (uint32_t i = 0; i < LIVES_A_TICK && i < d->nbusy; i++) {
		if (d->live_at >= d->nbusy)
			d->live_at = 0;
		if (NBNIC_LEND && d->wire->ops->lend)
			any |= nbnic_lend_look(d, d->open[d->live_at], kicked, now);
		nbnic_page_live(d->open[d->live_at]);
		if (nbnic_mirrors(d->open[d->live_at]))
			nbnic_mirror_look(d->open[d->live_at], now);
		d->live_at++;
	}
	return any;
}

bool nbnic_device_pass(struct nbnic_device *d, uint64_t now)
{
	unsigned got = d->wire->ops->poll(d->wire, &d->nic, now, NBNIC_PASS_FRAMES(d->nic.quota));
	bool work = got > 0;

	work |= nbnic_page_scan(d->open, d->nbusy, &d->nic, now);
	if (d->nic.nsignal)
		work |= send_signals(d, got);
	work |= nbnic_work(&d->nic, now);
	if (now >= d->next_tick)
		work |= tick(d, now);
	if (NBNIC_LEND && d->wire->ops->lend)
		work |= nbnic_lend_some(d, now);
	return work;
}

uint64_t nbnic_device_next(const struct nbnic_device *d)
{
	return nbnic_next(&d->nic);
}

void nbnic_device_ask_kicks(struct nbnic_device *d, bool wanted)
{
	for (uint32_t i = 0; i < d->nbusy; i++)
		nbnic_page_ask_kicks(d->open[i], wanted);
}

uint32_t nbnic_device_scans(const struct nbnic_device *d)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < d->nbusy; i++)
		if (d->open[i]->nlive > most)
			most = d->open[i]->nlive;
	return (most + NBNIC_SCAN_CELLS - 1) / NBNIC_SCAN_CELLS;
}

bool nbnic_device_lends_all(const struct nbnic_device *d)
{
	return NBNIC_LEND && d->wire->ops->lend && d->nlent == d->nic.nopen;
}

/* The quota of the wire protects ports from each other. So if only one port has groups, the quota
 * is at least NBNIC_QUOTA. */
static void set_quota(struct nbnic_device *d)
{
	uint32_t quota = d->wire->ops->quota;

	if (quota == 0 || (d->nbusy <= 1 && quota < NBNIC_QUOTA))
		quota = NBNIC_QUOTA;
	if (quota != d->nic.quota)
		nbnic_quota_set(&d->nic, quota);
}

static void open_put(struct nbnic_device *d, struct nbnic_port *p, uint32_t index)
{
	d->open[index] = p;
	p->open_index = index;
}

void nbnic_device_port_place(struct nbnic_device *d, struct nbnic_port *p)
{
	bool is_busy = p->open_index < d->nbusy;
	uint32_t from = p->open_index;

	if (is_busy == (p->nlive > 0))
		return;
	/* The port changes places with the first port without groups, or with the last port with
	 * groups. */
	d->nbusy -= is_busy;
	open_put(d, d->open[d->nbusy], from);
	open_put(d, p, d->nbusy);
	d->nbusy += !is_busy;
	set_quota(d);
}

bool nbnic_device_port_end(struct nbnic_device *d, struct nbnic_port *p, uint8_t cause,
			   uint64_t now)
{
	for (uint32_t i = 0; i < CLOSES_A_CALL && p->nlive > 0; i++) {
		uint32_t cell = p->live[p->nlive - 1];
		struct nbnic_group *g = p->cell[cell].group;

		/* Attached processes still read the cell: its completion word must tell them. */
		if (p->cell[cell].held)
			nbnic_group_fail(&d->nic, g, cause, now);
		nbnic_cell_end(p, cell);
		nbnic_device_port_place(d, p);
		nbnic_group_close(&d->nic, g, cause, now);
	}
	if (p->nlive > 0)
		return false;
	if (d->port[p->number] != p) /* the NIC has stopped: it has no port any more */
		return true;
	d->port[p->number] = NULL;
	open_put(d, d->open[--d->nopen], p->open_index);
	return true;
}

void nbnic_device_stop(struct nbnic_device *d, uint64_t now)
{
	/* No group is opened any more, so closed groups may use all memory while they linger. */
	d->nic.linger_bytes_max = UINT64_MAX;
	while (d->nopen > 0)
		nbnic_device_port_end(d, d->open[0], NBAR_STATUS_NIC_DOWN, now);
}

void nbnic_device_end(struct nbnic_device *d)
{
	nbnic_fini(&d->nic);
	while (d->released) {
		struct nbnic_released *next = d->released->next;

		d->platform->free(d->ctx, d->released);
		d->released = next;
	}
}
