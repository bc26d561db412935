/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.c - see machine.h.
 */
#include "machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static void read_cpu_model(char *out, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		char *value = strchr(line, ':');

		if (!value || strncmp(line, "model name", 10))
			continue;
		value += 1 + strspn(value + 1, " \t");
		value[strcspn(value, "\n")] = '\0';
		snprintf(out, size, "%s", value);
		break;
	}
	if (f)
		fclose(f);
}

struct tool_machine tool_machine(void)
{
	struct tool_machine m = { "unknown", "unknown", "unknown" };
	struct utsname name;

	read_cpu_model(m.cpu, sizeof(m.cpu));
	if (!uname(&name)) {
		snprintf(m.kernel, sizeof(m.kernel), "%s %s %s", name.sysname, name.release,
			 name.machine);
		snprintf(m.host, sizeof(m.host), "%s", name.nodename);
	}
	return m;
}
