/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.h - keeps each measured point of an experiment at once, so that a run that is cut short
 * loses nothing and can be resumed.
 *
 * A file of JSON lines. The first says of which experiment, version, machine and settings; each
 * other is one point: { "point": key, "values": [...] }. A key is any text that names the point
 * within the experiment: it must be the same in the run that resumes.
 */
#ifndef NBAR_TOOLS_JOURNAL_H
#define NBAR_TOOLS_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct journal;

/*
 * path NULL: in memory alone. resume: goes on with the file at path, which must be of the same
 * identity (see result_identity); else there must be no such file. 0 or an exit code, the message
 * is out; a file that was there is as it was.
 */
int journal_open(struct journal **out, const char *path, json_t *identity, bool resume);

/* True, and values set, if the point has been measured with n values. */
bool journal_find(const struct journal *j, const char *point, double *value, uint32_t n);

/* Adds a point, and puts it on disk. 0 or an exit code, the message is out. */
int journal_add(struct journal *j, const char *point, const double *value, uint32_t n);

/* Points it has. */
uint32_t journal_count(const struct journal *j);

/* Ends it. The file goes away if the result is complete, or if it has no point. j may be NULL. */
void journal_close(struct journal *j, bool complete);

#endif
