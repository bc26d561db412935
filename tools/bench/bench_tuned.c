/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_tuned.c - the barrier of `--alg tuned:FILE`. It is composed before the hosts of a run
 * start, so that each host finds its plan.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "compose.h"
#include "nbar_tune.h"

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

/* The host of each rank, by its number in the profile. */
static int find_hosts(const struct bench_options *opt, const struct bench_config *c,
		      const struct bench_nics *nics, const struct profile *p, uint32_t *host)
{
	for (uint32_t node = 0; node < c->nodes; node++) {
		char name[PROFILE_NAME_MAX];
		int64_t at;

		if (nics->n)
			bench_nic_name(opt, nics, node % nics->n, name, sizeof(name));
		else
			snprintf(name, sizeof(name), "n%u", node);
		at = profile_find(p, name);
		if (at < 0) {
			tool_error("%s has no host '%s' for node %u: measure a profile of "
				   "these NICs (nbar profile), or name their hosts with --hosts",
				   opt->tuned, name, node);
			return TOOL_FAILED;
		}
		host[c->rank[node]] = (uint32_t)at;
	}
	return 0;
}

int bench_tuned_make(const struct bench_options *opt, const struct bench_config *config,
		     const struct bench_nics *nics, struct compose **out)
{
	struct compose *c = calloc(1, sizeof(*c));
	uint32_t *host = calloc(config->nodes, sizeof(*host));
	struct profile *p = NULL;
	char text[512] = "no memory";
	const char *why = text;
	int r = TOOL_FAILED;

	*out = NULL;
	if (strcmp(config->alg, NBAR_TUNE_NAME) != 0) {
		r = 0;
	} else if (!c || !host || profile_read(opt->tuned, &p, text, sizeof(text))) {
		tool_error("--alg " NBAR_TUNE_NAME ": %s", text);
	} else {
		r = find_hosts(opt, config, nics, p, host);
		if (!r && compose(p, host, config->nodes, c, &why)) {
			tool_error("--alg " NBAR_TUNE_PREFIX "%s: %s", opt->tuned, why);
			r = TOOL_FAILED;
		}
		if (!r) {
			*out = c;
			c = NULL;
		}
	}
	profile_free(p);
	free(host);
	free(c);
	return r;
}

void bench_tuned_free(struct compose *c)
{
	if (c)
		compose_free(c);
	free(c);
}

int bench_tuned_plan(const struct compose *c, struct nbar_group_attr *attr)
{
	int64_t length = schedule_plan(c->schedule, attr->rank, NULL, 0);
	struct nbar_plan *plan = malloc((size_t)length);

	if (!plan)
		return -ENOMEM;
	attr->alg = NBFW_ALG_CUSTOM_NAME;
	attr->plan = plan;
	attr->plan_length = (size_t)schedule_plan(c->schedule, attr->rank, plan, (size_t)length);
	return 0;
}
