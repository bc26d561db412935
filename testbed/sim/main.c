/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - sim-nics: simulates whole NICs with faults that a seed draws. If a seed fails, the
 * program prints the command that repeats it. A fault that never has an effect fails the test.
 *
 *   sim-nics [--seeds N] [--seed FIRST] [-v]
 *
 * The environment variables NBAR_SEEDS and NBAR_SEED set the defaults of --seeds and --seed.
 */
#include <getopt.h>
#include <inttypes.h>

#include "play.h"

#define SEEDS_USUAL 2000u
#define SEEDS_ALL_BITE 500u /* with so many seeds, each fault must have an effect */

static const struct option options[] = {
	{ "seeds", required_argument, NULL, 'n' },
	{ "seed", required_argument, NULL, 's' },
	{ "verbose", no_argument, NULL, 'v' },
	{ 0 },
};

static bool read_number(const char *text, uint64_t *out)
{
	char *end;

	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end;
}

/* Runs the seeds until one fails. True if no seed fails. */
static bool run(const char *self, uint64_t first, uint64_t n, bool verbose, struct tallies *t)
{
	for (uint64_t seed = first; seed < first + n; seed++) {
		struct scenario s;
		char why[256];

		if (verbose) {
			scenario_draw(&s, seed);
			scenario_print(&s, stdout);
			fflush(stdout);
		}
		uint64_t events = t->events;
		bool good = play(seed, t, why, sizeof(why));

		if (verbose)
			printf("# seed %" PRIu64 ": %" PRIu64 " events\n", seed,
			       t->events - events);
		if (good)
			continue;
		printf("# seed %" PRIu64 ": %s\n# again: %s --seed %" PRIu64 " --seeds 1 -v\n",
		       seed, why, self, seed);
		return false;
	}
	return true;
}

static bool print_bites(const struct tallies *t, uint64_t n)
{
	bool all = true;

	for (int f = 0; f < FAULT_END; f++) {
		printf("# %10" PRIu64 " %s\n", t->fault[f], fault_text((enum fault)f));
		all &= t->fault[f] > 0;
	}
	printf("# %10" PRIu64 " barriers of members completed\n", t->completed);
	printf("# %10" PRIu64 " of them with a result\n", t->results);
	printf("# %10" PRIu64 " of them by a fast path\n", t->fast);
	printf("# %10" PRIu64 " seeds without faults\n", t->quiet);
	printf("# %10" PRIu64 " events\n", t->events);
	return n < SEEDS_ALL_BITE || (all && t->quiet > 0 && t->results > 0 && t->fast > 0);
}

static uint64_t seeds_usual(void)
{
	const char *text = getenv("NBAR_SEEDS");
	uint64_t n;

	if (text && read_number(text, &n) && n > 0)
		return n;
	return unit_sanitized() ? SEEDS_ALL_BITE : SEEDS_USUAL;
}

int main(int argc, char **argv)
{
	uint64_t n = seeds_usual(), first = unit_seed();
	struct tallies t = { 0 };
	bool verbose = false, good, bite;

	for (int c; (c = getopt_long(argc, argv, "v", options, NULL)) != -1;) {
		verbose |= c == 'v';
		if (c == '?' || (c == 'n' && (!read_number(optarg, &n) || n == 0)) ||
		    (c == 's' && !read_number(optarg, &first))) {
			fputs("usage: sim-nics [--seeds N] [--seed FIRST] [-v]\n", stderr);
			return 2;
		}
	}
	puts("TAP version 13\n1..2");
	good = run(argv[0], first, n, verbose, &t);
	printf("%sok 1 - %" PRIu64 " seeds from %" PRIu64 " on\n", good ? "" : "not ", n, first);
	bite = !good || print_bites(&t, n);
	printf("%sok 2 - every fault has had an effect%s\n", bite ? "" : "not ",
	       n < SEEDS_ALL_BITE || !good ? " # SKIP not enough seeds were run" : "");
	return good && bite ? 0 : 1;
}
