/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_run_dir.h - where the control sockets of daemons are: one rule for daemons, library and tools.
 *
 * Not installed. For programs of an operating system; no firmware includes it.
 */
#ifndef NBAR_RUN_DIR_H
#define NBAR_RUN_DIR_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NBAR_RUN_DIR_SYSTEM "/run/nbar"

/* The environment of a program with raised privileges does not count. */
static inline const char *nbar_run_dir_variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

/* Where a daemon of this user makes its sockets, unless it is told otherwise. Returns the length
 * that the path has, as snprintf does. */
static inline int nbar_run_dir_own(char *out, size_t size)
{
	const char *dir = nbar_run_dir_variable("NBAR_RUN_DIR");
	const char *session = nbar_run_dir_variable("XDG_RUNTIME_DIR");

	if (dir)
		return snprintf(out, size, "%s", dir);
	if (geteuid() == 0)
		return snprintf(out, size, NBAR_RUN_DIR_SYSTEM);
	if (session)
		return snprintf(out, size, "%s/nbar", session);
	return snprintf(out, size, "/tmp/nbar-%u", (unsigned)geteuid());
}

/* Where a program looks for sockets: the same; but where the user has no such directory, that of
 * the system's daemon, if there is one. */
static inline int nbar_run_dir_find(char *out, size_t size)
{
	int n = nbar_run_dir_own(out, size);

	if (n >= 0 && (size_t)n < size && !nbar_run_dir_variable("NBAR_RUN_DIR") &&
	    access(out, F_OK) < 0 && access(NBAR_RUN_DIR_SYSTEM, F_OK) == 0)
		n = snprintf(out, size, NBAR_RUN_DIR_SYSTEM);
	return n;
}

#endif
