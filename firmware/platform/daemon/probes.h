/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probes.h - USDT probes of the daemon, for bpftrace, perf and gdb: provider "nbar", probes
 * doorbell, completion, late and silent (nbar-nicd(8)).
 *
 * Called by the polling thread. A probe fires from the trace of the NIC, which is off while nobody
 * has attached to a probe. Without <sys/sdt.h> all of this is empty.
 */
#ifndef NBAR_DAEMON_PROBES_H
#define NBAR_DAEMON_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "nbar_trace.h"

#define PROBES_LOOK_NS UINT64_C(100000000) /* between two checks for tracers */

#ifdef NBAR_SDT
/* True if a tracer has attached to a probe. */
bool probes_wanted(void);

void probes_fire(const char *nic, const struct nbar_trace_event *e);
#else
static inline bool probes_wanted(void)
{
	return false;
}

static inline void probes_fire(const char *nic, const struct nbar_trace_event *e)
{
	(void)nic, (void)e;
}
#endif

#endif
