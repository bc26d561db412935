/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - model checking of the engine: tries all interleavings of hosts, timers and a bad
 * network in a small group. group.h has the world; PROTOCOL.md, "Model checking", the properties.
 *
 * Speaks TAP: each configuration is a test. A bad run is printed as a message sequence chart.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "group.h"
#include "states.h"

#define STATES_MAX UINT64_C(200000000)

/* A configuration for all sizes from `from` to cfg.size. If cfg.alg is NULL: for every algorithm
 * of the table, with its usual parameters. */
struct named {
	const char *name;
	bool full; /* only with --full */
	uint8_t from;
	struct group_config cfg;
};

/* clang-format off */
static const struct named configs[] = {
	{ "any", false, 2, { .size = 3, .goal = 3, .net = GROUP_ANY, .leaves = 2 } },
	{ "any-later", false, 2, { .size = 3, .goal = 1, .net = GROUP_ANY, .laters = true, .windows = 1,
				   .leaves = 1, .patience = true } },
	{ "any-silent", false, 2, { .size = 3, .goal = 2, .net = GROUP_ANY, .crashes = 1, .windows = 2 } },
	{ "any-silent-later", false, 2, { .alg = "dissemination", .size = 2, .goal = 3, .net = GROUP_ANY,
					  .laters = true, .crashes = 1, .windows = 3, .leaves = 1 } },
	{ "any-chain", false, 4, { .alg = "tree:1", .size = 4, .goal = 1, .net = GROUP_ANY, .patience = true } },
	{ "any-four", false, 4, { .size = 4, .goal = 3, .net = GROUP_ANY } },
	{ "counted", false, 2, { .size = 3, .goal = 2, .repeats = 1, .timeouts = 1 } },
	{ "counted-two", false, 2, { .alg = "dissemination", .size = 2, .goal = 3, .repeats = 1,
				     .timeouts = 2, .leaves = 2 } },
	{ "any-leavers", true, 3, { .size = 4, .goal = 3, .net = GROUP_ANY, .leaves = 3, .slots = 8 } },
	{ "any-dense", true, 4, { .alg = "dissemination:3", .size = 4, .goal = 2, .net = GROUP_ANY, .leaves = 1 } },
	{ "any-five", true, 5, { .size = 5, .goal = 3, .net = GROUP_ANY, .slots = 15 } },
	{ "any-five-leave", true, 5, { .size = 5, .goal = 2, .net = GROUP_ANY, .leaves = 1, .slots = 15 } },
	{ "any-five-silent", true, 5, { .size = 5, .goal = 1, .net = GROUP_ANY, .crashes = 1, .windows = 1, .slots = 15 } },
	{ "any-four-later", true, 4, { .alg = "mcs", .size = 4, .goal = 1, .net = GROUP_ANY, .laters = true,
				       .patience = true, .slots = 8 } },
	{ "any-three-later", true, 3, { .alg = "dissemination", .size = 3, .goal = 2, .net = GROUP_ANY, .laters = true,
					.windows = 1, .crashes = 1, .slots = 6 } },
	{ "counted-three", true, 3, { .alg = "mcs", .size = 3, .goal = 3, .repeats = 1, .timeouts = 1, .leaves = 1, .slots = 6 } },
	{ "counted-four", true, 4, { .alg = "linear", .size = 4, .goal = 2, .repeats = 1, .timeouts = 1, .slots = 8 } },
};
/* clang-format on */

#define PLANS_MAX 64u

struct options {
	bool full, first, any;
	char **name; /* names of configurations, then NULL */
	uint64_t states;
	struct group_config cfg;
};

static const char usage[] =
	"mc-group [--full] [--first] [NAME...]  explores the configurations of its table, "
	"or those named;\n"
	"  --full: the large ones, too; --first: ends at the first bad run\n"
	"mc-group --alg A --size N ...  explores one of your own:\n"
	"  --goal N      barriers that each host wants (1)\n"
	"  --any         frames may be lost, repeated and late without limit, timers fire any time\n"
	"  --laters      with --any: LATER is delivered, too\n"
	"  --repeats N   frames that are taken twice (without --any)\n"
	"  --timeouts N  timers that fire (without --any)\n"
	"  --leaves N    hosts that close or die       --crashes N  NICs that fall silent\n"
	"  --windows N   windows that end with a silent source\n"
	"  --patience    from each state, hosts may be late for over two windows\n"
	"  --states N    the most states\n";

#define OPTION(field) offsetof(struct options, field)

/* Options with a number, and options without a number. */
static const struct {
	const char *name;
	size_t at;
} numbers[] = {
	{ "--size", OPTION(cfg.size) },         { "--goal", OPTION(cfg.goal) },
	{ "--repeats", OPTION(cfg.repeats) },   { "--timeouts", OPTION(cfg.timeouts) },
	{ "--leaves", OPTION(cfg.leaves) },     { "--crashes", OPTION(cfg.crashes) },
	{ "--windows", OPTION(cfg.windows) },
}, flags[] = {
	{ "--full", OPTION(full) },
	{ "--first", OPTION(first) },
	{ "--any", OPTION(any) },
	{ "--laters", OPTION(cfg.laters) },
	{ "--patience", OPTION(cfg.patience) },
};

/* Reads one option with its value. Returns how many arguments it has read, or 0. */
static int parse_one(char **argv, struct options *o)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(argv[0], flags[i].name) == 0) {
			*(bool *)((char *)o + flags[i].at) = true;
			return 1;
		}
	if (!argv[1])
		return 0;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(argv[0], numbers[i].name) == 0) {
			*((uint8_t *)o + numbers[i].at) = (uint8_t)strtoul(argv[1], NULL, 10);
			return 2;
		}
	if (strcmp(argv[0], "--alg") == 0)
		o->cfg.alg = argv[1];
	else if (strcmp(argv[0], "--states") == 0)
		o->states = strtoull(argv[1], NULL, 10);
	else
		return 0;
	return 2;
}

static bool parse(char **argv, struct options *o)
{
	int n;

	*o = (struct options){ .states = STATES_MAX, .cfg = { .size = 2, .goal = 1 } };
	for (argv++; *argv && strncmp(*argv, "--", 2) == 0; argv += n)
		if ((n = parse_one(argv, o)) == 0)
			return false;
	o->name = argv;
	o->cfg.net = o->any ? GROUP_ANY : GROUP_COUNTED;
	return true;
}

/* Repeats the bad run and prints it. */
static void print_run(struct group *g, const struct mc_world *w, const struct mc_found *f)
{
	static struct chart chart;

	chart_begin(&chart, g->cfg.size);
	w->begin(g);
	g->chart = &chart;
	for (uint32_t i = 0; i < f->npath; i++) {
		w->events(g);
		w->apply(g, f->path[i]);
	}
	if (!g->why) { /* the broken property shows only under fair delivery */
		chart_event(&chart, 0, CHART_NOBODY, 0, false, "all frames in flight are lost");
		w->judge(g);
	}
	g->chart = NULL;
	chart_print(&chart, f->why, stdout);
}

/* True if these plans have at most cfg->slots slots, and are new in this line of the table:
 * algorithms may agree at small sizes. */
static bool is_new(const struct group_config *cfg, const char *name, uint64_t *seen,
		   uint32_t *nseen)
{
	static struct group g;

	if (!group_begin(&g, cfg) || *nseen == PLANS_MAX)
		return true;
	if (cfg->slots > 0 && g.nslot > cfg->slots) {
		printf("# %s: left out, its plans have more than %u slots\n", name, cfg->slots);
		return false;
	}
	seen[*nseen] = mc_fingerprint(g.block, sizeof(g.block));
	for (uint32_t i = 0; i < *nseen; i++)
		if (seen[i] == seen[*nseen])
			return false;
	++*nseen;
	return true;
}

static bool explore(const char *name, const struct options *o, const struct group_config *cfg,
		    uint32_t number)
{
	static struct group g;
	static struct mc_found f;
	struct mc_world w;
	clock_t begin = clock();

	if (!group_begin(&g, cfg)) {
		printf("not ok %u - %s: no such algorithm, or more than %u members\n", number, name,
		       GROUP_SIZE_MAX);
		return false;
	}
	group_world(&g, &w);
	mc_search(&w, o->states, &f);
	const char *verdict =
		f.why    ? f.why
		: f.full ? "there are more states than permitted, or than memory holds; "
			   "try a smaller configuration"
			 : "all properties hold";

	if (f.why)
		print_run(&g, &w, &f);
	printf("%s %u - %s: %s (%llu states, %llu events, depth %u, %u frames in flight, %.1f s)\n",
	       f.why || f.full ? "not ok" : "ok", number, name, verdict,
	       (unsigned long long)f.states, (unsigned long long)f.events, f.depth, g.frames_most,
	       (double)(clock() - begin) / CLOCKS_PER_SEC);
	fflush(stdout);
	return !f.why && !f.full;
}

static bool is_wanted(const struct named *c, const struct options *o)
{
	for (char **name = o->name; *name; name++)
		if (strcmp(*name, c->name) == 0)
			return true;
	return !*o->name && (o->full || !c->full);
}

/* Explores a line of the table. Returns how many of its tests fail. */
static uint32_t explore_sizes(const struct named *c, const struct options *o,
			      struct group_config cfg, uint64_t *seen, uint32_t *nseen, uint32_t *n)
{
	char name[96];
	uint32_t bad = 0;

	for (cfg.size = c->from; cfg.size <= c->cfg.size && !(bad && o->first); cfg.size++) {
		snprintf(name, sizeof(name), "%s, %s, %u members", c->name, cfg.alg, cfg.size);
		if (is_new(&cfg, name, seen, nseen))
			bad += !explore(name, o, &cfg, ++*n);
	}
	return bad;
}

static uint32_t explore_named(const struct named *c, const struct options *o, uint32_t *n)
{
	struct group_config cfg = c->cfg;
	uint64_t seen[PLANS_MAX];
	uint32_t bad = 0, nseen = 0;

	if (cfg.alg)
		return explore_sizes(c, o, cfg, seen, &nseen, n);
	for (uint32_t kind = NBFW_ALG_FIRST; kind < NBFW_ALG_END && !(bad && o->first); kind++) {
		struct nbfw_alg alg = { .kind = (enum nbfw_alg_kind)kind };
		const struct nbfw_alg_row *row = nbfw_alg_row(alg.kind);
		char text[NBAR_NAME_MAX];

		for (alg.n = row->usual; alg.n <= row->usual_end && !(bad && o->first); alg.n++) {
			nbfw_alg_name(alg, text);
			cfg.alg = text;
			bad += explore_sizes(c, o, cfg, seen, &nseen, n);
		}
	}
	return bad;
}

int main(int argc, char **argv)
{
	struct options o;
	uint32_t n = 0, bad = 0;

	if (!parse(argv, &o)) {
		fputs(usage, stderr);
		return 2;
	}
	if (o.cfg.alg)
		bad += !explore(o.cfg.alg, &o, &o.cfg, ++n);
	for (size_t i = 0; !o.cfg.alg && i < sizeof(configs) / sizeof(configs[0]); i++)
		if (is_wanted(&configs[i], &o))
			bad += explore_named(&configs[i], &o, &n);
	if (n == 0) {
		fprintf(stderr,
			"mc-group: no configuration has this name; group.c has the table\n");
		return 2;
	}
	printf("1..%u\n", n);
	return bad > 0;
}
