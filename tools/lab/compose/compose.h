/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compose.h - composes the best barrier for a cluster, judged by its profile.
 *
 * compose clusters the members by the cost of messages between them, and gives each cluster the
 * cheapest algorithm of the table. Then it changes one thing at a time, as long as the prediction
 * improves. If a flat barrier (one algorithm among all members) is about as cheap, compose takes
 * the flat barrier. Measured barriers of the profile count more than predictions. If the members
 * are all hosts of the profile, in order, the best flat barrier is the fastest measured barrier,
 * and its ratio of measured to predicted time multiplies all predictions: barriers may be slower
 * than predicted for reasons that a profile does not know, such as a link that many messages share.
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

/* A composed barrier must be cheaper than the best flat barrier by this part, because a profile is
 * not more exact. If the measured barriers of the profile show a larger error, the error counts
 * instead. */
#define COMPOSE_MARGIN 0.05

/* Limit of the search: number of signals in all its predictions together. */
#define COMPOSE_BUDGET 150000u

struct compose {
	struct schedule *schedule;
	struct scheme *scheme;      /* NULL: the barrier is flat, with `alg` */
	struct nbfw_alg alg;        /* the best flat barrier */
	double predicted_s, flat_s; /* flat_s: as measured, if the profile has it */
	double scale;   /* measured / predicted time of the best flat barrier; 1: not measured */
	double error;   /* median of |r / median r - 1| for the ratios r of all measured barriers */
	uint32_t tried; /* changes of the scheme */
};

/*
 * host: the number of each rank's host in the profile. 0, or a negative errno and the reason. The
 * result has passed schedule_check.
 */
int compose(const struct profile *p, const uint32_t *host, uint32_t size, struct compose *out,
	    const char **why);
void compose_free(struct compose *c);

/* Computes the mean relative error of the predictions for the measured barriers of a profile; 0 if
 * the profile has none. Returns 0 or a negative errno. */
int compose_deviation(const struct profile *p, double *out);

/* Predicts one algorithm of the table among all members. 0 or a negative errno. */
int compose_flat(struct nbfw_alg alg, const struct profile *p, const uint32_t *host, uint32_t size,
		 enum predict_formula formula, struct predict *out);

#endif
