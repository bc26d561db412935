/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_opt.c - the options of `nbar bench`.
 *
 * Refuses every error that the command line alone shows.
 */
#include "bench.h"

#include <string.h>

#include "option.h"
#include "nbar_tune.h"

char bench_where_name[BENCH_WHERE_END][NBAR_NAME_MAX] = { "nic", "host", "nic-release" };

enum {
	OPT_NODES = OPTION_SUBCOMMAND,
	OPT_WHERE,
	OPT_ALG,
	OPT_WIRE,
	OPT_REPETITIONS,
	OPT_DRIVERS,
	OPT_NIC,
	OPT_IDLE,
	OPT_CPU,
	OPT_NICD,
	OPT_RANKS,
	OPT_CHECK,
	OPT_KEYS,
	OPT_HOSTS
};
_Static_assert(OPT_HOSTS < BENCH_OPT_MORE, "options of experiments come after these");

static const struct option long_options[] = {
	OPTION_OF_ALL,
	{ "full", no_argument, NULL, 'f' },
	{ "nodes", required_argument, NULL, OPT_NODES },
	{ "where", required_argument, NULL, OPT_WHERE },
	{ "alg", required_argument, NULL, OPT_ALG },
	{ "wire", required_argument, NULL, OPT_WIRE },
	{ "launches", required_argument, NULL, OPT_REPETITIONS },
	{ "drivers", required_argument, NULL, OPT_DRIVERS },
	{ "nic", required_argument, NULL, OPT_NIC },
	{ "idle", required_argument, NULL, OPT_IDLE },
	{ "cpu", required_argument, NULL, OPT_CPU },
	{ "nicd", required_argument, NULL, OPT_NICD },
	{ "ranks", required_argument, NULL, OPT_RANKS },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "resume", no_argument, NULL, OPTION_RESUME },
	{ "host-keys", required_argument, NULL, OPT_KEYS },
	{ "verbs", required_argument, NULL, OPT_KEYS }, /* its old name, for one version */
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ 0 },
};

void bench_usage_common(FILE *to)
{
	fputs("  -x, --warmup N      barriers of a run before those that it measures\n"
	      "  --drivers 1|nodes   one process drives all nodes, or a process a node\n"
	      "  --check             check that no node leaves a barrier before all entered it\n"
	      "  --ranks ORDER       of ranks over nodes: random or sorted (random)\n"
	      "  --seed N            of all that is random (1)\n"
	      "  --json FILE, --csv FILE  results; - is stdout, and then there is no table\n"
	      "  --resume            go on with an interrupted run, from FILE.journal\n"
	      "  --raw FILE          every barrier of every node, as CSV\n"
	      "The daemon that is started for the runs:\n"
	      "  --wire WIRE[,KEYS]  see nbar-nicd --list-wires (" NBAR_WIRE_DEFAULT ")\n"
	      "  --idle POLICY       spin, yield or sleep (spin; yield if there is one core)\n"
	      "  --cpu N             its core (the first allowed); hosts get the others\n"
	      "  --nicd PATH         the program (nbar-nicd beside this one, or in $PATH)\n"
	      "  --nic NIC           no daemon: use this running NIC, by name or socket;\n"
	      "                      several times: spread the nodes over these NICs\n"
	      "Exit status: 0 done, 1 failed or interrupted, 2 wrong usage.\n",
	      to);
}

void bench_usage(FILE *to)
{
	fputs("usage: nbar bench [OPTION]...\n"
	      "Latency of barriers that NICs run, and of the same barriers run by the hosts.\n"
	      "  --nodes LIST        node counts, and ranges such as 2-32 (2,4,8,16)\n"
	      "  --where LIST        nic, host, host-WIRE: in-process NICs (nic,host)\n"
	      "  --host-keys KEYS    keys of the NICs of host-WIRE, such as mode=write\n"
	      "  --alg LIST          algorithms (" ALGS_BENCH "), of:\n",
	      to);
	algs_names(to, "                      ");
	fputs("                      or tuned:FILE, composed from a profile: nbar tune --help\n"
	      "  --hosts LIST        names of the nodes in that profile (n0,n1,...)\n",
	      to);
	fputs("  -i, --iterations N  barriers that a run measures (10000)\n"
	      "  --launches N        runs of each configuration; medians are shown (1)\n"
	      "  -f, --full          more columns\n",
	      to);
	bench_usage_common(to);
	fputs("Columns, in microseconds; a member is a node:\n", to);
	metric_usage(to, METRIC_BENCH | METRIC_BENCH_FULL);
}

/* "8", or "2-32". */
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
				  "them",
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
			return tool_usage("--where: '%s' stands there twice", item);
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

static int add_alg(void *arg, const char *item)
{
	struct bench_options *opt = arg;
	struct nbfw_alg alg;

	if (!strcmp(item, "all"))
		return algs_all(add_alg, opt);
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

/* The daemon knows the wires and the meaning of the keys. */
static int read_wire(struct bench_options *opt, const char *arg)
{
	if (!*arg || strlen(arg) >= sizeof(opt->wire))
		return tool_usage("--wire: '%s': a name and keys of up to %zu characters; see "
				  "nbar-nicd --list-wires",
				  arg, sizeof(opt->wire) - 1);
	strcpy(opt->wire, arg);
	return 0;
}

/* Options of the daemon that bench starts. */
static int read_daemon_option(struct bench_options *opt, int c, const char *arg)
{
	static const char *const idles[] = { "spin", "yield", "sleep" };
	uint32_t cpu = 0, which;
	int r;

	switch (c) {
	case OPT_WIRE:
		return read_wire(opt, arg);
	case OPT_IDLE:
		opt->idle = arg;
		return option_word("--idle", arg, idles, 3, &which);
	case OPT_CPU:
		r = option_u32("--cpu", arg, 0, 1023, &cpu);
		if (!r)
			opt->cpu = (int)cpu;
		return r;
	case OPT_NICD:
		opt->nicd = arg;
		return 0;
	}
	return option_common(c, arg, &opt->seed, &opt->out);
}

static int read_option(struct bench_options *opt, int c, const char *arg)
{
	static const char *const drivers[] = { "nodes", "1" }, *const ranks[] = { "random",
										  "sorted" };
	uint32_t which = 0;
	int r;

	switch (c) {
	case 'i':
		return option_u32("-i", arg, 1, BENCH_ITERS_MAX, &opt->iters);
	case 'x':
		return option_u32("-x", arg, 0, BENCH_ITERS_MAX, &opt->warmup);
	case 'f':
		opt->full = true;
		return 0;
	case OPT_NODES:
		opt->nnodes = 0;
		return tool_list(arg, add_nodes, opt);
	case OPT_WHERE:
		opt->nwhere = 0;
		return tool_list(arg, add_where, opt);
	case OPT_ALG:
		opt->nalg = 0;
		opt->tuned[0] = 0;
		return tool_list(arg, add_alg, opt);
	case OPT_REPETITIONS:
		return option_u32("--launches", arg, 1, BENCH_REPETITIONS_MAX, &opt->repetitions);
	case OPT_DRIVERS:
		r = option_word("--drivers", arg, drivers, 2, &which);
		opt->drivers = which ? BENCH_DRIVERS_ONE : BENCH_DRIVERS_NODES;
		return r;
	case OPT_NIC:
		return add_nic(opt, arg);
	case OPT_RANKS:
		r = option_word("--ranks", arg, ranks, 2, &which);
		opt->sorted = which;
		return r;
	case OPT_CHECK:
		opt->check = true;
		return 0;
	case OPT_HOSTS:
		opt->hosts = arg;
		return 0;
	case OPT_KEYS:
		opt->keys = arg;
		if (strlen(arg) > BENCH_KEYS_MAX)
			return tool_usage("--host-keys: at most %u characters", BENCH_KEYS_MAX);
		return 0;
	}
	return read_daemon_option(opt, c, arg);
}

struct reading {
	struct bench_options *opt;
	const struct bench_extra_options *more;
	bool daemon; /* options of one are among them */
};

static bool wants_in_process(const struct bench_options *opt)
{
	for (uint32_t i = 0; i < opt->nwhere; i++)
		if (bench_in_process(opt->where[i]))
			return true;
	return false;
}

/* Checks that need all options together. */
static int check_together(const struct bench_options *opt, const struct reading *given)
{
	uint32_t room = (opt->nnic ? opt->nnic : NBAR_NICS_MAX) * NBAR_PORTS_MAX;

	if (opt->keys && !wants_in_process(opt))
		return tool_usage("--host-keys: keys of the NICs of nbar bench --where host-WIRE, "
				  "which is not asked for; keys of a daemon's NICs are given by "
				  "--wire WIRE,KEYS");
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

bool bench_wants(const struct bench_options *opt, enum bench_where where)
{
	for (uint32_t i = 0; i < opt->nwhere; i++)
		if (opt->where[i] == where)
			return true;
	return false;
}

/* The options of all, and then those of one experiment. */
static void merge_options(struct option *all, size_t room, const struct bench_extra_options *more)
{
	size_t n = sizeof(long_options) / sizeof(long_options[0]) - 1;

	memcpy(all, long_options, n * sizeof(*all));
	for (size_t i = 0; more && more->option[i].name && n + 1 < room; i++)
		all[n++] = more->option[i];
	all[n] = (struct option){ 0 };
}

static int read_any(void *arg, int c, const char *value)
{
	struct reading *r = arg;

	r->daemon |= c == OPT_WIRE || c == OPT_IDLE || c == OPT_CPU || c == OPT_NICD;
	return c >= BENCH_OPT_MORE ? r->more->read(r->more->arg, c, value)
				   : read_option(r->opt, c, value);
}

int bench_options_parse(int argc, char **argv, struct bench_options *opt,
			const struct bench_extra_options *more, bool *help)
{
	struct reading reading = { .opt = opt, .more = more };
	struct option all[64];
	int r;

	merge_options(all, sizeof(all) / sizeof(all[0]), more);
	r = option_all(argc, argv, 1, ":i:x:fh", all, read_any, &reading, help);
	return r || *help ? r : check_together(opt, &reading);
}
