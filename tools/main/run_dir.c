/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_dir.c - where a daemon's control sockets are. See run_dir.h.
 */
#include "run_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void run_dir_find(char *out, size_t size)
{
	const char *set = secure_getenv("NBAR_RUN_DIR"), *xdg = secure_getenv("XDG_RUNTIME_DIR");

	if (set && *set)
		snprintf(out, size, "%s", set);
	else if (geteuid() == 0)
		snprintf(out, size, "/run/nbar");
	else if (xdg && *xdg)
		snprintf(out, size, "%s/nbar", xdg);
	else
		snprintf(out, size, "/tmp/nbar-%u", (unsigned)geteuid());
}
