/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * result.c - makes a result; see result.h. A result is a JSON object; result_out.c writes it in
 * other forms, too. Every experiment calls this file; it must never look at values.
 */
#include "result.h"

#include <assert.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commit.h"
#include "machine.h"
#include "published.h"
#include "result_internal.h"
#include "tool.h"

static void result_set(json_t *o, const char *key, json_t *value)
{
	(void)json_object_set_new(o, key, value);
}

/* A JSON string. The text may be a command line, which need not be UTF-8. */
static json_t *result_text_of(const char *text)
{
	json_t *value = json_string(text);

	return value ? value : json_string("?");
}

static json_t *column_json(const struct result_column *column)
{
	static const char *const type[] = { "text", "count", "real" };
	char name[64];

	snprintf(name, sizeof(name), "%s", column->name);
	for (char *c = strchr(name, ' '); c; c = strchr(c, ' '))
		*c = '_';
	return json_pack("{s:s, s:s, s:s}", "name", name, "unit", column->unit, "type",
			 type[column->type]);
}

static json_t *now_text(void)
{
	char text[32];
	time_t now = time(NULL);
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	return json_string(text);
}

/* What others have measured in this experiment. */
static json_t *published_json(const char *experiment)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < npublished; i++) {
		const struct published *p = &published[i];

		if (published_of(p->experiment, experiment))
			json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s}", "what",
							      p->what, "setting", p->setting,
							      "value", p->value, "hardware",
							      p->hardware, "source", p->source));
	}
	return list;
}

struct result *result_new(const char *experiment, const struct result_column *column,
			  uint32_t ncolumn)
{
	struct result *r = tool_alloc(1, sizeof(*r));
	struct tool_machine machine = tool_machine();
	cpu_set_t cpus;

	assert(ncolumn && ncolumn <= RESULT_COLUMNS_MAX);
	r->column = column;
	r->ncolumn = ncolumn;
	r->root = json_object();
	r->machine = json_object();
	r->settings = json_object();
	r->rows = json_array();
	r->notes = json_array();
	r->published = published_json(experiment);
	result_set(r->root, "experiment", result_text_of(experiment));
	result_set(r->root, "version", json_string(NBAR_VERSION_TEXT));
	result_set(r->root, "commit",
		   *NBAR_COMMIT_TEXT ? json_string(NBAR_COMMIT_TEXT) : json_null());
	result_set(r->root, "started", now_text());
	result_set(r->root, "command", json_string("nbar"));
	result_set(r->root, "complete", json_true());
	result_set(r->root, "machine", r->machine);
	result_set(r->root, "settings", r->settings);
	json_t *columns = json_array();

	for (uint32_t i = 0; i < ncolumn; i++)
		json_array_append_new(columns, column_json(&column[i]));
	result_set(r->root, "columns", columns);
	result_set(r->root, "rows", r->rows);
	result_set(r->root, "notes", r->notes);
	result_set(r->root, "published", r->published);
	result_machine_text(r, "host", machine.host);
	result_machine_text(r, "cpu", machine.cpu);
	if (!sched_getaffinity(0, sizeof(cpus), &cpus))
		result_machine_number(r, "cores", CPU_COUNT(&cpus));
	result_machine_text(r, "kernel", machine.kernel);
	return r;
}

void result_free(struct result *r)
{
	json_decref(r->row);
	json_decref(r->root);
	free(r);
}

void result_command(struct result *r, int argc, char **argv)
{
	char line[1024];
	size_t at = (size_t)snprintf(line, sizeof(line), "%.*s", (int)strcspn(tool_name(), " "),
				     tool_name());

	for (int i = 0; i < argc && at < sizeof(line); i++)
		at += (size_t)snprintf(line + at, sizeof(line) - at, " %s", argv[i]);
	result_set(r->root, "command", result_text_of(line));
}

void result_machine_text(struct result *r, const char *key, const char *text)
{
	result_set(r->machine, key, result_text_of(text));
}

void result_machine_number(struct result *r, const char *key, int64_t value)
{
	result_set(r->machine, key, json_integer((json_int_t)value));
}

void result_setting_text(struct result *r, const char *key, const char *text)
{
	result_set(r->settings, key, result_text_of(text));
}

void result_setting_number(struct result *r, const char *key, double value)
{
	bool whole = value > -1e15 && value < 1e15 && value == (double)(int64_t)value;

	result_set(r->settings, key, whole ? json_integer((json_int_t)value) : json_real(value));
}

static void add_value(struct result *r, enum result_type type, json_t *value)
{
	size_t at;

	if (!r->row)
		r->row = json_array();
	at = json_array_size(r->row);
	assert(json_is_null(value) || r->column[at].type == type);
	json_array_append_new(r->row, value);
	if (at + 1 < r->ncolumn)
		return;
	json_array_append_new(r->rows, r->row);
	r->row = NULL;
}

void result_text(struct result *r, const char *text)
{
	add_value(r, RESULT_TEXT, result_text_of(text));
}

void result_count(struct result *r, uint64_t value)
{
	add_value(r, RESULT_COUNT, json_integer((json_int_t)value));
}

void result_real(struct result *r, double value)
{
	json_t *real = json_real(value); /* NULL: infinite or no number */

	add_value(r, RESULT_REAL, real ? real : json_null());
}

void result_none(struct result *r)
{
	add_value(r, RESULT_TEXT, json_null());
}

void result_note(struct result *r, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	json_array_append_new(r->notes, result_text_of(text));
}

void result_incomplete(struct result *r)
{
	result_set(r->root, "complete", json_false());
}
