/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_nics.c - the soft NICs of loop.c. The only file here that uses internals of nbar-nicd.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "control.h"
#include "log.h"
#include "loop_nics.h"
#include "nicd.h"
#include "wires.h"

#define WIRE(i) (set.nic[i]->device.wire)

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

#ifdef LOOP_OLD /* a tree that is linked with DPDK, from which its wire ring may take memory */
int rte_eal_init(int argc, char **argv);

static const struct wire *wire_start(void)
{
	static char name[] = "bench-loop", level[] = "--log-level=3", huge[] = "--no-huge",
		    conf[] = "--no-shconf", pci[] = "--no-pci", m[] = "-m", mb[] = "64";
	char *argv[] = { name, level, huge, conf, pci, m, mb, NULL };

	if (rte_eal_init(7, argv) < 0)
		give_up("DPDK does not start");
	return wires_default();
}
#else
static const struct wire *wire_start(void)
{
	return wires_default();
}
#endif

/* This thread and those that it starts stay on one processor: the first that they may use. */
static void cpu_take(void)
{
	cpu_set_t set;
	unsigned cpu = 0;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &set))
			cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		give_up("no processor");
}

void loop_nics_start(uint32_t nnic, const char *run_dir)
{
	static const struct nbnic_config usual = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
						   .budget_ns = NBNIC_BUDGET_NS_DEFAULT };
	const struct control_config config = {
		.run_dir = run_dir,
		.mode = 0600,
		.group = (gid_t)-1,
		.stop_fd = eventfd(0, EFD_CLOEXEC),
	};
	const struct wire *row;
	struct control *control;
	char name[16];

	cpu_take();
	row = wire_start();
	nicd_init(&set, &usual);
	for (uint32_t i = 0; i < nnic; i++) {
		struct wire_base *wire;

		snprintf(name, sizeof(name), "n%u", i);
		if (wires_open(row, name, no_option, NULL, &wire) < 0 ||
		    nicd_add(&set, name, wire) < 0)
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

	return w->ops->poll(w, &set.nic[1]->device.nic, 0, n);
}
