/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_ring.h - keeps the last events of a NIC in a file: see nbar_trace.h.
 *
 * main() opens and closes it; the polling thread notes events. Noting never waits and makes no
 * system call: the file is mapped, and all its memory is reserved before. The oldest events are
 * overwritten.
 */
#ifndef NBAR_DAEMON_TRACE_RING_H
#define NBAR_DAEMON_TRACE_RING_H

#include <sys/types.h>

#include "nbar_trace.h"

struct trace_ring;

/* Makes DIR/NIC.trace with room for at least `events`, in place of an older one. mode, group: those
 * of the sockets; who may write to these may read the file. 0, or negative errno after log_error().
 */
int trace_ring_open(const char *dir, const char *nic, uint32_t events, mode_t mode, gid_t group,
		    struct trace_ring **out);

void trace_ring_note(struct trace_ring *t, const struct nbar_trace_event *e, uint64_t now);

/* Removes the trace that a daemon that was killed has left in `dir`. `socket`: the name of the NIC's
 * socket there. A file of that name that is no trace stays. */
void trace_ring_remove_stale(const char *dir, const char *socket);

/* Removes the file. NULL: nothing. */
void trace_ring_close(struct trace_ring *t);

#endif
