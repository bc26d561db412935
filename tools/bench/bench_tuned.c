/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_tuned.c - the barrier of `--alg tuned:FILE`, by libnbar-tune. The profile is read before
 * the hosts of a run start; each host makes its own plan.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "nbar_tune.h"

struct bench_tuned {
	const struct nbar_tune_ops *ops;
	struct nbar_tune *tune;
	uint32_t size, host[]; /* by rank: the number of its host in the profile */
};

/* The name of a NIC in a profile: the name of its socket, without folder and ending. */
static void name_of_nic(const char *nic, char *out, size_t size)
{
	const char *base = strrchr(nic, '/');
	size_t n;

	base = base ? base + 1 : nic;
	n = strlen(base);
	if (n > 5 && !strcmp(base + n - 5, ".sock"))
		n -= 5;
	snprintf(out, size, "%.*s", (int)n, base);
}

void bench_nic_name(const struct bench_options *opt, const struct bench_nics *nics, uint32_t i,
		    char *out, size_t size)
{
	const char *at = opt->hosts;

	for (; at && i > 0; i--) {
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	if (!opt->hosts)
		name_of_nic(nics->name[i], out, size);
	else
		snprintf(out, size, "%.*s", at ? (int)strcspn(at, ",") : 0, at ? at : "");
}

static int find_hosts(const struct bench_options *opt, const struct bench_config *c,
		      const struct bench_nics *nics, struct bench_tuned *t)
{
	char why[512];

	for (uint32_t node = 0; node < c->nodes; node++) {
		char name[BENCH_PATH_MAX];

		if (nics->n)
			bench_nic_name(opt, nics, node % nics->n, name, sizeof(name));
		else
			snprintf(name, sizeof(name), "n%u", node);
		if (t->ops->host(t->tune, name, &t->host[c->rank[node]], why, sizeof(why))) {
			tool_error("%s has no host '%s' for node %u: measure a profile of "
				   "these NICs (nbar-lab profile), or name their hosts with "
				   "--hosts",
				   opt->tuned, name, node);
			return TOOL_FAILED;
		}
	}
	return 0;
}

int bench_tuned_make(const struct bench_options *opt, const struct bench_config *config,
		     const struct bench_nics *nics, struct bench_tuned **out)
{
	struct nbar_group_attr attr = { .rank = 0 };
	struct bench_tuned *t;
	char why[512] = "no memory";

	if (strcmp(config->alg, NBAR_TUNE_NAME) != 0)
		return 0;
	*out = t = calloc(1, sizeof(*t) + config->nodes * sizeof(*t->host));
	if (!t || !(t->ops = nbar_tune_load(why, sizeof(why))) ||
	    t->ops->open(opt->tuned, &t->tune, why, sizeof(why))) {
		tool_error("--alg " NBAR_TUNE_NAME ": %s", why);
		return TOOL_FAILED;
	}
	t->size = config->nodes;
	if (find_hosts(opt, config, nics, t))
		return TOOL_FAILED;
	/* If there is no barrier, no rank has a plan. */
	if (bench_tuned_plan(t, &attr, why, sizeof(why))) {
		tool_error("--alg " NBAR_TUNE_PREFIX "%s: %s", opt->tuned, why);
		return TOOL_FAILED;
	}
	free((void *)(uintptr_t)attr.plan);
	return 0;
}

void bench_tuned_free(struct bench_tuned *t)
{
	if (t && t->tune)
		t->ops->close(t->tune);
	free(t);
}

int bench_tuned_plan(const struct bench_tuned *t, struct nbar_group_attr *attr, char *why,
		     size_t size)
{
	struct nbar_plan *plan;
	int r = t->ops->plan(t->tune, t->host, t->size, attr->rank, &plan, &attr->plan_length, why,
			     size);

	if (!r) {
		attr->alg = NBFW_ALG_CUSTOM_NAME;
		attr->plan = plan;
	}
	return r;
}
