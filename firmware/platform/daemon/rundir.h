/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rundir.h - the run directory, with the control sockets of a daemon. One daemon per directory.
 */
#ifndef NBAR_DAEMON_RUNDIR_H
#define NBAR_DAEMON_RUNDIR_H

#include <stddef.h>

/* Writes the default: $NBAR_RUN_DIR, or else /run/nbar (root), $XDG_RUNTIME_DIR/nbar, or
 * /tmp/nbar-UID. libnbar has the same rule. 0, or -ENAMETOOLONG. */
int rundir_default(char *path, size_t size);

/*
 * Takes the run directory for this daemon: makes it if it is missing, takes its lock, and removes
 * the sockets that a killed daemon has left. Refuses a directory that other users could change.
 * Returns a descriptor, or negative errno after log_error(). Closing the descriptor releases the
 * lock.
 */
int rundir_take(const char *path);

#endif
