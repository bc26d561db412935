/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output.h - a file for results: opened before the work, so that it is known to be writable, and
 * changed only after it.
 */
#ifndef NBAR_TOOLS_OUTPUT_H
#define NBAR_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
	const char *option, *path;
	FILE *file; /* NULL: not wanted */
	bool ours;  /* made by us: goes away if there is nothing to write */
	bool is_std;
};

/* path: NULL for none, "-" for stdout. option: for messages. 0 or an exit code, the message is
 * out. */
int output_open(struct output *o, const char *option, const char *path);

/* Before the first byte: old content goes now. As output_open. */
int output_begin(const struct output *o);

/* written: false leaves an old file as it was, and removes a new one. As output_open. */
int output_close(struct output *o, bool written);

#endif
