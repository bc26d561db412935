/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster.h - the members of a group, all in one test program.
 *
 * Member r has its own port on NIC r % nnic, in the run directory $NBAR_RUN_DIR.
 */
#ifndef TESTBED_CLUSTER_H
#define TESTBED_CLUSTER_H

#include <time.h>

#include "nbar_extra.h"
#include "unit/unit.h"

#define CLUSTER_MAX 32u

struct cluster {
	uint32_t size;
	struct nbar_port *port[CLUSTER_MAX];
	struct nbar_group *g[CLUSTER_MAX];
	struct nbar_endpoint endpoint[CLUSTER_MAX];
};

#define require_ok(call) require((call) == 0, "%s", nbar_error())

/* Opens, without connecting. */
static inline void cluster_open(struct cluster *c, uint32_t size, uint32_t nnic, const char *alg)
{
	c->size = size;
	for (uint32_t r = 0; r < size; r++) {
		struct nbar_group_attr attr = { .rank = r, .size = size, .alg = alg, .tag = 7 };
		char name[16];

		snprintf(name, sizeof(name), "n%u", r % nnic);
		require_ok(nbar_open(name, &c->port[r]));
		require_ok(nbar_group_open(c->port[r], &attr, &c->g[r], &c->endpoint[r]));
	}
}

static inline void cluster_start(struct cluster *c, uint32_t size, uint32_t nnic, const char *alg)
{
	cluster_open(c, size, nnic, alg);
	for (uint32_t r = 0; r < size; r++)
		require_ok(nbar_group_connect(c->g[r], c->endpoint));
}

static inline void cluster_end(struct cluster *c)
{
	for (uint32_t r = 0; r < c->size; r++)
		nbar_close(c->port[r]);
}

/* A pause between two looks at something that another thread will do. Long enough not to disturb
 * that thread; no result depends on it. */
static inline void breathe(void)
{
	const struct timespec t = { .tv_nsec = 200000 };

	nanosleep(&t, NULL);
}

#endif
