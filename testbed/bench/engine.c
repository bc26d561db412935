/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.c - measures the time per token of the engine alone. It is not a test. One member of a
 * group runs barrier after barrier. Its tokens come in the order of its slots, so each step ends
 * with a separate event. The time per token includes its share of START.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine.h"
#include "plan.h"

#define REPETITIONS 7
#define TOKENS 2000000u

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Returns the time per token over many barriers; sets *sends to the number of released sends. */
static double run(const struct nbar_plan *p, struct nbfw_state *s, struct nbfw_event *ev,
		  uint64_t *sends)
{
	uint32_t barriers = TOKENS / p->nrecv;
	struct nbfw_action a;
	double start;

	nbfw_init(s, p, 0);
	start = now_ns();
	for (uint32_t b = 1; b <= barriers; b++) {
		for (uint32_t i = 0; i <= p->nrecv; i++) {
			ev[i].token.epoch = b;
			nbfw_step(s, p, &ev[i], &a);
			*sends += a.send_end - a.send_first;
		}
		if (!a.complete)
			abort();
	}
	return (now_ns() - start) / (barriers * p->nrecv);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const char *name, uint32_t size)
{
	uint32_t block[512];
	struct nbfw_alg alg;
	double ns[REPETITIONS];
	uint64_t sends = 0;
	struct nbar_plan *p = (struct nbar_plan *)block;

	if (nbfw_alg_parse(name, &alg) ||
	    nbfw_plan_generate(alg, size, 0, block, sizeof(block)) < 0)
		abort();
	struct nbfw_state *s = malloc(nbfw_state_size(p));
	struct nbfw_event *ev = calloc(p->nrecv + 1, sizeof(ev[0]));

	ev[0].type = NBFW_EV_START;
	for (uint32_t i = 0; i < p->nrecv; i++) {
		ev[i + 1].type = NBFW_EV_TOKEN;
		ev[i + 1].token = (struct nbfw_token){ .type = NBFW_TOKEN, .slot = i };
		ev[i + 1].token.src = nbfw_plan_recvs(p)[i].src;
	}
	for (uint32_t i = 0; i < REPETITIONS; i++)
		ns[i] = run(p, s, ev, &sends);
	qsort(ns, REPETITIONS, sizeof(ns[0]), by_value);
	printf("%-18s %8u %7u %10.1f %10.1f %12llu\n", name, size, p->nrecv, ns[0],
	       ns[REPETITIONS / 2], (unsigned long long)sends);
	free(ev);
	free(s);
}

int main(void)
{
	static const char *const algs[] = { "pairwise", "dissemination:1", "dissemination:3" };
	static const uint32_t sizes[] = { 2, 16, 1024, NBAR_SIZE_MAX };

	printf("%-18s %8s %7s %10s %10s %12s\n", "algorithm", "ranks", "tokens", "ns, best",
	       "ns, median", "sends");
	for (uint32_t a = 0; a < sizeof(algs) / sizeof(algs[0]); a++)
		for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			measure(algs[a], sizes[i]);
	return 0;
}
