/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libexec.c - see libexec.h.
 */
#include "libexec.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool libexec_find(const char *name, char *out, size_t size)
{
	static const char *const where[] = { "libexec/nbar", "../libexec/nbar" };
	char self[PATH_MAX / 2];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return false;
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		snprintf(out, size, "%s/%s/%s", self, where[i], name);
		if (!access(out, R_OK))
			return true;
	}
	return false;
}
