/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_to_many.c - `nbar-lab one-to-many`: the 1:P ping-pong, the LoP model fitted to the results,
 * the n of an n-way dissemination that the model suggests, and the n that is best in measurements.
 */
#include "one_to_many.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "option.h"
#include "plan.h"

static const struct result_column columns[] = {
	{ "what", "", RESULT_TEXT, 0 },        { "nodes", "", RESULT_COUNT, 0 },
	{ "n", "", RESULT_COUNT, 0 },          { "where", "", RESULT_TEXT, 0 },
	{ "alg", "", RESULT_TEXT, 0 },         { "mean", "us", RESULT_REAL, 2 },
	{ "p50", "us", RESULT_REAL, 2 },       { "min", "us", RESULT_REAL, 2 },
	{ "a message", "us", RESULT_REAL, 3 }, { "o", "us", RESULT_REAL, 3 },
	{ "L", "us", RESULT_REAL, 3 },         { "model", "us", RESULT_REAL, 2 },
	{ "choice", "", RESULT_TEXT, 0 },
};
#define NCOLUMN (sizeof(columns) / sizeof(columns[0]))

enum { OPT_PEERS = BENCH_OPT_MORE, OPT_TUNE, OPT_BARRIERS };

static const struct option more_options[] = {
	{ "peers", required_argument, NULL, OPT_PEERS },
	{ "tune", no_argument, NULL, OPT_TUNE },
	{ "barriers", required_argument, NULL, OPT_BARRIERS },
	{ 0 },
};

static void many_usage(FILE *to)
{
	fputs("usage: nbar-lab one-to-many [OPTION]...\n"
	      "Node 0 sends to 1 .. P nodes, which answer at once. Shows RTT(P), the LoP model\n"
	      "of RTT(P), and the n of an n-way dissemination that the model suggests.\n\n"
	      "  --peers N         P goes from 1 to N (32)\n"
	      "  -i, --iterations N  measured ping-pongs per run (100)\n"
	      "  --tune            also measure barriers of every n from 1 to 8, for the best\n"
	      "  --nodes LIST      sizes of these barriers (2,4,8,16,32)\n"
	      "  --alg LIST        algorithms of these barriers (n-way dissemination, n 1 to 8)\n"
	      "  --barriers N      measured barriers per run (2000)\n"
	      "  --where LIST      run these barriers by: nic, host (nic,host)\n"
	      "  --launches N      runs of each point, in random order; medians are shown (1)\n",
	      to);
	bench_usage_common(to);
}

static int many_read_more(void *arg, int c, const char *value)
{
	struct one_to_many *t = arg;

	switch (c) {
	case OPT_PEERS:
		return option_u32("--peers", value, 2, ONE_TO_MANY_PEERS_MAX, &t->peers);
	case OPT_BARRIERS:
		return option_u32("--barriers", value, 1, BENCH_ITERS_MAX, &t->barriers);
	}
	return option_flag(&t->tune);
}

static int many_parse(int argc, char **argv, struct one_to_many *t, bool *help)
{
	const struct bench_extra_options more = { more_options, many_read_more, t };

	*t = (struct one_to_many){ .opt = bench_options_default(), .peers = 32, .barriers = 2000 };
	t->opt.iters = 100;
	t->opt.warmup = 10;
	t->opt.drivers = BENCH_DRIVERS_AUTO;
	t->opt.nalg = ONE_TO_MANY_WAYS;
	for (uint32_t n = 1; n <= ONE_TO_MANY_WAYS; n++)
		nbfw_alg_name((struct nbfw_alg){ NBFW_ALG_DISSEMINATION, n }, t->opt.alg[n - 1]);
	t->opt.nnodes = 5;
	for (uint32_t i = 0; i < t->opt.nnodes; i++)
		t->opt.nodes[i] = 2u << i;
	return bench_options_parse(argc, argv, &t->opt, &more, help);
}

static void many_make_points(struct one_to_many *t)
{
	const struct bench_options *o = &t->opt;

	t->ping = bench_points_new(o, t->peers);
	t->barrier = t->tune ? bench_points_new(o, o->nnodes * o->nalg) : NULL;
	for (uint32_t i = 0; i < t->peers; i++) {
		snprintf(t->ping[i].name, sizeof(t->ping[i].name), "ping-pong");
		t->ping[i].config = (struct bench_config){
			.nodes = i + 2,
			.alg = NBFW_ALG_SIGNAL_NAME,
			.iters = o->iters,
			.warmup = o->warmup,
			.drive = one_to_many_drive,
		};
	}
	for (uint32_t i = 0; t->tune && i < o->nnodes * o->nalg; i++) {
		const char *alg = o->alg[i % o->nalg];
		uint32_t size = o->nodes[i / o->nalg], ways = one_to_many_ways(alg);

		/* More ways than peers give no new plan. */
		if (ways > 1 && ways >= size)
			continue;
		t->barrier[t->nbarrier++].config = (struct bench_config){
			.nodes = size,
			.alg = alg,
			.iters = t->barriers,
			.warmup = t->barriers / 10,
		};
	}
}

/* Ping-pongs run between hosts: they have no other `where`. */
static int many_run(struct one_to_many *t, struct bench_session *s, struct bench_options *of_ping)
{
	int r;

	s->opt = of_ping;
	r = bench_points_run(s, t->ping, t->peers);
	s->opt = &t->opt;
	return r || !t->nbarrier ? r : bench_points_run(s, t->barrier, t->nbarrier);
}

static double own(const struct one_to_many *t, uint32_t i, uint32_t which)
{
	return bench_median(t->ping[i].repetition[BENCH_NIC], t->opt.repetitions,
			    BENCH_FIGURE(extra) + which)
		.median;
}

static double many_least(const struct one_to_many *t, uint32_t i)
{
	double min = HUGE_VAL;

	for (uint32_t l = 0; l < t->opt.repetitions; l++) {
		double us = t->ping[i].repetition[BENCH_NIC][l].extra[PING_RTT_MIN];

		min = us > 0 && us < min ? us : min;
	}
	return min;
}

/* Selects the points that have been measured; returns their number. */
static uint32_t many_points(const struct one_to_many *t, struct lop_point *point)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->peers; i++) {
		double rtt = own(t, i, PING_RTT_MEDIAN);

		if (!isnan(rtt))
			point[n++] = (struct lop_point){ i + 1, own(t, i, PING_SENT_MEDIAN), rtt };
	}
	return n;
}

static void many_add_rows(const struct one_to_many *t, struct result *r,
			  const struct lop_point *point, uint32_t n, bool fitted)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct lop_point *p = &point[i];
		double mean = bench_point_mean(&t->opt, &t->ping[p->peers - 1], BENCH_NIC).median;

		result_text(r, "ping-pong");
		result_count(r, p->peers + 1);
		result_count(r, p->peers);
		result_text(r, "host");
		result_none(r);
		result_real(r, mean);
		result_real(r, p->rtt_us);
		result_real(r, many_least(t, p->peers - 1));
		result_real(r, p->rtt_us / p->peers);
		result_real(r, p->sent_us / p->peers);
		result_real(r, (p->rtt_us - p->sent_us) / 2);
		result_real(r, fitted ? p->peers * lop_o(&t->model, p->peers) +
						2 * lop_l(&t->model, p->peers)
				      : NAN);
		result_text(r, "");
	}
}

static void note_model(const struct one_to_many *t, struct result *r)
{
	const struct lop *m = &t->model;
	char text[200] = "";

	result_note(r,
		    "LoP, fitted to the medians: o(P) = %.3f/P + %.3f us, L(P) = %.3f + %.3f P us",
		    m->o_start, m->o_each, m->l_start, m->l_each);
	for (uint32_t size = 2; size <= 1024; size *= 2)
		tool_join(text, sizeof(text), ", ", "%u: %u", size,
			  lop_ways(m, size, ONE_TO_MANY_WAYS));
	result_note(r, "n that the model suggests, by size: %s", text);
}

static void many_report(struct one_to_many *t, struct result *r)
{
	struct lop_point point[ONE_TO_MANY_PEERS_MAX];
	uint32_t n = many_points(t, point);
	bool fitted = lop_fit(point, n, &t->model) == 0;

	many_add_rows(t, r, point, n, fitted);
	if (fitted)
		note_model(t, r);
	if (fitted && t->nbarrier)
		one_to_many_report_tuned(t, r);
	result_note(r, "%u ping-pongs a run, by messages from host to host; n of a ping-pong is P",
		    t->opt.iters);
	if (t->nbarrier)
		result_note(r,
			    "%u barriers a run; the model knows no members that share a processor "
			    "or a NIC",
			    t->barriers);
	result_note(r, "%s; wire %s; %s%u repetition%s",
		    t->opt.drivers == BENCH_DRIVERS_ONE ? "one process drives all nodes"
							: "a process a node",
		    t->opt.wire, t->opt.repetitions > 1 ? "medians of " : "", t->opt.repetitions,
		    t->opt.repetitions > 1 ? "s" : "");
}

static int run_session(struct one_to_many *t, struct result *result)
{
	struct bench_options of_ping;
	struct bench_session s;
	double cost;
	int r;

	of_ping = t->opt;
	of_ping.nwhere = 1;
	of_ping.where[0] = BENCH_NIC;
	cost = bench_points_cost(&of_ping, t->ping, t->peers) +
	       bench_points_cost(&t->opt, t->barrier, t->nbarrier);
	r = bench_session_begin(&s, &t->opt, result, cost);
	if (r)
		return r;
	of_ping.drivers = t->opt.drivers;
	r = many_run(t, &s, &of_ping);
	many_report(t, result);
	return bench_session_end(&s, r);
}

int tool_one_to_many(int argc, char **argv)
{
	struct one_to_many t;
	struct result *result;
	bool help;
	int r = many_parse(argc, argv, &t, &help);

	if (option_ends(r, help, many_usage))
		return r;
	t.opt.most = t.peers + 1;
	if (!t.tune)
		t.opt.nnodes = t.opt.nalg = 0;
	many_make_points(&t);
	result = result_new("one-to-many", columns, NCOLUMN);
	result_command(result, argc, argv);
	result_setting_number(result, "peers", t.peers);
	result_setting_number(result, "barriers", t.tune ? t.barriers : 0);
	r = run_session(&t, result);
	free(t.ping);
	free(t.barrier);
	return r;
}
