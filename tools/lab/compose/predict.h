/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * predict.h - predicts how long a barrier takes on a cluster, from its profile.
 *
 * The profile (profile.h) has the costs: O_ij of one message from i to j, L_ij of each message
 * more, and O_ii of a call that sends nothing.
 *
 * The prediction is the critical path through the steps of all members. A member i that enters a
 * step at time t sends to targets J one after the other, and target J_k has its message at t +
 * O_iJk + sum_m<=k L_iJm. The time of the last target is Meyer and Elster's stage cost, max_k O_iJk
 * + sum_k L_iJk. If a target already waits, their second formula has O_ii in place of O_iJk. A
 * member that receives several messages needs one L for each message after the first.
 *
 * If the profile says that NICs share a processor, this processor works on one message at a time,
 * in the order of their times. A message is L / 2 of work at each end. Each step of a member is
 * work of the length that the profile gives.
 */
#ifndef NBAR_TUNE_PREDICT_H
#define NBAR_TUNE_PREDICT_H

#include "profile.h"
#include "schedule.h"

enum predict_formula {
	PREDICT_FIRST,  /* O_iJ: the whole cost of a message */
	PREDICT_WAITING /* O_ii if the target waits already */
};

struct predict {
	double all_s;   /* when the last member is done; with the cost of the calls */
	double first_s; /* when the first member is done */
	uint32_t last;  /* the rank that is done last */
};

/* host: the number of each rank's host in the profile. 0 or -ENOMEM. */
int predict_run(const struct schedule *s, const struct profile *p, const uint32_t *host,
		enum predict_formula formula, struct predict *out);

/* Also writes done_s[r]: when rank r is done with all its steps, without the cost of the calls. A
 * rank without steps is done at 0. */
int predict_ranks(const struct schedule *s, const struct profile *p, const uint32_t *host,
		  enum predict_formula formula, double *done_s);

#endif
