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
	FILE *file; /* NULL: not wanted */
	bool ours;  /* created by this process: removed if there is nothing to write */
	bool is_std;
};

/* path: NULL for none, "-" for stdout. option: for messages. 0, or an exit code after a message. */
int output_open(struct output *o, const char *option, const char *path);

/* Called before the first byte: removes old content. Returns as output_open. */
int output_begin(const struct output *o);

/* written: false leaves an old file unchanged, and removes a new one. Returns as output_open. */
int output_close(struct output *o, bool written);

#endif
