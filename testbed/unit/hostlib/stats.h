/* SPDX-License-Identifier: BSD-3-Clause */
/* stats.h - what this process has done on a group. */
#ifndef TESTBED_STATS_H
#define TESTBED_STATS_H

#include "internal.h"
#include "order.h"

struct group_stats {
	uint64_t posted, completed;
	uint64_t yields, sleeps; /* of waiting threads */
};

static inline struct group_stats stats_of(const struct nbar_group *g)
{
	uint64_t word = order_completion_read(&g->completion->word);
	uint64_t posted = order_posted_read(&g->posted);

	return (struct group_stats){
		.posted = posted,
		.completed = posted - ((uint32_t)posted - (uint32_t)word),
		.yields = order_stat_read(&g->yields),
		.sleeps = order_stat_read(&g->sleeps),
	};
}
#endif
