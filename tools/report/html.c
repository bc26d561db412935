/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * html.c - see html.h.
 */
#include "html.h"

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
