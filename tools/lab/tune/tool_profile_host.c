/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_profile_host.c - the measurements of a host: barriers of two members, with special plans.
 *
 * In each pair, one member sends k messages and the other member answers with one message. k = 1
 * gives the round trip, a larger k the cost of a further message in this direction. Pairs in the
 * same part of a round share no host and no processor, and run at the same time. This code runs in
 * the host processes; each process drives one node or all nodes.
 */
#include "tool_profile.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostbar.h"
#include "stats.h"

struct measure *tool_measure;

/* The plan of a member of a pair, or of a member alone. */
struct plan_of_two {
	struct nbar_plan head;
	uint32_t word[2 * 4 + 2 * MEASURE_MORE];
};

static size_t host_make_plan(struct plan_of_two *p, uint32_t rank, uint32_t size, uint32_t k)
{
	struct nbar_step *step = (void *)p->word;
	struct nbar_send *send;
	struct nbar_recv *recv;

	*p = (struct plan_of_two){ .head = { NBAR_PLAN_MAGIC, rank, size, 0, 0, 0 } };
	if (size == 1)
		return sizeof(p->head);
	p->head.nstep = rank ? 2 : 1;
	p->head.nsend = rank ? 1 : k;
	p->head.nrecv = rank ? k : 1;
	send = (void *)(step + p->head.nstep);
	recv = (void *)(send + p->head.nsend);
	for (uint32_t i = 0; i < p->head.nsend; i++)
		send[i] = (struct nbar_send){ !rank, i };
	for (uint32_t i = 0; i < p->head.nrecv; i++)
		recv[i].src = !rank;
	if (rank) { /* waits, then answers */
		step[0] = (struct nbar_step){ 0, 0, 0, k };
		step[1] = (struct nbar_step){ 0, 1, k, 0 };
	} else {
		step[0] = (struct nbar_step){ 0, k, 0, 1 };
	}
	return (size_t)((char *)(recv + p->head.nrecv) - (char *)p);
}

/* A node in one measurement. */
struct side {
	struct bench_member *m;
	uint32_t node, other, rank;
	bool active; /* the node takes part in this part of the round */
	struct nbar_group *group;
	struct hostbar *hostbar;
	uint32_t ticket, left;
	uint64_t posted;
	double *sample;
};

static int host_fail(const struct side *s)
{
	__atomic_store_n(&tool_measure->failed, 1, __ATOMIC_RELAXED);
	return bench_host_fail(s->m, "%s", s->hostbar ? hostbar_error(s->hostbar) : nbar_error());
}

static int test(const struct side *s)
{
	return s->hostbar ? hostbar_test(s->hostbar, s->ticket) : nbar_test(s->group, s->ticket);
}

static int post(struct side *s)
{
	s->posted = tool_now_ns();
	return (s->hostbar ? hostbar_post(s->hostbar, &s->ticket) : nbar_post(s->group, &s->ticket))
		       ? host_fail(s)
		       : 0;
}

/* Waits until all nodes of all processes have come here. Host-based nodes still answer peers. */
static int host_meet(const struct bench_host *h, const struct side *side, uint32_t *met)
{
	struct measure *m = tool_measure;

	*met += m->nodes;
	/* Pairs with the acquire below: after it, all nodes see what this node wrote before. */
	__atomic_add_fetch(&m->passed, h->count, __ATOMIC_RELEASE);
	while ((int32_t)(__atomic_load_n(&m->passed, __ATOMIC_ACQUIRE) - *met) < 0) {
		for (uint32_t i = 0; i < h->count; i++)
			if (side && side[i].hostbar)
				(void)test(&side[i]);
		if (__atomic_load_n(&m->failed, __ATOMIC_RELAXED))
			return TOOL_FAILED;
		sched_yield();
	}
	return 0;
}

static int open_side(struct side *s, uint32_t k)
{
	uint32_t size = s->other == s->node ? 1 : 2;
	struct plan_of_two plan;
	const struct nbar_group_attr attr = {
		.rank = s->rank,
		.size = size,
		.alg = NBFW_ALG_CUSTOM_NAME,
		.plan_length = host_make_plan(&plan, s->rank, size, k),
		.plan = &plan.head,
	};
	struct nbar_endpoint *endpoint = &tool_measure->endpoint[s->node];

	return (tool_measure->by_host ? hostbar_open(s->m->port, &attr, NULL, &s->hostbar, endpoint)
				      : nbar_group_open(s->m->port, &attr, &s->group, endpoint))
		       ? host_fail(s)
		       : 0;
}

static int connect_side(struct side *s)
{
	struct nbar_endpoint endpoint[2];

	endpoint[s->rank] = tool_measure->endpoint[s->node];
	endpoint[!s->rank] = tool_measure->endpoint[s->other];
	return (s->hostbar ? hostbar_connect(s->hostbar, endpoint)
			   : nbar_group_connect(s->group, endpoint))
		       ? host_fail(s)
		       : 0;
}

static void close_side(struct side *s)
{
	if (s->hostbar)
		hostbar_close(s->hostbar);
	if (s->group)
		nbar_group_close(s->group);
	s->hostbar = NULL;
	s->group = NULL;
}

/* Tests the barrier of a node. True if it has ended. */
static bool host_look(struct side *s, int *r)
{
	const struct measure *m = tool_measure;
	int done = test(s);

	if (!done)
		return false;
	if (done < 0) {
		*r = host_fail(s);
		return true;
	}
	if (s->left <= m->iters)
		s->sample[m->iters - s->left] = (double)(tool_now_ns() - s->posted);
	if (--s->left)
		*r = post(s);
	return true;
}

/* Runs the barriers of all pairs that this process drives. */
static int run_sides(const struct bench_host *h, struct side *side)
{
	bool running = true;
	int r = 0;

	for (uint32_t i = 0; i < h->count && !r; i++) {
		side[i].left = side[i].active ? tool_measure->iters + tool_measure->warmup : 0;
		r = side[i].active ? post(&side[i]) : 0;
	}
	while (running && !r) {
		bool busy = false;

		running = false;
		for (uint32_t i = 0; i < h->count && !r; i++) {
			if (side[i].left)
				busy |= host_look(&side[i], &r);
			running |= side[i].left > 0;
		}
		if (!busy && __atomic_load_n(&tool_measure->failed, __ATOMIC_RELAXED))
			r = TOOL_FAILED;
		if (!busy)
			bench_host_idle(h);
	}
	return r;
}

/* Notes the time of a node alone, or of the member of a pair that sends first. */
static void host_note(struct side *s, double *matrix)
{
	struct measure *m = tool_measure;
	double typical = m->quantile == 0.5 ? stats_median(s->sample, m->iters)
					    : stats_percentile(s->sample, m->iters, m->quantile);
	size_t at = (size_t)s->node * m->nodes + s->other;

	if (s->other == s->node) {
		matrix[s->node] = typical;
	} else if (s->rank == 0) {
		matrix[at] = typical;
		if (matrix == m->round)
			m->spread[at] = stats_percentile(s->sample, m->iters, 0.9) /
					stats_median(s->sample, m->iters);
	}
}

/* Measures one part of a round: each active node with its partner. The lower node of a pair sends k
 * messages; if swapped, the higher node sends them. */
static int measure_part(const struct bench_host *h, struct side *side, uint32_t k, bool swapped,
			double *matrix, uint32_t *met)
{
	int r = 0;

	for (uint32_t i = 0; i < h->count; i++) {
		struct side *s = &side[i];

		s->rank = s->other != s->node && (s->node > s->other) != swapped;
	}
	for (uint32_t i = 0; i < h->count && !r; i++)
		r = side[i].active ? open_side(&side[i], k) : 0;
	r = r ? r : host_meet(h, NULL, met);
	for (uint32_t i = 0; i < h->count && !r; i++)
		r = side[i].active ? connect_side(&side[i]) : 0;
	r = r ? r : host_meet(h, NULL, met);
	r = r ? r : run_sides(h, side);
	r = r ? r : host_meet(h, side, met);
	for (uint32_t i = 0; i < h->count; i++)
		close_side(&side[i]);
	r = r ? r : host_meet(h, NULL, met);
	for (uint32_t i = 0; i < h->count && !r; i++)
		if (side[i].active)
			host_note(&side[i], matrix);
	return r;
}

/* What all processes know of a round, and the nodes of this process. */
struct tool_profile_pairs {
	const struct bench_host *h;
	struct side *side;
	uint32_t *other, *part; /* by node */
	uint32_t met;
};

/* Measures a whole round: all nodes at the same time if `together`, else in parts. */
static int measure_round(struct tool_profile_pairs *round, uint32_t k, bool swapped, bool together,
			 double *matrix)
{
	const struct measure *m = tool_measure;
	const struct bench_host *h = round->h;
	struct side *side = round->side;
	bool single = matrix == m->self || matrix == m->alone;
	uint32_t parts = profile_parts(m->owner, round->other, m->nodes, single, round->part);
	int r = 0;

	for (uint32_t part = 0; part < (together ? 1 : parts) && !r; part++) {
		for (uint32_t i = 0; i < h->count; i++) {
			side[i].other = round->other[side[i].node];
			side[i].active = together || round->part[side[i].node] == part;
		}
		r = measure_part(h, side, k, swapped, matrix, &round->met);
	}
	return r;
}

/* Notes what runs the barriers of the nodes: the daemon of a NIC, or this process. */
static int note_owners(const struct bench_host *h, struct side *side)
{
	struct measure *m = tool_measure;

	for (uint32_t i = 0; i < h->count; i++) {
		struct nbar_rep_nic_stat stat = { .pid = (uint32_t)getpid() };

		if (!m->by_host && nbar_nic_stat(h->nics->name[side[i].node % h->nics->n], &stat))
			return host_fail(&side[i]);
		m->owner[side[i].node] = stat.pid;
	}
	return 0;
}

int tool_profile_pair(struct tool_profile_pairs *pairs, uint32_t i, uint32_t j, uint32_t k,
		      bool swapped, double *matrix)
{
	for (uint32_t node = 0; node < tool_measure->nodes; node++)
		pairs->other[node] = node;
	pairs->other[i] = j;
	pairs->other[j] = i;
	int r = measure_round(pairs, k, swapped, false, matrix);

	/* After this, all processes may read the time. */
	return r ? r : host_meet(pairs->h, NULL, &pairs->met);
}

/* Each process computes the clusters; the process of node 0 writes them for the bench. */
static int measure_sample(struct tool_profile_pairs *round)
{
	struct measure *m = tool_measure;
	uint32_t *room = calloc(3 * (size_t)m->nodes, sizeof(*room));
	struct tool_profile_classes own = { 0, room, room + m->nodes, room + 2 * (size_t)m->nodes };
	int r = room ? m->sample(round, &own)
		     : bench_host_fail(round->side->m, "no memory for %u nodes", m->nodes);

	if (!r && round->side->node == 0) {
		m->classes.n = own.n;
		memcpy(m->classes.of, own.of, m->nodes * sizeof(*own.of));
		memcpy(m->classes.centre, own.centre, m->nodes * sizeof(*own.centre));
		memcpy(m->classes.second, own.second, m->nodes * sizeof(*own.second));
	}
	free(room);
	return r;
}

static int measure_pairs(struct tool_profile_pairs *round)
{
	struct measure *m = tool_measure;
	uint32_t rounds = m->nodes > 1 ? m->nodes - 1 + m->nodes % 2 : 0;
	int r = 0;

	for (uint32_t k = 0; k < rounds && !r; k++) {
		for (uint32_t i = 0; i < m->nodes; i++)
			round->other[i] = profile_partner(m->nodes, k, i);
		r = measure_round(round, 1, false, false, m->round);
		if (!r)
			r = measure_round(round, MEASURE_MORE, false, false, m->more);
		if (!r)
			r = measure_round(round, MEASURE_MORE, true, false, m->more);
	}
	return r;
}

static int measure_all(struct tool_profile_pairs *round)
{
	struct measure *m = tool_measure;
	int r = note_owners(round->h, round->side);

	for (uint32_t i = 0; i < m->nodes; i++)
		round->other[i] = i;
	r = r ? r : host_meet(round->h, NULL, &round->met);
	r = r ? r : measure_round(round, 1, false, true, m->self);
	r = r ? r : measure_round(round, 1, false, false, m->alone);
	if (!r)
		r = m->sample ? measure_sample(round) : measure_pairs(round);
	return r;
}

int tool_profile_drive(const struct bench_host *h, struct bench_member *member)
{
	struct side *side = calloc(h->count, sizeof(*side));
	double *sample = calloc((size_t)h->count * tool_measure->iters, sizeof(*sample));
	uint32_t *nodes = calloc(2 * (size_t)tool_measure->nodes, sizeof(*nodes));
	struct tool_profile_pairs round = { h, side, nodes, nodes + tool_measure->nodes, 0 };
	int r = TOOL_FAILED;

	if (!side || !sample || !nodes) {
		bench_host_fail(member, "no memory for %u samples", tool_measure->iters);
	} else {
		for (uint32_t i = 0; i < h->count; i++)
			side[i] =
				(struct side){ .m = &member[i],
					       .node = member[i].node,
					       .sample = sample + (size_t)i * tool_measure->iters };
		r = measure_all(&round);
	}
	free(side);
	free(nodes);
	free(sample);
	return r;
}
