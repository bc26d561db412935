/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * template.c - see template.h.
 */
#include "template.h"

#include <stdlib.h>
#include <string.h>

static const struct template_name *find(const struct template_name *names, const char *at, size_t n)
{
	for (; names->name; names++)
		if (strlen(names->name) == n && !memcmp(names->name, at, n))
			return names;
	fprintf(stderr, "template: there is no %.*s\n", (int)n, at);
	abort();
}

/* Behind a tag stands the rest of the line, and the end of a line of its own goes with it. */
static const char *behind(const char *tag, const char *begin)
{
	const char *after = strstr(tag, "}}") + 2;
	bool alone = (tag == begin || tag[-1] == '\n') && *after == '\n';

	return after + alone;
}

static const char *closing(const char *text, const char *name, size_t n)
{
	char tag[64];
	const char *at;

	snprintf(tag, sizeof(tag), "{{/%.*s}}", (int)n, name);
	at = strstr(text, tag);
	if (!at) {
		fprintf(stderr, "template: no %s\n", tag);
		abort();
	}
	return at;
}

static void fill(const char *text, const char *end, const struct template_name *names, void *arg,
		 FILE *to)
{
	const char *begin = text;

	for (const char *tag; (tag = strstr(text, "{{")) && tag < end;) {
		bool list = tag[2] == '#';
		const char *name = tag + 2 + list;
		size_t n = strcspn(name, "}");
		const struct template_name *t = find(names, name, n);

		fwrite(text, 1, (size_t)(tag - text), to);
		if (!list) {
			t->put(arg, to);
			text = name + n + 2;
			continue;
		}
		const char *inside = behind(tag, begin), *close = closing(inside, name, n);

		while (t->next(arg))
			fill(inside, close, names, arg, to);
		text = behind(close, begin);
	}
	fwrite(text, 1, (size_t)(end - text), to);
}

void template_fill(const char *text, const struct template_name *names, void *arg, FILE *to)
{
	fill(text, text + strlen(text), names, arg, to);
}
