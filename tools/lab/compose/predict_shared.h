/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * predict_shared.h - the times of a barrier whose NICs share processors. Called by predict.c alone.
 */
#ifndef NBAR_TUNE_PREDICT_SHARED_H
#define NBAR_TUNE_PREDICT_SHARED_H

#include "predict.h"

/* True if two ranks are on hosts that share a processor. */
bool predict_is_shared(const struct schedule *s, const struct profile *p, const uint32_t *host);

/* Writes done[r] as predict_ranks does. 0 or -ENOMEM. */
int predict_shared(const struct schedule *s, const struct profile *p, const uint32_t *host,
		   enum predict_formula formula, double *done);

#endif
