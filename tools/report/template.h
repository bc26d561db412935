/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * template.h - fills data into a text, for the page and the scripts of gnuplot. The syntax is a
 * part of Mustache.
 *
 * {{name}} writes a string or an integer; in HTML, {{{name}}} writes a string without escapes.
 * {{#name}} ... {{/name}} writes the text between the two tags if the value is true or a text that
 * is not empty; for an array, once for each item. A name in an item hides an equal name outside the
 * item. A name that the data lacks is a bug: the program aborts.
 */
#ifndef NBAR_TOOLS_TEMPLATE_H
#define NBAR_TOOLS_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Writes the filled text, and frees the data. html: {{name}} escapes its text. */
void template_fill(const char *text, json_t *data, bool html, FILE *to);

/* Files of this folder, as built into the program. */
extern const char template_page_html[], template_section_html[], template_page_css[],
	template_figure_gp[];

#endif
