/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair.c - a bystander's barriers while other clients of the same NICs do their worst.
 *
 * `fair` is a test: under each attack the bystander completes its barriers, nobody of it fails, and
 * they overtake what the attack has queued. It asserts counts and order, and no time. `fair
 * --bench` measures: the bystander alone and under attack, in turns. Both take names of attacks or
 * cases; without one they do all. Needs no privileges. The daemon is that of $BUILD; $FAIR_PRELOAD,
 * if set, is loaded into it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fair.h"

#define BARRIERS 100u
#define BUDGET_MS "1000"
/* Of an attack, while one barrier of the bystander is under way, in the best of BARRIERS: what the
 * NIC takes from each port in some passes, and not what it finds queued. */
#define FRAMES_A_BARRIER 8192u

#define ROUNDS 3u
#define WARMUP 1000u
#define BENCH_BUDGET_MS "500"
#define PHASE_NS UINT64_C(150000000)
#define SAMPLES_MAX 40000u

static unsigned ntest, nfailed;
static struct fair world;

bool fair_ok(bool pass, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("%sok %u - ", pass ? "" : "not ", ++ntest);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	fflush(stdout);
	nfailed += !pass;
	return pass;
}

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

/* BARRIERS, and more until the attack is under way; into *least the frames of the attack in the
 * barrier that saw the fewest. */
static bool barriers_under(struct fair *f, const struct fair_attack *a, uint64_t *least)
{
	uint64_t start = progress(f, a), end = fair_now() + f->patience_ns;

	*least = UINT64_MAX;
	do {
		for (uint32_t i = 0; i < BARRIERS; i++) {
			uint64_t before = fair_sent(f), frames;

			if (fair_barrier(f, a->pass) == 0)
				return false;
			frames = fair_sent(f) - before;
			*least = frames < *least ? frames : *least;
		}
	} while (progress(f, a) - start < a->least && fair_now() < end);
	return progress(f, a) - start >= a->least;
}

static void test_attack(const struct fair_attack *a)
{
	struct fair *f = &world;
	uint64_t least;

	if (!fair_ok(fair_begin(f, a->test_wire, BUDGET_MS, false) && fair_barriers(f, 50, NULL),
		     "%s: a bystander", a->name)) {
		fair_end(f);
		return;
	}
	/* A NIC may refuse the last ones for their memory. */
	bool begun = a->begin(f, a->test_n);

	if (!begun)
		printf("# %u groups, then: %s\n", f->npair, f->said);
	if (a->is_wrong)
		fair_ok(!begun && strstr(f->said, "plan"), "%s: refused: %s", a->name, a->text);
	else
		fair_ok(begun || (f->npair > 0 && strstr(f->said, "memory")), "%s: %s", a->name,
			a->text);
	if (begun || f->npair > 0) {
		if (fair_ok(barriers_under(f, a, &least), "%s: the bystander's barriers complete",
			    a->name) &&
		    !fair_ok(least <= FRAMES_A_BARRIER, "%s: they overtake what is queued",
			     a->name))
			printf("# at least %llu frames of the attack in each barrier\n",
			       (unsigned long long)least);
	}
	for (uint32_t i = 0; i < f->nclient; i++)
		raw_close(&f->client[i]);
	fair_ok(fair_barriers(f, 50, NULL), "%s: and when it is over", a->name);
	fair_ok(fair_end(f), "%s: SIGTERM: exit status 0", a->name);
}

/* --- the benchmark --------------------------------------------------------------------------- */

struct phase {
	uint32_t n;
	double passes_us; /* of the attack, in all */
	double us[SAMPLES_MAX];
};

static struct phase alone, under;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double mean(const struct phase *p)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->n; i++)
		sum += p->us[i];
	return sum / p->n;
}

/* Of samples that are sorted. */
static double quantile(const struct phase *p, double q)
{
	return p->us[(uint32_t)(q * (p->n - 1))];
}

/* False: the bystander has failed, or hangs. */
static bool run_phase(struct fair *f, struct phase *p, void (*pass)(struct fair *f))
{
	uint64_t end = fair_now() + PHASE_NS;

	f->passes_ns = 0;
	do {
		uint64_t ns = fair_barrier(f, pass);

		if (ns == 0)
			return false;
		if (p->n < SAMPLES_MAX)
			p->us[p->n++] = (double)ns / 1e3;
	} while (fair_now() < end);
	p->passes_us += (double)f->passes_ns / 1e3;
	return true;
}

static uint64_t frames_sent(struct fair *f)
{
	return fair_counter(f, NBAR_COUNTER_tokens_sent) +
	       fair_counter(f, NBAR_COUNTER_signals_sent) +
	       fair_counter(f, NBAR_COUNTER_pulls_sent) + fair_counter(f, NBAR_COUNTER_aborts_sent);
}

/* What became of an attack. */
struct outcome {
	bool begun, failed;
	double frames_s; /* that the NICs sent, but the bystander's */
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
		fair_quiet(f);
	}
	o->frames_s = s > 0 ? frames / s : 0;
}

static void print_head(bool json)
{
	if (json)
		printf("[");
	else
		printf("%-14s %8s %8s %8s   %9s %9s %9s  %7s %7s %9s %6s\n", "attack", "alone p50",
		       "p99", "mean us", "under p50", "p99", "mean us", "p50 x", "mean x",
		       "frames/s", "host %");
}

static void print_json(const struct fair_attack *a, const struct outcome *o, bool first)
{
	double total = mean(&under) * under.n;

	printf("%s\n{\"attack\": \"%s\", \"text\": \"%s\", \"begun\": %s, \"failed\": %s",
	       first ? "" : ",", a->name, a->text, o->begun ? "true" : "false",
	       o->failed ? "true" : "false");
	if (under.n > 0)
		printf(", \"alone_p50_us\": %.3f, \"alone_p99_us\": %.3f, \"alone_mean_us\": %.3f, "
		       "\"under_p50_us\": %.3f, \"under_p99_us\": %.3f, \"under_mean_us\": %.3f, "
		       "\"frames_s\": %.0f, \"host_share\": %.3f",
		       quantile(&alone, 0.5), quantile(&alone, 0.99), mean(&alone),
		       quantile(&under, 0.5), quantile(&under, 0.99), mean(&under), o->frames_s,
		       under.passes_us / total);
	printf("}");
}

static void print_row(const struct fair_attack *a, const struct outcome *o)
{
	printf("%-14s ", a->name);
	if (under.n == 0)
		printf("%s\n", o->begun ? "no barrier of the bystander completes" : world.said);
	else
		printf("%9.2f %8.2f %8.2f   %9.2f %9.2f %9.2f  %7.2f %7.2f %9.0f %6.1f%s\n",
		       quantile(&alone, 0.5), quantile(&alone, 0.99), mean(&alone),
		       quantile(&under, 0.5), quantile(&under, 0.99), mean(&under),
		       quantile(&under, 0.5) / quantile(&alone, 0.5), mean(&under) / mean(&alone),
		       o->frames_s, 100 * under.passes_us / (mean(&under) * under.n),
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
	qsort(alone.us, alone.n, sizeof(alone.us[0]), by_value);
	qsort(under.us, under.n, sizeof(under.us[0]), by_value);
	if (json)
		print_json(a, &o, first);
	else
		print_row(a, &o);
	fflush(stdout);
	fair_end(f);
}

/* --- both ------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "late-linear", fair_case_late_linear }, { "late-pairs", fair_case_late_pairs },
	{ "killed", fair_case_killed },           { "stopped", fair_case_stopped },
	{ "memory", fair_case_memory },
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

static void bench(int argc, char **argv)
{
	bool json = option(&argc, &argv, "--json"), first = true;

	print_head(json);
	for (uint32_t i = 0; i < fair_nattack; i++) {
		if (!is_wanted(argc, argv, fair_attacks[i].name))
			continue;
		bench_attack(&fair_attacks[i], json, first);
		first = false;
	}
	printf(json ? "\n]\n"
		    : "under: mean may be twice that alone, and the share of the host's processor\n");
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
	printf("1..%u\n", ntest);
	return nfailed > 0 || ntest == 0;
}
