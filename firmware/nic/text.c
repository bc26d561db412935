/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text.c - see text.h. Called by requests; never on the path from token to completion.
 */
#include <stdint.h>

#include "text.h"

struct sink {
	char *out;
	size_t size, used;
};

static void text_put(struct sink *s, char c)
{
	if (s->used + 1 < s->size)
		s->out[s->used++] = c;
}

static void put_number(struct sink *s, uint32_t n, uint32_t base)
{
	char digit[10]; /* of 2^32 - 1, in decimal */
	uint32_t i = 0;

	do {
		digit[i++] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n > 0);
	while (i > 0)
		text_put(s, digit[--i]);
}

void nbnic_text_format(char *out, size_t size, const char *format, va_list args)
{
	struct sink s = { out, size, 0 };

	for (; *format; format++) {
		if (*format != '%') {
			text_put(&s, *format);
			continue;
		}
		switch (*++format) {
		case 's':
			for (const char *t = va_arg(args, const char *); *t; t++)
				text_put(&s, *t);
			break;
		case 'u':
			put_number(&s, va_arg(args, unsigned), 10);
			break;
		case 'x':
			put_number(&s, va_arg(args, unsigned), 16);
			break;
		case 'd': {
			int n = va_arg(args, int);

			if (n < 0)
				text_put(&s, '-');
			put_number(&s, n < 0 ? 0u - (unsigned)n : (unsigned)n, 10);
			break;
		}
		case '\0': /* a format that ends in '%' */
			format--;
			break;
		default:
			text_put(&s, *format);
		}
	}
	out[s.used] = '\0';
}

void nbnic_text_copy(char *out, size_t size, const char *text)
{
	size_t i = 0;

	for (; i < size - 1 && text[i]; i++)
		out[i] = text[i];
	for (; i < size; i++)
		out[i] = '\0';
}
