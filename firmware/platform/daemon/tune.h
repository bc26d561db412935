/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tune.h - the meaning of "auto" by the size of a group, from measurements.
 *
 * A tune file is text: the line "nbar-tune 1", then lines "SIZE ALGORITHM" in ascending order. In
 * groups of this size or more, up to the size of the next line, "auto" means this algorithm. A #
 * begins a comment. `nbar bench one-to-many --tune-file` writes such a file. Read by main() before
 * anything runs; used by the control thread when a group is opened. Never on the path from token to
 * completion.
 */
#ifndef NBAR_DAEMON_TUNE_H
#define NBAR_DAEMON_TUNE_H

#include <stddef.h>
#include <stdint.h>

#include "plan.h"

#define TUNE_LINES_MAX 64u    /* lines with a size */
#define TUNE_BYTES_MAX 16384u /* of a tune file */

struct tune_entry {
	uint32_t size; /* for groups of this size and more */
	struct nbfw_alg alg;
	char name[NBAR_NAME_MAX]; /* name of alg, as in the file */
};

struct tune {
	uint32_t n; /* 0: no tune file */
	struct tune_entry entry[TUNE_LINES_MAX];
};

/* The fault for which a file is refused. */
struct tune_fault {
	uint32_t line; /* 0: the fault is not in a line */
	const char *why;
};

/* Reads n bytes that may be anything. 0; or -EINVAL: *fault says why, and *out does not change. */
int tune_parse(const char *text, size_t n, struct tune *out, struct tune_fault *fault);

/* Reads a file. 0, or negative errno after a message (log_error) that begins with `what`. */
int tune_load(const char *what, const char *path, struct tune *out);

/* Returns the entry for groups of this size. NULL: all entries are for larger groups. */
const struct tune_entry *tune_find(const struct tune *t, uint32_t size);

#endif
