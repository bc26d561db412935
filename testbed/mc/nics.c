/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nics.c - model checking of the NIC loop: groups that open, connect, close and linger, in every
 * order of events. nics.h has the world; PROTOCOL.md, "Model checking", the properties.
 *
 * Speaks TAP: each configuration is a test. A bad run is printed as a message sequence chart.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "nics.h"

#define STATES_MAX UINT64_C(4000000) /* a state in the queue has up to 5 KB */

/* clang-format off */
static const struct {
	const char *name;
	bool full; /* only with --full */
	struct nics_config cfg;
} configs[] = {
	{ "connect", false, { .alg = "dissemination", .size = 2, .goal = { 2 }, .timers = 2, .repeats = 1 } },
	{ "connect-three", false, { .alg = "pairwise", .size = 3, .goal = { 1 }, .timers = 1, .repeats = 1 } },
	{ "leave", false, { .alg = "dissemination", .size = 2, .goal = { 2 }, .timers = 1, .leaves = 2, .expires = 1 } },
	{ "reuse", false, { .alg = "dissemination", .size = 2, .goal = { 1, 1 }, .timers = 1, .repeats = 1, .expires = 1 } },
	{ "no-room", false, { .alg = "linear", .size = 3, .goal = { 1 }, .full = 1, .leaves = 1 } },
	{ "connect-more", true, { .alg = "mcs", .size = 2, .goal = { 2 }, .timers = 3, .repeats = 1 } },
	{ "three", true, { .alg = "dissemination", .size = 3, .goal = { 1 }, .timers = 2 } },
	{ "three-leave", true, { .alg = "linear", .size = 3, .goal = { 1 }, .timers = 1, .leaves = 2 } },
	{ "reuse-three", true, { .alg = "pairwise", .size = 3, .goal = { 1, 1 }, .repeats = 1, .expires = 1 } },
	{ "value", false, { .alg = "pairwise", .size = 2, .goal = { 3 }, .timers = 1, .repeats = 1, .values = true } },
	{ "value-pairs", false, { .alg = "pairwise", .size = 3, .goal = { 2 }, .timers = 1, .values = true } },
	{ "value-tree", false, { .alg = "mcs", .size = 3, .goal = { 2 }, .timers = 1, .repeats = 1, .values = true } },
	{ "value-reuse", true, { .alg = "linear", .size = 2, .goal = { 1, 1 }, .timers = 1, .repeats = 1, .expires = 1, .values = true } },
	{ "no-room-three", false, { .alg = "dissemination", .size = 3, .goal = { 2 }, .full = 2 } },
};
/* clang-format on */

static void print_run(struct nics *n, const struct mc_world *w, const struct mc_found *f)
{
	static struct chart chart;

	chart_begin(&chart, n->cfg.size);
	n->chart = &chart;
	w->begin(n);
	for (uint32_t i = 0; i < f->npath; i++) {
		w->events(n);
		w->apply(n, f->path[i]);
	}
	if (!n->why)
		w->judge(n);
	n->chart = NULL;
	chart_print(&chart, f->why, stdout);
}

static bool explore(const char *name, const struct nics_config *cfg, uint32_t number)
{
	static struct nics n;
	static struct mc_found f;
	struct mc_world w;
	clock_t begin = clock();

	if (!nics_begin(&n, cfg)) {
		printf("not ok %u - %s: no such algorithm, or too many members\n", number, name);
		return false;
	}
	nics_world(&n, &w);
	mc_search(&w, STATES_MAX, &f);
	const char *verdict =
		f.why    ? f.why
		: f.full ? "there are more states than permitted, or than memory holds; "
			   "try a smaller configuration"
			 : "all properties hold";

	if (f.why)
		print_run(&n, &w, &f);
	printf("%s %u - %s: %s (%llu states, %llu events, depth %u, %u frames in flight, %.1f s)\n",
	       f.why || f.full ? "not ok" : "ok", number, name, verdict,
	       (unsigned long long)f.states, (unsigned long long)f.events, f.depth, n.frames_most,
	       (double)(clock() - begin) / CLOCKS_PER_SEC);
	fflush(stdout);
	return !f.why && !f.full;
}

int main(int argc, char **argv)
{
	bool full = false, first = false;
	const char *only = NULL;
	uint32_t n = 0, bad = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--full") == 0)
			full = true;
		else if (strcmp(argv[i], "--first") == 0)
			first = true;
		else
			only = argv[i];
	}
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]) && !(bad && first); i++)
		if (only ? strcmp(only, configs[i].name) == 0 : full || !configs[i].full)
			bad += !explore(configs[i].name, &configs[i].cfg, ++n);
	if (n == 0) {
		fprintf(stderr, "mc-nics: no configuration has this name; nics.c has the table\n");
		return 2;
	}
	printf("1..%u\n", n);
	return bad > 0;
}
