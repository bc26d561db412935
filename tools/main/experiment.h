/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment.h - what every experiment does: it opens the outputs first, keeps each point as soon
 * as it is measured, and writes the results last.
 *
 *	result = result_new(...); settings
 *	experiment_begin(&e, &options, result, amount)
 *	for each point, in any order that depends on nothing but the settings:
 *		if (!experiment_known(&e, key, value, n))
 *			measure; experiment_keep(&e, key, value, n)
 *	rows into the result
 *	return experiment_end(&e, status)
 */
#ifndef NBAR_TOOLS_EXPERIMENT_H
#define NBAR_TOOLS_EXPERIMENT_H

#include "journal.h"
#include "output.h"
#include "progress.h"
#include "result.h"

struct experiment_options {
	const char *json, *csv; /* path, "-", or NULL */
	const char *raw;        /* path or NULL */
	bool resume;
	bool once; /* true: the experiment has no journal, so it cannot be resumed */
};

struct experiment {
	const struct experiment_options *opt;
	struct result *result;
	struct journal *journal;
	struct output json, csv, raw;
	bool raw_begun;
	struct progress progress;
};

/*
 * Takes ownership of the result, which has machine and settings but no rows yet. amount: see
 * progress.h. The journal is beside the JSON file, or else the CSV file, or else in memory. 0, or
 * an exit code after a message: then do not call experiment_end.
 */
int experiment_begin(struct experiment *e, const struct experiment_options *opt,
		     struct result *result, double amount);

/* True, and sets the values, if the journal has the point. part: the point's part of `amount`. */
bool experiment_known(struct experiment *e, const char *point, double part, double *value,
		      uint32_t n);

/* Keeps a point. 0, or an exit code after a message. */
int experiment_keep(struct experiment *e, const char *point, double part, const double *value,
		    uint32_t n);

/* The file of --raw, for lines of CSV: point,rank,index,ns. NULL: no --raw. */
FILE *experiment_raw(struct experiment *e);

/*
 * Ends the experiment. status 0: writes the complete rows. Else prints the existing rows, writes no
 * file of results, and keeps the journal. Returns the exit code.
 */
int experiment_end(struct experiment *e, int status);

#endif
