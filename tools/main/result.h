/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * result.h - the result of any experiment: a table of named columns with units, and the facts that
 * a reader needs: command, machine, settings, notes, published values of others.
 *
 * Made by the experiments, written as an aligned table, as CSV and as JSON, read by `nbar report`.
 * Texts are copied.
 *
 * JSON: { "experiment", "version", "commit", "started", "command", "complete", "machine": {},
 * "settings": {}, "columns": [{ "name", "unit", "type" }], "rows": [[]], "notes": [""],
 * "published": [{ "what", "setting", "value", "hardware", "source" }] }; the values of
 * "published" are strings, from published.h.
 * CSV: the same as lines "#@key=value" (as ReproMPI has them), then a header and the rows; the name
 * of a column with a unit is name_unit.
 */
#ifndef NBAR_TOOLS_RESULT_H
#define NBAR_TOOLS_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum result_type { RESULT_TEXT, RESULT_COUNT, RESULT_REAL };

struct result_column {
	const char *name; /* may have spaces: they are '_' in CSV and JSON */
	const char *unit; /* "us", "%", "" */
	enum result_type type;
	int digits; /* after the point, in the table; RESULT_REAL only */
};

#define RESULT_COLUMNS_MAX 32u

struct result;

/* A result of no rows. Reads machine and time. The columns must outlive it. */
struct result *result_new(const char *experiment, const struct result_column *column,
			  uint32_t ncolumn);
void result_free(struct result *r);

/* The command line: "nbar", then the arguments. */
void result_command(struct result *r, int argc, char **argv);

/* More about the machine (wire, idle policy, cores), and how it was used. Both say whether a run
 * may be resumed: they must be the same. */
void result_machine_text(struct result *r, const char *key, const char *text);
void result_machine_number(struct result *r, const char *key, int64_t value);
void result_setting_text(struct result *r, const char *key, const char *text);
void result_setting_number(struct result *r, const char *key, double value);

/* The next value of the row; the one of the last column ends it. Must fit the column's type. */
void result_text(struct result *r, const char *text);
void result_count(struct result *r, uint64_t value);
void result_real(struct result *r, double value);
void result_none(struct result *r); /* there is no value here */

/* A line below the table. */
__attribute__((format(printf, 2, 3))) void result_note(struct result *r, const char *format, ...);

/* The run was interrupted: the existing rows are valid, and others are missing. */
void result_incomplete(struct result *r);

/* For the journal: { experiment, version, machine, settings }. The caller's reference. */
json_t *result_identity(const struct result *r);

void result_write_table(const struct result *r, FILE *to);
void result_write_csv(const struct result *r, FILE *to);
void result_write_json(const struct result *r, FILE *to);

#endif
