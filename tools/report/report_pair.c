/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_pair.c - parts of a result as data of a template, for report_page.c and report_section.c.
 */
#include <stdlib.h>
#include <string.h>

#include "report.h"

json_t *report_name(const char *name)
{
	json_t *text = NULL;
	char *copy = strdup(name);

	for (char *c = copy; c && (c = strchr(c, '_'));)
		*c = ' ';
	if (copy)
		text = json_string(copy);
	free(copy);
	return text;
}

static void put_value(FILE *to, const json_t *value)
{
	const json_t *item;
	char text[512];
	size_t i;

	json_array_foreach(value, i, item)
	{
		fputs(i ? ", " : "", to);
		put_value(to, item);
	}
	if (json_is_array(value))
		return;
	if (json_is_real(value))
		snprintf(text, sizeof(text), "%g", json_real_value(value));
	else
		report_value(value, 3, text, sizeof(text));
	fputs(*text ? text : "-", to);
}

void report_pairs_add(json_t *pairs, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		char *text = NULL;
		size_t n;
		FILE *to = open_memstream(&text, &n);

		if (!to)
			return;
		put_value(to, value);
		fclose(to);
		json_array_append_new(pairs, json_pack("{s:o, s:o}", "key", report_name(key),
						       "value", json_string_nocheck(text)));
		free(text);
	}
}
