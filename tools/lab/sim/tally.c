/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally.c - see tally.h.
 */
#include "tally.h"

#include <stdlib.h>

#include "stats.h"

int sim_tally_begin(struct sim_tally *t, uint32_t size, uint32_t barriers)
{
	*t = (struct sim_tally){ .size = size,
				 .barriers = barriers,
				 .failed_rank = NBAR_RANK_NONE };
	t->barrier = calloc(barriers, sizeof(*t->barrier));
	t->time = calloc(barriers, sizeof(*t->time));
	return t->barrier && t->time ? 0 : -NBAR_ENOMEM;
}

void sim_tally_end(struct sim_tally *t)
{
	free(t->barrier);
	free(t->time);
	t->barrier = NULL;
	t->time = NULL;
}

void sim_tally_enter(struct sim_tally *t, uint32_t barrier, sim_time at)
{
	struct sim_barrier *b = &t->barrier[barrier];

	if (b->entered++ == 0 || at < b->first_in)
		b->first_in = at;
	if (at > b->last_in)
		b->last_in = at;
}

bool sim_tally_leave(struct sim_tally *t, uint32_t barrier, sim_time at,
		     const struct sim_path *path)
{
	struct sim_barrier *b = &t->barrier[barrier];

	if (b->left++ == 0 || at < b->first_out)
		b->first_out = at;
	if (at > b->last_out) {
		b->last_out = at;
		if (barrier + 1 == t->barriers) {
			t->path = *path;
			t->end = at;
		}
	}
	return b->entered == t->size;
}

void sim_tally_fail(struct sim_tally *t, uint32_t failed_rank)
{
	t->nfailed++;
	if (t->nculprit == 0)
		t->failed_rank = failed_rank;
	t->nculprit += failed_rank == t->failed_rank ? 1 : UINT64_MAX;
}

void sim_tally_report(const struct sim_tally *t, struct sim_report *out)
{
	uint32_t n = 0;

	for (; n < t->barriers && t->barrier[n].left == t->size; n++) {
		const struct sim_barrier *b = &t->barrier[n];
		double ns = ((double)b->last_out - (double)b->last_in) / (double)SIM_NS;

		if (ns > out->worst_ns)
			out->worst_ns = ns;
		t->time[n] = ns;
		out->skew_ns += (double)(b->last_out - b->first_out) / (double)SIM_NS;
		out->mean_ns = (double)(b->last_out - t->barrier[0].first_in) / (double)SIM_NS;
	}
	if (n > 0) {
		out->skew_ns /= n;
		out->mean_ns /= n;
		out->p99_ns = stats_percentile(t->time, n, 0.99);
		out->median_ns = t->time[n / 2]; /* they are sorted now */
	}
	if (n == t->barriers && n > 0) {
		out->path = t->path;
		out->path_ns = (double)(t->end - t->barrier[n - 1].first_in) / (double)SIM_NS;
	}
	out->failed = t->nfailed;
	out->failed_rank = t->failed_rank;
}
