/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emit.h - writes a barrier as C source.
 */
#ifndef NBAR_TUNE_EMIT_H
#define NBAR_TUNE_EMIT_H

#include <stdio.h>

#include "profile.h"
#include "schedule.h"

void emit_c(const struct schedule *s, const struct profile *p, const uint32_t *host, FILE *to);

#endif
