/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_session.c - what all experiments with nodes share: NICs, runs, results; see
 * bench.h. bench, the sweeps and app call this file; it must not know any of them.
 */
#include "bench.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "signals.h"

/* Checks that the NICs of --nic answer, and gets the name of their wire. */
static int look_at_nics(struct bench_options *opt)
{
	struct nbar_rep_nic_stat stat;

	for (uint32_t i = 0; i < opt->nnic; i++) {
		if (nbar_nic_stat(opt->nic[i], &stat)) {
			tool_error("--nic %s: %s", opt->nic[i], nbar_error());
			return TOOL_FAILED;
		}
		if (i == 0)
			snprintf(opt->wire, sizeof(opt->wire), "%.*s", (int)sizeof(stat.wire),
				 (const char *)stat.wire);
	}
	return 0;
}

static uint32_t most_nodes(const struct bench_options *opt)
{
	uint32_t most = opt->most > 1 ? opt->most : 1;

	for (uint32_t i = 0; i < opt->nnodes; i++)
		most = opt->nodes[i] > most ? opt->nodes[i] : most;
	return most;
}

static void session_describe(const struct bench_session *s, struct result *r)
{
	const struct bench_options *opt = s->opt;
	const struct bench_machine *m = &s->machine;
	char list[64 * NBAR_NAME_MAX] = "";

	for (uint32_t i = 0; i < m->nhost_cpu; i++)
		tool_join(list, sizeof(list), ",", "%d", m->host_cpu[i]);
	result_machine_text(r, "wire", opt->wire);
	result_machine_text(r, "idle", m->idle);
	result_machine_number(r, "daemon_cpu", m->daemon_cpu);
	result_machine_text(r, "host_cpus", list);
	*list = '\0';
	for (uint32_t i = 0; i < opt->nnodes; i++)
		tool_join(list, sizeof(list), ",", "%u", opt->nodes[i]);
	result_setting_text(r, "nodes", list);
	*list = '\0';
	for (uint32_t i = 0; i < opt->nalg; i++)
		tool_join(list, sizeof(list), ",", "%s", opt->alg[i]);
	result_setting_text(r, "alg", list);
	*list = '\0';
	for (uint32_t i = 0; i < opt->nwhere; i++)
		tool_join(list, sizeof(list), ",", "%s", bench_where_name[opt->where[i]]);
	result_setting_text(r, "where", list);
	result_setting_number(r, "iterations", opt->iters);
	result_setting_number(r, "warmup", opt->warmup);
	result_setting_number(r, "launches", opt->repetitions);
	result_setting_text(r, "drivers",
			    opt->drivers == BENCH_DRIVERS_ONE ? "one for all nodes" : "one a node");
	result_setting_number(r, "seed", (double)opt->seed);
	result_setting_text(r, "ranks", opt->sorted ? "sorted" : "random");
	result_setting_text(r, "checked", opt->check ? "yes" : "no");
	result_setting_number(r, "value", opt->value);
}

int bench_session_begin(struct bench_session *s, struct bench_options *opt, struct result *result,
			double amount)
{
	int r = look_at_nics(opt);

	if (r) {
		result_free(result);
		return r;
	}
	*s = (struct bench_session){ .opt = opt, .random = opt->seed };
	bench_machine_read(&s->machine, opt);
	if (opt->drivers == BENCH_DRIVERS_AUTO)
		opt->drivers = most_nodes(opt) > s->machine.nhost_cpu || s->machine.ncpu == 1
				       ? BENCH_DRIVERS_ONE
				       : BENCH_DRIVERS_NODES;
	session_describe(s, result);
	r = experiment_begin(&s->e, &opt->out, result, amount);
	if (!r)
		signals_begin();
	return r;
}

/* Starts the daemon before the first run that needs one. */
static int start_nics(struct bench_session *s)
{
	uint32_t most = most_nodes(s->opt);

	if (s->started)
		return 0;
	s->started = true;
	if (!s->opt->nnic)
		return bench_nicd_start(&s->nics, s->opt, &s->machine,
					most < NBAR_NICS_MAX ? most : NBAR_NICS_MAX);
	memcpy(s->nics.name, s->opt->nic, sizeof(s->nics.name));
	s->nics.n = s->opt->nnic;
	return 0;
}

double bench_session_cost(const struct bench_config *c)
{
	double step_us = 0, start_s = 0.05 + 0.005 * c->nodes;

	for (uint32_t i = 0; c->work && i < c->work->nstep; i++)
		step_us += c->work->step_ns[i] / 1e3 / c->work->nstep;
	return start_s + (c->iters + c->warmup) * (step_us + 2 + 2 * c->nodes) / 1e6;
}

/*
 * Gives the nodes random ranks; nic and host get the same ranks. With ranks in the order of the
 * nodes, nodes that share a core would run in the order of their ranks, and the receiver of a
 * signal to a higher rank would always run next.
 */
static void deal_ranks(const struct bench_options *opt, const struct bench_config *c,
		       uint32_t *rank)
{
	uint64_t random = opt->seed ^ (uint64_t)c->nodes << 48 ^ (uint64_t)c->repetition << 32;

	stats_shuffle(rank, c->nodes, &random);
	for (uint32_t i = 0; opt->sorted && i < c->nodes; i++)
		rank[i] = i;
}

int bench_session_run(struct bench_session *s, const struct bench_config *config, const char *name,
		      struct bench_figures *out)
{
	struct bench_config c = *config;
	uint32_t rank[BENCH_NODES_MAX];
	char key[160];
	int r;

	snprintf(key, sizeof(key), "%s%s%u nodes %s %s %u launch %u", name, *name ? " " : "",
		 c.nodes, c.alg, bench_where_name[c.where], c.iters, c.repetition);
	const struct bench_raw raw = { .to = experiment_raw(&s->e), .point = key };

	progress_show(&s->e.progress, "%s%s%u nodes, %s, %s", name, *name ? ", " : "", c.nodes,
		      bench_where_name[c.where], c.alg);
	deal_ranks(s->opt, &c, rank);
	c.rank = rank;
	r = bench_in_process(c.where) ? 0 : start_nics(s);
	if (bench_in_process(c.where))
		bench_nicd_pause(&s->nics, true);
	if (!r)
		r = bench_run(s->opt, &c, &s->machine, &s->nics, &raw, out);
	if (bench_in_process(c.where))
		bench_nicd_pause(&s->nics, false);
	if (!r)
		experiment_add(&s->e, bench_session_cost(&c));
	return !r && signals_interrupted() ? TOOL_FAILED : r;
}

int bench_session_end(struct bench_session *s, int status)
{
	bench_nicd_stop(&s->nics);
	progress_end(&s->e.progress);
	if (signals_interrupted()) {
		tool_error("interrupted");
		status = TOOL_FAILED;
	}
	return experiment_end(&s->e, status);
}

struct bench_point *bench_points_new(const struct bench_options *opt, uint32_t n)
{
	struct bench_point *point;
	struct bench_figures *repetition;

	point = tool_alloc(n, sizeof(*point) +
				      BENCH_WHERE_END * opt->repetitions * sizeof(*repetition));
	repetition = (void *)(point + n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t w = 0; w < BENCH_WHERE_END; w++, repetition += opt->repetitions)
			point[i].repetition[w] = repetition;
	return point;
}

double bench_points_cost(const struct bench_options *opt, const struct bench_point *point,
			 uint32_t n)
{
	double all = 0;

	for (uint32_t i = 0; i < n; i++)
		all += bench_session_cost(&point[i].config) * opt->nwhere * opt->repetitions;
	return all;
}

static int run_point(struct bench_session *s, const struct bench_point *p, uint32_t repetition)
{
	uint32_t where[BENCH_WHERE_END];
	struct bench_work work;
	int r = 0;

	stats_shuffle(where, s->opt->nwhere, &s->random);
	for (uint32_t w = 0; w < s->opt->nwhere && !r; w++) {
		struct bench_config c = p->config;

		c.where = s->opt->where[where[w]];
		c.repetition = repetition;
		if (c.work) {
			work = *c.work;
			work.seed = s->opt->seed + repetition;
			c.work = &work;
		}
		r = bench_session_run(s, &c, p->name, &p->repetition[c.where][repetition]);
	}
	return r;
}

int bench_points_run(struct bench_session *s, const struct bench_point *point, uint32_t n)
{
	uint32_t *order = calloc(n, sizeof(*order));
	int r = order ? 0 : TOOL_FAILED;

	if (!order)
		tool_error("no memory for the order of %u points: free some, and try again", n);
	for (uint32_t l = 0; l < s->opt->repetitions && !r; l++) {
		stats_shuffle(order, n, &s->random);
		for (uint32_t i = 0; i < n && !r; i++)
			r = run_point(s, &point[order[i]], l);
	}
	free(order);
	return r;
}

int bench_points_all(struct bench_options *opt, const struct bench_point *point, uint32_t n,
		     const struct bench_rows *rows, struct result *result)
{
	struct bench_session s;
	int r = bench_session_begin(&s, opt, result, bench_points_cost(opt, point, n));

	if (r)
		return r;
	r = bench_points_run(&s, point, n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t w = 0; w < opt->nwhere; w++)
			rows->row(rows->arg, opt, &point[i], opt->where[w], result);
	rows->notes(rows->arg, opt, point, n, !r, result);
	bench_session_notes(opt, result);
	return bench_session_end(&s, r);
}

uint32_t bench_repetitions_done(const struct bench_figures *repetition, uint32_t n)
{
	while (n && !(repetition[n - 1].metric[METRIC_MEAN] > 0))
		n--;
	return n;
}

struct metric_median bench_median(const struct bench_figures *repetition, uint32_t n, size_t figure)
{
	return metric_median((const double *)repetition + figure, BENCH_NFIGURES,
			     bench_repetitions_done(repetition, n));
}

struct metric_median bench_point_mean(const struct bench_options *opt,
				      const struct bench_point *point, enum bench_where where)
{
	return bench_median(point->repetition[where], opt->repetitions, METRIC_MEAN);
}

double bench_point_speedup(const struct bench_options *opt, const struct bench_point *point)
{
	return bench_point_mean(opt, point, BENCH_HOST).median /
	       bench_point_mean(opt, point, BENCH_NIC).median;
}

void bench_session_notes(const struct bench_options *opt, struct result *r)
{
	double value[BENCH_REPETITIONS_MAX] = { 0 }, low, high;

	result_note(r, "%s; wire %s; %s%u repetition%s",
		    opt->drivers == BENCH_DRIVERS_ONE ? "one process drives all nodes"
						      : "a process a node",
		    opt->wire, opt->repetitions > 1 ? "medians of " : "", opt->repetitions,
		    opt->repetitions > 1 ? "s" : "");
	if (opt->repetitions > 1)
		result_note(
			r, "low to high covers the median with %.1f %% confidence",
			100 * stats_median_interval(value, opt->repetitions, 0.95, &low, &high));
}
