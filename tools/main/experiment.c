/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment.c - see experiment.h. Must never write over an old result before the new one is
 * complete.
 */
#include "experiment.h"

#include <errno.h>
#include <string.h>

#include "tool.h"

static int close_outputs(struct experiment *e, bool written)
{
	int r = output_close(&e->json, written);

	r |= output_close(&e->csv, written);
	return r | output_close(&e->raw, e->raw_begun);
}

int experiment_begin(struct experiment *e, const struct experiment_options *opt,
		     struct result *result, double amount)
{
	int r;

	*e = (struct experiment){ .opt = opt, .result = result };
	r = output_open(&e->json, "--json", opt->json);
	if (!r)
		r = output_open(&e->csv, "--csv", opt->csv);
	if (!r)
		r = output_open(&e->raw, "--raw", opt->raw);
	if (r) {
		close_outputs(e, false);
		result_free(result);
		return r;
	}
	progress_begin(&e->progress, amount);
	return 0;
}

void experiment_add(struct experiment *e, double part)
{
	progress_add(&e->progress, part);
	e->any = true;
	if (e->raw.file)
		fflush(e->raw.file);
}

FILE *experiment_raw(struct experiment *e)
{
	if (!e->raw.file || e->raw_begun)
		return e->raw.file;
	e->raw_begun = true;
	(void)output_begin(&e->raw);
	fputs("point,rank,index,ns\n", e->raw.file);
	return e->raw.file;
}

static int write_files(struct experiment *e)
{
	int r = 0;

	if (e->json.file)
		r = output_begin(&e->json);
	if (e->json.file && !r)
		result_write_json(e->result, e->json.file);
	if (e->csv.file && !r)
		r = output_begin(&e->csv);
	if (e->csv.file && !r)
		result_write_csv(e->result, e->csv.file);
	return r;
}

int experiment_end(struct experiment *e, int status)
{
	int r = status;

	progress_end(&e->progress);
	if (status)
		result_incomplete(e->result);
	if (!e->json.is_std && !e->csv.is_std && !e->raw.is_std && (!status || e->any))
		result_write_table(e->result, stdout);
	if (!status)
		r = write_files(e);
	else if (e->json.is_std && e->any)
		result_write_json(e->result, stdout);
	else if (e->csv.is_std && e->any)
		result_write_csv(e->result, stdout);
	if (fflush(stdout)) {
		tool_error("cannot write to stdout: %s", strerror(errno));
		r = TOOL_FAILED;
	}
	int closed = close_outputs(e, !r);

	result_free(e->result);
	return r ? r : closed;
}
