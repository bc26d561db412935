/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tuned.h - the algorithm "tuned:FILE": plans by a profile, agreed on by all members.
 *
 * Called by join.c while a communicator is set up. Where members cannot agree on a profile, all of
 * them take the algorithm "auto", and rank 0 says why.
 */
#ifndef NBMPI_TUNED_H
#define NBMPI_TUNED_H

#include "comm_internal.h"
#include "exchange.h"

/* A collective: decides whether the plans of c come from the profile, and then sets c->tuned_host of
 * the ranks that lead a host; index: that of the caller's host. 0, an error code of the MPI, or
 * NBMPI_NO_MEMORY. Does nothing if the algorithm is another one. */
int nbmpi_tuned_agree(struct nbmpi_comm *c, const struct nbmpi_channel *at, uint32_t index);

/* Sets algorithm and plan of the member attr->rank; free() the plan. 0 or a negative errno. */
int nbmpi_tuned_plan(const struct nbmpi_comm *c, struct nbar_group_attr *attr);

/* The algorithm of c: what was asked for, or "auto" in place of it. */
const char *nbmpi_tuned_name(const struct nbmpi_comm *c);

#endif
