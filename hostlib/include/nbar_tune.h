/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_tune.h - libnbar-tune: makes plans from a profile, for programs that use libnbar.
 *
 * Load it by nbar_tune_load(). Each member of a group reads the same profile (nbar-lab-profile(1))
 * and asks for its own plan; the plans of all make one barrier, because the composition is
 * deterministic. Members must agree beforehand on the digest and on the list of hosts. The plan is
 * for nbar_group_open with the algorithm "custom": no NIC knows of profiles.
 *
 * Functions return 0, or a negative errno and a text with the reason. Different threads may use
 * different profiles at once.
 */
#ifndef NBAR_TUNE_H
#define NBAR_TUNE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "nbar_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tools and MPI programs name such an algorithm "tuned:FILE". */
#define NBAR_TUNE_NAME "tuned"
#define NBAR_TUNE_PREFIX NBAR_TUNE_NAME ":"

#define NBAR_TUNE_LIBRARY "libnbar-tune.so.0"
#define NBAR_TUNE_SYMBOL "nbar_tune"
#define NBAR_TUNE_VERSION 1u

struct nbar_tune;

/* What the library exports, as NBAR_TUNE_SYMBOL. */
struct nbar_tune_ops {
	uint32_t version; /* NBAR_TUNE_VERSION */

	int (*open)(const char *path, struct nbar_tune **out, char *why, size_t size);
	void (*close)(struct nbar_tune *t);

	/* Two profiles that make the same plans have the same digest; others almost never have. */
	uint64_t (*digest)(const struct nbar_tune *t);

	/* Finds the number of a host by its name. -ENOENT: the profile does not have this host. */
	int (*host)(const struct nbar_tune *t, const char *name, uint32_t *out, char *why,
		    size_t size);

	/*
	 * Makes the plan of one rank. host[r]: the host of rank r. The caller must free() *plan.
	 * Takes up to 0.1 s for 4,096 members. -ENOSPC: a plan would exceed a limit of nbar_abi.h.
	 */
	int (*plan)(const struct nbar_tune *t, const uint32_t *host, uint32_t size, uint32_t rank,
		    struct nbar_plan **plan, size_t *length, char *why, size_t whysize);
};

/* Loads the library. NULL: it cannot, and `why` says the reason. */
static inline const struct nbar_tune_ops *nbar_tune_load(char *why, size_t size)
{
	void *library = dlopen(NBAR_TUNE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	const struct nbar_tune_ops *ops =
		(const struct nbar_tune_ops *)(library ? dlsym(library, NBAR_TUNE_SYMBOL) : NULL);

	if (!ops)
		snprintf(why, size,
			 "cannot load " NBAR_TUNE_LIBRARY
			 ": %s; install the Debian package nbar-lab",
			 dlerror());
	else if (ops->version != NBAR_TUNE_VERSION)
		snprintf(why, size,
			 NBAR_TUNE_LIBRARY " is of version %u, this program knows version %u: "
					   "install one nbar for both",
			 (unsigned)ops->version, NBAR_TUNE_VERSION);
	else
		return ops;
	return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
