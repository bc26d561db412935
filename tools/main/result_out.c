/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * result_out.c - writes a result as a table, as CSV and as JSON; see result.h. Must never change
 * the result.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "result_internal.h"

#define CELL 96u

/* A value as text: for the table with the digits of the column, for CSV with all known digits. */
static void format_cell(const struct result_column *column, const json_t *value, bool csv,
			char *out, size_t size)
{
	if (json_is_string(value))
		snprintf(out, size, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value) && csv)
		snprintf(out, size, "%.6g", json_real_value(value));
	else if (json_is_real(value))
		snprintf(out, size, "%.*f", column->digits, json_real_value(value));
	else
		snprintf(out, size, "%s", csv ? "" : "-");
}

/* The number of characters, not of bytes. */
static int width_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void print_cell(FILE *to, const char *text, int width, bool left, bool last)
{
	int pad = last && !*text ? 0 : width - width_of(text);

	if (left)
		fprintf(to, "%s%*s", text, last ? 0 : pad, "");
	else
		fprintf(to, "%*s%s", pad, "", text);
	fputs(last ? "\n" : "  ", to);
}

static void print_heads(const struct result *r, FILE *to, const int *width, bool units)
{
	for (uint32_t c = 0; c < r->ncolumn; c++)
		print_cell(to, units ? r->column[c].unit : r->column[c].name, width[c],
			   r->column[c].type == RESULT_TEXT, c + 1 == r->ncolumn);
}

static bool any_unit(const struct result *r)
{
	for (uint32_t c = 0; c < r->ncolumn; c++)
		if (*r->column[c].unit)
			return true;
	return false;
}

static void out_measure(const struct result *r, int *width)
{
	const json_t *row;
	char cell[CELL];
	size_t i;

	for (uint32_t c = 0; c < r->ncolumn; c++) {
		int name = width_of(r->column[c].name), unit = width_of(r->column[c].unit);

		width[c] = name > unit ? name : unit;
	}
	json_array_foreach(r->rows, i, row)
	{
		for (uint32_t c = 0; c < r->ncolumn; c++) {
			format_cell(&r->column[c], json_array_get(row, c), false, cell, CELL);
			width[c] = width_of(cell) > width[c] ? width_of(cell) : width[c];
		}
	}
}

void result_write_table(const struct result *r, FILE *to)
{
	int width[RESULT_COLUMNS_MAX];
	bool colour = isatty(fileno(to)) && !getenv("NO_COLOR");
	const json_t *row, *note;
	char cell[CELL];
	size_t i;

	out_measure(r, width);
	fputs(colour ? "\033[1m" : "", to);
	print_heads(r, to, width, false);
	fputs(colour ? "\033[0m" : "", to);
	if (any_unit(r))
		print_heads(r, to, width, true);
	json_array_foreach(r->rows, i, row)
	{
		for (uint32_t c = 0; c < r->ncolumn; c++) {
			format_cell(&r->column[c], json_array_get(row, c), false, cell, CELL);
			print_cell(to, cell, width[c], r->column[c].type == RESULT_TEXT,
				   c + 1 == r->ncolumn);
		}
	}
	json_array_foreach(r->notes, i, note) fprintf(to, "%s\n", json_string_value(note));
}

/* Prints a fact as one line, even if its text has several lines. */
static void print_meta(FILE *to, const char *key, const char *text)
{
	fprintf(to, "#@%s=", key);
	for (; *text; text++)
		fputc(*text == '\n' || *text == '\r' ? ' ' : *text, to);
	fputc('\n', to);
}

static void print_object(FILE *to, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		if (json_is_string(value))
			print_meta(to, key, json_string_value(value));
		else if (!json_is_null(value))
			print_meta(to, key, text ? text : "");
		free(text);
	}
}

static void print_metadata(const struct result *r, FILE *to)
{
	static const char *const key[] = { "experiment", "version", "commit",
					   "started",    "command", "complete" };
	json_t *head = json_object(), *item;
	size_t i;

	for (i = 0; i < sizeof(key) / sizeof(key[0]); i++)
		json_object_set(head, key[i], json_object_get(r->root, key[i]));
	print_object(to, head);
	json_decref(head);
	print_object(to, r->machine);
	print_object(to, r->settings);
	json_array_foreach(r->notes, i, item) print_meta(to, "note", json_string_value(item));
	json_array_foreach(r->published, i, item)
	{
		char *text = json_dumps(item, JSON_COMPACT);

		print_meta(to, "published", text ? text : "");
		free(text);
	}
}

/* Prints a field of CSV, quoted as RFC 4180 says if it must be quoted. */
static void print_field(FILE *to, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, to);
		return;
	}
	fputc('"', to);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

static void print_csv_heads(const struct result *r, FILE *to)
{
	const json_t *columns = json_object_get(r->root, "columns");

	for (uint32_t c = 0; c < r->ncolumn; c++) {
		const char *unit = r->column[c].unit;
		const json_t *name = json_object_get(json_array_get(columns, c), "name");

		fprintf(to, "%s%s%s%s", c ? "," : "", json_string_value(name), *unit ? "_" : "",
			strcmp(unit, "%") ? unit : "percent");
	}
	fputc('\n', to);
}

void result_write_csv(const struct result *r, FILE *to)
{
	const json_t *row;
	char cell[CELL];
	size_t i;

	print_metadata(r, to);
	print_csv_heads(r, to);
	json_array_foreach(r->rows, i, row)
	{
		for (uint32_t c = 0; c < r->ncolumn; c++) {
			const json_t *value = json_array_get(row, c);

			format_cell(&r->column[c], value, true, cell, CELL);
			fputs(c ? "," : "", to);
			print_field(to, json_is_string(value) ? json_string_value(value) : cell);
		}
		fputc('\n', to);
	}
}

void result_write_json(const struct result *r, FILE *to)
{
	json_dumpf(r->root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	fputc('\n', to);
}
