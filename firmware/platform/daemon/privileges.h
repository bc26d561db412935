/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * privileges.h - what the daemon may do after its start. Called by main() alone.
 */
#ifndef NBAR_DAEMON_PRIVILEGES_H
#define NBAR_DAEMON_PRIVILEGES_H

#include "options.h"

/* From here on no thread of the process can gain privileges, not even by execve(). */
void privileges_freeze(void);

/* Calls rundir_take() with the rights of --user, if given. Makes a missing directory for that
 * user. A descriptor, or negative errno after log_error(). */
int privileges_take_run_dir(const struct options *o);

/* Takes the rights of --user, if given, for a while; then takes the earlier rights back. 0, or
 * negative errno after log_error(). */
int privileges_lend(const struct options *o);
int privileges_return(const struct options *o);

/* Becomes --user, if given, for ever. 0, or negative errno after log_error(). */
int privileges_drop(const struct options *o);

#endif
