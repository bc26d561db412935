/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate_opt.c - the options of `nbar-lab simulate`. Refuses every error that the command line
 * alone shows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "algs.h"
#include "option.h"
#include "simulate.h"
#include "tool.h"

void simulate_usage(FILE *to)
{
	fputs("usage: nbar-lab simulate [OPTION]...\n"
	      "Simulates barriers of up to 1048576 members with the engine of the NICs over a\n"
	      "network. The same seed gives the same run.\n"
	      "  --members LIST    sizes of the group (16,256,4096)\n"
	      "  --alg LIST        algorithms, see below (" ALGS_BENCH "); tuned: composed\n"
	      "                    for --profile or --net\n"
	      "  -i, --iterations N  barriers, one after the other (1)\n"
	      "The network:\n"
	      "  --net NET         flat, fat-tree or dragonfly, large enough for all (flat)\n"
	      "  --loggp L=NS,o=NS,g=NS,G=NS  latency, overhead of a message at either end, gap\n"
	      "                    between messages, time of a byte (L=1000,o=200,g=50,G=0.08)\n"
	      "  --profile FILE    instead of --net: costs that nbar-lab profile measured\n"
	      "  --hop NS          fat-tree, dragonfly: latency of a link and its switch (150)\n"
	      "  --rate GBPS       fat-tree, dragonfly: rate of a link (100)\n"
	      "  --frame BYTES     size of a token on the wire (86: Ethernet)\n"
	      "  --cores N         cores that all members share (each has its own core)\n"
	      "  --post US, --notice US  delays from host to NIC, and from NIC to host (0)\n"
	      "Faults:\n"
	      "  --arrive US       greatest random delay of a host before a barrier (0)\n"
	      "  --late RANK:US, --dead RANK  a host that is late once; a NIC that never sends\n"
	      "  --noise US:US     period and length: a core stops once in each period\n"
	      "  --loss %, --repeat %, --reorder %:US  messages lost, doubled, delayed (0)\n"
	      "  --queue N         messages that wait at a member; more are lost (no limit)\n"
	      "  --pull US, --budget MS  times of the NICs: see nbar-nicd(8) (1000, 8000)\n"
	      "  --check           check the engine's invariants after each event\n"
	      "  --seed N          seed of all random choices (1)\n"
	      "Results:\n"
	      "  --json FILE, --csv FILE  results; - is stdout, and then there is no table\n"
	      "  --write-goal FILE  one barrier of one run in GOAL, the language of LogGOPSim\n"
	      "Exit status: 0 done, 1 a barrier failed or was wrong, 2 wrong usage.\n",
	      to);
	fputs("Algorithms:\n", to);
	algs_names(to, "  ");
}

/* Reads a decimal number; the character after it must be one of `stop`. */
static const char *read_real(const char *text, double min, double max, const char *stop,
			     double *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	*out = strtod(text, &end);
	if (!isfinite(*out) || *out < min || *out > max || (*end && !strchr(stop, *end)))
		return NULL;
	return end;
}

static int real(const char *option, const char *text, double min, double max, double *out)
{
	const char *end = read_real(text, min, max, "", out);

	return end ? 0
		   : tool_usage("%s: '%s' is not a number from %g to %g", option, text, min, max);
}

/* Reads a time. unit: how many picoseconds the text "1" means. */
static int read_time(const char *option, const char *text, sim_time unit, sim_time *out)
{
	double value = 0;
	int r = real(option, text, 0, 1e9, &value);

	if (!r)
		*out = (sim_time)(value * (double)unit + 0.5);
	return r;
}

static int read_percent(const char *option, const char *text, uint32_t *out)
{
	double value = 0;
	int r = real(option, text, 0, 100, &value);

	if (!r)
		*out = (uint32_t)(value * SIM_MILLION / 100 + 0.5);
	return r;
}

static int add_members(void *arg, const char *item)
{
	struct simulate_options *opt = arg;
	uint64_t n;

	if (!tool_number(item, 1, NBAR_SIZE_MAX, &n))
		return tool_usage("--members: '%s' is not a number from 1 to %u", item,
				  NBAR_SIZE_MAX);
	if (opt->nmembers == SIMULATE_LIST_MAX)
		return tool_usage("--members: at most %u sizes", SIMULATE_LIST_MAX);
	opt->members[opt->nmembers++] = (uint32_t)n;
	return 0;
}

static int add_alg(void *arg, const char *item)
{
	struct simulate_options *opt = arg;
	struct nbfw_alg alg;

	if (!strcmp(item, "all"))
		return algs_all(add_alg, opt);
	if (strcmp(item, SIMULATE_TUNED) && !algs_read(item, &alg))
		return algs_refuse("--alg", item);
	if (opt->nalg == SIMULATE_LIST_MAX)
		return tool_usage("--alg: at most %u algorithms", SIMULATE_LIST_MAX);
	strcpy(opt->alg[opt->nalg++], item);
	return 0;
}

/* Reads one LogGP parameter, such as "L=1000". */
static int add_loggp(void *arg, const char *item)
{
	struct sim_net_options *net = arg;
	double ns;

	if (!*item || item[1] != '=' || !read_real(item + 2, 0, 1e9, "", &ns))
		return tool_usage("--loggp: '%s' is none of L=NS, o=NS, g=NS, G=NS", item);
	sim_time t = (sim_time)(ns * (double)SIM_NS + 0.5);

	switch (*item) {
	case 'L':
		net->latency = t;
		return 0;
	case 'o':
		net->overhead = t;
		return 0;
	case 'g':
		net->gap = t;
		return 0;
	case 'G':
		net->byte = t;
		return 0;
	}
	return tool_usage("--loggp: '%c' is none of L, o, g, G", *item);
}

/* Reads "A:B", each a time in microseconds. */
static int read_two(const char *option, const char *text, sim_time *a, sim_time *b)
{
	double first, second;
	const char *rest = read_real(text, 0, 1e9, ":", &first);

	if (!rest || *rest != ':' || !read_real(rest + 1, 0, 1e9, "", &second))
		return tool_usage("%s: '%s' is not US:US", option, text);
	*a = (sim_time)(first * (double)SIM_US + 0.5);
	*b = (sim_time)(second * (double)SIM_US + 0.5);
	return 0;
}

static int read_reorder(const char *text, struct sim_net_options *net)
{
	double percent, us;
	const char *rest = read_real(text, 0, 100, ":", &percent);

	if (!rest || *rest != ':' || !read_real(rest + 1, 0, 1e9, "", &us))
		return tool_usage("--reorder: '%s' is not %%:US", text);
	net->reorder = (uint32_t)(percent * SIM_MILLION / 100 + 0.5);
	net->reorder_by = (sim_time)(us * (double)SIM_US + 0.5);
	return 0;
}

static int add_special(struct sim_setup *s, const char *text, bool dead)
{
	struct sim_special *at = &s->special[s->nspecial];
	double rank, us = 0;
	const char *rest = read_real(text, 0, NBAR_SIZE_MAX - 1, dead ? "" : ":", &rank);

	if (!rest || (!dead && (*rest != ':' || !read_real(rest + 1, 0, 1e9, "", &us))))
		return tool_usage("%s: '%s' is not %s", dead ? "--dead" : "--late", text,
				  dead ? "a rank" : "RANK:US");
	if (s->nspecial++ == SIM_SPECIAL_MAX) {
		s->nspecial--;
		return tool_usage("--late, --dead: at most %u members", SIM_SPECIAL_MAX);
	}
	*at = (struct sim_special){ (uint32_t)rank, (sim_time)(us * (double)SIM_US), dead };
	return 0;
}

static int read_net(struct sim_net_options *net, const char *text)
{
	static const char *const name[] = { "flat", "fat-tree", "dragonfly" };
	uint32_t which = 0;
	int r = option_word("--net", text, name, 3, &which);

	net->topology = (enum sim_topology)which;
	return r;
}

static int read_rate(struct sim_net_options *net, const char *text)
{
	double gbps;
	int r = real("--rate", text, 0.001, 1e6, &gbps);

	if (!r)
		net->link_byte = (sim_time)(8 * (double)SIM_NS / gbps + 0.5);
	return r;
}

static int read_ns(const char *option, const char *text, double unit, uint64_t *out)
{
	double value = 0;
	int r = real(option, text, 1, 1e9, &value);

	if (!r)
		*out = (uint64_t)(value * unit);
	return r;
}

/* clang-format off */
#define OPTIONS(VALUE, FLAG)                                                                    \
	VALUE(MEMBERS, "members", (opt->nmembers = 0, tool_list(value, add_members, opt)))      \
	VALUE(ALG, "alg", (opt->nalg = 0, tool_list(value, add_alg, opt)))                      \
	VALUE(NET, "net", read_net(net, value))                                                 \
	VALUE(PROFILE, "profile", option_text(&opt->profile, value))                            \
	VALUE(LOGGP, "loggp", tool_list(value, add_loggp, net))                                 \
	VALUE(HOP, "hop", read_time("--hop", value, SIM_NS, &net->hop))                         \
	VALUE(RATE, "rate", read_rate(net, value))                                              \
	VALUE(FRAME, "frame", option_u32("--frame", value, 1, 65536, &net->bytes))              \
	VALUE(CORES, "cores", option_u32("--cores", value, 1, NBAR_SIZE_MAX, &net->cores))      \
	VALUE(POST, "post", read_time("--post", value, SIM_US, &s->post))                       \
	VALUE(NOTICE, "notice", read_time("--notice", value, SIM_US, &s->notice))               \
	VALUE(ARRIVE, "arrive", read_time("--arrive", value, SIM_US, &s->arrive))               \
	VALUE(LATE, "late", add_special(s, value, false))                                       \
	VALUE(DEAD, "dead", add_special(s, value, true))                                        \
	VALUE(NOISE, "noise", read_two("--noise", value, &net->noise_period, &net->noise))      \
	VALUE(LOSS, "loss", read_percent("--loss", value, &net->loss))                          \
	VALUE(REPEAT, "repeat", read_percent("--repeat", value, &net->repeat))                  \
	VALUE(REORDER, "reorder", read_reorder(value, net))                                     \
	VALUE(QUEUE, "queue", option_u32("--queue", value, 1, 1000000, &s->queue))              \
	VALUE(PULL, "pull", read_ns("--pull", value, 1e3, &s->pull_ns))                         \
	VALUE(BUDGET, "budget", read_ns("--budget", value, 1e6, &s->budget_ns))                 \
	FLAG(CHECK, "check", option_flag(&s->check))                                            \
	VALUE(WRITE_GOAL, "write-goal", option_text(&opt->write_goal, value))
/* clang-format on */

enum { OPT_BEFORE = OPTION_SUBCOMMAND - 1, OPTIONS(OPTION_ID, OPTION_ID) };

static const struct option long_options[] = { OPTION_OF_ALL,
					      OPTIONS(OPTION_VALUE, OPTION_FLAG){ 0 } };

static int simulate_read_option(void *arg, int c, const char *value)
{
	struct simulate_options *opt = arg;
	struct sim_setup *s = &opt->setup;
	struct sim_net_options *net = &s->net;

	switch (c) {
		OPTIONS(OPTION_CASE, OPTION_CASE)
	case 'i':
		return option_u32("-i", value, 1, SIMULATE_BARRIERS_MAX, &s->barriers);
	case OPTION_RAW:
		return tool_usage("--raw: a simulation has none");
	case 'x':
		return tool_usage("-x: a simulation needs no warm-up");
	}
	return option_common(c, value, &net->seed, &opt->files);
}

static int check_together(const struct simulate_options *opt)
{
	const struct sim_setup *s = &opt->setup;
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < opt->nmembers; i++)
		least = opt->members[i] < least ? opt->members[i] : least;
	for (uint32_t i = 0; i < opt->nalg; i++)
		if (!strcmp(opt->alg[i], SIMULATE_TUNED) && !opt->profile &&
		    opt->setup.net.topology == SIM_FLAT)
			return tool_usage(
				"--alg tuned needs --profile, or a --net other than flat");
	if (opt->profile && s->net.topology != SIM_FLAT)
		return tool_usage("--profile has its own network: no --net");
	for (uint32_t i = 0; i < s->nspecial; i++)
		if (s->special[i].member >= least)
			return tool_usage("--late, --dead: a group of %u has no rank %u", least,
					  s->special[i].member);
	if (opt->write_goal && opt->nmembers * opt->nalg != 1)
		return tool_usage("--write-goal needs one size and one algorithm");
	if (s->budget_ns / 64 < s->pull_ns)
		return tool_usage("--budget must be at least 64 times --pull");
	if (s->net.noise_period && s->net.noise >= s->net.noise_period)
		return tool_usage("--noise: the stop must be shorter than the period");
	return option_files_check(&opt->files);
}

int simulate_options_parse(int argc, char **argv, struct simulate_options *opt, bool *help)
{
	*opt = (struct simulate_options){
		.members = { 16, 256, 4096 },
		.nmembers = 3,
		.alg = { ALGS_BENCH },
		.nalg = 1,
		.setup = {
			.net = {
				.latency = 1000 * SIM_NS,
				.overhead = 200 * SIM_NS,
				.gap = 50 * SIM_NS,
				.byte = 80,
				.bytes = 86,
				.hop = 150 * SIM_NS,
				.link_byte = 80,
				.seed = 1,
			},
			.barriers = 1,
			.pull_ns = 1000000,
			.budget_ns = 8000000000,
			.limit = 3600 * SIM_SECOND,
		},
	};
	int r = option_all(argc, argv, 1, ":i:x:h", long_options, simulate_read_option, opt, help);

	return r || *help ? r : check_together(opt);
}
