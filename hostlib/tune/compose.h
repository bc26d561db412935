/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compose.h - the barrier that fits a cluster best, as far as a profile can tell.
 *
 * Members are clustered by what messages cost between them; each cluster gets the cheapest of the
 * table's algorithms; then clusters are changed, one thing at a time, while the prediction falls.
 * If that is not cheaper than the best algorithm of the table among all members, the latter is
 * taken. Measured barriers of the profile count more than predictions: among all its hosts, in
 * their order, the best flat barrier is the fastest measured one, and predictions are corrected by
 * the ratio of measured to predicted barriers.
 *
 * Deterministic: the same profile and the same hosts in the same order give the same barrier, on
 * every rank. Work is bounded by a count of signals, never by a clock.
 */
#ifndef NBAR_TUNE_COMPOSE_H
#define NBAR_TUNE_COMPOSE_H

#include "predict.h"
#include "scheme.h"

/* Part of a profile's digest: raise it when the same profile gives another barrier. */
#define COMPOSE_VERSION UINT64_C(2)

/* A composed barrier must be cheaper than the best flat one by this part to be taken: profiles are
 * not more exact. Where the profile has measured barriers, their predictions show how exact it is.
 */
#define COMPOSE_MARGIN 0.05

/* Signals that predictions of the search may look at, in all. */
#define COMPOSE_BUDGET 150000u

struct compose {
	struct schedule *schedule;
	struct scheme *scheme;      /* NULL: the barrier is flat, by `alg` */
	struct nbfw_alg alg;        /* the best flat one */
	double predicted_s, flat_s; /* flat_s: as measured, if the profile has that */
	double scale;               /* measured barriers / their predictions, the median; or 1 */
	double error;   /* median deviation from that, as a part of it; 0: nothing was measured */
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

/* Calls each(arg, alg) for the algorithms of the table that are worth a look among k members, until
 * a call returns something else than 0; returns that. */
int compose_each(uint32_t k, int (*each)(void *arg, struct nbfw_alg alg), void *arg);

/* The prediction for one algorithm of the table among all members. 0 or a negative errno. */
int compose_flat(struct nbfw_alg alg, const struct profile *p, const uint32_t *host, uint32_t size,
		 enum predict_formula formula, struct predict *out);

#endif
