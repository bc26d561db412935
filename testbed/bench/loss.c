/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loss.c - the latency of a barrier over the loss of frames, beside the floor of theory. Whole NICs
 * in simulated time, so the figures repeat exactly. It is not a test, but it fails if a NIC sends
 * an extra frame while none is lost. Started by make bench-loss.
 *
 *     bench-loss [MEMBERS [BARRIERS [LATENCY_US]]]
 *     bench-loss --floor HOP_US PERCENT MEMBERS BARRIERS
 *
 * The second form prints only the floor, median and p99, for a network where a signal takes HOP_US
 * from member to member; loss-hosts.sh uses it.
 *
 * The floor assumes that a receiver learns of each lost frame without delay, and asks for the token
 * at once. So each lost token, PULL or answer costs one round trip at its receiver, and nothing
 * else. No barrier in which the receiver repairs losses can be faster.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nbar_abi.h"
#include "sim/nics.h"
#include "unit/unit.h"

#define ALG "dissemination:1"
#define MEMBERS_MAX 256u

struct point {
	double p50, p99; /* us */
};

static struct sim_plans plans;
static uint32_t barriers = 4000, latency_us = 8;

static void give_up(const char *what)
{
	fprintf(stderr, "bench-loss: %s\n", what);
	exit(1);
}

/* Runs all barriers. With the usual latency, the network is like UDP between two hosts: a round
 * takes 12 us from post to completion. */
static void simulate(uint32_t percent, struct sim_report *out)
{
	const struct sim_setup setup = {
		.net = {
			.members = plans.size,
			.latency = latency_us * SIM_US,
			.overhead = 2 * SIM_US,
			.bytes = 1,
			.loss = percent * (SIM_MILLION / 100),
			.seed = 1,
		},
		.plans = &plans,
		.barriers = barriers,
		.pull_ns = 1000000,
		.budget_ns = UINT64_C(8000000000),
		.limit = UINT64_MAX,
	};

	sim_nics_run(&setup, ALG, 100 * SIM_NS, out);
	if (out->end != SIM_END_DONE || out->failed > 0)
		give_up("a barrier failed");
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Draws how often a signal is lost before it arrives: first its token, then each PULL or answer. */
static uint32_t losses(struct rng *rng, uint32_t percent)
{
	uint32_t n = 0;

	if (rng_percent(rng, percent))
		for (n = 1; rng_percent(rng, percent) || rng_percent(rng, percent);)
			n++;
	return n;
}

/* One barrier: on entry, time[] is when each member enters the barrier; on return, when each member
 * leaves it. */
static void floor_step(double *time, double hop, uint32_t percent, struct rng *rng)
{
	double next[MEMBERS_MAX];

	for (uint32_t distance = 1; distance < plans.size; distance *= 2) {
		for (uint32_t m = 0; m < plans.size; m++) {
			double come = time[(m + plans.size - distance) % plans.size] + hop;

			next[m] = come > time[m] ? come : time[m];
			next[m] += 2 * hop * losses(rng, percent);
		}
		for (uint32_t m = 0; m < plans.size; m++)
			time[m] = next[m];
	}
}

static double latest(const double *time)
{
	double last = time[0];

	for (uint32_t m = 1; m < plans.size; m++)
		last = time[m] > last ? time[m] : last;
	return last;
}

static struct point floor_of(double hop, uint32_t percent)
{
	double time[MEMBERS_MAX] = { 0 }, *took = malloc(barriers * sizeof(*took));
	struct rng rng = { 1 };
	struct point p;

	if (!took)
		give_up("no memory");
	for (uint32_t i = 0; i < barriers; i++) {
		double in = latest(time);

		floor_step(time, hop, percent, &rng);
		took[i] = latest(time) - in;
	}
	qsort(took, barriers, sizeof(*took), by_value);
	p = (struct point){ took[barriers / 2], took[barriers - 1 - barriers / 100] };
	free(took);
	return p;
}

static uint32_t rounds(void)
{
	uint32_t n = 0;

	for (uint32_t distance = 1; distance < plans.size; distance *= 2)
		n++;
	return n;
}

static void print_point(uint32_t percent, double hop, const struct sim_report *r)
{
	struct point least = floor_of(hop, percent);
	double us = r->median_ns / 1e3, frames = (double)(r->tokens + r->pulls + r->laters);

	printf("%6u %9.1f %9.1f %9.1f %9.1f %7.2f %9.2f %9.2f\n", percent, least.p50, least.p99, us,
	       r->p99_ns / 1e3, us / least.p50, (double)r->lost / barriers,
	       frames / barriers - (double)plans.tokens);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: bench-loss [MEMBERS [BARRIERS [LATENCY_US]]], 2 to %u members; or\n"
		"bench-loss --floor HOP_US PERCENT MEMBERS BARRIERS\n",
		MEMBERS_MAX);
	return 2;
}

static int print_floor(char **word)
{
	double hop = strtod(word[0], NULL);
	unsigned long percent = strtoul(word[1], NULL, 10), size = strtoul(word[2], NULL, 10);
	struct point p;

	barriers = (uint32_t)strtoul(word[3], NULL, 10);
	if (!(hop > 0) || percent > 99 || size < 2 || size > MEMBERS_MAX || barriers == 0)
		return usage();
	plans.size = (uint32_t)size;
	p = floor_of(hop, (uint32_t)percent);
	printf("%.1f %.1f\n", p.p50, p.p99);
	return 0;
}

int main(int argc, char **argv)
{
	static const uint32_t percent[] = { 0, 1, 5, 10, 20, 30 };
	unsigned long size = argc > 1 ? strtoul(argv[1], NULL, 10) : 8;
	struct sim_report r;
	struct nbfw_alg alg;
	double hop = 0;

	if (argc == 6 && strcmp(argv[1], "--floor") == 0)
		return print_floor(argv + 2);
	if (argc > 2)
		barriers = (uint32_t)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		latency_us = (uint32_t)strtoul(argv[3], NULL, 10);
	if (size < 2 || size > MEMBERS_MAX || barriers == 0 || latency_us == 0 || argc > 4)
		return usage();
	if (nbfw_alg_parse(ALG, &alg) || sim_plans_generate(&plans, alg, (uint32_t)size))
		give_up("no plans");
	printf("%lu members, " ALG
	       ", %u barriers, latency %u us; times in us; frames of one barrier\n",
	       size, barriers, latency_us);
	printf("%6s %9s %9s %9s %9s %7s %9s %9s\n", "loss %", "floor p50", "p99", "NICs p50", "p99",
	       "ratio", "lost", "extra");
	for (uint32_t i = 0; i < sizeof(percent) / sizeof(percent[0]); i++) {
		simulate(percent[i], &r);
		if (percent[i] == 0)
			hop = r.median_ns / 1e3 / rounds();
		print_point(percent[i], hop, &r);
		if (percent[i] == 0 &&
		    r.tokens + r.pulls + r.laters != (uint64_t)plans.tokens * barriers)
			give_up("without loss, NICs send more frames than the plan");
	}
	sim_plans_free(&plans);
	return 0;
}
