/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.c - `nbar report`: runs experiments in a folder, and makes a page of their results.
 */
#include "report.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "option.h"
#include "tool.h"

enum { OPT_QUICK = 256, OPT_THOROUGH, OPT_ONLY, OPT_RESUME, OPT_RENDER, OPT_LIST, OPT_MPIRUN };

static const struct option long_options[] = {
	{ "quick", no_argument, NULL, OPT_QUICK },
	{ "thorough", no_argument, NULL, OPT_THOROUGH },
	{ "only", required_argument, NULL, OPT_ONLY },
	{ "resume", no_argument, NULL, OPT_RESUME },
	{ "render-only", no_argument, NULL, OPT_RENDER },
	{ "mpirun", required_argument, NULL, OPT_MPIRUN },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void usage(FILE *to)
{
	fputs("usage: nbar report [OPTION]... DIR\n"
	      "Runs experiments, each by its own command, and writes DIR/index.html: one page\n"
	      "with tables, figures (by gnuplot), and published values.\n\n"
	      "  --quick         short runs: under three minutes in all\n"
	      "  --thorough      long runs: more sizes and repetitions, over an hour in all\n"
	      "  --only LIST     run only these experiments (all)\n"
	      "  --resume        continue in a folder that has results: measure missing ones\n"
	      "  --render-only   measure nothing; draw the page again from the results in DIR\n"
	      "  --mpirun WORDS  start MPI programs with these words (Open MPI's mpirun, with\n"
	      "                  one rank per processor)\n"
	      "  --list          list the experiments and their commands\n"
	      "\nDIR gets NAME.json, NAME.csv and NAME.txt for each experiment. An interrupted\n"
	      "report keeps its measurements there, and --resume continues it. Exit status:\n"
	      "0 done, 1 failed or interrupted, 2 wrong usage.\n",
	      to);
}

static int add_wanted(void *arg, const char *item)
{
	struct report_options *opt = arg;

	for (uint32_t i = 0; i < report_nexperiment; i++) {
		if (!strcmp(item, report_experiments[i].name)) {
			opt->wanted[i] = true;
			return 0;
		}
	}
	return tool_usage("--only: there is no experiment '%s'; --list lists them", item);
}

static const char *const length_name[REPORT_LENGTHS] = {
	[REPORT_DEFAULT] = "default",
	[REPORT_QUICK] = "--quick",
	[REPORT_THOROUGH] = "--thorough",
};

static int list(void)
{
	for (uint32_t i = 0; i < report_nexperiment; i++) {
		const struct report_experiment *e = &report_experiments[i];

		printf("%s: %s\n", e->name, e->title);
		for (enum report_length l = 0; l < REPORT_LENGTHS; l++) {
			const enum report_length as = report_length_of(e, l);

			printf("    %s: nbar %s (about %.0f s)\n", length_name[l], e->command[as],
			       e->seconds[as]);
		}
		if (e->mpi)
			puts("    started by mpirun");
	}
	return TOOL_OK;
}

/* The options of the command line. */
struct reading {
	struct report_options *opt;
	bool only, list;
};

static int read_option(void *arg, int c, const char *value)
{
	struct reading *given = arg;
	struct report_options *opt = given->opt;

	switch (c) {
	case OPT_LIST:
		return option_flag(&given->list);
	case OPT_QUICK:
	case OPT_THOROUGH:
		if (opt->length != REPORT_DEFAULT)
			return tool_usage(
				"give --quick or --thorough, only one of them, and only once");
		opt->length = c == OPT_QUICK ? REPORT_QUICK : REPORT_THOROUGH;
		return 0;
	case OPT_ONLY:
		given->only = true;
		return tool_list(value, add_wanted, opt);
	case OPT_MPIRUN:
		opt->mpirun = value;
		return value[strspn(value, " ")] ? 0 : tool_usage("--mpirun: no words");
	case OPT_RESUME:
		return option_flag(&opt->resume);
	}
	return option_flag(&opt->render_only);
}

static int parse(int argc, char **argv, struct report_options *opt, bool *done)
{
	struct reading given = { .opt = opt };
	int r;

	*opt = (struct report_options){ .dir = NULL };
	r = option_each(argc, argv, 1, ":h", long_options, read_option, &given, done);
	if (!r && *done)
		usage(stdout);
	if (r || *done)
		return r;
	*done = given.list;
	if (given.list)
		return list();
	for (uint32_t i = 0; i < report_nexperiment && !given.only; i++)
		opt->wanted[i] = true;
	if (opt->render_only &&
	    (opt->length != REPORT_DEFAULT || opt->resume || given.only || opt->mpirun))
		return tool_usage("--render-only measures nothing: no --quick, --thorough, --only, "
				  "--resume or --mpirun");
	if (optind != argc - 1)
		return tool_usage(optind == argc ? "name the folder for the report"
						 : "name only one folder, after the options");
	opt->dir = argv[optind];
	if (strlen(opt->dir) > REPORT_PATH_MAX - 64)
		return tool_usage("the folder's name is too long");
	return 0;
}

static int bad_folder(const struct report_options *opt, const char *what)
{
	tool_error("the folder %s %s: %s; name another: nbar report DIR", opt->dir, what,
		   strerror(errno));
	return TOOL_FAILED;
}

/* Checks that the folder is writable, before any measurement. */
static int open_folder(const struct report_options *opt)
{
	struct stat st;

	if (!opt->render_only && mkdir(opt->dir, 0777) && errno != EEXIST)
		return bad_folder(opt, "cannot be made");
	if (stat(opt->dir, &st))
		return bad_folder(opt, "cannot be looked at");
	errno = ENOTDIR;
	if (!S_ISDIR(st.st_mode) || access(opt->dir, W_OK | X_OK))
		return bad_folder(opt, "cannot be written in");
	return 0;
}

int tool_report(int argc, char **argv)
{
	struct report_options opt;
	bool done, begun = true, interrupted = false;
	int r = parse(argc, argv, &opt, &done), page;

	if (r || done)
		return r;
	r = open_folder(&opt);
	if (r)
		return r;
	if (!opt.render_only)
		r = report_run(&opt, &begun, &interrupted);
	if (!begun)
		return r;
	if (interrupted)
		tool_error("interrupted; %s keeps the measurements: to continue, run this command "
			   "again with --resume",
			   opt.dir);
	page = report_page(&opt, interrupted);
	if (interrupted)
		return TOOL_FAILED;
	return r ? r : page;
}
