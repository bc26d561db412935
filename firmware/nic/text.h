/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text.h - the few functions on text that requests need, where there is no libc.
 */
#ifndef NBNIC_TEXT_H
#define NBNIC_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* As vsnprintf, with %s, %u, %d, %x and %% alone, no flags and no widths. The result always ends in
 * a zero byte; what does not fit is cut off. */
void nbnic_text_format(char *out, size_t size, const char *format, va_list args);

/* Copies at most size - 1 bytes of a text, and fills the rest with zero bytes. */
void nbnic_text_copy(char *out, size_t size, const char *text);

#endif
