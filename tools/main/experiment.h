/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment.h - what every experiment does: it opens the outputs first, and writes the results at
 * its end.
 *
 *	result = result_new(...); settings
 *	experiment_begin(&e, &options, result, amount)
 *	for each point: measure; experiment_add(&e, part)
 *	rows into the result
 *	return experiment_end(&e, status)
 */
#ifndef NBAR_TOOLS_EXPERIMENT_H
#define NBAR_TOOLS_EXPERIMENT_H

#include "output.h"
#include "progress.h"
#include "result.h"

struct experiment_options {
	const char *json, *csv; /* path, "-", or NULL */
	const char *raw;        /* path or NULL */
};

struct experiment {
	const struct experiment_options *opt;
	struct result *result;
	struct output json, csv, raw;
	bool raw_begun, any; /* any: a point was measured */
	struct progress progress;
};

/*
 * Takes ownership of the result, which has machine and settings but no rows yet. amount: see
 * progress.h. 0, or an exit code after a message: then do not call experiment_end.
 */
int experiment_begin(struct experiment *e, const struct experiment_options *opt,
		     struct result *result, double amount);

/* A point was measured. part: its part of `amount`. */
void experiment_add(struct experiment *e, double part);

/* The file of --raw, for lines of CSV: point,rank,index,ns. NULL: no --raw. */
FILE *experiment_raw(struct experiment *e);

/*
 * Ends the experiment. status 0: writes the complete rows. Else prints the existing rows, writes no
 * file of results. Returns the exit code.
 */
int experiment_end(struct experiment *e, int status);

#endif
