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
 * Makes the directory if it is missing, refuses one that other users could change, takes its
 * lock, and removes the sockets that a killed daemon left behind. Returns a descriptor that holds
 * the lock until it is closed, or negative errno after log_error().
 */
int rundir_take(const char *path);

#endif
