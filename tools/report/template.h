/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * template.h - fills data into a text, for the page and the scripts of gnuplot.
 *
 * {{name}} is a field: put() writes its value. {{#name}} ... {{/name}} is a list: its inside is
 * written once for each item that next() finds; a list of one item is a condition. All data comes
 * from these functions, so a template cannot name anything else. A name that the table lacks is a
 * bug, and aborts.
 */
#ifndef NBAR_TOOLS_TEMPLATE_H
#define NBAR_TOOLS_TEMPLATE_H

#include <stdbool.h>
#include <stdio.h>

struct template_name {
	const char *name; /* NULL ends a table */
	void (*put)(void *arg, FILE *to);
	/* Goes to the next item, at first to the first. False: there is none, and the list is as
	 * before its first item again. */
	bool (*next)(void *arg);
};

void template_fill(const char *text, const struct template_name *names, void *arg, FILE *to);

/* Files of this folder, as built into the program. */
extern const char template_page_html[], template_section_html[], template_page_css[],
	template_figure_gp[];

#endif
