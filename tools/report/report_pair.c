/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_pair.c - the keys and values of an object of a result, as a list of a template. Called by
 * report_page.c and report_section.c.
 */
#include "html.h"
#include "report.h"

bool report_pair_next(struct report_pair *p, json_t *object)
{
	p->iter = p->iter ? json_object_iter_next(object, p->iter) : json_object_iter(object);
	return p->iter;
}

void report_pair_key(const struct report_pair *p, FILE *to)
{
	html_name(to, json_object_iter_key(p->iter));
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
	html_text(to, *text ? text : "-");
}

void report_pair_value(const struct report_pair *p, FILE *to)
{
	put_value(to, json_object_iter_value(p->iter));
}
