/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_ring.h - keeps the last events of a NIC in a file: see nbar_trace.h.
 *
 * main() opens and closes the file; the polling thread records events. A record never waits and
 * makes no system call: the file is mapped, and all its memory is reserved before. New events
 * overwrite the oldest.
 */
#ifndef NBAR_DAEMON_TRACE_RING_H
#define NBAR_DAEMON_TRACE_RING_H

#include <sys/types.h>

#include "nbar_trace.h"

struct trace_ring;

/* Makes DIR/NIC.trace with room for at least `events`, and replaces an older file. mode, group:
 * those of the sockets; users who may write to the sockets may read the file. 0, or negative errno
 * after log_error(). */
int trace_ring_open(const char *dir, const char *nic, uint32_t events, mode_t mode, gid_t group,
		    struct trace_ring **out);

void trace_ring_note(struct trace_ring *t, const struct nbar_trace_event *e, uint64_t now);

/* Removes the trace of a killed daemon from `dir`. `socket`: the name of the NIC's socket there.
 * Removes no file that is not a trace. */
void trace_ring_remove_stale(const char *dir, const char *socket);

/* Removes the file. t may be NULL. */
void trace_ring_close(struct trace_ring *t);

#endif
