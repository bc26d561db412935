/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_tune.c - plans by a profile, for programs. See nbar_tune.h. Must never print.
 */
#include "nbar_tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compose.h"

struct nbar_tune {
	struct profile *profile;
	uint64_t digest;
};

static void tune_close(struct nbar_tune *t)
{
	if (!t)
		return;
	profile_free(t->profile);
	free(t);
}

static int tune_open(const char *path, struct nbar_tune **out, char *why, size_t size)
{
	struct nbar_tune *t = calloc(1, sizeof(*t));
	int rc = t ? profile_read(path, &t->profile, why, size) : -ENOMEM;

	if (rc == -ENOMEM)
		snprintf(why, size, "%s: no memory for this profile", path);
	if (rc) {
		tune_close(t);
		return rc;
	}
	t->digest = (profile_digest(t->profile) ^ COMPOSE_VERSION) * UINT64_C(0x100000001b3);
	*out = t;
	return 0;
}

static uint64_t tune_digest(const struct nbar_tune *t)
{
	return t->digest;
}

static int tune_host(const struct nbar_tune *t, const char *name, uint32_t *out, char *why,
		     size_t size)
{
	int64_t at = profile_find(t->profile, name);

	if (at >= 0) {
		*out = (uint32_t)at;
		return 0;
	}
	snprintf(
		why, size,
		"the profile has no host '%.64s'; measure a profile of this cluster: nbar-lab profile",
		name);
	return -ENOENT;
}

static int tune_plan(const struct nbar_tune *t, const uint32_t *host, uint32_t size, uint32_t rank,
		     struct nbar_plan **plan, size_t *length, char *why, size_t whysize)
{
	const char *reason = "";
	struct compose c;
	int rc = compose(t->profile, host, size, &c, &reason);
	int64_t bytes;

	if (rc) {
		snprintf(why, whysize, "%s", reason);
		return rc;
	}
	bytes = schedule_plan(c.schedule, rank, NULL, 0);
	*plan = malloc((size_t)bytes);
	if (*plan) {
		schedule_plan(c.schedule, rank, *plan, (size_t)bytes);
		*length = (size_t)bytes;
	} else {
		snprintf(why, whysize, "no memory for the plan");
		rc = -ENOMEM;
	}
	compose_free(&c);
	return rc;
}

const struct nbar_tune_ops nbar_tune = {
	.version = NBAR_TUNE_VERSION,
	.open = tune_open,
	.close = tune_close,
	.digest = tune_digest,
	.host = tune_host,
	.plan = tune_plan,
};
