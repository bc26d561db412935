/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_points.c - points of compute and variation, for sweeps over a grid of both.
 */
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "sweep.h"

const char sweep_compute_text[] =
	"compute: a host calls no function of the library for that time; nodes that share a "
	"core compute at the same time";

struct bench_options sweep_defaults(uint32_t nodes, uint32_t iters, uint32_t repetitions)
{
	struct bench_options opt = bench_options_default();

	opt.nodes[0] = nodes;
	opt.nnodes = 1;
	strcpy(opt.alg[0], ALGS_SWEEP);
	opt.iters = iters;
	opt.warmup = iters / 10;
	opt.repetitions = repetitions;
	opt.drivers = BENCH_DRIVERS_AUTO;
	return opt;
}

static void make_point(struct sweep_points *p, const struct bench_options *opt, uint32_t nodes,
		       const char *alg, double compute_us, double vary_percent)
{
	uint32_t at = p->n++;
	struct bench_point *point = &p->point[at];

	p->step_ns[at] = (uint32_t)(compute_us * 1e3 + 0.5);
	p->work[at] = (struct bench_work){
		.step_ns = &p->step_ns[at],
		.nstep = 1,
		.vary = vary_percent / 100,
	};
	point->config = (struct bench_config){
		.nodes = nodes,
		.alg = alg,
		.iters = opt->iters,
		.warmup = opt->warmup,
		.work = &p->work[at],
	};
	snprintf(point->name, sizeof(point->name), "compute %.6g +-%.6g %%", compute_us,
		 vary_percent);
}

void sweep_points_make(struct sweep_points *p, const struct bench_options *opt,
		       const struct sweep_list *compute_us, const struct sweep_list *vary_percent)
{
	uint32_t n = opt->nnodes * opt->nalg * compute_us->n * vary_percent->n;

	*p = (struct sweep_points){
		.point = bench_points_new(opt, n),
		.work = tool_alloc(n, sizeof(*p->work)),
		.step_ns = tool_alloc(n, sizeof(*p->step_ns)),
	};
	for (uint32_t i = 0; i < opt->nnodes; i++)
		for (uint32_t a = 0; a < opt->nalg; a++)
			for (uint32_t c = 0; c < compute_us->n; c++)
				for (uint32_t v = 0; v < vary_percent->n; v++)
					make_point(p, opt, opt->nodes[i], opt->alg[a],
						   compute_us->value[c], vary_percent->value[v]);
}

void sweep_points_free(struct sweep_points *p)
{
	free(p->point);
	free(p->work);
	free(p->step_ns);
	*p = (struct sweep_points){ 0 };
}

double sweep_points_noise(const struct bench_options *opt, const struct bench_point *point,
			  uint32_t n, enum bench_where where)
{
	double value[SWEEP_LIST_MAX];
	uint32_t have = 0;

	for (uint32_t i = 0; i < n && i < SWEEP_LIST_MAX; i++) {
		struct metric_median m = bench_point_mean(opt, &point[i], where);

		if (m.covered > 0)
			value[have++] = (m.high - m.low) / 2;
	}
	return have ? stats_median(value, have) : 0;
}
