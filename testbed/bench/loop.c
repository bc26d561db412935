/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.c - what a token costs in the whole turn of a NIC, on the wire ring, and which part takes
 * how much of it: a measurement, not a test.
 *
 * One thread is host and NICs: it posts a barrier on every member and turns the NICs until there is
 * nothing left to do. Each point runs in a process of its own; its time is the median of
 * repetitions. The host's stores, and one look at a completion a barrier, are part of it.
 *
 *     bench-loop [--json] [POINT...]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "loop_nics.h"
#include "plan.h"
#include "raw.h"

#define REPETITIONS 11u
#define REPETITION_NS 15e6
#define NICS_MAX 64u
#define PORTS_MAX 64u
#define BATCH 50u

struct point {
	const char *name, *alg;
	uint32_t nnic;
	uint32_t ports;  /* of each NIC */
	uint32_t cells;  /* groups of each port */
	uint32_t active; /* members on NICs 0 to active - 1 go through barriers; 0: all are idle */
	double (*run)(const struct point *p); /* ns */
	const char *unit;
};

static char run_dir[] = "/tmp/nbar-loop-XXXXXX";
static struct raw *member[NICS_MAX]; /* cell 0 of the first port of each NIC */
static uint32_t epoch;
static uint64_t nturn;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void give_up(const char *what)
{
	fprintf(stderr, "bench-loop: %s\n", what);
	_exit(1);
}

/* --- set-up: by requests, from a thread of its own, while the first one turns ----------------- */

static const struct point *wanted;
static int set_up; /* the thread is done; pairs: release there, acquire here */

static void connect_all(const struct point *p, struct nbar_blob *blob)
{
	for (uint32_t i = 0; i < p->active; i++) {
		struct nbar_rep_group_open rep;
		struct nbar_blob peer[NICS_MAX];
		uint32_t rank;

		if (raw_group_open(member[i], p->alg, i, p->active, 1) != 0)
			give_up("a group is refused");
		memcpy(&rep, member[i]->reply.body, sizeof(rep));
		blob[i] = rep.blob;
		for (uint32_t k = 0; k < rep.npeer; k++) {
			memcpy(&rank, member[i]->reply.body + sizeof(rep) + k * sizeof(rank),
			       sizeof(rank));
			memcpy(&peer[k], &rank, sizeof(rank)); /* until its blob is known */
		}
		memcpy(member[i]->reply.body, &rep.npeer, sizeof(rep.npeer));
		memcpy(member[i]->reply.body + sizeof(rank), peer, rep.npeer * sizeof(peer[0]));
	}
	for (uint32_t i = 0; i < p->active; i++) {
		struct nbar_blob peer[NICS_MAX];
		uint32_t n, rank;

		memcpy(&n, member[i]->reply.body, sizeof(n));
		memcpy(peer, member[i]->reply.body + sizeof(rank), n * sizeof(peer[0]));
		for (uint32_t k = 0; k < n; k++) {
			memcpy(&rank, &peer[k], sizeof(rank));
			peer[k] = blob[rank];
		}
		if (n > 0 && raw_group_connect(member[i], 0, peer, n) != 0)
			give_up("a group is not connected");
	}
}

static void *set_up_main(void *arg)
{
	static struct nbar_blob blob[NICS_MAX];
	const struct point *p = wanted;

	(void)arg;
	for (uint32_t i = 0; i < p->nnic; i++) {
		for (uint32_t port = 0; port < p->ports; port++) {
			struct raw *r = calloc(1, sizeof(*r));
			char name[16];

			snprintf(name, sizeof(name), "n%u", i);
			if (!r || !raw_dial(r, run_dir, name) ||
			    raw_port_open(r, NBAR_PORT_ANY) != 0)
				give_up("no port");
			if (port == 0)
				member[i] = r;
			/* Cell 0 of the first port is for the barriers. */
			for (uint32_t cell = port == 0 && i < p->active; cell < p->cells; cell++)
				if (raw_group_open(r, "pairwise", 0, 2, 7) != 0)
					give_up("a group is refused");
		}
	}
	__atomic_store_n(&set_up, 1, __ATOMIC_RELEASE);
	return NULL;
}
