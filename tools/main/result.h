/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * result.h - the result of any experiment: a table of named columns with units, and the facts that
 * a reader needs: command, machine, settings, notes, published values of others.
 *
 * Experiments make a result, and write it as an aligned table, as CSV and as JSON; `nbar-lab
 * report` reads the JSON. A result copies the texts that it gets.
 *
 * JSON: { "experiment", "version", "commit", "started", "command", "complete", "machine": {},
 * "settings": {}, "columns": [{ "name", "unit", "type" }], "rows": [[]], "notes": [""],
 * "published": [{ "what", "setting", "value", "hardware", "source" }] }; the values of
 * "published" are strings, from published.h.
 * CSV: the facts as lines "#@key=value" (as ReproMPI writes them), then a header and the rows; the
 * name of a column with a unit is name_unit.
 */
#ifndef NBAR_TOOLS_RESULT_H
#define NBAR_TOOLS_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum result_type { RESULT_TEXT, RESULT_COUNT, RESULT_REAL };

struct result_column {
	const char *name; /* CSV and JSON have '_' in place of its spaces */
	const char *unit; /* "us", "%", "" */
	enum result_type type;
	int digits; /* after the point, in the table; RESULT_REAL only */
};

#define RESULT_COLUMNS_MAX 32u

struct result;

/* Makes a result without rows; reads machine and time. The columns must outlive the result. */
struct result *result_new(const char *experiment, const struct result_column *column,
			  uint32_t ncolumn);
void result_free(struct result *r);

/* Sets the command line to "nbar" and the arguments. */
void result_command(struct result *r, int argc, char **argv);

/* Adds facts about the machine (wire, idle policy, cores), and settings of the run. */
void result_machine_text(struct result *r, const char *key, const char *text);
void result_machine_number(struct result *r, const char *key, int64_t value);
void result_setting_text(struct result *r, const char *key, const char *text);
void result_setting_number(struct result *r, const char *key, double value);

/* Sets the next value of the row, of the column's type. The value of the last column ends the row.
 */
void result_text(struct result *r, const char *text);
void result_count(struct result *r, uint64_t value);
void result_real(struct result *r, double value);
void result_none(struct result *r); /* there is no value here */

/* Adds a line below the table. */
__attribute__((format(printf, 2, 3))) void result_note(struct result *r, const char *format, ...);

/* Notes that the run was interrupted: the existing rows are valid, and other rows are missing. */
void result_incomplete(struct result *r);

void result_write_table(const struct result *r, FILE *to);
void result_write_csv(const struct result *r, FILE *to);
void result_write_json(const struct result *r, FILE *to);

#endif
