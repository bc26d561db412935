/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair.c - the barriers of a bystander, while other clients of the same NICs attack.
 *
 * `fair` is a test: under each attack the bystander completes its barriers, none of its members
 * fails, and its frames overtake the queue of the attack. It asserts counts and order, never a
 * time. `fair --bench` measures the bystander alone and under attack, in turns. Arguments are names
 * of attacks or cases; without arguments, all run. Needs no privileges. The daemon is that of
 * $BUILD; $FAIR_PRELOAD, if set, is a library to preload into it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fair.h"

#define BARRIERS 100u
#define TRIES 20u
#define BUDGET_MS "1000"
/* Limit of the attack's frames during the bystander's best barrier. A NIC sends this number in a
 * few poll passes; the queue of the attack is far longer. */
#define FRAMES_A_BARRIER 8192u

#define ROUNDS 3u
#define WARMUP 1000u
#define BENCH_BUDGET_MS "500"
#define PHASE_NS UINT64_C(150000000)
#define SAMPLES_MAX 40000u

static struct fair world;

bool fair_barriers(struct fair *f, uint32_t n, void (*pass)(struct fair *f))
{
	for (uint32_t i = 0; i < n; i++)
		if (fair_barrier(f, pass) == 0)
			return false;
	return true;
}

/* --- the test -------------------------------------------------------------------------------- */

static uint64_t progress(struct fair *f, const struct fair_attack *a)
{
	return a->sign == NBAR_COUNTER_END ? f->replies : fair_counter(f, a->sign);
}

/* Runs BARRIERS barriers, and more until the attack is under way. Counts the frames of the attack
 * during each barrier, and sets *least to the smallest count. If *least is above the limit, runs up
 * to TRIES times as many barriers: on a busy machine, the bystander's process may wait for a
 * processor in each of the first BARRIERS. */
static bool barriers_under(struct fair *f, const struct fair_attack *a, uint64_t *least)
{
	uint64_t start = progress(f, a), end = fair_now() + f->patience_ns;
	uint32_t tries = 0;

	*least = UINT64_MAX;
	do {
		for (uint32_t i = 0; i < BARRIERS; i++) {
			uint64_t before = fair_sent(f), frames;

			if (fair_barrier(f, a->pass) == 0)
				return false;
			frames = fair_sent(f) - before;
			*least = frames < *least ? frames : *least;
		}
	} while ((progress(f, a) - start < a->least ||
		  (*least > FRAMES_A_BARRIER && ++tries < TRIES)) &&
		 fair_now() < end);
	return progress(f, a) - start >= a->least;
}

static void test_attack(const struct fair_attack *a)
{
	struct fair *f = &world;
	uint64_t least;

	if (!ok(fair_begin(f, a->test_wire, BUDGET_MS, false) && fair_barriers(f, 50, NULL),
		"%s: a bystander", a->name)) {
		fair_end(f);
		return;
	}
	/* A NIC may refuse the last groups, because its memory is full. */
	bool begun = a->begin(f, a->test_n);

	if (!begun)
		printf("# %u groups, then: %s\n", f->npair, f->said);
	ok(begun || (f->npair > 0 && strstr(f->said, "memory")), "%s: %s", a->name, a->text);
	if (begun || f->npair > 0) {
		if (ok(barriers_under(f, a, &least), "%s: the bystander's barriers complete",
		       a->name) &&
		    !ok(least <= FRAMES_A_BARRIER, "%s: they overtake the queue of the attack",
			a->name))
			printf("# at least %llu frames of the attack in each barrier\n",
			       (unsigned long long)least);
	}
	for (uint32_t i = 0; i < f->nclient; i++)
		raw_close(&f->client[i]);
	ok(fair_barriers(f, 50, NULL), "%s: barriers complete after the attack", a->name);
	ok(fair_end(f), "%s: SIGTERM: exit status 0", a->name);
}

/* --- the benchmark --------------------------------------------------------------------------- */

/*
 * The bound: a bystander's barrier takes at most twice as long as alone, plus the time that the
 * host loses to other threads on its core. The daemon's polling thread has its own processor; the
 * bystander's host, the clients of the attack and the daemon's control thread share a second
 * processor. The clients work between two barriers, so their work is not timed. During a barrier,
 * another thread (mostly the control thread) may take the processor from our thread. The time of
 * other threads is the barrier's wall-clock time minus the processor time of our thread; `own` is
 * the barrier's time without it.
 *
 * After another thread has had the processor, our thread's caches are cold, which costs more time.
 * fair_neighbour.c measures this cost with a process that uses no NIC. The bound of attacks by
 * requests includes this cost, because the control thread does the work of requests.
 */
struct phase {
	uint32_t n;
	double us[SAMPLES_MAX];
	double own_us[SAMPLES_MAX];
};

static struct phase alone, under;
static double share_us; /* `own` median beside the neighbour, minus that alone */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void sort(struct phase *p)
{
	qsort(p->us, p->n, sizeof(p->us[0]), by_value);
	qsort(p->own_us, p->n, sizeof(p->own_us[0]), by_value);
}

static double mean(const struct phase *p, const double *us)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->n; i++)
		sum += us[i];
	return sum / p->n;
}

/* The samples must be sorted. */
static double quantile(const struct phase *p, const double *us, double q)
{
	return us[(uint32_t)(q * (p->n - 1))];
}

/* False: the bystander has failed, or hangs. */
static bool run_phase(struct fair *f, struct phase *p, void (*pass)(struct fair *f))
{
	uint64_t end = fair_now() + PHASE_NS;

	do {
		if (pass)
			pass(f);
		uint64_t ns = fair_barrier(f, NULL);

		if (ns == 0)
			return false;
		if (p->n == SAMPLES_MAX)
			continue;
		p->own_us[p->n] = (double)(ns - f->off_ns) / 1e3;
		p->us[p->n++] = (double)ns / 1e3;
	} while (fair_now() < end);
	return true;
}

static uint64_t frames_sent(struct fair *f)
{
	return fair_counter(f, NBAR_COUNTER_tokens_sent) +
	       fair_counter(f, NBAR_COUNTER_signals_sent) +
	       fair_counter(f, NBAR_COUNTER_pulls_sent) + fair_counter(f, NBAR_COUNTER_aborts_sent);
}

/* The result of an attack. */
struct outcome {
	bool begun, failed;
	double frames_s; /* frames per second of the NICs, without the bystander's */
};

static void run_rounds(struct fair *f, const struct fair_attack *a, struct outcome *o)
{
	double s = 0, frames = 0;

	for (uint32_t r = 0; r < ROUNDS && !o->failed; r++) {
		uint32_t before = under.n;

		o->failed = !run_phase(f, &alone, NULL);
		o->begun = a->begin(f, a->n) || f->npair > 0;
		if (!o->begun)
			return;
		uint64_t sent = frames_sent(f), start = fair_now();

		o->failed |= !run_phase(f, &under, a->pass);
		s += (double)(fair_now() - start) / 1e9;
		frames += (double)(frames_sent(f) - sent) - 2.0 * (under.n - before);
		if (a == &fair_neighbour)
			fair_neighbour_end();
		fair_quiet(f);
	}
	o->frames_s = s > 0 ? frames / s : 0;
}

/* True if the attack consists of requests. */
static bool is_by_requests(const struct fair_attack *a)
{
	return a->sign == NBAR_COUNTER_END && a->least > 0;
}

static double bound_us(const struct fair_attack *a)
{
	return 2 * quantile(&alone, alone.own_us, 0.5) + (is_by_requests(a) ? share_us : 0);
}

/* True if the median barrier, without the time of other threads, is within the bound. */
static bool is_within(const struct fair_attack *a, const struct outcome *o)
{
	return !o->failed && quantile(&under, under.own_us, 0.5) <= bound_us(a);
}

static void print_head(bool json)
{
	if (json)
		printf("[");
	else
		printf("%-14s %9s %8s %8s  %9s %9s %9s  %8s %8s %6s %6s %6s %9s\n", "attack",
		       "alone p50", "p99", "mean us", "under p50", "p99", "mean us", "own p50",
		       "bound", "p50 x", "mean x", "", "frames/s");
}

static void print_json(const struct fair_attack *a, const struct outcome *o, bool first)
{
	printf("%s\n{\"attack\": \"%s\", \"text\": \"%s\", \"begun\": %s, \"failed\": %s",
	       first ? "" : ",", a->name, a->text, o->begun ? "true" : "false",
	       o->failed ? "true" : "false");
	if (under.n > 0)
		printf(", \"alone_p50_us\": %.3f, \"alone_p99_us\": %.3f, \"alone_mean_us\": %.3f, "
		       "\"under_p50_us\": %.3f, \"under_p99_us\": %.3f, \"under_mean_us\": %.3f, "
		       "\"own_p50_us\": %.3f, \"bound_us\": %.3f, \"within\": %s, "
		       "\"frames_s\": %.0f",
		       quantile(&alone, alone.us, 0.5), quantile(&alone, alone.us, 0.99),
		       mean(&alone, alone.us), quantile(&under, under.us, 0.5),
		       quantile(&under, under.us, 0.99), mean(&under, under.us),
		       quantile(&under, under.own_us, 0.5), bound_us(a),
		       is_within(a, o) ? "true" : "false", o->frames_s);
	printf("}");
}

static void print_row(const struct fair_attack *a, const struct outcome *o)
{
	double own_alone, own;

	printf("%-14s ", a->name);
	if (under.n == 0) {
		printf("%s\n", o->begun ? "no barrier of the bystander completes" : world.said);
		return;
	}
	own_alone = quantile(&alone, alone.own_us, 0.5);
	own = quantile(&under, under.own_us, 0.5);
	printf("%9.2f %8.2f %8.2f  %9.2f %9.2f %9.2f  %8.2f %8.2f %6.2f %6.2f %6s %9.0f%s\n",
	       quantile(&alone, alone.us, 0.5), quantile(&alone, alone.us, 0.99),
	       mean(&alone, alone.us), quantile(&under, under.us, 0.5),
	       quantile(&under, under.us, 0.99), mean(&under, under.us), own, bound_us(a),
	       own / own_alone, mean(&under, under.own_us) / mean(&alone, alone.own_us),
	       is_within(a, o) ? "within" : "OVER", o->frames_s,
	       o->failed ? "  and then it fails or hangs" : "");
}

static void bench_attack(const struct fair_attack *a, bool json, bool first)
{
	struct fair *f = &world;
	struct outcome o = { .begun = false };

	memset(&alone, 0, sizeof(alone));
	memset(&under, 0, sizeof(under));
	o.failed = !fair_begin(f, a->wire, BENCH_BUDGET_MS, true);
	if (!o.failed && fair_barriers(f, WARMUP, NULL))
		run_rounds(f, a, &o);
	sort(&alone);
	sort(&under);
	if (json)
		print_json(a, &o, first);
	else
		print_row(a, &o);
	fflush(stdout);
	fair_end(f);
}

/* --- test and benchmark ---------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "late-linear", fair_case_late_linear }, { "late-pairs", fair_case_late_pairs },
	{ "killed", fair_case_killed },           { "stopped", fair_case_stopped },
	{ "memory", fair_case_memory },           { "reuse", fair_case_reuse },
};
#define NCASE (sizeof(cases) / sizeof(cases[0]))

static bool is_wanted(int argc, char **argv, const char *name)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 0;
}

static bool option(int *argc, char ***argv, const char *name)
{
	if (*argc == 0 || strcmp((*argv)[0], name) != 0)
		return false;
	(*argc)--;
	(*argv)++;
	return true;
}

/* True if the arguments select an attack by requests. */
static bool wants_share(int argc, char **argv)
{
	for (uint32_t i = 0; i < fair_nattack; i++)
		if (is_by_requests(&fair_attacks[i]) && is_wanted(argc, argv, fair_attacks[i].name))
			return true;
	return false;
}

static void bench(int argc, char **argv)
{
	bool json = option(&argc, &argv, "--json"), first = true;

	print_head(json);
	if (wants_share(argc, argv)) {
		bench_attack(&fair_neighbour, json, true);
		if (under.n > 0)
			share_us = quantile(&under, under.own_us, 0.5) -
				   quantile(&alone, alone.own_us, 0.5);
		first = false;
	}
	for (uint32_t i = 0; i < fair_nattack; i++) {
		if (!is_wanted(argc, argv, fair_attacks[i].name))
			continue;
		bench_attack(&fair_attacks[i], json, first);
		first = false;
	}
	printf(json ? "\n]\n"
		    : "own: without the time in which another thread had the processor of the "
		      "bystander's host;\nbound: twice the own p50 alone, and for attacks by requests what "
		      "the neighbour adds to it;\nx: own under / own alone\n");
}

int main(int argc, char **argv)
{
	argc--;
	argv++;
	if (option(&argc, &argv, "--bench")) {
		bench(argc, argv);
		return 0;
	}
	for (uint32_t i = 0; i < fair_nattack; i++)
		if (is_wanted(argc, argv, fair_attacks[i].name))
			test_attack(&fair_attacks[i]);
	for (uint32_t i = 0; i < NCASE; i++)
		if (is_wanted(argc, argv, cases[i].name))
			cases[i].run();
	return ok_end();
}
