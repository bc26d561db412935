/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * html.h - text into HTML. Whatever comes from a file or a command line goes through here.
 */
#ifndef NBAR_TOOLS_HTML_H
#define NBAR_TOOLS_HTML_H

#include <stdio.h>

/* Writes text so that it shows as it is, in an element or in a quoted attribute. It must be
 * UTF-8; control characters, which HTML has no place for, become U+FFFD. */
void html_text(FILE *to, const char *text);

#endif
