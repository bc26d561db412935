/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_to_many_tune.c - barriers of every n at every size: shows the best measured n beside the n
 * that the model suggests.
 */
#include "one_to_many.h"

#include <math.h>
#include <string.h>

#include "plan.h"

uint32_t one_to_many_ways(const char *alg)
{
	struct nbfw_alg a;

	return nbfw_alg_parse(alg, &a) || a.kind != NBFW_ALG_DISSEMINATION ? 0 : a.n;
}

static double median_of(const struct one_to_many *t, const struct bench_point *p,
			enum bench_where where)
{
	return bench_median(p->repetition[where], t->opt.repetitions, METRIC_P50).median;
}

const struct bench_point *one_to_many_best(const struct one_to_many *t, uint32_t size,
					   enum bench_where where)
{
	const struct bench_point *best = NULL;

	for (uint32_t i = 0; i < t->nbarrier; i++) {
		const struct bench_point *p = &t->barrier[i];

		if (p->config.nodes == size && !isnan(median_of(t, p, where)) &&
		    (!best || median_of(t, p, where) < median_of(t, best, where)))
			best = p;
	}
	return best;
}

static void tune_add_row(const struct one_to_many *t, struct result *r, const struct bench_point *p,
			 enum bench_where where)
{
	uint32_t size = p->config.nodes, ways = one_to_many_ways(p->config.alg);
	bool best = p == one_to_many_best(t, size, where);
	bool suggested = ways && ways == lop_ways(&t->model, size, ONE_TO_MANY_WAYS);

	result_text(r, "barrier");
	result_count(r, size);
	if (ways)
		result_count(r, ways);
	else
		result_none(r);
	result_text(r, bench_where_name[where]);
	result_text(r, p->config.alg);
	result_real(r, bench_point_mean(&t->opt, p, where).median);
	result_real(r, median_of(t, p, where));
	for (int none = 0; none < 4; none++)
		result_none(r);
	result_real(r, ways ? lop_barrier(&t->model, size, ways) : NAN);
	result_text(r, best && suggested ? "best, model"
		       : best            ? "best"
		       : suggested       ? "model"
					 : "");
}

/* "the NIC: SIZE: ALGORITHM, SIZE: ALGORITHM ..." */
static void note_best(const struct one_to_many *t, struct result *r, enum bench_where where)
{
	char text[400] = "";
	uint32_t agreed = 0, sizes = 0;

	for (uint32_t i = 0; i < t->opt.nnodes; i++) {
		const struct bench_point *best = one_to_many_best(t, t->opt.nodes[i], where);
		uint32_t ways = best ? one_to_many_ways(best->config.alg) : 0;

		if (!best)
			continue;
		sizes++;
		agreed += ways && ways == lop_ways(&t->model, best->config.nodes, ONE_TO_MANY_WAYS);
		tool_join(text, sizeof(text), ", ", "%u: %s", best->config.nodes, best->config.alg);
	}
	result_note(r,
		    "best of those measured, run by the %s: %s; as the model suggests at %u of %u "
		    "sizes",
		    where == BENCH_NIC ? "NICs" : "hosts", text, agreed, sizes);
}

void one_to_many_report_tuned(const struct one_to_many *t, struct result *r)
{
	for (uint32_t i = 0; i < t->nbarrier; i++)
		for (uint32_t w = 0; w < t->opt.nwhere; w++)
			tune_add_row(t, r, &t->barrier[i], t->opt.where[w]);
	for (uint32_t w = 0; w < t->opt.nwhere; w++)
		note_best(t, r, t->opt.where[w]);
}
