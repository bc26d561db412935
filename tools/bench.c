/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.c - `nbar bench`: every configuration, several times, in random order; then the results.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output.h"
#include "stats.h"

static void show_progress(uint32_t done, uint32_t all, const struct bench_config *c)
{
	enum { WIDTH = 30 };
	uint32_t full = done * WIDTH / all;

	if (!isatty(STDERR_FILENO))
		return;
	if (c)
		fprintf(stderr, "\r\033[K[%.*s%*s] %u/%u  %u nodes, %s, %s", (int)full,
			"##############################", (int)(WIDTH - full), "", done, all,
			c->nodes, bench_where_name[c->where], c->alg);
	else
		fputs("\r\033[K", stderr);
	fflush(stderr);
}

/*
 * One launch: pairs of node count and algorithm in random order; nic and host next to each other,
 * in random order too, so that whatever drifts on the machine meets both. Ranks are dealt to the
 * nodes at random, the same for both: where nodes take turns on a core, in the order of their
 * ranks, a signal to a higher rank would always find its receiver next in line.
 */
static int run_launch(const struct bench_report *rep, struct bench_result *result,
		      struct bench_nics *nics, uint32_t launch, uint64_t *random)
{
	const struct bench_options *opt = rep->opt;
	uint32_t npair = rep->nresult / opt->nwhere, done = launch * rep->nresult;
	uint32_t pair[BENCH_LIST_MAX * BENCH_LIST_MAX], where[BENCH_WHERE_END];
	uint32_t rank[BENCH_NODES_MAX];

	stats_shuffle(pair, npair, random);
	for (uint32_t p = 0; p < npair; p++) {
		stats_shuffle(where, opt->nwhere, random);
		stats_shuffle(rank, result[pair[p] * opt->nwhere].config.nodes, random);
		for (uint32_t i = 0; opt->sorted && i < BENCH_NODES_MAX; i++)
			rank[i] = i;
		for (uint32_t w = 0; w < opt->nwhere; w++) {
			struct bench_result *res = &result[pair[p] * opt->nwhere + where[w]];
			int r;

			res->config.rank = rank;
			show_progress(done++, rep->nresult * opt->launches, &res->config);
			r = bench_run(opt, &res->config, rep->machine, nics, &res->launch[launch]);
			if (r || bench_interrupted())
				return TOOL_FAILED;
		}
	}
	return 0;
}

static int run_all(const struct bench_report *rep, struct bench_result *result)
{
	const struct bench_options *opt = rep->opt;
	struct bench_nics nics = { 0 };
	uint64_t random = opt->seed;
	uint32_t most = 1;
	int r = 0;

	for (uint32_t i = 0; i < opt->nnodes; i++)
		most = opt->nodes[i] > most ? opt->nodes[i] : most;
	if (opt->nnic) {
		memcpy(nics.name, opt->nic, sizeof(nics.name));
		nics.n = opt->nnic;
	} else {
		r = bench_nicd_start(&nics, opt, rep->machine,
				     most < NBAR_NICS_MAX ? most : NBAR_NICS_MAX);
	}
	for (uint32_t i = 0; i < opt->launches && !r; i++)
		r = run_launch(rep, result, &nics, i, &random);
	show_progress(1, 1, NULL);
	bench_nicd_stop(&nics);
	if (bench_interrupted()) {
		tool_error("interrupted");
		r = TOOL_FAILED;
	}
	return r;
}

/* Medians over the launches, and the factor of each pair. */
static void summarise(const struct bench_options *opt, struct bench_result *result, uint32_t n)
{
	double value[BENCH_LAUNCHES_MAX];

	for (uint32_t i = 0; i < n; i++) {
		double *median = (double *)&result[i].median;

		for (size_t f = 0; f < BENCH_NFIGURES; f++) {
			for (uint32_t l = 0; l < opt->launches; l++)
				value[l] = ((const double *)&result[i].launch[l])[f];
			median[f] = stats_median(value, opt->launches);
		}
	}
	for (uint32_t i = 0; opt->nwhere == 2 && i < n; i += 2) {
		struct bench_result *a = &result[i], *b = &result[i + 1];
		struct bench_result *nic = a->config.where == BENCH_NIC ? a : b;
		struct bench_result *host = nic == a ? b : a;

		nic->factor = host->median.mean_us / nic->median.mean_us;
	}
}

static struct bench_result *make_results(const struct bench_options *opt, uint32_t *n)
{
	struct bench_result *result;
	struct bench_figures *launch;
	uint32_t at = 0;

	*n = opt->nnodes * opt->nalg * opt->nwhere;
	result = calloc(*n, sizeof(*result) + opt->launches * sizeof(*launch));
	if (!result)
		return NULL;
	launch = (void *)(result + *n);
	for (uint32_t i = 0; i < opt->nnodes; i++) {
		for (uint32_t a = 0; a < opt->nalg; a++) {
			for (uint32_t w = 0; w < opt->nwhere; w++, at++) {
				result[at].config = (struct bench_config){
					.nodes = opt->nodes[i],
					.where = opt->where[w],
					.alg = opt->alg[a],
				};
				result[at].launch = launch + (size_t)at * opt->launches;
			}
		}
	}
	return result;
}

static void join(char *out, size_t size, int argc, char **argv)
{
	size_t at = (size_t)snprintf(out, size, "nbar");

	for (int i = 0; i < argc && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, " %s", argv[i]);
}

static int write_results(const struct bench_report *rep, struct output *json, struct output *csv)
{
	int r = 0;

	if (!json->is_std && !csv->is_std)
		bench_table(rep, stdout);
	if (json->file)
		r = output_begin(json);
	if (json->file && !r)
		bench_json(rep, json->file);
	if (csv->file && !r)
		r = output_begin(csv);
	if (csv->file && !r)
		bench_csv(rep, csv->file);
	if (fflush(stdout)) {
		tool_error("cannot write to stdout: %s", strerror(errno));
		r = TOOL_FAILED;
	}
	return r;
}

/* For running NICs: that they answer, and the name of their wire. */
static int look_at_nics(struct bench_options *opt)
{
	struct nbar_rep_nic_stat stat;

	for (uint32_t i = 0; i < opt->nnic; i++) {
		if (nbar_nic_stat(opt->nic[i], &stat)) {
			tool_error("--nic %s: %s", opt->nic[i], nbar_error());
			return TOOL_FAILED;
		}
		if (i == 0)
			memcpy(opt->wire, stat.wire, sizeof(opt->wire));
		opt->wire[sizeof(opt->wire) - 1] = '\0';
	}
	return 0;
}

int tool_bench(int argc, char **argv)
{
	struct bench_options opt;
	struct bench_machine machine;
	struct bench_report rep = { .opt = &opt, .machine = &machine };
	struct bench_result *result;
	struct output json, csv = { 0 };
	bool help;
	int r = bench_options_parse(argc, argv, &opt, &help);

	if (help)
		bench_usage(stdout);
	if (r || help)
		return r;
	join(rep.command, sizeof(rep.command), argc, argv);
	r = look_at_nics(&opt);
	if (r)
		return r;
	r = output_open(&json, "--json", opt.json);
	if (!r)
		r = output_open(&csv, "--csv", opt.csv);
	result = make_results(&opt, &rep.nresult);
	rep.result = result;
	if (!result) {
		tool_error("no memory for %u results", rep.nresult);
		r = TOOL_FAILED;
	}
	bool written = false;

	if (!r) {
		bench_machine_read(&machine, &opt);
		bench_signals_begin();
		r = run_all(&rep, result);
	}
	if (!r) {
		summarise(&opt, result, rep.nresult);
		r = write_results(&rep, &json, &csv);
		written = true;
	}
	r |= output_close(&json, written);
	r |= output_close(&csv, written);
	free(result);
	return r;
}
