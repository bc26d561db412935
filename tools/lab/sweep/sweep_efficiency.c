/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_efficiency.c - `nbar-lab sweep efficiency`: the least compute for which compute / loop
 * reaches an efficiency, found by bisection on measurements.
 *
 * The runs of NIC and host alternate, so a drift of the machine affects both alike.
 */
#include <math.h>
#include <stddef.h>

#include "lab.h"
#include "sweep.h"

#define TOLERANCE 0.02
#define STEPS_MAX 32u
#define COMPUTE_MAX 64 /* a search gives up at COMPUTE_MAX times the first guess */

static const struct result_column columns[] = {
	{ "nodes", "", RESULT_COUNT, 0 },        { "where", "", RESULT_TEXT, 0 },
	{ "alg", "", RESULT_TEXT, 0 },           { "efficiency", "", RESULT_REAL, 2 },
	{ "compute", "us", RESULT_REAL, 2 },     { "low", "us", RESULT_REAL, 2 },
	{ "high", "us", RESULT_REAL, 2 },        { "total", "us", RESULT_REAL, 2 },
	{ "less compute", "%", RESULT_REAL, 1 },
};

struct options {
	struct bench_options bench;
	struct sweep_list efficiency;
};

enum { OPT_EFFICIENCY = BENCH_OPT_MORE };

static const struct option more_options[] = {
	{ "efficiency", required_argument, NULL, OPT_EFFICIENCY },
	{ 0 },
};

static int efficiency_read_more(void *arg, int c, const char *value)
{
	struct options *o = arg;

	(void)c;
	return sweep_list_read("--efficiency", value, 0.05, 0.99, &o->efficiency);
}

static void efficiency_usage(void)
{
	fputs("usage: nbar-lab sweep efficiency [OPTION]...\n"
	      "The least compute for which compute / (time of a loop of compute + barrier)\n"
	      "reaches an efficiency, by bisection to 2 %. low, high: compute where the whole\n"
	      "interval of the measured efficiency is below the target, or above. total: time\n"
	      "of a loop. less compute: how much less the NIC needs. Times are microseconds.\n\n"
	      "  --efficiency LIST  targets (0.25,0.50,0.75,0.90)\n"
	      "  --nodes, --alg, --where LIST  see nbar bench (8,16; " ALGS_SWEEP "; nic,host)\n"
	      "  -i, --iterations N  measured loops per run (500)\n"
	      "  --launches N      runs of each step; medians decide (6)\n",
	      stdout);
	bench_usage_common(stdout);
}

/* A search, for NIC or for host. */
struct search {
	enum bench_where where;
	struct sweep_bisect bisect;
	double total_us; /* of a loop, at the least compute so far that reaches the efficiency */
	double most_us;  /* the search gives up at this compute */
};

static bool over(const struct search *search)
{
	return sweep_bisect_done(&search->bisect) || search->bisect.next > search->most_us;
}

static double efficiency_of(double compute_us, double loop_us)
{
	return compute_us / loop_us;
}

/* A step of a search has all repetitions; this function runs one repetition. */
static int run_repetition(struct bench_session *s, const struct bench_config *c,
			  const struct search *search, uint32_t repetition,
			  struct bench_figures *out)
{
	const uint32_t step_ns = (uint32_t)(search->bisect.next * 1e3 + 0.5);
	const struct bench_work work = { &step_ns, 1, 0, 0 };
	struct bench_config config = *c;
	char name[48];

	config.work = &work;
	config.where = search->where;
	config.repetition = repetition;
	snprintf(name, sizeof(name), "%.2f compute %.3f", search->bisect.target, step_ns / 1e3);
	return bench_session_run(s, &config, name, out);
}

static void efficiency_judge(struct search *search, const struct bench_figures *repetition,
			     uint32_t n)
{
	struct metric_median m = bench_median(repetition, n, METRIC_MEAN);
	double c = search->bisect.next, median = efficiency_of(c, m.median);
	bool interval = m.covered > 0;

	if (median >= search->bisect.target && !sweep_bisect_converged(&search->bisect))
		search->total_us = m.median;
	sweep_bisect_answer(&search->bisect, median,
			    interval ? efficiency_of(c, m.high) : -INFINITY,
			    interval ? efficiency_of(c, m.low) : INFINITY);
}

/* Runs all searches of one efficiency, alternating their steps. */
static int efficiency_seek(struct bench_session *s, const struct bench_config *c,
			   struct search *search)
{
	uint32_t nwhere = s->opt->nwhere, repetitions = s->opt->repetitions, running;
	struct bench_figures figures[BENCH_WHERE_END][BENCH_REPETITIONS_MAX];
	int r = 0;

	for (uint32_t step = 0; step < STEPS_MAX && !r; step++) {
		running = 0;
		for (uint32_t l = 0; l < repetitions && !r; l++) {
			/* NIC and host take turns to be first. */
			for (uint32_t i = 0; i < nwhere && !r; i++) {
				uint32_t w = (i + l) % nwhere;

				if (over(&search[w]))
					continue;
				running++;
				r = run_repetition(s, c, &search[w], l, &figures[w][l]);
			}
		}
		if (!running)
			return r;
		for (uint32_t w = 0; w < nwhere && !r; w++)
			if (!over(&search[w]))
				efficiency_judge(&search[w], figures[w], repetitions);
	}
	return r;
}

static void efficiency_add_rows(struct result *r, const struct bench_options *opt,
				const struct bench_config *c, const struct search *search)
{
	double found[BENCH_WHERE_END] = { NAN, NAN };

	for (uint32_t w = 0; w < opt->nwhere; w++)
		if (sweep_bisect_converged(&search[w].bisect))
			found[search[w].where] = sweep_bisect_found(&search[w].bisect);
	for (uint32_t w = 0; w < opt->nwhere; w++) {
		const struct sweep_bisect *b = &search[w].bisect;
		enum bench_where where = search[w].where;

		result_count(r, c->nodes);
		result_text(r, bench_where_name[where]);
		result_text(r, c->alg);
		result_real(r, b->target);
		result_real(r, found[where]);
		result_real(r, b->sure_low > 0 ? b->sure_low : NAN);
		result_real(r, b->sure_high > 0 ? b->sure_high : NAN);
		result_real(r, found[where] > 0 ? search[w].total_us : NAN);
		result_real(r, where == BENCH_NIC ? 100 * (1 - found[where] / found[BENCH_HOST])
						  : NAN);
	}
}

/* Runs one node count and algorithm. The time of the barrier alone gives the first guess; the
 * result for each efficiency gives the guess for the next efficiency. */
static int run_all_efficiencies(struct bench_session *s, const struct options *o,
				const struct bench_config *c, struct result *result)
{
	const struct bench_options *opt = &o->bench;
	struct search search[BENCH_WHERE_END] = { 0 };
	double barrier[BENCH_WHERE_END];
	struct bench_figures alone;
	int r = 0;

	for (uint32_t w = 0; w < opt->nwhere && !r; w++) {
		struct bench_config first = *c;

		search[w].where = first.where = opt->where[w];
		r = bench_session_run(s, &first, "alone", &alone);
		barrier[w] = r ? 1 : alone.metric[METRIC_P50];
	}
	for (uint32_t i = 0; i < o->efficiency.n && !r; i++) {
		double e = o->efficiency.value[i];

		for (uint32_t w = 0; w < opt->nwhere; w++) {
			double guess = barrier[w] * e / (1 - e);

			sweep_bisect_begin(&search[w].bisect, guess, e, TOLERANCE);
			search[w].most_us = COMPUTE_MAX * guess;
		}
		r = efficiency_seek(s, c, search);
		efficiency_add_rows(result, opt, c, search);
		for (uint32_t w = 0; w < opt->nwhere && !r; w++)
			if (sweep_bisect_converged(&search[w].bisect))
				barrier[w] = search[w].total_us * (1 - e);
	}
	return r;
}

static void efficiency_add_notes(const struct bench_options *opt, struct result *r)
{
	result_note(r, "total = compute / efficiency, by definition; published values of this "
		       "experiment are totals: their ratios are those of 1 / (1 - efficiency)");
	result_note(r, "%s", sweep_compute_text);
	bench_session_notes(opt, r);
}

static int efficiency_run(struct options *o, int argc, char **argv)
{
	struct result *result =
		result_new("efficiency", columns, sizeof(columns) / sizeof(columns[0]));
	struct bench_options *opt = &o->bench;
	struct bench_session s;
	struct bench_config c = { .iters = opt->iters, .warmup = opt->warmup };
	char list[SWEEP_LIST_MAX * 14];
	double amount = opt->nnodes * opt->nalg * o->efficiency.n * opt->nwhere * opt->repetitions;
	int r;

	result_command(result, argc, argv);
	sweep_list_text(&o->efficiency, list, sizeof(list));
	result_setting_text(result, "efficiency", list);
	c.nodes = opt->nodes[0];
	/* Approximate number of steps of a search. */
	r = bench_session_begin(&s, opt, result, amount * 6 * bench_session_cost(&c));
	if (r)
		return r;
	for (uint32_t i = 0; i < opt->nnodes && !r; i++) {
		for (uint32_t a = 0; a < opt->nalg && !r; a++) {
			c.nodes = opt->nodes[i];
			c.alg = opt->alg[a];
			r = run_all_efficiencies(&s, o, &c, result);
		}
	}
	efficiency_add_notes(opt, result);
	return bench_session_end(&s, r);
}

int sweep_efficiency(int argc, char **argv)
{
	struct options o = {
		.bench = sweep_defaults(8, 500, 6),
		.efficiency = { { 0.25, 0.5, 0.75, 0.9 }, 4 },
	};
	const struct bench_extra_options more = { more_options, efficiency_read_more, &o };
	bool help;
	int r;

	o.bench.nodes[1] = 16;
	o.bench.nnodes = 2;
	r = bench_options_parse(argc - 1, argv + 1, &o.bench, &more, &help);
	if (help)
		efficiency_usage();
	return r || help ? r : efficiency_run(&o, argc, argv);
}
