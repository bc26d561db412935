/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment.c - see experiment.h. Must never write over an old result before the new one is
 * complete.
 */
#include "experiment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tool.h"

/* The output beside which the journal goes: JSON or CSV, if it is a regular file; NULL: none. */
static const char *journal_beside(const struct experiment *e)
{
	const struct output *const o[] = { &e->json, &e->csv };
	struct stat st;

	for (size_t i = 0; i < 2 && !e->opt->once; i++)
		if (o[i]->file && !o[i]->is_std && !fstat(fileno(o[i]->file), &st) &&
		    S_ISREG(st.st_mode))
			return o[i]->path;
	return NULL;
}

static int open_journal(struct experiment *e)
{
	const struct experiment_options *opt = e->opt;
	const char *file = journal_beside(e);
	json_t *identity = result_identity(e->result);
	char *path = NULL;
	int r;

	if (opt->resume && !file)
		r = tool_usage("--resume continues from the journal beside a file of --json or "
			       "--csv: name the file");
	else if (file && asprintf(&path, "%s.journal", file) < 0)
		r = TOOL_FAILED,
		tool_error("no memory for the name of the journal: free some, and try again");
	else
		r = journal_open(&e->journal, path, identity, opt->resume);
	free(path);
	json_decref(identity);
	return r;
}

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
	if (!r)
		r = open_journal(e);
	if (r) {
		close_outputs(e, false);
		result_free(result);
		return r;
	}
	progress_begin(&e->progress, amount);
	return 0;
}

bool experiment_known(struct experiment *e, const char *point, double part, double *value,
		      uint32_t n)
{
	if (!journal_find(e->journal, point, value, n))
		return false;
	progress_add(&e->progress, part, true);
	return true;
}

int experiment_keep(struct experiment *e, const char *point, double part, const double *value,
		    uint32_t n)
{
	progress_add(&e->progress, part, false);
	return journal_add(e->journal, point, value, n);
}

FILE *experiment_raw(struct experiment *e)
{
	if (!e->raw.file || e->raw_begun)
		return e->raw.file;
	e->raw_begun = true;
	if (e->opt->resume && !e->raw.is_std && !fseek(e->raw.file, 0, SEEK_END) &&
	    ftell(e->raw.file) > 0)
		return e->raw.file;
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

/* Decides what to do with existing files. */
static void say_what_is_kept(const struct experiment *e, const char *file)
{
	if (file && journal_count(e->journal))
		tool_error("%u points are kept in %s.journal: to continue, run this command again "
			   "with --resume",
			   journal_count(e->journal), file);
}

int experiment_end(struct experiment *e, int status)
{
	const char *file = journal_beside(e);
	int r = status;

	progress_end(&e->progress);
	if (status)
		result_incomplete(e->result);
	if (!e->json.is_std && !e->csv.is_std && !e->raw.is_std &&
	    (!status || journal_count(e->journal)))
		result_write_table(e->result, stdout);
	if (!status)
		r = write_files(e);
	else if (e->json.is_std && journal_count(e->journal))
		result_write_json(e->result, stdout);
	else if (e->csv.is_std && journal_count(e->journal))
		result_write_csv(e->result, stdout);
	if (fflush(stdout)) {
		tool_error("cannot write to stdout: %s", strerror(errno));
		r = TOOL_FAILED;
	}
	int closed = close_outputs(e, !r);

	r = r ? r : closed;
	if (r)
		say_what_is_kept(e, file);
	journal_close(e->journal, !r);
	result_free(e->result);
	return r;
}
