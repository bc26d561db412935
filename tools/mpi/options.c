/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - options of `nbar mpi-bench`. Refuses every error that can be found without an MPI.
 */
#include "options.h"

#include <string.h>

#include "algs.h"
#include "metric.h"
#include "option.h"
#include "tool.h"

const char *const mpib_test_name[MPIB_TEST_END] = { "barrier", "allreduce", "ibarrier", "busy",
						    "app" };
const unsigned mpib_table[MPIB_TEST_END] = { METRIC_BARRIER, METRIC_BARRIER, METRIC_IBARRIER,
					     METRIC_BUSY, METRIC_APP };
const char *const mpib_compute_name[MPIB_COMPUTE_END] = { "auto", "spin", "sleep", "yield" };

void mpib_usage(FILE *to)
{
	fputs("usage: mpirun [OPTION OF THE MPI]... nbar mpi-bench [OPTION]...\n"
	      "Compares barriers of an MPI program: the MPI's own barrier, nbar's, and others.\n"
	      "Their iterations are interleaved, in blocks; the figures are medians.\n\n"
	      "  mpirun --mca coll_nbar_enable 1 -np 4 nbar mpi-bench        # Open MPI\n"
	      "  mpiexec -genv LD_PRELOAD .../libnbar-mpi-mpich.so -np 4 nbar mpi-bench\n\n"
	      "  --test barrier    latency (the default)\n"
	      "  --test allreduce  latency of MPI_Allreduce, sums of doubles\n"
	      "  --value BYTES     of an allreduce, 8 to 256 (8)\n"
	      "  --test ibarrier   overlap of MPI_Ibarrier with a computation\n"
	      "  --test busy       one rank computes in the barrier: how long the others wait\n"
	      "  --test app        synthetic applications: steps of compute, then a barrier\n"
	      "  --app, --steps, --vary, --scale  see nbar-lab app (1,2,3; none; 10 %; 1)\n"
	      "  --method LIST     barriers to compare (mpi,nbar)\n"
	      "       mpi, nbar    run by the MPI; run by nbar (MPI_Barrier, MPI_Ibarrier)\n"
	      "       lib, lib2    nbar's library without MPI; lib2: on the NIC of --nic2\n"
	      "       p2p:ALG      by MPI_Isend and MPI_Irecv; ALG is one of:\n",
	      to);
	algs_names(to, "                    ");
	fputs("  -i, --iterations N  iterations of each method (1000; busy, app: 100)\n"
	      "  -x, --warmup N      iterations of the warm-up (200; busy, app: 10)\n"
	      "  -f, --full        show also the fastest and the slowest block\n"
	      "  --blocks N        number of blocks of iterations (10)\n"
	      "  --compute US      computation (busy: 10000; ibarrier: as long as the barrier)\n"
	      "  --compute-by HOW  spin; sleep or yield: for ranks that share processors, so\n"
	      "                    that other ranks do not wait for a processor (auto)\n"
	      "  --busy-rank N     rank N always computes (each rank in turn)\n"
	      "  --json FILE, --csv FILE  results; - is stdout, and then there is no table\n"
	      "  --raw FILE        first metric of each block, as CSV\n"
	      "  --seed N          seed of the order of blocks, and of compute times (1)\n"
	      "  --nic2 NIC        NIC of method lib2\n"
	      "  --mpi NAME        openmpi or mpich, if nbar cannot detect the MPI\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage.\nColumns:\n",
	      to);
	for (int t = 0; t < MPIB_TEST_END; t++) {
		fprintf(to, "  %-8s  ", mpib_test_name[t]);
		metric_names(to, mpib_table[t]);
	}
}

static int set_p2p(struct mpib_choice *choice, const char *alg)
{
	choice->kind = MPIB_P2P;
	if (!algs_read(alg, &choice->alg))
		return algs_refuse("--method: p2p", alg);
	return 0;
}

static int add_one(struct mpib_options *opt, const char *item)
{
	struct mpib_choice *choice = &opt->method[opt->nmethod];

	if (opt->nmethod == MPIB_METHODS_MAX)
		return tool_usage("--method: at most %u methods", MPIB_METHODS_MAX);
	for (uint32_t i = 0; i < opt->nmethod; i++)
		if (!strcmp(opt->method[i].name, item))
			return tool_usage("--method: '%s' is in the list twice", item);
	opt->nmethod++;
	snprintf(choice->name, sizeof(choice->name), "%s", item);
	if (!strncmp(item, "p2p:", 4))
		return set_p2p(choice, item + 4);
	if (!strcmp(item, "mpi"))
		choice->kind = MPIB_MPI;
	else if (!strcmp(item, "nbar"))
		choice->kind = MPIB_NBAR;
	else if (!strcmp(item, "lib"))
		choice->kind = MPIB_LIB;
	else if (!strcmp(item, "lib2"))
		choice->kind = MPIB_LIB2;
	else
		return tool_usage("--method: '%s' is none of mpi, nbar, lib, lib2, p2p:ALG", item);
	return 0;
}

static int add_p2p(void *arg, const char *alg)
{
	char item[sizeof("p2p:") + NBAR_NAME_MAX];

	snprintf(item, sizeof(item), "p2p:%s", alg);
	return add_one(arg, item);
}

static int add_method(void *arg, const char *item)
{
	if (!strcmp(item, "p2p:all"))
		return algs_all(add_p2p, arg);
	return add_one(arg, item);
}

static int read_test(struct mpib_options *opt, const char *value)
{
	uint32_t which = 0;
	int r = option_word("--test", value, mpib_test_name, MPIB_TEST_END, &which);

	opt->test = (enum mpib_test)which;
	return r;
}

static int read_methods(struct mpib_options *opt, const char *value)
{
	memset(opt->method, 0, sizeof(opt->method));
	opt->nmethod = 0;
	return tool_list(value, add_method, opt);
}

static int read_bytes(struct mpib_options *opt, const char *value)
{
	int r = option_u32("--value", value, 8, NBAR_VALUE_MAX, &opt->value);

	return !r && opt->value % 8 ? tool_usage("--value: a multiple of 8") : r;
}

static int read_busy_rank(struct mpib_options *opt, const char *value)
{
	uint32_t rank = 0;
	int r = option_u32("--busy-rank", value, 0, INT32_MAX, &rank);

	opt->busy_rank = (int)rank;
	return r;
}

static int read_compute_by(struct mpib_options *opt, const char *value)
{
	uint32_t which = 0;
	int r = option_word("--compute-by", value, mpib_compute_name, MPIB_COMPUTE_END, &which);

	opt->compute = (enum mpib_compute)which;
	return r;
}

/* clang-format off */
#define OPTIONS(VALUE, FLAG)                                                                    \
	VALUE(TEST, "test", read_test(opt, value))                                              \
	VALUE(METHOD, "method", read_methods(opt, value))                                       \
	VALUE(BYTES, "value", read_bytes(opt, value))                                           \
	VALUE(BLOCKS, "blocks",                                                                 \
	      option_u32("--blocks", value, 1, MPIB_BLOCKS_MAX, &opt->blocks))                  \
	VALUE(COMPUTE, "compute",                                                               \
	      option_u32("--compute", value, 1, 60000000, &opt->compute_us))                    \
	VALUE(BUSY_RANK, "busy-rank", read_busy_rank(opt, value))                               \
	VALUE(COMPUTE_BY, "compute-by", read_compute_by(opt, value))                            \
	VALUE(NIC2, "nic2", *(opt->nic2 = value) ? 0 : tool_usage("--nic2: name a NIC"))        \
	VALUE(MPI, "mpi", option_word("--mpi", (opt->mpi = value), mpis, 2, &which))
/* clang-format on */

enum {
	OPT_BEFORE = OPTION_SUBCOMMAND - 1,
	OPTIONS(OPTION_ID, OPTION_ID)
		OPT_APP /* the first of several: OPT_APP + enum app_set_option */
};

static const struct option long_options[] = {
	OPTION_OF_ALL,
	{ "full", no_argument, NULL, 'f' },
	{ "app", required_argument, NULL, OPT_APP + APP_SET_APP },
	{ "steps", required_argument, NULL, OPT_APP + APP_SET_STEPS },
	{ "vary", required_argument, NULL, OPT_APP + APP_SET_VARY },
	{ "scale", required_argument, NULL, OPT_APP + APP_SET_SCALE },
	OPTIONS(OPTION_VALUE, OPTION_FLAG){ 0 },
};

static int options_read_option(void *to, int c, const char *value)
{
	static const char *const mpis[] = { "openmpi", "mpich" };
	struct mpib_options *opt = to;
	uint32_t which;

	if (c >= OPT_APP) {
		opt->app_options_given = true;
		return app_set_read(&opt->app_set, (enum app_set_option)(c - OPT_APP), value);
	}
	switch (c) {
		OPTIONS(OPTION_CASE, OPTION_CASE)
	case 'i':
		return option_u32("-i", value, 1, MPIB_ITERS_MAX, &opt->iters);
	case 'x':
		return option_u32("-x", value, 0, MPIB_ITERS_MAX, &opt->warmup);
	case 'f':
		return option_flag(&opt->full);
	}
	return option_common(c, value, &opt->seed, &opt->out);
}

/* Sets the options that the user has not given. */
static void set_defaults(struct mpib_options *opt)
{
	bool barriers = opt->test == MPIB_BARRIER || opt->test == MPIB_IBARRIER;

	if (!opt->iters)
		opt->iters = barriers ? 1000 : 100;
	if (opt->warmup == UINT32_MAX)
		opt->warmup = barriers ? 200 : 10;
	if (!opt->compute_us && opt->test == MPIB_BUSY)
		opt->compute_us = 10000;
	if (opt->blocks > opt->iters)
		opt->blocks = opt->iters;
	if (opt->test == MPIB_APP)
		app_set_finish(&opt->app_set, opt->seed);
}

/* Checks that need all options together. */
static int options_check_together(const struct mpib_options *opt)
{
	bool lib2 = false, others = false;

	for (uint32_t i = 0; i < opt->nmethod; i++) {
		lib2 |= opt->method[i].kind == MPIB_LIB2;
		others |= opt->method[i].kind != MPIB_MPI && opt->method[i].kind != MPIB_NBAR;
	}
	if (opt->value && opt->test != MPIB_ALLREDUCE)
		return tool_usage("--value is for --test allreduce");
	if (others && opt->test == MPIB_ALLREDUCE)
		return tool_usage("--test allreduce has the methods mpi and nbar");
	if (lib2 != (opt->nic2 != NULL))
		return tool_usage("--method lib2 needs --nic2, and --nic2 needs --method lib2");
	if (opt->compute_us && (opt->test <= MPIB_ALLREDUCE || opt->test == MPIB_APP))
		return tool_usage("--compute is for --test ibarrier and busy");
	if (opt->compute && opt->test <= MPIB_ALLREDUCE)
		return tool_usage("--compute-by is for --test ibarrier, busy and app");
	if (opt->busy_rank >= 0 && opt->test != MPIB_BUSY)
		return tool_usage("--busy-rank is for --test busy");
	if (opt->app_options_given && opt->test != MPIB_APP)
		return tool_usage("--app, --steps, --vary and --scale are for --test app");
	if (opt->test == MPIB_APP && opt->iters > MPIB_ITERS_MAX / SWEEP_LIST_MAX)
		return tool_usage("-i: at most %u executions of an application",
				  MPIB_ITERS_MAX / SWEEP_LIST_MAX);
	return option_files_check(&opt->out);
}

int mpib_options_parse(int argc, char **argv, struct mpib_options *opt, bool *help)
{
	int r;

	*opt = (struct mpib_options){
		.method = { { "mpi", MPIB_MPI, { 0 } }, { "nbar", MPIB_NBAR, { 0 } } },
		.nmethod = 2,
		.warmup = UINT32_MAX,
		.blocks = 10,
		.app_set = app_set_default(),
		.busy_rank = -1,
		.seed = 1,
	};
	r = option_all(argc, argv, 1, ":i:x:fh", long_options, options_read_option, opt, help);
	if (r || *help)
		return r;
	r = options_check_together(opt);
	if (opt->test == MPIB_ALLREDUCE) {
		opt->test = MPIB_BARRIER;
		opt->value = opt->value ? opt->value : 8;
	}
	if (!r)
		set_defaults(opt);
	return r;
}
