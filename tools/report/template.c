/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * template.c - see template.h.
 */
#include "template.h"

#include <stdlib.h>
#include <string.h>

#include "html.h"

struct scope {
	const json_t *data;
	const struct scope *outer;
};

static const json_t *find(const struct scope *scope, const char *name)
{
	for (; scope; scope = scope->outer)
		if (json_object_get(scope->data, name))
			return json_object_get(scope->data, name);
	fprintf(stderr, "template: there is no %s\n", name);
	abort();
}

/* Returns the text behind a tag. If the tag has a line of its own, it skips the end of this line.
 */
static const char *behind(const char *tag, const char *begin)
{
	const char *after = strstr(tag, "}}") + 2;
	bool alone = (tag == begin || tag[-1] == '\n') && *after == '\n';

	return after + alone;
}

static const char *closing(const char *text, const char *name)
{
	char tag[64];
	const char *at;

	snprintf(tag, sizeof(tag), "{{/%s}}", name);
	at = strstr(text, tag);
	if (!at) {
		fprintf(stderr, "template: no %s\n", tag);
		abort();
	}
	return at;
}

static void put(const json_t *value, bool html, FILE *to)
{
	if (json_is_integer(value))
		fprintf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (html)
		html_text(to, json_string_value(value));
	else
		fputs(json_string_value(value), to);
}

static void fill(const char *text, const char *end, const struct scope *scope, bool html, FILE *to)
{
	const char *begin = text;

	for (const char *tag; (tag = strstr(text, "{{")) && tag < end;) {
		bool list = tag[2] == '#', raw = tag[2] == '{';
		const char *from = tag + 2 + (list || raw);
		const json_t *value, *item;
		char name[32];
		size_t i;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(from, "}"), from);
		value = find(scope, name);
		fwrite(text, 1, (size_t)(tag - text), to);
		if (!list) {
			put(value, html && !raw, to);
			text = from + strlen(name) + 2 + raw;
			continue;
		}
		const char *inside = behind(tag, begin), *close = closing(inside, name);

		if (json_is_true(value) || json_string_length(value))
			fill(inside, close, scope, html, to);
		json_array_foreach(value, i, item)
		{
			fill(inside, close, &(struct scope){ item, scope }, html, to);
		}
		text = behind(close, begin);
	}
	fwrite(text, 1, (size_t)(end - text), to);
}

void template_fill(const char *text, json_t *data, bool html, FILE *to)
{
	fill(text, text + strlen(text), &(struct scope){ data, NULL }, html, to);
	json_decref(data);
}
