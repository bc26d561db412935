/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compose.h - composes the best barrier for a cluster, judged by its profile.
 *
 * It clusters the members by the cost of messages between them, and gives each cluster the cheapest
 * algorithm of the table. Then it changes one thing at a time, as long as the prediction improves.
 * If one algorithm of the table among all members is not more expensive, it takes that one.
 * Measured barriers of the profile count more than predictions: among all its hosts, in their
 * order, the best flat barrier is the fastest measured one, and predictions are multiplied by its
 * ratio of measured to predicted time: other barriers may be slower than predicted for reasons that
 * a profile does not know, such as a link that many messages share.
 *
 * Deterministic: the same profile and the same hosts in the same order give the same barrier, on
 * every rank. A count of signals limits the work, never a clock.
 */
#ifndef NBAR_TUNE_COMPOSE_H
#define NBAR_TUNE_COMPOSE_H

#include "predict.h"
#include "scheme.h"

/* Part of a profile's digest: raise it when the same profile gives another barrier. */
#define COMPOSE_VERSION UINT64_C(3)

/* A composed barrier is taken only if it is cheaper than the best flat one by this part: profiles
 * are not more exact. Measured barriers of a profile show how exact it is; a larger error counts.
 */
#define COMPOSE_MARGIN 0.05

/* Limit of the search: the signals of all its predictions together. */
#define COMPOSE_BUDGET 150000u

struct compose {
	struct schedule *schedule;
	struct scheme *scheme;      /* NULL: the barrier is flat, with `alg` */
	struct nbfw_alg alg;        /* the best flat one */
	double predicted_s, flat_s; /* flat_s: as measured, if the profile has that */
	double scale;   /* the best flat one, measured / predicted; 1: nothing was measured */
	double error;   /* median deviation of these ratios from their median, as a part of it */
	uint32_t tried; /* changes of the scheme */
};

/*
 * host: the host of each rank, by number in the profile. 0, or a negative errno and the reason. The
 * result has passed schedule_check.
 */
int compose(const struct profile *p, const uint32_t *host, uint32_t size, struct compose *out,
	    const char **why);
void compose_free(struct compose *c);

/* How far the predictions are from the measured barriers of a profile: the mean of their relative
 * errors; 0 if it has none. 0 or a negative errno. */
int compose_deviation(const struct profile *p, double *out);

/* Calls each(arg, alg) for the algorithms of the table that are worth a prediction among k members.
 * If a call returns another value than 0, the rest is skipped, and this value is returned. */
int compose_each(uint32_t k, int (*each)(void *arg, struct nbfw_alg alg), void *arg);

/* The prediction for one algorithm of the table among all members. 0 or a negative errno. */
int compose_flat(struct nbfw_alg alg, const struct profile *p, const uint32_t *host, uint32_t size,
		 enum predict_formula formula, struct predict *out);

#endif
