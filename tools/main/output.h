/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output.h - a file for results: opened before the work, to check that it is writable, and changed
 * only after the work.
 */
#ifndef NBAR_TOOLS_OUTPUT_H
#define NBAR_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
	const char *option, *path;
	FILE *file; /* NULL: the user wants no such file */
	bool ours;  /* this process has created the file, and removes it if nothing is written */
	bool is_std;
};

/* path: NULL for none, "-" for stdout. option: for messages. 0, or an exit code after a message. */
int output_open(struct output *o, const char *option, const char *path);

/* Removes old content; call it before the first byte is written. Returns as output_open. */
int output_begin(const struct output *o);

/* Closes the file. If nothing was written, an old file stays unchanged, and a new file is removed.
 * Returns as output_open. */
int output_close(struct output *o, bool written);

#endif
