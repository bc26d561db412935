/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit.h - writes a barrier to a file: C source, or a picture.
 */
#ifndef NBAR_TUNE_EMIT_H
#define NBAR_TUNE_EMIT_H

#include <stdio.h>

#include "profile.h"
#include "schedule.h"

struct emit {
	const char *name;
	void (*write)(const struct schedule *s, const struct profile *p, const uint32_t *host,
		      FILE *to);
};

/* name: "c", "dot" or "svg". NULL: another name. */
const struct emit *emit_find(const char *name);

/* emit_c.c, emit_picture.c */
void emit_c(const struct schedule *s, const struct profile *p, const uint32_t *host, FILE *to);
void emit_dot(const struct schedule *s, const struct profile *p, const uint32_t *host, FILE *to);
void emit_svg(const struct schedule *s, const struct profile *p, const uint32_t *host, FILE *to);

#endif
