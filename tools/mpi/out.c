/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out.c - results of `nbar mpi-bench`, in the form of result.h. Runs at rank 0.
 */
#include "bench.h"

#include <stdlib.h>

static const struct result_column app_columns[3] = {
	{ "application", "", RESULT_TEXT, 0 },
	{ "steps", "", RESULT_COUNT, 0 },
	{ "compute", "us", RESULT_REAL, 1 },
};
static const struct result_column method_column = { "method", "", RESULT_TEXT, 0 };

static const char *const experiments[MPIB_TEST_END] = { "mpi-barrier", "mpi-allreduce",
							"mpi-ibarrier", "mpi-busy", "mpi-app" };

static const char *const notes[MPIB_TEST_END] = {
	[MPIB_BARRIER] = "avg, min, max: over the ranks, of a rank's mean; speedup: mpi's avg / "
			 "this one's",
	[MPIB_IBARRIER] = "overall: start, compute, finish; pure: without compute; speedup: mpi's "
			  "overall / this one's",
	[MPIB_BUSY] = "wait: mean of those that do not compute",
	[MPIB_APP] =
		"execution: of all steps, once; efficiency: compute / execution; speedup: mpi's "
		"execution / this one's",
};

enum metric_id mpib_first(enum mpib_test test)
{
	return metric_next(mpib_table[test], 0);
}

static unsigned out_tables(const struct mpib_options *opt)
{
	return mpib_table[opt->test] | (opt->full ? METRIC_MPI_FULL : 0);
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

static const char *where_name(const struct mpib_world *w)
{
	return w->config.where == NBMPI_WHERE_HOST ? "host" : "nic";
}

static const char *nic_name(const struct mpib_world *w)
{
	const char *nic = nbmpi_config_nic(&w->config);

	return nic ? nic : "default";
}

/* Adds the machine and the settings to the result. */
static void out_describe(struct result *r, const struct mpib_options *opt,
			 const struct mpib_world *w)
{
	result_machine_text(r, "mpi", w->library);
	result_machine_text(r, "nbar", mpib_glue_name[w->glue]);
	result_machine_text(r, "algorithm", w->config.alg);
	result_machine_text(r, "wait", wait_name(w->config.wait));
	result_setting_text(r, "test", mpib_test_name[opt->test]);
	result_setting_text(r, "where", where_name(w));
	result_setting_text(r, "nic", nic_name(w));
	if (w->nic2)
		result_setting_text(r, "nic2", w->nic2);
	result_setting_number(r, "ranks", w->size);
	result_setting_number(r, "hosts", w->nhost);
	result_setting_number(r, "least_ranks_a_host", w->least);
	result_setting_number(r, "most_ranks_a_host", w->most);
	result_setting_text(r, "crowded", w->crowded ? "yes" : "no");
	result_setting_number(r, "iterations", opt->iters);
	result_setting_number(r, "warmup", opt->warmup);
	result_setting_number(r, "blocks", opt->blocks);
	result_setting_number(r, "seed", (double)opt->seed);
	result_setting_number(r, "value", opt->value);
	if (opt->test == MPIB_BARRIER)
		return;
	result_setting_text(r, "compute_by", mpib_compute_name[w->compute]);
	if (opt->test == MPIB_APP)
		app_set_describe(&opt->app_set, r);
	else
		result_setting_number(r, "compute_us", opt->compute_us);
	if (opt->test == MPIB_BUSY)
		result_setting_number(r, "busy_rank", opt->busy_rank);
}

struct result *mpib_out_new(const struct mpib_options *opt, const struct mpib_world *w)
{
	static struct result_column column[RESULT_COLUMNS_MAX]; /* outlives the result */
	uint32_t n = 0;
	struct result *r;

	for (uint32_t c = 0; c < 3 && opt->test == MPIB_APP; c++)
		column[n++] = app_columns[c];
	column[n++] = method_column;
	n += metric_columns(out_tables(opt), column + n);
	r = result_new(experiments[opt->value ? MPIB_ALLREDUCE : opt->test], column, n);
	out_describe(r, opt, w);
	return r;
}

void mpib_out_rows(const struct mpib_report *rep, struct result *r)
{
	static const char *const how[MPIB_COMPUTE_END] = {
		[MPIB_SPIN] = "a rank that computes spins",
		[MPIB_SLEEP] = "a rank that computes sleeps",
		[MPIB_YIELD] = "a rank that computes yields: ranks that share a processor compute "
			       "at the same time",
	};
	const struct mpib_options *opt = rep->opt;
	const struct mpib_world *w = rep->world;

	result_machine_text(r, "wire", w->wire);
	for (uint32_t k = 0; k < rep->ncase; k++) {
		const struct mpib_result *res = &rep->result[k];

		if (res->app) {
			result_text(r, res->app->name);
			result_count(r, res->app->work.nstep);
			result_real(r, res->app->compute_us);
		}
		result_text(r, res->choice->name);
		metric_put(r, out_tables(opt), res->metric);
	}
	result_note(r, "%d ranks on %u host%s, %s, nbar: %s", w->size, w->nhost,
		    w->nhost == 1 ? "" : "s", w->library, mpib_glue_name[w->glue]);
	result_note(r, "where %s, NIC %s%s%s", where_name(w), nic_name(w),
		    w->wire[0] ? ", wire " : "", w->wire);
	result_note(r, "%u iterations in %u block%s, medians over the blocks", opt->iters,
		    opt->blocks, opt->blocks == 1 ? "" : "s");
	if (opt->value)
		result_note(r, "MPI_Allreduce: MPI_SUM of %u bytes of MPI_DOUBLE", opt->value);
	result_note(r, "%s", notes[opt->test]);
	if (opt->test != MPIB_BARRIER)
		result_note(r, "%s", how[w->compute]);
	if (opt->test == MPIB_APP)
		app_set_note(&opt->app_set, r);
	if (rep->both)
		result_note(r, "MPI adds %.2f us to the library's own barrier (nbar - lib)",
			    rep->mpi_adds);
}

void mpib_out_raw(const struct mpib_report *rep, FILE *to)
{
	for (uint32_t k = 0; k < rep->ncase; k++) {
		const struct mpib_result *res = &rep->result[k];

		for (uint32_t b = 0; b < rep->opt->blocks; b++)
			fprintf(to, "%s%s%s,,%u,%.0f\n", res->choice->name,
				res->app ? " application " : "", res->app ? res->app->name : "", b,
				res->block[b][mpib_first(rep->opt->test)] * 1e3);
	}
}
