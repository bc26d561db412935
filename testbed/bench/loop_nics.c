/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_nics.c - the soft NICs of loop.c. The only file here that uses internals of nbar-nicd.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rte_eal.h>

#include "control.h"
#include "loop_nics.h"
#include "nicd.h"

#ifdef LOOP_OLD /* a tree without firmware/nic/device.h */
#define WIRE(i) (set.nic[i]->wire)
#define POLL(w, i, n) ((w)->ops->poll(w, &set.nic[i]->nic, 0))
#define OPEN(name, dev, wire) ((void)(dev), wire_ring_ops.open(name, no_option, NULL, wire))
#else
#include "wires.h"
#define OPEN(name, dev, wire) (open_wire(name, dev, wire))
#define WIRE(i) (set.nic[i]->device.wire)
#define POLL(w, i, n) ((w)->ops->poll(w, &set.nic[i]->device.nic, 0, n))
#endif

static struct nicd set;
static uint64_t stopped; /* the time at which the clock was stopped; 0: it runs */

static void give_up(const char *what)
{
	fprintf(stderr, "bench-loop: %s\n", what);
	exit(1);
}

static const char *no_option(void *args, const char *key)
{
	(void)args;
	(void)key;
	return NULL;
}

#ifndef LOOP_OLD
static const char *dev_option(void *args, const char *key)
{
	return strcmp(key, "dev") == 0 ? args : NULL;
}

static int open_wire(const char *name, char *dev, struct wire_base **out)
{
	const struct wire *row;

	if (!dev)
		return wires_open(wires_default(), name, no_option, NULL, out);
	if (wires_find("bench-loop", "dpdk", WIRE_IN_DAEMON, &row) < 0)
		give_up("there is no wire dpdk");
	return wires_open(row, name, dev_option, dev, out);
}
#endif

static void eal_start(uint32_t nnic, char *const iface[])
{
	static char name[] = "bench-loop", level[] = "--log-level=3", huge[] = "--no-huge",
		    conf[] = "--no-shconf", pci[] = "--no-pci", telemetry[] = "--no-telemetry",
		    m[] = "-m", mb[] = "64", vdev[2][64];
	char *argv[11] = { name, level, huge, conf, pci, telemetry, m, mb };
	int argc = 8;

	for (uint32_t i = 0; iface && i < nnic && i < 2; i++) {
		snprintf(vdev[i], sizeof(vdev[i]), "--vdev=net_af_packet%u,iface=%s", i, iface[i]);
		argv[argc++] = vdev[i];
	}
	if (rte_eal_init(argc, argv) < 0)
		give_up("DPDK does not start");
}

void loop_nics_start(uint32_t nnic, const char *run_dir, char *const iface[])
{
	static const struct nbnic_config usual = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
						   .budget_ns = NBNIC_BUDGET_NS_DEFAULT };
	const struct control_config config = {
		.run_dir = run_dir,
		.mode = 0600,
		.group = (gid_t)-1,
		.stop_fd = eventfd(0, EFD_CLOEXEC),
	};
	struct control *control;
	char name[16], dev[32];

	eal_start(nnic, iface);
	nicd_init(&set, &usual);
	for (uint32_t i = 0; i < nnic; i++) {
		struct wire_base *wire;

		snprintf(name, sizeof(name), "n%u", i);
		snprintf(dev, sizeof(dev), "net_af_packet%u", i);
		if (OPEN(name, iface ? dev : NULL, &wire) < 0 || nicd_add(&set, name, wire) < 0)
			give_up("a NIC does not start");
	}
	if (control_start(&set, &config, &control) < 0)
		give_up("control sockets");
}

bool loop_nics_pass(void)
{
	return nicd_pass(&set, stopped ? stopped : nicd_clock());
}

void loop_nics_stop_clock(void)
{
	stopped = nicd_clock();
}

void loop_nics_send(uint32_t n)
{
	struct wire_base *w = WIRE(0);
	/* No handle has generation 0. */
	const struct nbfw_token t = { .type = NBFW_TOKEN, .handle = 1 };

	for (uint32_t i = 0; i < n; i++)
		w->ops->transmit(w, &WIRE(1)->addr, &t);
}

uint32_t loop_nics_take(uint32_t n)
{
	struct wire_base *w = WIRE(1);

	(void)n; /* an old poll() has no budget */
	return POLL(w, 1, n);
}
