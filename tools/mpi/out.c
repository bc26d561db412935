/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out.c - results of `nbar mpi-bench` as a table, as JSON and as CSV. At rank 0, at the end.
 */
#include "bench.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Names of the figures of a test, in the order in which run.c has them; a table's title, and the
 * key in the formats for programs. */
static const struct column {
	const char *title, *key;
} columns[MPIB_TEST_END][MPIB_NFIGURE] = {
	[MPIB_BARRIER] = {
		{ "avg", "avg_us" },
		{ "min", "min_us" },
		{ "max", "max_us" },
		{ "p50", "p50_us" },
		{ "p99", "p99_us" },
		{ "skew", "skew_us" },
	},
	[MPIB_IBARRIER] = {
		{ "overall", "overall_us" },
		{ "compute", "compute_us" },
		{ "pure", "pure_us" },
		{ "overlap%", "overlap_percent" },
	},
	[MPIB_BUSY] = {
		{ "wait", "wait_us" },
		{ "p50", "p50_us" },
		{ "p99", "p99_us" },
		{ "max", "max_us" },
	},
};

/* What the last column is. */
static const struct column last_column[MPIB_TEST_END] = {
	[MPIB_BARRIER] = { "factor", "factor" },
	[MPIB_IBARRIER] = { "factor", "factor" },
	[MPIB_BUSY] = { "% of mpi", "percent_of_mpi" },
};

static const char *const notes[MPIB_TEST_END] = {
	[MPIB_BARRIER] =
		"avg, min, max: over the ranks, of a rank's mean; factor: mpi's avg / this "
		"one's",
	[MPIB_IBARRIER] = "overall: start, compute, finish; pure: without compute; factor: mpi's "
			  "overall / this one's",
	[MPIB_BUSY] = "wait: mean of those that do not compute",
};

static uint32_t ncolumn(enum mpib_test test)
{
	uint32_t n = 0;

	while (n < MPIB_NFIGURE && columns[test][n].key)
		n++;
	return n;
}

/* A figure below 0 was not measured. */
static void cell(FILE *to, double value)
{
	if (value < 0)
		fprintf(to, " %9s", "-");
	else
		fprintf(to, " %9.2f", value);
}

static void heading(const struct mpib_report *r, FILE *to)
{
	const struct mpib_world *w = r->world;

	fprintf(to, "# nbar mpi-bench --test %s: %d ranks on %u host%s, %s, nbar: %s",
		mpib_test_name[r->opt->test], w->size, w->nhost, w->nhost == 1 ? "" : "s",
		w->library, mpib_glue_name[w->glue]);
	if (w->wire[0])
		fprintf(to, ", wire %s", w->wire);
	fputc('\n', to);
}

void mpib_table(const struct mpib_report *r, FILE *to)
{
	const struct mpib_options *opt = r->opt;
	enum mpib_test test = opt->test;

	heading(r, to);
	fprintf(to, "%-20s", "method");
	for (uint32_t f = 0; f < ncolumn(test); f++)
		fprintf(to, " %9s", columns[test][f].title);
	if (opt->full)
		fprintf(to, " %9s %9s", "fastest", "slowest");
	fprintf(to, " %9s\n", last_column[test].title);
	for (uint32_t k = 0; k < opt->nmethod; k++) {
		const struct mpib_result *res = &r->result[k];

		fprintf(to, "%-20s", res->choice->name);
		for (uint32_t f = 0; f < ncolumn(test); f++)
			cell(to, res->figure[f]);
		if (opt->full) {
			cell(to, res->low);
			cell(to, res->high);
		}
		cell(to, res->factor > 0 ? res->factor : -1);
		fputc('\n', to);
	}
	fprintf(to, "us; %u iterations in %u block%s, medians over the blocks\n%s", opt->iters,
		opt->blocks, opt->blocks == 1 ? "" : "s", notes[test]);
	if (test != MPIB_BARRIER)
		fputs(r->world->sleep ? "; who computes sleeps" : "; who computes spins", to);
	fputc('\n', to);
	if (r->both)
		fprintf(to, "MPI adds %.2f us to the library's own barrier (nbar - lib)\n",
			r->mpi_adds);
}

static void set_number(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void set_text(json_t *o, const char *key, const char *text)
{
	json_t *value = json_string(text);

	/* A command line may be no UTF-8. */
	json_object_set_new(o, key, value ? value : json_string("?"));
}

static void set_figure(json_t *o, const char *key, double value)
{
	json_object_set_new(o, key, value < 0 ? json_null() : json_real(value));
}

static const char *wait_name(enum nbmpi_wait wait)
{
	switch (wait) {
	case NBMPI_WAIT_AUTO:
		return "auto";
	case NBMPI_WAIT_SPIN:
		return "spin";
	case NBMPI_WAIT_YIELD:
		return "yield";
	case NBMPI_WAIT_BLOCK:
		return "block";
	}
	return "";
}

/* Where and how it was measured. */
static json_t *setting_json(const struct mpib_report *r)
{
	const struct mpib_options *opt = r->opt;
	const struct mpib_world *w = r->world;
	json_t *o = json_object();

	set_text(o, "mpi", w->library);
	set_text(o, "nbar", mpib_glue_name[w->glue]);
	set_text(o, "algorithm", w->config.alg);
	set_text(o, "wait", wait_name(w->config.wait));
	set_text(o, "wire", w->wire);
	set_number(o, "ranks", (uint64_t)w->size);
	set_number(o, "hosts", w->nhost);
	set_number(o, "least_ranks_a_host", w->least);
	set_number(o, "most_ranks_a_host", w->most);
	json_object_set_new(o, "crowded", json_boolean(w->crowded));
	set_text(o, "host", w->machine.host);
	set_text(o, "cpu", w->machine.cpu);
	set_text(o, "kernel", w->machine.kernel);
	set_text(o, "test", mpib_test_name[opt->test]);
	set_number(o, "iterations", opt->iters);
	set_number(o, "warmup", opt->warmup);
	set_number(o, "blocks", opt->blocks);
	set_number(o, "seed", opt->seed);
	if (opt->test != MPIB_BARRIER) {
		set_number(o, "compute_us", opt->compute_us);
		set_text(o, "compute_by", w->sleep ? "sleep" : "spin");
	}
	if (opt->test == MPIB_BUSY)
		json_object_set_new(o, "busy_rank", json_integer(opt->busy_rank));
	return o;
}

static json_t *result_json(const struct mpib_report *r, const struct mpib_result *res)
{
	enum mpib_test test = r->opt->test;
	json_t *o = json_object(), *blocks = json_array();

	set_text(o, "method", res->choice->name);
	for (uint32_t f = 0; f < ncolumn(test); f++)
		set_figure(o, columns[test][f].key, res->figure[f]);
	if (res->factor > 0)
		set_figure(o, last_column[test].key, res->factor);
	for (uint32_t b = 0; b < r->opt->blocks; b++)
		json_array_append_new(blocks, json_real(res->block[b][0]));
	json_object_set_new(o, "blocks", blocks);
	return o;
}

void mpib_json(const struct mpib_report *r, FILE *to)
{
	json_t *root = json_object(), *results = json_array();

	for (uint32_t k = 0; k < r->opt->nmethod; k++)
		json_array_append_new(results, result_json(r, &r->result[k]));
	set_text(root, "version", NBAR_VERSION_TEXT);
	set_text(root, "command", r->command);
	json_object_set_new(root, "setting", setting_json(r));
	json_object_set_new(root, "results", results);
	if (r->both)
		json_object_set_new(root, "mpi_adds_us", json_real(r->mpi_adds));
	json_dumpf(root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	json_decref(root);
	fputc('\n', to);
}

void mpib_csv(const struct mpib_report *r, FILE *to)
{
	enum mpib_test test = r->opt->test;
	json_t *setting = setting_json(r), *value;
	const char *key;

	fprintf(to, "#@version=%s\n#@command=%s\n", NBAR_VERSION_TEXT, r->command);
	json_object_foreach(setting, key, value)
	{
		char *text = json_dumps(value, JSON_ENCODE_ANY);

		fprintf(to, "#@%s=%s\n", key,
			json_is_string(value) ? json_string_value(value) : text);
		free(text);
	}
	json_decref(setting);
	if (r->both)
		fprintf(to, "#@mpi_adds_us=%.3f\n", r->mpi_adds);
	fputs("method", to);
	for (uint32_t f = 0; f < ncolumn(test); f++)
		fprintf(to, ",%s", columns[test][f].key);
	fprintf(to, ",%s\n", last_column[test].key);
	for (uint32_t k = 0; k < r->opt->nmethod; k++) {
		const struct mpib_result *res = &r->result[k];

		fputs(res->choice->name, to);
		for (uint32_t f = 0; f < ncolumn(test); f++)
			fprintf(to, res->figure[f] < 0 ? "," : ",%.3f", res->figure[f]);
		fprintf(to, res->factor > 0 ? ",%.3f\n" : ",\n", res->factor);
	}
}
