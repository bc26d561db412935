/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_predict.c - `nbar-lab predict`: predicts the latency of barriers on a cluster from its
 * profile, and shows those measured beside it.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "algs.h"
#include "compose.h"
#include "lab.h"
#include "option.h"
#include "result.h"
#include "tool.h"
#include "tool_hosts.h"
#include "nbar_tune.h"

#define ROWS_MAX 64u
#define DIFFER 0.20 /* note_order counts pairs whose measurements differ by more than this */

static const struct result_column columns[] = {
	{ "alg", "", RESULT_TEXT, 0 },
	{ "predicted", "us", RESULT_REAL, 2 },
	{ "measured", "us", RESULT_REAL, 2 },
	{ "error", "%", RESULT_REAL, 1 },
};
#define NCOLUMN (sizeof(columns) / sizeof(columns[0]))

struct row {
	char alg[NBAR_NAME_MAX];
	double predicted_us, measured_us; /* NAN: not known */
};

struct predict_options {
	const char *profile, *hosts;
	enum predict_formula formula;
	struct row row[ROWS_MAX];
	uint32_t n;
	struct experiment_options files;
};

static void predict_usage(FILE *to)
{
	fputs("usage: nbar-lab predict PROFILE [OPTION]...\n"
	      "Predicts the time of barriers on a cluster from its profile: the critical path\n"
	      "through the stages of all members.\n\n"
	      "  --alg LIST        algorithms; tuned: the barrier that fits best (all,tuned)\n"
	      "  --hosts LIST      the host of each rank (all hosts, in the profile's order)\n"
	      "  --formula NAME    first: a message costs O of its link; waiting: O_ii if the\n"
	      "                    receiver already waits (first)\n"
	      "  --json FILE, --csv FILE  results; - is stdout, and then there is no table\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
	      to);
}

static int predict_add_alg(void *arg, const char *name)
{
	struct predict_options *o = arg;
	struct nbfw_alg alg;

	if (!strcmp(name, "all"))
		return algs_all(predict_add_alg, o);
	if (strcmp(name, NBAR_TUNE_NAME) != 0 && !algs_read(name, &alg))
		return algs_refuse("--alg", name);
	if (o->n == ROWS_MAX)
		return tool_usage("--alg: at most %u algorithms", ROWS_MAX);
	snprintf(o->row[o->n].alg, sizeof(o->row[o->n].alg), "%s", name);
	o->row[o->n].predicted_us = o->row[o->n].measured_us = NAN;
	o->n++;
	return 0;
}

static int read_formula(struct predict_options *o, const char *value)
{
	static const char *const name[] = { "first", "waiting" };
	uint32_t which = 0;
	int r = option_word("--formula", value, name, 2, &which);

	o->formula = which ? PREDICT_WAITING : PREDICT_FIRST;
	return r;
}

/* clang-format off */
#define OPTIONS(VALUE, FLAG)                                                    \
	VALUE(HOSTS, "hosts", option_text(&o->hosts, value))                    \
	VALUE(ALG, "alg", (o->n = 0, tool_list(value, predict_add_alg, o)))             \
	VALUE(FORMULA, "formula", read_formula(o, value))
/* clang-format on */

enum { OPT_BEFORE = OPTION_SUBCOMMAND - 1, OPTIONS(OPTION_ID, OPTION_ID) };

static const struct option long_options[] = {
	{ "json", required_argument, NULL, OPTION_JSON },
	{ "csv", required_argument, NULL, OPTION_CSV },
	{ "help", no_argument, NULL, 'h' },
	OPTIONS(OPTION_VALUE, OPTION_FLAG){ 0 },
};

static int predict_read_option(void *arg, int c, const char *value)
{
	struct predict_options *o = arg;

	switch (c) {
		OPTIONS(OPTION_CASE, OPTION_CASE)
	}
	return option_common(c, value, NULL, &o->files);
}

static int parse(int argc, char **argv, struct predict_options *o, bool *help)
{
	int r = predict_add_alg(o, "all");

	r = r ? r : predict_add_alg(o, NBAR_TUNE_NAME);
	r = r ? r : option_each(argc, argv, 1, ":h", long_options, predict_read_option, o, help);
	if (!r && !*help && optind + 1 != argc)
		return tool_usage("name one profile");
	o->profile = argv[optind];
	return r;
}

static int predict_row(const struct predict_options *o, const struct tool_hosts *h, struct row *row)
{
	struct predict predict;
	struct nbfw_alg alg;
	const char *why = "no memory";
	struct compose c;
	int rc;

	if (!strcmp(row->alg, NBAR_TUNE_NAME)) {
		rc = compose(h->profile, h->host, h->size, &c, &why);
		if (!rc) {
			rc = predict_run(c.schedule, h->profile, h->host, o->formula, &predict);
			compose_free(&c);
		}
	} else {
		algs_read(row->alg, &alg);
		rc = compose_flat(alg, h->profile, h->host, h->size, o->formula, &predict);
		if (rc == -ERANGE)
			return 0; /* the algorithm does not allow this size: the row gets no
				     prediction */
	}
	if (rc) {
		tool_error("%s: no prediction for %u members: %s", row->alg, h->size, why);
		return TOOL_FAILED;
	}
	row->predicted_us = predict.all_s * 1e6;
	return 0;
}

/* Takes the measured barriers of the profile, if the members are all its hosts in its order. */
static void take_measured(struct predict_options *o, const struct tool_hosts *h)
{
	const struct profile *p = h->profile;
	bool all = h->size == p->hosts;

	for (uint32_t r = 0; r < h->size; r++)
		all &= h->host[r] == r;
	for (uint32_t i = 0; all && i < p->nflat; i++) {
		char name[NBAR_NAME_MAX];

		nbfw_alg_name(p->flat[i].alg, name);
		for (uint32_t k = 0; k < o->n; k++)
			if (!strcmp(o->row[k].alg, name))
				o->row[k].measured_us = p->flat[i].time * 1e6;
	}
}

static void add_number(struct result *r, double value)
{
	if (isfinite(value))
		result_real(r, value);
	else
		result_none(r);
}

/* Counts the pairs whose measurements differ by more than DIFFER, and the pairs among these whose
 * predicted order is right. */
static void note_order(const struct predict_options *o, struct result *r)
{
	uint32_t pairs = 0, right = 0;

	for (uint32_t i = 0; i < o->n; i++) {
		for (uint32_t k = 0; k < o->n; k++) {
			const struct row *a = &o->row[i], *b = &o->row[k];

			if (!(b->measured_us > a->measured_us * (1 + DIFFER)) ||
			    isnan(a->predicted_us) || isnan(b->predicted_us))
				continue;
			pairs++;
			right += b->predicted_us > a->predicted_us;
		}
	}
	result_note(
		r,
		"%u of %u pairs that differ by more than %.0f %% are predicted in the right order",
		right, pairs, DIFFER * 100);
}

/* Adds a note for each cluster of the composed barrier. */
static void note_clusters(const struct tool_hosts *h, struct result *r)
{
	const char *why;
	struct compose c;
	char *tree, *save = NULL;

	if (compose(h->profile, h->host, h->size, &c, &why))
		return;
	tree = c.scheme ? tool_hosts_tree(h, c.scheme) : NULL;
	for (char *line = tree ? strtok_r(tree, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		result_note(r, "tuned: %s", line);
	if (!c.scheme) {
		char name[NBAR_NAME_MAX];

		nbfw_alg_name(c.alg, name);
		result_note(r, "tuned: %s among all", name);
	}
	free(tree);
	compose_free(&c);
}

static void predict_add_rows(const struct predict_options *o, const struct tool_hosts *h,
			     struct result *r)
{
	bool measured = false;

	for (uint32_t i = 0; i < o->n; i++) {
		const struct row *row = &o->row[i];

		result_text(r, row->alg);
		add_number(r, row->predicted_us);
		add_number(r, row->measured_us);
		add_number(r, 100 * (row->predicted_us / row->measured_us - 1));
		measured |= isfinite(row->measured_us);
		if (!strcmp(row->alg, NBAR_TUNE_NAME))
			note_clusters(h, r);
	}
	if (measured)
		note_order(o, r);
}

int tool_predict(int argc, char **argv)
{
	struct predict_options o = { 0 };
	struct experiment e;
	struct result *result;
	struct tool_hosts h;
	bool help;
	int r = parse(argc, argv, &o, &help);

	if (option_ends(r, help, predict_usage))
		return r;
	r = tool_hosts_read(&h, o.profile, o.hosts);
	if (r)
		return r;
	for (uint32_t i = 0; i < o.n && !r; i++)
		r = predict_row(&o, &h, &o.row[i]);
	take_measured(&o, &h);
	if (!r) {
		result = result_new("predict", columns, NCOLUMN);
		result_command(result, argc, argv);
		r = experiment_begin(&e, &o.files, result, 1);
	}
	if (!r) {
		predict_add_rows(&o, &h, result);
		r = experiment_end(&e, 0);
	}
	tool_hosts_free(&h);
	return r;
}
