/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.c - `nbar-lab report`: becomes report.py, and tells it the path of this program.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab.h"
#include "libexec.h"
#include "tool.h"

int tool_report(int argc, char **argv)
{
	static char python[] = "python3", no_cache[] = "-B", script[PATH_MAX];
	char **words = tool_alloc((size_t)argc + 4, sizeof(*words));

	words[0] = python;
	words[1] = no_cache; /* no compiled modules beside installed ones */
	words[2] = script;
	words[3] = realpath("/proc/self/exe", NULL);
	for (int i = 1; i < argc; i++)
		words[3 + i] = argv[i];
	if (words[3] && libexec_find("report.py", script, sizeof(script))) {
		execvp(python, words);
		tool_error("cannot run python3: %s; install the package python3", strerror(errno));
	} else {
		tool_error("there is no report.py in libexec/nbar: install nbar again");
	}
	free(words[3]);
	free(words);
	return TOOL_FAILED;
}
