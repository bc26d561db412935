/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_opt.c - the options of `nbar bench`.
 *
 * Refuses every error that the command line alone shows.
 */
#include "bench.h"

#include <string.h>

#include "hostbar.h"
#include "option.h"
#include "nbar_tune.h"

char bench_where_name[BENCH_WHERE_END][NBAR_NAME_MAX] = { "nic", "host", "nic-release" };

void bench_usage_common(FILE *to)
{
	fputs("  -x, --warmup N      barriers of a run before those that it measures\n"
	      "  --drivers 1|nodes   one process for all nodes, or a process per node (nodes)\n"
	      "  --check             check that no node leaves a barrier before all entered it\n"
	      "  --ranks ORDER       in which nodes get ranks: random or sorted (random)\n"
	      "  --seed N            seed of all random choices (1)\n"
	      "  --json FILE, --csv FILE  results; - is stdout, and then there is no table\n"
	      "  --raw FILE          write the times of single barriers of each node, as CSV\n"
	      "The daemon that is started for the runs:\n"
	      "  --wire WIRE[,KEYS]  see nbar-nicd --list-wires (" NBAR_WIRE_DEFAULT
	      "); in KEYS, % is\n"
	      "                      the number of a NIC: kernel,dev=nic%\n"
	      "  --idle POLICY       spin, yield or sleep (spin; yield if there is one core)\n"
	      "  --cpu N             core of the daemon (first allowed core); hosts get others\n"
	      "  --nicd PATH         program (nbar-nicd beside this program, or in $PATH)\n"
	      "  --nic NIC           start no daemon: use this running NIC (name or socket);\n"
	      "                      repeat the option to spread the nodes over several NICs\n"
	      "Exit status: 0 done, 1 failed or interrupted, 2 wrong usage.\n",
	      to);
}

void bench_usage(FILE *to)
{
	fputs("usage: nbar bench [OPTION]...\n"
	      "Measures the latency of barriers that NICs run, and of barriers that hosts run.\n"
	      "  --nodes LIST        node counts, and ranges such as 2-32 (2,4,8,16)\n"
	      "  --where LIST        nic, host, host-WIRE: in-process NICs (nic,host)\n"
	      "  --host-keys KEYS    keys of the NICs of host-WIRE, such as mode=write\n"
	      "  --alg LIST          algorithms (" ALGS_BENCH "), of:\n",
	      to);
	algs_names(to, "                      ");
	fputs("                      or tuned:FILE, by a profile: nbar-lab tune --help\n"
	      "  --hosts LIST        names of the nodes in that profile (n0,n1,...)\n",
	      to);
	fputs("  -i, --iterations N  barriers that a run measures (10000)\n"
	      "  --launches N        runs of each configuration; medians are shown (1)\n"
	      "  --value BYTES       barriers carry values: sums of doubles, 8 to 256 bytes\n"
	      "                      (without; host: 8)\n"
	      "  -f, --full          more columns\n",
	      to);
	bench_usage_common(to);
	fputs("Columns, in microseconds; a member is a node:\n", to);
	metric_usage(to, METRIC_BENCH | METRIC_BENCH_FULL);
}

/* Reads "8" or "2-32". */
static int add_nodes(void *arg, const char *item)
{
	struct bench_options *opt = arg;
	const char *to = strchr(item, '-');
	char from[64];
	uint64_t first, last;

	snprintf(from, sizeof(from), "%.*s", to ? (int)(to - item) : 63, item);
	if (!tool_number(from, 1, BENCH_NODES_MAX, &first) ||
	    !tool_number(to ? to + 1 : from, 1, BENCH_NODES_MAX, &last) || first > last)
		return tool_usage("--nodes: '%s' is neither a number from 1 to %u nor a range of "
				  "such numbers",
				  item, BENCH_NODES_MAX);
	if (opt->nnodes + (last - first) >= BENCH_LIST_MAX)
		return tool_usage("--nodes: at most %u numbers", BENCH_LIST_MAX);
	for (; first <= last; first++)
		opt->nodes[opt->nnodes++] = (uint32_t)first;
	return 0;
}

static int add_where(void *arg, const char *item)
{
	struct bench_options *opt = arg;
	const char *wire = opt->in_process && !strncmp(item, "host-", 5) ? item + 5 : "";
	uint32_t w = 0;

	while (w < BENCH_WHERE_END && bench_where_name[w][0] && strcmp(item, bench_where_name[w]))
		w++;
	if (w < BENCH_WHERE_END && *wire && strlen(item) < NBAR_NAME_MAX && !strpbrk(wire, "=:/"))
		strcpy(bench_where_name[w], item);
	else if (w >= BENCH_IN_PROCESS || (w == BENCH_NIC_RELEASE && !opt->teams))
		return tool_usage("--where: '%s' is none of nic, host%s", item,
				  opt->teams        ? ", nic-release"
				  : opt->in_process ? ", host-WIRE"
						    : "");
	for (uint32_t i = 0; i < opt->nwhere; i++)
		if (opt->where[i] == w)
			return tool_usage("--where: '%s' is in the list twice", item);
	opt->where[opt->nwhere++] = (enum bench_where)w;
	return 0;
}

static int add_tuned(struct bench_options *opt, const char *profile)
{
	if (!*profile || opt->tuned[0])
		return tool_usage("--alg: name one profile, once: " NBAR_TUNE_PREFIX "FILE");
	if (strlen(profile) + strlen(NBAR_TUNE_PREFIX) + 1 >= TOOL_ITEM_MAX)
		return tool_usage("--alg: the path of a profile has at most %zu characters",
				  TOOL_ITEM_MAX - strlen(NBAR_TUNE_PREFIX) - 2);
	strcpy(opt->tuned, profile);
	strcpy(opt->alg[opt->nalg++], NBAR_TUNE_NAME);
	return 0;
}

static int opt_add_alg(void *arg, const char *item)
{
	struct bench_options *opt = arg;
	struct nbfw_alg alg;

	if (!strcmp(item, "all"))
		return algs_all(opt_add_alg, opt);
	if (opt->nalg == BENCH_LIST_MAX)
		return tool_usage("--alg: at most %u algorithms", BENCH_LIST_MAX);
	if (!strncmp(item, NBAR_TUNE_PREFIX, strlen(NBAR_TUNE_PREFIX)))
		return add_tuned(opt, item + strlen(NBAR_TUNE_PREFIX));
	if (!algs_read(item, &alg))
		return algs_refuse("--alg", item);
	strcpy(opt->alg[opt->nalg++], item);
	return 0;
}

static int add_nic(struct bench_options *opt, const char *nic)
{
	if (!strncmp(nic, "host:", 5))
		return tool_usage("--nic: '%s' is an in-process NIC, and --nic attaches to "
				  "those of daemons; nbar bench makes in-process NICs with "
				  "--where host-WIRE",
				  nic);
	if (opt->nnic == NBAR_NICS_MAX)
		return tool_usage("--nic: at most %u NICs", NBAR_NICS_MAX);
	opt->nic[opt->nnic++] = nic;
	return 0;
}

/* Only checks the length: the daemon checks the name and the keys. */
static int read_wire(struct bench_options *opt, const char *arg)
{
	if (!*arg || strlen(arg) >= sizeof(opt->wire))
		return tool_usage("--wire: '%s': a name and keys of up to %zu characters; see "
				  "nbar-nicd --list-wires",
				  arg, sizeof(opt->wire) - 1);
	strcpy(opt->wire, arg);
	return 0;
}

static int read_cpu(struct bench_options *opt, const char *value)
{
	uint32_t cpu = 0;
	int r = option_u32("--cpu", value, 0, 1023, &cpu);

	opt->cpu = (int)cpu;
	return r;
}

static int read_drivers(struct bench_options *opt, const char *value)
{
	static const char *const name[] = { "nodes", "1" };
	uint32_t which = 0;
	int r = option_word("--drivers", value, name, 2, &which);

	opt->drivers = which ? BENCH_DRIVERS_ONE : BENCH_DRIVERS_NODES;
	return r;
}

static int read_ranks(struct bench_options *opt, const char *value)
{
	static const char *const name[] = { "random", "sorted" };
	uint32_t which = 0;
	int r = option_word("--ranks", value, name, 2, &which);

	opt->sorted = which;
	return r;
}

static int read_value(struct bench_options *opt, const char *value)
{
	int r = option_u32("--value", value, 8, NBAR_VALUE_MAX, &opt->value);

	if (!r && (!opt->in_process || opt->value % 8))
		return tool_usage("--value: a multiple of 8, and only for nbar bench");
	return r;
}

static int read_keys(struct bench_options *opt, const char *value)
{
	opt->keys = value;
	if (strlen(value) > BENCH_KEYS_MAX)
		return tool_usage("--host-keys: at most %u characters", BENCH_KEYS_MAX);
	return 0;
}

struct reading {
	struct bench_options *opt;
	const struct bench_extra_options *more;
	bool where, alg; /* the user gave --where, --alg */
	bool daemon;     /* the user gave options of the daemon that bench starts */
};

/* clang-format off */
#define OPTIONS(VALUE, FLAG)                                                                    \
	VALUE(NODES, "nodes", (opt->nnodes = 0, tool_list(value, add_nodes, opt)))              \
	VALUE(WHERE, "where", (given->where = true, opt->nwhere = 0, tool_list(value, add_where, opt))) \
	VALUE(ALG, "alg",                                                                       \
	      (given->alg = true, opt->nalg = 0, opt->tuned[0] = 0, tool_list(value, opt_add_alg, opt)))               \
	VALUE(WIRE, "wire", read_wire(opt, value))                                              \
	VALUE(REPETITIONS, "launches",                                                          \
	      option_u32("--launches", value, 1, BENCH_REPETITIONS_MAX, &opt->repetitions))     \
	VALUE(DRIVERS, "drivers", read_drivers(opt, value))                                     \
	VALUE(NIC, "nic", add_nic(opt, value))                                                  \
	VALUE(IDLE, "idle", option_word("--idle", (opt->idle = value), idles, 3, &which))       \
	VALUE(CPU, "cpu", read_cpu(opt, value))                                                 \
	VALUE(NICD, "nicd", option_text(&opt->nicd, value))                                     \
	VALUE(RANKS, "ranks", read_ranks(opt, value))                                           \
	VALUE(BYTES, "value", read_value(opt, value))                                           \
	FLAG(CHECK, "check", option_flag(&opt->check))                                          \
	VALUE(KEYS, "host-keys", read_keys(opt, value))                                         \
	VALUE(HOSTS, "hosts", option_text(&opt->hosts, value))
/* clang-format on */

enum { OPT_BEFORE = OPTION_SUBCOMMAND - 1, OPTIONS(OPTION_ID, OPTION_ID) OPT_END };
_Static_assert(OPT_END <= BENCH_OPT_MORE, "options of experiments come after these");

static const struct option long_options[] = {
	OPTION_OF_ALL,
	{ "full", no_argument, NULL, 'f' },
	OPTIONS(OPTION_VALUE, OPTION_FLAG){ 0 },
};

static int opt_read_option(void *arg, int c, const char *value)
{
	static const char *const idles[] = { "spin", "yield", "sleep" };
	struct reading *given = arg;
	struct bench_options *opt = given->opt;
	uint32_t which;

	if (c >= BENCH_OPT_MORE)
		return given->more->read(given->more->arg, c, value);
	given->daemon |= c == OPT_WIRE || c == OPT_IDLE || c == OPT_CPU || c == OPT_NICD;
	switch (c) {
		OPTIONS(OPTION_CASE, OPTION_CASE)
	case 'i':
		return option_u32("-i", value, 1, BENCH_ITERS_MAX, &opt->iters);
	case 'x':
		return option_u32("-x", value, 0, BENCH_ITERS_MAX, &opt->warmup);
	case 'f':
		return option_flag(&opt->full);
	}
	return option_common(c, value, &opt->seed, &opt->out);
}

bool bench_wants(const struct bench_options *opt, enum bench_where where)
{
	for (uint32_t i = 0; i < opt->nwhere; i++)
		if (opt->where[i] == where)
			return true;
	return false;
}

static bool wants_in_process(const struct bench_options *opt)
{
	for (uint32_t i = 0; i < opt->nwhere; i++)
		if (bench_in_process(opt->where[i]))
			return true;
	return false;
}

/* Checks that need all options together. */
static int opt_check_together(const struct bench_options *opt, const struct reading *given)
{
	uint32_t room = (opt->nnic ? opt->nnic : NBAR_NICS_MAX) * NBAR_PORTS_MAX;

	if (opt->keys && !wants_in_process(opt))
		return tool_usage("--host-keys: these keys need --where host-WIRE (nbar bench); "
				  "give keys of a daemon's NICs with --wire WIRE,KEYS");
	if (opt->value > HOSTBAR_VALUE && bench_wants(opt, BENCH_HOST))
		return tool_usage("--value: the host-based barrier carries %u bytes; leave host "
				  "out of --where",
				  HOSTBAR_VALUE);
	if (opt->nnic && given->daemon)
		return tool_usage("--nic attaches to running NICs: --wire, --idle, --cpu and "
				  "--nicd are for a daemon that bench starts");
	for (uint32_t i = 0; i < opt->nnodes; i++)
		if (opt->nodes[i] > room)
			return tool_usage("--nodes: %u nodes need more than the %u ports of %u "
					  "NIC%s",
					  opt->nodes[i], room, opt->nnic,
					  opt->nnic == 1 ? "" : "s");
	return option_files_check(&opt->out);
}

struct bench_options bench_options_default(void)
{
	return (struct bench_options){
		.iters = 10000,
		.warmup = 1000,
		.repetitions = 1,
		.nodes = { 2, 4, 8, 16 },
		.nnodes = 4,
		.where = { BENCH_NIC, BENCH_HOST },
		.nwhere = 2,
		.alg = { ALGS_BENCH },
		.nalg = 1,
		.wire = NBAR_WIRE_DEFAULT,
		.cpu = -1,
		.seed = 1,
	};
}

/* The options of all experiments, then the further options of one experiment. */
static void merge_options(struct option *all, size_t room, const struct bench_extra_options *more)
{
	size_t n = sizeof(long_options) / sizeof(long_options[0]) - 1;

	memcpy(all, long_options, n * sizeof(*all));
	for (size_t i = 0; more && more->option[i].name && n + 1 < room; i++)
		all[n++] = more->option[i];
	all[n] = (struct option){ 0 };
}

int bench_options_parse(int argc, char **argv, struct bench_options *opt,
			const struct bench_extra_options *more, bool *help)
{
	struct reading reading = { .opt = opt, .more = more };
	struct option all[64];
	int r;

	merge_options(all, sizeof(all) / sizeof(all[0]), more);
	r = option_all(argc, argv, 1, ":i:x:fh", all, opt_read_option, &reading, help);
	if (opt->value > HOSTBAR_VALUE && !reading.where)
		opt->nwhere = 1; /* nic */
	if (opt->value && !reading.alg)
		strcpy(opt->alg[0], ALGS_VALUE);
	return r || *help ? r : opt_check_together(opt, &reading);
}
