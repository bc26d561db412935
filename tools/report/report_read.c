/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_read.c - reads results. A result folder may come from anywhere, so this file checks the
 * contents of a file before use.
 */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nbar_file.h"
#include "result.h"

#define COLUMNS_MAX 64u

void report_path(const struct report_options *opt, const char *name, const char *suffix, char *out,
		 size_t size)
{
	snprintf(out, size, "%s/%s.%s", opt->dir, name, suffix);
}

static bool is_value(const json_t *v)
{
	return json_is_string(v) || json_is_number(v) || json_is_null(v) || json_is_boolean(v);
}

/* NULL, or a description of the error. */
static const char *check(const json_t *root, struct report_result *out)
{
	json_t *item;
	size_t i, k;

	out->columns = json_object_get(root, "columns");
	out->rows = json_object_get(root, "rows");
	out->ncolumn = json_array_size(out->columns);
	if (out->ncolumn == 0 || out->ncolumn > COLUMNS_MAX || !json_is_array(out->rows))
		return "it has no \"columns\" and \"rows\"";
	json_array_foreach(out->columns, i, item)
	{
		if (!json_is_string(json_object_get(item, "name")))
			return "a column of it has no name";
	}
	json_array_foreach(out->rows, i, item)
	{
		const json_t *value;

		if (json_array_size(item) != out->ncolumn)
			return "a row of it has more or fewer values than there are columns";
		json_array_foreach(item, k, value)
		{
			if (!is_value(value))
				return "a row of it has something that is no value";
		}
	}
	return NULL;
}

enum report_found report_read(const char *path, struct report_result *out, char *why, size_t size)
{
	char *text, reason[128];
	json_error_t error;
	size_t length;
	const char *bad;
	int rc = nbar_file_read(path, RESULT_BYTES_MAX, &text, &length);

	*out = (struct report_result){ 0 };
	if (rc < 0 && rc != -ENOENT) {
		snprintf(why, size, "cannot read %s: %s", path,
			 nbar_file_reason(rc, RESULT_BYTES_MAX, reason, sizeof(reason)));
		return REPORT_BROKEN;
	}
	if (rc < 0 || length == 0) {
		free(text);
		return REPORT_NONE;
	}
	out->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	free(text);
	if (!out->root) {
		snprintf(why, size, "%s is no JSON: line %d: %s", path, error.line, error.text);
		return REPORT_BROKEN;
	}
	bad = check(out->root, out);
	if (!bad)
		return REPORT_READ;
	snprintf(why, size, "%s is no result of an experiment: %s", path, bad);
	report_result_free(out);
	return REPORT_BROKEN;
}

void report_result_free(struct report_result *r)
{
	json_decref(r->root);
	*r = (struct report_result){ 0 };
}

int report_column(const struct report_result *r, const char *name)
{
	for (size_t i = 0; name && i < r->ncolumn; i++) {
		const json_t *column = json_array_get(r->columns, i);

		if (!strcmp(json_string_value(json_object_get(column, "name")), name))
			return (int)i;
	}
	return -1;
}

void report_value(const json_t *value, int digits, char *out, size_t size)
{
	if (json_is_string(value))
		snprintf(out, size, "%s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(out, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(out, size, "%.*f", digits, json_real_value(value));
	else if (json_is_boolean(value))
		snprintf(out, size, "%s", json_is_true(value) ? "yes" : "no");
	else
		snprintf(out, size, "%s", "");
}

int report_digits(const struct report_result *r, size_t column)
{
	double least = HUGE_VAL;
	const json_t *row;
	size_t i;

	json_array_foreach(r->rows, i, row)
	{
		double value = fabs(json_real_value(json_array_get(row, column)));

		if (value > 0 && value < least)
			least = value;
	}
	return least < 1 ? 3 : least < 100 ? 2 : least < 1000 ? 1 : 0;
}
