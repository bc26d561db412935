/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.h - keeps each measured point of an experiment at once, so that an interrupted run can be
 * resumed without loss.
 *
 * A file of JSON lines. The first line has experiment, version, machine and settings. Each other
 * line is one point: { "point": key, "values": [...] }. A key is any text that identifies the point
 * within the experiment; a resumed run must use the same keys.
 */
#ifndef NBAR_TOOLS_JOURNAL_H
#define NBAR_TOOLS_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct journal;

/*
 * path NULL: only in memory. resume: continue with the file at path, which must have the same
 * identity (see result_identity); otherwise the file must not exist. 0, or an exit code after a
 * message; then an existing file is unchanged.
 */
int journal_open(struct journal **out, const char *path, json_t *identity, bool resume);

/* True, and sets the values, if the journal has the point with n values. */
bool journal_find(const struct journal *j, const char *point, double *value, uint32_t n);

/* Adds a point, and puts it on disk. 0, or an exit code after a message. */
int journal_add(struct journal *j, const char *point, const double *value, uint32_t n);

/* The number of points in the journal. */
uint32_t journal_count(const struct journal *j);

/* Closes the journal. Removes its file if the result is complete, or if the journal has no point. j
 * may be NULL. */
void journal_close(struct journal *j, bool complete);

#endif
