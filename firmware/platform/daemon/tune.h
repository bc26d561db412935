/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tune.h - the meaning of "auto" by the size of a group, from measurements.
 *
 * A tune file is text: the line "nbar-tune 1", then lines "SIZE ALGORITHM" in ascending order: from
 * this size on, up to the size of the next line, auto is that algorithm. A # begins a comment.
 * `nbar bench one-to-many --tune-file` writes one. Read by main() before anything runs; used by the
 * control thread when a group is opened. Never on the path from token to completion.
 */
#ifndef NBAR_DAEMON_TUNE_H
#define NBAR_DAEMON_TUNE_H

#include <stddef.h>
#include <stdint.h>

#include "plan.h"

#define TUNE_LINES_MAX 64u    /* lines that name a size */
#define TUNE_BYTES_MAX 16384u /* of a tune file */

struct tune_entry {
	uint32_t size; /* from here on */
	struct nbfw_alg alg;
	char name[NBAR_NAME_MAX]; /* of alg, as the file has it */
};

struct tune {
	uint32_t n; /* 0: nothing is tuned */
	struct tune_entry entry[TUNE_LINES_MAX];
};

/* What a file is refused for. */
struct tune_fault {
	uint32_t line; /* 0: no line is to blame */
	const char *why;
};

/* Reads n bytes that may be anything. 0; or -EINVAL, and *fault says why, and *out is as before. */
int tune_parse(const char *text, size_t n, struct tune *out, struct tune_fault *fault);

/* Reads a file. 0, or negative errno after log_error(). */
int tune_load(const char *path, struct tune *out);

/* The entry for groups of this size, or NULL: none was measured so small. */
const struct tune_entry *tune_find(const struct tune *t, uint32_t size);

#endif
