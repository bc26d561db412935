/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probes.c - see probes.h. A probe is a NOP and a note in the ELF file. Tracers count themselves in
 * the semaphore of each probe that they attach to.
 */
#include "probes.h"

#ifdef NBAR_SDT

/* The macros of the header are not ISO C for clang. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

/* Tracers write to the semaphores, so these are volatile. */
#define SEMAPHORE(name)                                         \
	extern volatile unsigned short nbar_##name##_semaphore; \
	__attribute__((section(".probes"),                      \
		       visibility("hidden"))) volatile unsigned short nbar_##name##_semaphore

SEMAPHORE(doorbell);
SEMAPHORE(completion);
SEMAPHORE(late);
SEMAPHORE(silent);

bool probes_wanted(void)
{
	return nbar_doorbell_semaphore || nbar_completion_semaphore || nbar_late_semaphore ||
	       nbar_silent_semaphore;
}

void probes_fire(const char *nic, const struct nbar_trace_event *e)
{
	switch ((enum nbar_trace_what)e->what) {
	case NBAR_TRACE_DOORBELL:
		DTRACE_PROBE4(nbar, doorbell, nic, e->handle, e->rank, e->epoch);
		break;
	case NBAR_TRACE_COMPLETE:
		DTRACE_PROBE4(nbar, completion, nic, e->handle, e->rank, e->epoch);
		break;
	case NBAR_TRACE_LATE:
		DTRACE_PROBE5(nbar, late, nic, e->handle, e->rank, e->epoch, e->peer);
		break;
	case NBAR_TRACE_SILENT:
		DTRACE_PROBE5(nbar, silent, nic, e->handle, e->rank, e->epoch, e->peer);
		break;
	case NBAR_TRACE_START:
	case NBAR_TRACE_FAIL:
	case NBAR_TRACE_OUT:
	case NBAR_TRACE_IN:
	case NBAR_TRACE_END:
		break;
	}
}

#endif
