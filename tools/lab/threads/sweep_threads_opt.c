/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_threads_opt.c - the options of `nbar-lab threads`.
 *
 * Refuses a command line that is wrong in itself, before anything runs.
 */
#include "sweep_threads.h"

#include <string.h>

#include "option.h"
#include "sweep.h"
#include "thread_run.h"
#include "tool.h"

#define REPETITIONS_MAX 1000u

static const char *const usual_kinds[] = {
	"sense-reverse",   "mcs",     "tournament",    "dissemination:1",
	"dissemination:3", "pthread", "omp-gcc",       "omp-llvm",
	"ck-centralized",  "ck-mcs",  "ck-tournament", "ck-dissemination",
	"ck-combining",
};

static void opt_usage(FILE *to)
{
	fputs("usage: nbar-lab threads [OPTION]...\n"
	      "Barriers of the threads of a process: nbar_team by kind, pthread_barrier_wait,\n"
	      "the `omp barrier` of GCC and of LLVM, Concurrency Kit; in one run, in random\n"
	      "order, and next to them the transfer of a cache line from core to core.\n\n"
	      "  --threads LIST      numbers of threads, 1 to 256 (2,4,8,16)\n"
	      "  --kinds LIST        sense-reverse, mcs, tournament, dissemination:N, pthread,\n"
	      "                      omp-gcc, omp-llvm, ck-centralized, ck-combining,\n"
	      "                      ck-dissemination, ck-tournament, ck-mcs (all built)\n"
	      "  -i, --iterations N  measured barriers per run (100000)\n"
	      "  -x, --warmup N      barriers of the warm-up (1000)\n"
	      "  --launches N        runs of each kind, in random order; medians are shown (10)\n"
	      "  --limit MS          a run that would take longer measures less (1000)\n"
	      "  --seed N            seed of the order (1)\n"
	      "  --json FILE         results as JSON; - is stdout, and then there is no table\n"
	      "  --csv FILE          results as CSV\n"
	      "  --raw FILE          the mean of each thread in each repetition, in ns, as CSV\n"
	      "\nIf there are enough processors, each thread is bound to its own. best: time /\n"
	      "time of the fastest nbar_team of as many threads. Exit status: 0 done, 1 failed,\n"
	      "2 wrong usage.\n",
	      to);
}

static int opt_add_threads(void *arg, const char *item)
{
	struct sweep_threads_options *opt = arg;

	if (opt->nthreads == SWEEP_COUNTS_MAX)
		return tool_usage("--threads: at most %u numbers", SWEEP_COUNTS_MAX);
	return option_u32("--threads", item, 1, THREAD_LOOP_MAX, &opt->threads[opt->nthreads++]);
}

static int opt_add_kind(void *arg, const char *item)
{
	struct sweep_threads_options *opt = arg;

	if (strlen(item) >= sizeof(opt->kind[0]) || !thread_kind_known(item))
		return tool_usage("--kinds: '%s' is none of sense-reverse, mcs, tournament, "
				  "dissemination:1 .. dissemination:%u, pthread, omp-gcc, "
				  "omp-llvm, ck-centralized, ck-combining, ck-dissemination, "
				  "ck-tournament, ck-mcs",
				  item, NBAR_TEAM_WAYS_MAX);
	if (!thread_kind_built(item))
		return tool_usage("--kinds: the program for %s has not been built: its compiler "
				  "or library was not found",
				  item);
	for (uint32_t i = 0; i < opt->nkind; i++)
		if (!strcmp(opt->kind[i], item))
			return tool_usage("--kinds: '%s' is in the list twice", item);
	if (opt->nkind == SWEEP_KINDS_MAX)
		return tool_usage("--kinds: at most %u", SWEEP_KINDS_MAX);
	strcpy(opt->kind[opt->nkind++], item);
	return 0;
}

/* clang-format off */
#define OPTIONS(VALUE, FLAG)                                                                    \
	VALUE(THREADS, "threads", (opt->nthreads = 0, tool_list(value, opt_add_threads, opt)))      \
	VALUE(KINDS, "kinds", (opt->nkind = 0, tool_list(value, opt_add_kind, opt)))                \
	VALUE(REPETITIONS, "launches",                                                          \
	      option_u32("--launches", value, 1, REPETITIONS_MAX, &opt->repetitions))           \
	VALUE(LIMIT, "limit", option_u32("--limit", value, 1, 3600000, &opt->limit_ms))
/* clang-format on */

enum { OPT_BEFORE = OPTION_SUBCOMMAND - 1, OPTIONS(OPTION_ID, OPTION_ID) };

static const struct option long_options[] = {
	OPTION_OF_ALL,
	OPTIONS(OPTION_VALUE, OPTION_FLAG){ 0 },
};

static int read_option(void *to, int c, const char *value)
{
	struct sweep_threads_options *opt = to;

	switch (c) {
		OPTIONS(OPTION_CASE, OPTION_CASE)
	case 'i':
		return option_u32("-i", value, 1, BENCH_ITERS_MAX, &opt->iterations);
	case 'x':
		return option_u32("-x", value, 0, BENCH_ITERS_MAX, &opt->warmup);
	}
	return option_common(c, value, &opt->seed, &opt->files);
}

/* Lists the kinds that can run, and names the kinds that cannot run. */
static void add_usual_kinds(struct sweep_threads_options *opt)
{
	for (size_t i = 0; i < sizeof(usual_kinds) / sizeof(usual_kinds[0]); i++) {
		if (thread_kind_built(usual_kinds[i]))
			strcpy(opt->kind[opt->nkind++], usual_kinds[i]);
		else
			tool_error(
				"%s is left out: its compiler or library was not found when nbar "
				"was built",
				usual_kinds[i]);
	}
}

int sweep_threads_options(int argc, char **argv, struct sweep_threads_options *opt, bool *help)
{
	int r;

	*opt = (struct sweep_threads_options){
		.threads = { 2, 4, 8, 16 },
		.nthreads = 4,
		.iterations = 100000,
		.warmup = 1000,
		.repetitions = 10,
		.limit_ms = 1000,
		.seed = 1,
	};
	/* Behind "sweep threads". */
	r = option_all(argc, argv, 1, ":i:x:h", long_options, read_option, opt, help);
	if (*help)
		opt_usage(stdout);
	if (r || *help)
		return r;
	if (!opt->nkind)
		add_usual_kinds(opt);
	return option_files_check(&opt->files);
}
