/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep_threads.c - `nbar sweep threads`: barriers of the threads of a process, ours and others'.
 *
 * Each launch runs every kind at every number of threads once, in random order, and the transfer of
 * a cache line among them. What is shown are medians over the launches.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiment.h"
#include "stats.h"
#include "sweep.h"
#include "thread_run.h"
#include "tool.h"

#define KINDS_MAX 32u
#define COUNTS_MAX 64u
#define LAUNCHES_MAX 1000u
#define LEVEL 0.95

static const char *const usual_kinds[] = {
	"sense-reverse",   "mcs",     "tournament",    "dissemination:1",
	"dissemination:3", "pthread", "omp-gcc",       "omp-llvm",
	"ck-centralized",  "ck-mcs",  "ck-tournament", "ck-dissemination",
	"ck-combining",
};

struct options {
	struct experiment_options files;
	char kind[KINDS_MAX][32];
	uint32_t nkind;
	uint32_t threads[COUNTS_MAX], nthreads;
	uint32_t iterations, warmup, launches, limit_ms;
	uint64_t seed;
};

/* A thing to measure, and what came of it. */
struct point {
	const char *kind;
	uint32_t threads;
	uint32_t n; /* launches done */
	double *ns; /* one a launch: mean over the threads of their means */
	double *iterations;
};

enum {
	OPT_THREADS = 256,
	OPT_KINDS,
	OPT_LAUNCHES,
	OPT_LIMIT,
	OPT_SEED,
	OPT_JSON,
	OPT_CSV,
	OPT_RAW,
	OPT_RESUME
};

static const struct option long_options[] = {
	{ "iterations", required_argument, NULL, 'i' },
	{ "warmup", required_argument, NULL, 'x' },
	{ "help", no_argument, NULL, 'h' },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "kinds", required_argument, NULL, OPT_KINDS },
	{ "launches", required_argument, NULL, OPT_LAUNCHES },
	{ "limit", required_argument, NULL, OPT_LIMIT },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "csv", required_argument, NULL, OPT_CSV },
	{ "raw", required_argument, NULL, OPT_RAW },
	{ "resume", no_argument, NULL, OPT_RESUME },
	{ 0 },
};

static void usage(FILE *to)
{
	fputs("usage: nbar sweep threads [OPTION]...\n"
	      "Barriers of the threads of a process: nbar_team by kind, pthread_barrier_wait, the\n"
	      "`omp barrier` of GCC and of LLVM, Concurrency Kit; in one run, in random order, and\n"
	      "next to them the transfer of a cache line from core to core.\n\n"
	      "  --threads LIST      numbers of threads, 1 to 256 (2,4,8,16)\n"
	      "  --kinds LIST        sense-reverse, mcs, tournament, dissemination:N, pthread,\n"
	      "                      omp-gcc, omp-llvm, ck-centralized, ck-combining,\n"
	      "                      ck-dissemination, ck-tournament, ck-mcs (all that are built)\n"
	      "  -i, --iterations N  barriers measured a run (100000)\n"
	      "  -x, --warmup N      barriers before them (1000)\n"
	      "  --launches N        runs of each, in random order; medians are shown (10)\n"
	      "  --limit MS          a run that would take longer measures fewer barriers (1000)\n"
	      "  --seed N            of the order (1)\n"
	      "  --json FILE         results as JSON; - is stdout, and then there is no table\n"
	      "  --csv FILE          the same as CSV\n"
	      "  --raw FILE          a row a thread and launch: its mean, in ns\n"
	      "  --resume            goes on with a run that was cut short\n"
	      "\nThreads are pinned, one a processor, where there are as many. best: time over that\n"
	      "of the fastest nbar_team of as many threads. Exit status: 0 done, 1 failed, 2 wrong\n"
	      "usage.\n",
	      to);
}

static int add_threads(void *arg, const char *item)
{
	struct options *opt = arg;
	uint64_t n;

	if (!tool_number(item, 1, THREAD_LOOP_MAX, &n))
		return tool_usage("--threads: '%s' is not a number from 1 to %u", item,
				  THREAD_LOOP_MAX);
	if (opt->nthreads == COUNTS_MAX)
		return tool_usage("--threads: at most %u numbers", COUNTS_MAX);
	opt->threads[opt->nthreads++] = (uint32_t)n;
	return 0;
}

static int add_kind(void *arg, const char *item)
{
	struct options *opt = arg;

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
			return tool_usage("--kinds: '%s' stands there twice", item);
	if (opt->nkind == KINDS_MAX)
		return tool_usage("--kinds: at most %u", KINDS_MAX);
	strcpy(opt->kind[opt->nkind++], item);
	return 0;
}

static int read_number(const char *option, const char *text, uint32_t min, uint32_t max,
		       uint32_t *out)
{
	uint64_t value;

	if (!tool_number(text, min, max, &value))
		return tool_usage("%s: '%s' is not a number from %u to %u", option, text, min, max);
	*out = (uint32_t)value;
	return 0;
}

static int read_option(struct options *opt, int c, const char *arg)
{
	switch (c) {
	case 'i':
		return read_number("-i", arg, 1, BENCH_ITERS_MAX, &opt->iterations);
	case 'x':
		return read_number("-x", arg, 0, BENCH_ITERS_MAX, &opt->warmup);
	case OPT_THREADS:
		opt->nthreads = 0;
		return tool_list(arg, add_threads, opt);
	case OPT_KINDS:
		opt->nkind = 0;
		return tool_list(arg, add_kind, opt);
	case OPT_LAUNCHES:
		return read_number("--launches", arg, 1, LAUNCHES_MAX, &opt->launches);
	case OPT_LIMIT:
		return read_number("--limit", arg, 1, 3600000, &opt->limit_ms);
	case OPT_SEED:
		return tool_number(arg, 0, UINT64_MAX, &opt->seed)
			       ? 0
			       : tool_usage("--seed: '%s' is not a number", arg);
	case OPT_JSON:
		opt->files.json = arg;
		return 0;
	case OPT_CSV:
		opt->files.csv = arg;
		return 0;
	case OPT_RAW:
		opt->files.raw = arg;
		return 0;
	case OPT_RESUME:
		opt->files.resume = true;
		return 0;
	}
	return tool_usage("it cannot be read");
}

/* All that can be run, and a word of those that cannot. */
static void add_usual_kinds(struct options *opt)
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

static int parse(int argc, char **argv, struct options *opt, bool *help)
{
	int c, r;

	*opt = (struct options){
		.threads = { 2, 4, 8, 16 },
		.nthreads = 4,
		.iterations = 100000,
		.warmup = 1000,
		.launches = 10,
		.limit_ms = 1000,
		.seed = 1,
	};
	*help = false;
	optind = 2; /* behind "sweep threads" */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:x:h", long_options, NULL)) != -1) {
		*help |= c == 'h';
		if (*help)
			return 0;
		if (c == ':')
			return tool_usage("%s wants a value", argv[optind - 1]);
		if (c == '?')
			return tool_usage("unknown option %s", argv[optind - 1]);
		r = read_option(opt, c, optarg);
		if (r)
			return r;
	}
	if (optind < argc)
		return tool_usage("what is '%s'? All arguments are options", argv[optind]);
	if (!opt->nkind)
		add_usual_kinds(opt);
	return 0;
}

/* --- the runs -------------------------------------------------------------------------------- */

static double mean(const double *value, uint32_t n)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += value[i];
	return sum / n;
}

static int measure(struct experiment *e, const struct options *opt, struct point *p,
		   uint32_t launch)
{
	static struct thread_loop loop;
	bool transfer = !strcmp(p->kind, THREAD_TRANSFER);
	double value[2];
	char key[80];
	int r;

	snprintf(key, sizeof(key), "%s/%u/%u", p->kind, p->threads, launch);
	if (!experiment_known(e, key, 1, value, 2)) {
		loop = (struct thread_loop){
			.threads = p->threads,
			.warmup = opt->warmup,
			.iterations = opt->iterations,
			.limit_ns = opt->limit_ms * UINT64_C(1000000),
		};
		progress_show(&e->progress, "%s, %u threads", p->kind, p->threads);
		r = thread_run(p->kind, &loop);
		if (r)
			return r;
		/* A transfer is half of what the loop has timed. */
		for (uint32_t i = 0; i < p->threads; i++)
			loop.mean_ns[i] /= transfer ? 2 : 1;
		for (uint32_t i = 0; experiment_raw(e) && i < p->threads; i++)
			fprintf(experiment_raw(e), "%s/%u,%u,%u,%.3f\n", p->kind, p->threads, i,
				launch, loop.mean_ns[i]);
		value[0] = mean(loop.mean_ns, p->threads);
		value[1] = (double)loop.measured;
		r = experiment_keep(e, key, 1, value, 2);
		if (r)
			return r;
	}
	p->ns[p->n] = value[0];
	p->iterations[p->n++] = value[1];
	return 0;
}

/* All points once a launch, in another order each time. */
static int measure_all(struct experiment *e, const struct options *opt, struct point *point,
		       uint32_t n)
{
	uint32_t order[KINDS_MAX * COUNTS_MAX + 1];
	uint64_t seed = opt->seed;

	for (uint32_t launch = 0; launch < opt->launches; launch++) {
		stats_shuffle(order, n, &seed);
		for (uint32_t i = 0; i < n; i++) {
			int r = measure(e, opt, &point[order[i]], launch);

			if (r)
				return r;
		}
	}
	return 0;
}

/* --- the result ------------------------------------------------------------------------------ */

static const struct result_column columns[] = {
	{ "threads", "", RESULT_COUNT, 0 },    { "barrier", "", RESULT_TEXT, 0 },
	{ "of", "", RESULT_TEXT, 0 },          { "time", "us", RESULT_REAL, 3 },
	{ "low", "us", RESULT_REAL, 3 },       { "high", "us", RESULT_REAL, 3 },
	{ "best", "", RESULT_REAL, 2 },        { "transfers", "", RESULT_REAL, 2 },
	{ "iterations", "", RESULT_COUNT, 0 },
};
#define NCOLUMN ((uint32_t)(sizeof(columns) / sizeof(columns[0])))

static const char *maker(const char *kind)
{
	if (!strncmp(kind, "ck-", 3))
		return "ck";
	if (!strcmp(kind, "omp-gcc"))
		return "gcc";
	if (!strcmp(kind, "omp-llvm"))
		return "llvm";
	if (!strcmp(kind, "pthread"))
		return "libc";
	return thread_kind_own(kind) ? "nbar" : "-";
}

static double median(const struct point *p)
{
	return stats_median(p->ns, p->n);
}

/* The fastest of ours, or of the others, with that many threads; NULL if there is none. */
static const struct point *fastest(const struct point *point, uint32_t n, uint32_t threads,
				   bool own)
{
	const struct point *best = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (point[i].n && point[i].threads == threads &&
		    strcmp(point[i].kind, THREAD_TRANSFER) &&
		    thread_kind_own(point[i].kind) == own &&
		    (!best || median(&point[i]) < median(best)))
			best = &point[i];
	return best;
}

static void add_row(struct result *r, const struct point *p, const struct point *best,
		    double transfer)
{
	double low, high, ns = median(p);

	stats_median_interval(p->ns, p->n, LEVEL, &low, &high);
	result_count(r, p->threads);
	result_text(r, p->kind);
	result_text(r, maker(p->kind));
	result_real(r, ns / 1000);
	result_real(r, low / 1000);
	result_real(r, high / 1000);
	if (best && strcmp(p->kind, THREAD_TRANSFER))
		result_real(r, ns / median(best));
	else
		result_none(r);
	if (transfer > 0)
		result_real(r, ns / transfer);
	else
		result_none(r);
	result_count(r, (uint64_t)stats_median(p->iterations, p->n));
}

static void add_note(struct result *r, const struct point *point, uint32_t n, uint32_t threads,
		     double transfer)
{
	const struct point *own = fastest(point, n, threads, true);
	const struct point *peer = fastest(point, n, threads, false);
	char reach[80] = "";

	if (!own || !peer)
		return;
	if (threads == 2 && transfer > 0)
		snprintf(reach, sizeof(reach), ", %.2f transfers of a cache line",
			 median(own) / transfer);
	result_note(
		r,
		"%u threads: nbar_team %s takes %.3f us%s; the fastest peer, %s, %.2f times that",
		threads, own->kind, median(own) / 1000, reach, peer->kind,
		median(peer) / median(own));
}

static void report(struct result *r, const struct options *opt, const struct point *point,
		   uint32_t n)
{
	double transfer = 0;

	for (uint32_t i = 0; i < n; i++)
		if (point[i].n && !strcmp(point[i].kind, THREAD_TRANSFER))
			transfer = median(&point[i]);
	for (uint32_t i = 0; i < n; i++)
		if (point[i].n)
			add_row(r, &point[i], fastest(point, n, point[i].threads, true), transfer);
	for (uint32_t i = 0; i < opt->nthreads; i++)
		add_note(r, point, n, opt->threads[i], transfer);
	result_note(r,
		    "time: median over %u launches of the mean over the threads; low, high: its "
		    "95 %% confidence interval; best: in times of the fastest nbar_team; "
		    "transfers: in times of a cache line's way from core to core",
		    opt->launches);
}

/* --------------------------------------------------------------------------------------------- */

static struct result *begin(const struct options *opt, int argc, char **argv)
{
	struct result *r = result_new("threads", columns, NCOLUMN);
	char kinds[KINDS_MAX * 32] = "", threads[COUNTS_MAX * 4] = "";
	size_t at = 0;

	if (!r)
		return NULL;
	for (uint32_t i = 0; i < opt->nkind; i++)
		at += (size_t)snprintf(kinds + at, sizeof(kinds) - at, "%s%s", i ? "," : "",
				       opt->kind[i]);
	at = 0;
	for (uint32_t i = 0; i < opt->nthreads; i++)
		at += (size_t)snprintf(threads + at, sizeof(threads) - at, "%s%u", i ? "," : "",
				       opt->threads[i]);
	result_command(r, argc, argv);
	result_setting_text(r, "kinds", kinds);
	result_setting_text(r, "threads", threads);
	result_setting_number(r, "iterations", opt->iterations);
	result_setting_number(r, "warmup", opt->warmup);
	result_setting_number(r, "launches", opt->launches);
	result_setting_number(r, "limit_ms", opt->limit_ms);
	result_setting_number(r, "seed", (double)opt->seed);
	return r;
}

static uint32_t list_points(const struct options *opt, struct point *point, double *values)
{
	uint32_t n = 0;

	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		point[n++] = (struct point){ .kind = THREAD_TRANSFER, .threads = 2 };
	for (uint32_t t = 0; t < opt->nthreads; t++)
		for (uint32_t k = 0; k < opt->nkind; k++)
			point[n++] =
				(struct point){ .kind = opt->kind[k], .threads = opt->threads[t] };
	for (uint32_t i = 0; i < n; i++) {
		point[i].ns = values + (size_t)2 * i * opt->launches;
		point[i].iterations = point[i].ns + opt->launches;
	}
	return n;
}

int sweep_threads(int argc, char **argv)
{
	static struct point point[KINDS_MAX * COUNTS_MAX + 1];
	struct options opt;
	struct experiment e;
	double *values;
	uint32_t n;
	bool help;
	int r = parse(argc, argv, &opt, &help);

	if (help)
		usage(stdout);
	if (help || r)
		return r;
	values = calloc((size_t)2 * (KINDS_MAX * COUNTS_MAX + 1) * opt.launches, sizeof(*values));
	if (!values) {
		tool_error("no memory for %u launches", opt.launches);
		return TOOL_FAILED;
	}
	n = list_points(&opt, point, values);
	bench_signals_begin();
	r = experiment_begin(&e, &opt.files, begin(&opt, argc, argv), (double)n * opt.launches);
	if (!r) {
		r = measure_all(&e, &opt, point, n);
		report(e.result, &opt, point, n);
		r = experiment_end(&e, r);
	}
	free(values);
	return r;
}
