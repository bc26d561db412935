/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - the program behind `nbar mpi-bench`: opens the methods, runs the test, writes results.
 *
 * The commands `nbar mpi-bench` and `nbar-lab profile` execute this program if the launcher of an
 * MPI has started them. All ranks end with the same exit code.
 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "stats.h"

/* Opens the methods; *n is the number of open methods, also after an error. 0 or an exit code. */
static int open_methods(const struct mpib_options *opt, struct mpib_world *w,
			struct mpib_method *method, uint32_t *n)
{
	int r = 0;

	for (*n = 0; *n < opt->nmethod && r == 0; *n += r == 0) {
		struct mpib_method *m = &method[*n];

		*m = (struct mpib_method){
			.choice = &opt->method[*n],
			.ops = mpib_ops_of(opt->method[*n].kind),
			.world = w,
		};
		r = m->ops->open(m);
	}
	return r;
}

static void close_methods(const struct mpib_world *w, struct mpib_method *method, uint32_t n)
{
	/* A rank that ended earlier would look failed to the other ranks. */
	PMPI_Barrier(w->off);
	for (uint32_t k = 0; k < n; k++)
		method[k].ops->close(&method[k]);
}

/* The result of a method in the application of another result. */
static const struct mpib_result *main_find(const struct mpib_report *rep, enum mpib_kind kind,
					   const struct app *app)
{
	for (uint32_t k = 0; k < rep->ncase; k++)
		if (rep->result[k].choice->kind == kind && rep->result[k].app == app)
			return &rep->result[k];
	return NULL;
}

/* Sets the metrics that compare methods with each other. */
static void main_compare(struct mpib_report *rep, struct mpib_result *result)
{
	const struct mpib_options *opt = rep->opt;
	enum metric_id first = mpib_first(opt->test);
	const struct mpib_result *nbar = main_find(rep, MPIB_NBAR, NULL);
	const struct mpib_result *lib = main_find(rep, MPIB_LIB, NULL);
	double value[MPIB_BLOCKS_MAX];

	for (uint32_t k = 0; k < rep->ncase; k++) {
		const struct mpib_result *mpi = main_find(rep, MPIB_MPI, result[k].app);
		double speedup = mpi ? mpi->metric[first] / result[k].metric[first] : NAN;

		if (&result[k] == mpi)
			continue;
		result[k].metric[METRIC_SPEEDUP_MPI] = speedup;
		result[k].metric[METRIC_OF_MPI] = 100 / speedup;
	}
	if (opt->test != MPIB_BARRIER || !nbar || !lib)
		return;
	for (uint32_t b = 0; b < opt->blocks; b++)
		value[b] = nbar->block[b][first] - lib->block[b][first];
	rep->mpi_adds = stats_median(value, opt->blocks);
	rep->both = true;
}

/* Returns rank 0's value of r at all ranks. */
static int agree_with_first(int r)
{
	PMPI_Bcast(&r, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return r;
}

static void main_measure(struct mpib_report *rep, struct mpib_world *w, struct mpib_method *method,
			 struct mpib_result *result)
{
	const struct mpib_options *opt = rep->opt;

	for (uint32_t k = 0; k < rep->ncase; k++) {
		result[k].choice = &opt->method[k % opt->nmethod];
		if (opt->test == MPIB_APP)
			result[k].app = &opt->app_set.app[k / opt->nmethod];
		result[k].block = mpib_alloc(opt->blocks, sizeof(*result[k].block));
	}
	mpib_run(opt, w, method, result);
	main_compare(rep, result);
}

/* Opens the outputs first, to check that this is possible. Only at rank 0. */
static int begin_results(struct experiment *e, const struct mpib_options *opt,
			 const struct mpib_world *w, int argc, char **argv)
{
	struct result *result = mpib_out_new(opt, w);

	result_command(result, argc, argv);
	return experiment_begin(e, &opt->out, result, opt->blocks);
}

static int end_results(struct experiment *e, const struct mpib_report *rep, int status)
{
	FILE *raw = status ? NULL : experiment_raw(e);

	if (raw)
		mpib_out_raw(rep, raw);
	if (!status)
		mpib_out_rows(rep, e->result);
	return experiment_end(e, status);
}

/* What all ranks do between MPI_Init and MPI_Finalize. */
static int main_run(struct mpib_report *rep, struct mpib_world *w, int argc, char **argv)
{
	const struct mpib_options *opt = rep->opt;
	struct mpib_method method[MPIB_METHODS_MAX];
	struct mpib_result result[MPIB_CASES_MAX] = { 0 };
	struct experiment experiment;
	uint32_t nopen = 0;
	int r = mpib_world_begin(w, opt);

	if (!r && opt->busy_rank >= w->size)
		r = tool_usage("--busy-rank: there are ranks 0 to %d", w->size - 1);
	if (!r && w->rank == 0)
		r = begin_results(&experiment, opt, w, argc, argv);
	r = agree_with_first(r);
	if (r)
		return r;
	r = open_methods(opt, w, method, &nopen);
	rep->result = result;
	rep->ncase = mpib_ncase(opt);
	mpib_world_wire(w);
	if (!r)
		main_measure(rep, w, method, result);
	close_methods(w, method, nopen);
	if (w->rank == 0)
		r = end_results(&experiment, rep, r);
	for (uint32_t k = 0; k < rep->ncase; k++)
		free(result[k].block);
	return agree_with_first(r);
}

/* All ranks read the same options; rank 0 prints errors in them. */
static int main_begin(int argc, char **argv, struct mpib_options *opt)
{
	bool help;
	int rank, r;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	tool_begin("nbar mpi-bench");
	tool_quiet(rank != 0);
	r = mpib_options_parse(argc, argv, opt, &help);
	if (help && rank == 0)
		mpib_usage(stdout);
	return help ? -1 : r;
}

int main(int argc, char **argv)
{
	struct mpib_options opt;
	struct mpib_world world = { 0 };
	struct mpib_report rep = { .opt = &opt, .world = &world };
	int r;

	/* Launchers give rank 0 a terminal, also if the output goes to a file. */
	setenv("NO_COLOR", "1", 1);
	/* The barriers of NICs are measured, even if the MPI's are faster. */
	setenv("OMPI_MCA_coll_nbar_where", "nic", 0);
	setenv("NBAR_MPI_WHERE", "nic", 0);
	tool_json_begin();
	MPI_Init(NULL, NULL);
	r = main_begin(argc, argv, &opt);
	if (r == 0)
		r = main_run(&rep, &world, argc, argv);
	mpib_world_end(&world);
	MPI_Finalize();
	return tool_end(r < 0 ? TOOL_OK : r);
}
