/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compose_search.h - improves a scheme by single changes, as long as the prediction falls.
 *
 * Called by compose. A bound on the number of predicted signals ends the search, so the result does
 * not depend on the speed of the machine.
 */
#ifndef NBAR_TUNE_SEARCH_H
#define NBAR_TUNE_SEARCH_H

#include "predict.h"
#include "scheme.h"

struct search {
	const struct profile *p;
	const uint32_t *host;
	uint64_t budget; /* signals */
	/* Results. */
	double best_s;
	struct schedule *best; /* the caller must free it */
	uint32_t tried;
};

/* Calls each(arg, alg) for the algorithms of the table that are worth a prediction among k members.
 * If a call returns another value than 0, skips the rest and returns this value. */
int compose_each(uint32_t k, int (*each)(void *arg, struct nbfw_alg alg), void *arg);

/* Replaces c by the best scheme found. 0 or a negative errno. */
int search_run(struct search *s, struct scheme *c);

#endif
