/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tuned.h - plans by a profile, for programs: what stands behind the algorithm "tuned:FILE".
 *
 * Each member of a group reads the same profile and asks for its own plan; the plans of all make
 * one barrier, because composing is deterministic. Members must agree beforehand on tuned_digest()
 * and on the list of hosts. The plan is for nbar_group_open with the algorithm "custom".
 *
 * Functions return 0 or a negative errno and a text that says why.
 */
#ifndef NBAR_TUNE_TUNED_H
#define NBAR_TUNE_TUNED_H

#include <stddef.h>
#include <stdint.h>

#include "nbar_abi.h"

#define TUNED_NAME "tuned"
#define TUNED_PREFIX TUNED_NAME ":"

struct tuned;

int tuned_open(const char *path, struct tuned **out, char *why, size_t size);
void tuned_close(struct tuned *t);

/* Equal for two profiles that make the same plans, and hardly ever for others. */
uint64_t tuned_digest(const struct tuned *t);

/* The number of a host by its name; -ENOENT: the profile does not have it. */
int tuned_host(const struct tuned *t, const char *name, uint32_t *out, char *why, size_t size);

/*
 * The plan of a rank among members on these hosts, by rank. *plan is the caller's, to free(). Takes
 * 0.1 s for 4,096 members. -ENOSPC: too many for the limits of a plan.
 */
int tuned_plan(const struct tuned *t, const uint32_t *host, uint32_t size, uint32_t rank,
	       struct nbar_plan **plan, size_t *length, char *why, size_t whysize);

#endif
