/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tuned.h - the algorithm "tuned:FILE": plans from a profile on which all members agree.
 *
 * Called by join.c during the set-up of a communicator. If the members cannot agree on a profile,
 * all of them use the algorithm "auto", and rank 0 prints the reason.
 */
#ifndef NBMPI_TUNED_H
#define NBMPI_TUNED_H

#include "comm_internal.h"
#include "exchange.h"

/* A collective: decides whether the plans of c come from the profile. If so, sets c->tuned_host. 0,
 * or an error code of the MPI. Does nothing for other algorithms. */
int nbmpi_tuned_agree(struct nbmpi_comm *c, const struct nbmpi_channel *at);

/* Sets algorithm and plan of the member attr->rank; free() the plan. 0 or a negative errno. */
int nbmpi_tuned_plan(const struct nbmpi_comm *c, struct nbar_group_attr *attr);

/* Returns the algorithm of c: the requested algorithm, or "auto" in its place. */
const char *nbmpi_tuned_name(const struct nbmpi_comm *c);

#endif
