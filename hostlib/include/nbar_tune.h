/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_tune.h - libnbar-tune: makes plans from a profile, for programs that use libnbar.
 *
 * Each member of a group reads the same profile (nbar-profile(1)) and asks for its own plan; the
 * plans of all make one barrier, because the composition is deterministic. Members must agree
 * beforehand on nbar_tune_digest() and on the list of hosts. The plan is for nbar_group_open with
 * the algorithm "custom": no NIC knows of profiles.
 *
 * Functions return 0, or a negative errno and a text with the reason. Different threads may use
 * different profiles at once.
 */
#ifndef NBAR_TUNE_H
#define NBAR_TUNE_H

#include <stddef.h>
#include <stdint.h>

#include "nbar_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tools and MPI programs name such an algorithm "tuned:FILE". */
#define NBAR_TUNE_NAME "tuned"
#define NBAR_TUNE_PREFIX NBAR_TUNE_NAME ":"

struct nbar_tune;

int nbar_tune_open(const char *path, struct nbar_tune **out, char *why, size_t size);
void nbar_tune_close(struct nbar_tune *t);

/* Two profiles that make the same plans have the same digest; others almost never have. */
uint64_t nbar_tune_digest(const struct nbar_tune *t);

/* Finds the number of a host by its name. -ENOENT: the profile does not have this host. */
int nbar_tune_host(const struct nbar_tune *t, const char *name, uint32_t *out, char *why,
		   size_t size);

/*
 * Makes the plan of one rank. host[r]: the host of rank r. The caller must free() *plan. Takes up
 * to 0.1 s for 4,096 members. -ENOSPC: a plan would exceed a limit of nbar_abi.h.
 */
int nbar_tune_plan(const struct nbar_tune *t, const uint32_t *host, uint32_t size, uint32_t rank,
		   struct nbar_plan **plan, size_t *length, char *why, size_t whysize);

#ifdef __cplusplus
}
#endif
#endif
