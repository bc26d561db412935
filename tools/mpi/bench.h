/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h - shared by the files of the program behind `nbar mpi-bench`.
 *
 * main.c     begin and end
 * options.c  options; also part of `nbar`, which checks them
 * world.c    ranks, hosts, communicators; the description of a run
 * glue.c     checks by the counters whether nbar runs the barriers of this program
 * method.c   the MPI's own barrier, and nbar's
 * lib.c      nbar's library without MPI
 * p2p.c      the engine over messages of the MPI
 * run.c      the tests, in blocks
 * out.c      results
 *
 * Built once with each MPI. Only rank 0 prints messages.
 */
#ifndef NBAR_TOOLS_MPI_BENCH_H
#define NBAR_TOOLS_MPI_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "comm.h"
#include "metric.h"
#include "options.h"
#include "result.h"
#include "tool.h"

#define MPIB_CASES_MAX (MPIB_METHODS_MAX * APP_SET_MAX)
#define MPIB_SKEW_MAX 16384u /* barriers whose exits are kept, for the skew */

enum mpib_glue { MPIB_NO_GLUE, MPIB_PMPI, MPIB_COMPONENT };

struct mpib_world {
	int rank, size;
	MPI_Comm off, on;            /* nbar does not handle `off`, and may handle `on` */
	uint32_t *host;              /* by rank: the number of its host */
	uint32_t nhost, least, most; /* ranks of a host */
	uint32_t value;              /* of the options */
	bool one_clock;              /* all ranks are on one machine, so they share a clock */
	bool crowded;                /* some machine has more ranks than processors */
	enum mpib_compute compute;   /* never MPIB_AUTO */
	enum mpib_glue glue;
	struct nbmpi_config config; /* of nbar, as the glue has it */
	const char *nic2;           /* of method lib2, or NULL */
	char library[64];           /* name and version of the MPI */
	char wire[NBAR_NAME_MAX];   /* of rank 0's NIC; empty: it has none */
};

/* Returns 0, or an exit code after a message; all ranks return the same value. */
int mpib_world_begin(struct mpib_world *w, const struct mpib_options *opt);
void mpib_world_end(struct mpib_world *w);

/* Sets w->wire. Call it after the methods are open, because an in-process NIC exists only while a
 * port is open. */
void mpib_world_wire(struct mpib_world *w);

/* Ends all ranks, after a message: for an error that only this rank knows. */
_Noreturn __attribute__((format(printf, 1, 2))) void mpib_fatal(const char *format, ...);

/* Zeroed memory. Without memory, ends all ranks. */
void *mpib_alloc(size_t n, size_t size);

/* --- glue.c ---------------------------------------------------------------------------------- */

enum mpib_glue mpib_glue_find(void);
extern const char *const mpib_glue_name[];

/* The settings of nbar in this glue at this rank; enable is false if the glue refuses the NIC. */
void mpib_glue_config(enum mpib_glue glue, uint32_t rank, struct nbmpi_config *out);

/* The counters of this rank; all 0 without a glue. */
void mpib_glue_counters(enum mpib_glue glue, struct nbmpi_counters *out);

/* --- methods --------------------------------------------------------------------------------- */

struct mpib_method {
	const struct mpib_choice *choice;
	const struct mpib_ops *ops;
	struct mpib_world *world;
	void *state;
};

/* A method: a barrier as one call, or as start and finish. A rank that fails ends all ranks. */
struct mpib_ops {
	int (*open)(struct mpib_method *m); /* as mpib_world_begin */
	void (*close)(struct mpib_method *m);
	void (*barrier)(struct mpib_method *m);
	void (*start)(struct mpib_method *m);
	void (*finish)(struct mpib_method *m);
};
extern const struct mpib_ops mpib_mpi, mpib_nbar, mpib_lib, mpib_p2p;

const struct mpib_ops *mpib_ops_of(enum mpib_kind kind);

/* --- run.c ----------------------------------------------------------------------------------- */

/* The results of a method, or of a method in an application, at rank 0. */
struct mpib_result {
	const struct mpib_choice *choice;
	const struct app *app;       /* or NULL */
	double metric[METRIC_END];   /* NAN: not known */
	double (*block)[METRIC_END]; /* metrics of each block; metric[] covers all iterations */
};

/* The first metric that a test shows. */
enum metric_id mpib_first(enum mpib_test test);

/* Number of results: one per method, or one per application and method. */
uint32_t mpib_ncase(const struct mpib_options *opt);

/* Runs all blocks of all cases; each case has its method and application. */
void mpib_run(const struct mpib_options *opt, struct mpib_world *w, struct mpib_method *method,
	      struct mpib_result *result);

/* --- out.c ----------------------------------------------------------------------------------- */

struct mpib_report {
	const struct mpib_options *opt;
	const struct mpib_world *world;
	const struct mpib_result *result;
	uint32_t ncase;
	double mpi_adds; /* nbar - lib, median over the blocks */
	bool both;       /* nbar and lib were both measured */
};

/* Makes a result without rows and notes. NULL: no memory. */
struct result *mpib_out_new(const struct mpib_options *opt, const struct mpib_world *w);

void mpib_out_rows(const struct mpib_report *rep, struct result *r);

/* Writes the first metric of the test in each block, as rows of --raw. */
void mpib_out_raw(const struct mpib_report *rep, FILE *to);

#endif
