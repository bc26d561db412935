/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_latency.c - prints how long the barriers of NICs took, and from which ranks the last tokens
 * of barriers came, as text or as JSON. stat_out.c calls it. It sends no request.
 */
#include <stdio.h>

#include "stat.h"

static uint64_t total(const struct nbar_rep_nic_latency *latency)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < NBAR_LATENCY_BUCKETS; i++)
		n += latency->bucket[i];
	return n;
}

uint64_t stat_latency_below(const struct nbar_rep_nic_latency *latency, uint32_t percent)
{
	uint64_t n = total(latency), others = 100 - percent, passed = 0;
	uint64_t need = n - n / 100 * others - n % 100 * others / 100;

	for (uint32_t i = 0; i < NBAR_LATENCY_BUCKETS - 1; i++) {
		passed += latency->bucket[i];
		if (passed >= need)
			return NBAR_LATENCY_NS(i);
	}
	return UINT64_MAX;
}

static void print_below(const struct nbar_rep_nic_latency *latency, uint32_t percent)
{
	uint64_t ns = stat_latency_below(latency, percent);

	if (ns == UINT64_MAX)
		printf(", %u %% not below %.1f s", percent,
		       (double)NBAR_LATENCY_NS(NBAR_LATENCY_BUCKETS - 2) / 1e9);
	else
		printf(", %u %% below %.1f us", percent, (double)ns / 1e3);
}

void stat_print_latency(const struct stat_nic *s)
{
	uint64_t n = total(&s->latency);

	if (!n)
		return;
	printf("  latency of %llu barriers, from start to completion: mean %.1f us",
	       (unsigned long long)n, (double)s->latency.ns / (double)n / 1e3);
	print_below(&s->latency, 50);
	print_below(&s->latency, 99);
	print_below(&s->latency, 100);
	putchar('\n');
}

static void print_rank(const struct nbar_group_info *g, const struct nbar_last *l)
{
	if (l->rank == g->rank)
		printf("    own host last: %llu barriers\n", (unsigned long long)l->barriers);
	else
		printf("    from rank %u: %llu barriers, mean %.1f us, at most %.1f us\n", l->rank,
		       (unsigned long long)l->barriers, (double)l->ns / (double)l->barriers / 1e3,
		       (double)l->most_ns / 1e3);
}

void stat_print_last(const struct stat_nic *s)
{
	for (uint32_t i = 0; i < s->ngroup; i++) {
		const struct nbar_group_stat *last = s->last ? &s->last[i] : NULL;

		if (!last || last->barriers == 0)
			continue;
		printf("  last tokens of group %u, rank %u of %u:\n", s->group[i].index,
		       s->group[i].rank, s->group[i].size);
		for (uint32_t k = 0; k < last->nlast; k++)
			print_rank(&s->group[i], &last->last[k]);
		if (last->nrank > last->nlast)
			printf("    from %u more ranks\n", last->nrank - last->nlast);
	}
}

static json_t *seconds(uint64_t ns)
{
	return json_real((double)ns / 1e9);
}

json_t *stat_latency_json(const struct nbar_rep_nic_latency *latency)
{
	json_t *buckets = json_array();

	for (uint32_t i = 0; i < NBAR_LATENCY_BUCKETS; i++)
		if (latency->bucket[i])
			json_array_append_new(
				buckets,
				json_pack("{s:o, s:I}", "below",
					  i < NBAR_LATENCY_BUCKETS - 1 ? seconds(NBAR_LATENCY_NS(i))
								       : json_null(),
					  "barriers", (json_int_t)latency->bucket[i]));
	return json_pack("{s:I, s:o, s:o}", "barriers", (json_int_t)total(latency), "seconds",
			 seconds(latency->ns), "buckets", buckets);
}

json_t *stat_last_json(const struct nbar_group_stat *last)
{
	json_t *ranks = json_array();

	for (uint32_t i = 0; i < last->nlast; i++)
		json_array_append_new(ranks, json_pack("{s:I, s:I, s:o, s:o}", "rank",
						       (json_int_t)last->last[i].rank, "barriers",
						       (json_int_t)last->last[i].barriers,
						       "seconds", seconds(last->last[i].ns), "most",
						       seconds(last->last[i].most_ns)));
	return json_pack("{s:I, s:o, s:I, s:o}", "barriers", (json_int_t)last->barriers, "seconds",
			 seconds(last->ns), "nrank", (json_int_t)last->nrank, "ranks", ranks);
}
