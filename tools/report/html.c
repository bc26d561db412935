/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * html.c - see html.h.
 */
#include "html.h"

#include <stdarg.h>
#include <string.h>

void html_text(FILE *to, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '&')
			fputs("&amp;", to);
		else if (c == '<')
			fputs("&lt;", to);
		else if (c == '>')
			fputs("&gt;", to);
		else if (c == '"')
			fputs("&quot;", to);
		else if (c == '\'')
			fputs("&#39;", to);
		else if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
			fputs("\xef\xbf\xbd", to);
		else
			fputc(c, to);
	}
}

void html_print(FILE *to, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	html_text(to, text);
}

void html_name(FILE *to, const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "%s", name);
	for (char *c = text; (c = strchr(c, '_'));)
		*c = ' ';
	html_text(to, text);
}
