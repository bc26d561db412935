/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * html.h - writes text into HTML. Text from a file or a command line must go through html_text.
 */
#ifndef NBAR_TOOLS_HTML_H
#define NBAR_TOOLS_HTML_H

#include <stdio.h>

/* Writes text so that a browser shows it unchanged, in an element or in a quoted attribute. The
 * text must be UTF-8. Control characters, which HTML forbids, become U+FFFD. */
void html_text(FILE *to, const char *text);

#endif
