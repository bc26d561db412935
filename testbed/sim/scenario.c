/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario.c - see scenario.h.
 */
#include "scenario.h"

#define MS (1000 * SIM_US)

static bool one_in(struct rng *r, uint32_t n)
{
	return rng_below(r, n) == 0;
}

static uint32_t percent(struct rng *r, uint32_t most)
{
	return (1 + rng_below(r, most)) * (SIM_MILLION / 100);
}

static sim_time time_below(struct rng *r, sim_time most)
{
	return most ? rng_next(r) % most : 0;
}

static void draw_group(struct scenario *s, struct scenario_group *g)
{
	struct rng *r = &s->rng;
	const struct nbfw_alg_row *row;
	uint32_t most;

	g->alg.kind =
		(enum nbfw_alg_kind)(NBFW_ALG_FIRST + rng_below(r, NBFW_ALG_END - NBFW_ALG_FIRST));
	row = nbfw_alg_row(g->alg.kind);
	most = row->high < 4 ? row->high : 4;
	g->alg.n = row->low + rng_below(r, most - row->low + 1);
	g->size = 1 + rng_below(r, SCENARIO_SIZE_MAX);
	g->goal = 3 + rng_below(r, 10);
	g->ahead = 1 + rng_below(r, 3);
	for (uint32_t i = 0; i < g->size; i++)
		g->nic[i] = rng_below(r, s->net.members);
	if (nbfw_value_plans(g->alg) && !one_in(r, 3))
		g->value_max = 16 + rng_below(r, NBAR_VALUE_MAX - 15);
}

/* Faults that last for the whole run. */
static void draw_wire(struct scenario *s)
{
	struct rng *r = &s->rng;

	if (one_in(r, 2))
		s->net.loss = percent(r, one_in(r, 4) ? 25 : 5);
	if (one_in(r, 3))
		s->net.repeat = percent(r, 20);
	if (one_in(r, 3)) {
		s->net.reorder = percent(r, 20);
		s->net.reorder_by = time_below(r, one_in(r, 5) ? 400 * MS : MS) + SIM_US;
	}
	if (one_in(r, 4))
		/* Room for the frames that a poll pass sends from queues: see "The bound of a poll
		 * pass" in PROTOCOL.md. */
		s->queue_limit = NBNIC_QUOTA + rng_below(r, 6);
	if (one_in(r, 4))
		s->refuse = percent(r, 30);
	if (one_in(r, 4)) {
		s->net.noise_period = 100 * SIM_US + time_below(r, MS);
		s->net.noise = time_below(r, 50 * SIM_US);
	}
	if (one_in(r, 5))
		s->slow = 1 + rng_below(r, 4);
}

static struct blow *add_blow(struct scenario *s, enum fault fault)
{
	struct rng *r = &s->rng;
	struct blow *b = &s->blow[s->nblow++];

	*b = (struct blow){ .fault = fault, .nic = rng_below(r, s->net.members) };
	b->at = time_below(r, one_in(r, 2) ? MS / 5 : 20 * MS);
	b->group = rng_below(r, s->ngroup);
	b->rank = rng_below(r, s->group[b->group].size);
	return b;
}

/* Faults that happen once. */
static void draw_blows(struct scenario *s)
{
	struct rng *r = &s->rng;
	static const enum fault fatal[] = { FAULT_RESTART, FAULT_DEAD, FAULT_KILL, FAULT_LEAVE };
	struct blow *b;

	if (one_in(r, 4)) {
		b = add_blow(s, FAULT_CUT);
		b->end = b->at + time_below(r, s->budget_ns / 3 * SIM_NS);
	}
	if (one_in(r, 12)) {
		b = add_blow(s, FAULT_LONG_CUT);
		b->end = b->at + 3 * s->budget_ns * SIM_NS;
	}
	if (one_in(r, 4)) {
		b = add_blow(s, FAULT_JUMP);
		b->amount = rng_next(r) % (one_in(r, 2) ? 2 * s->pull_ns : 8 * s->budget_ns);
	}
	if (one_in(r, 4))
		add_blow(s, fatal[rng_below(r, 4)]);
	if (s->lends && one_in(r, 12))
		add_blow(s, FAULT_KEEP);
	if (one_in(r, 4))
		add_blow(s, FAULT_STRANGER);
	if (one_in(r, 4))
		add_blow(s, FAULT_REQUEST);
	if (one_in(r, 4))
		add_blow(s, FAULT_DOORBELL);
}

/* NICs that lend their groups to a fast path, in half of the runs. */
static void draw_fast_paths(struct scenario *s)
{
	struct rng r = { ~s->seed };

	if (one_in(&r, 2))
		return;
	s->lends = (uint32_t)rng_next(&r) | -(uint32_t)one_in(&r, 2);
	if (one_in(&r, 2))
		s->sleeps = percent(&r, 100);
	if (one_in(&r, 4))
		s->unsent = percent(&r, 20);
	if (one_in(&r, 2))
		s->unlent = percent(&r, 70);
	s->waits = 1 + time_below(&r, one_in(&r, 2) ? 3 * SIM_US : 40 * SIM_US);
	if (!s->quiet && one_in(&r, 4))
		s->refuse = percent(&r, 50);
	if (one_in(&r, 2))
		s->full_for = time_below(&r, 150 * s->turn_cost);
	for (uint32_t i = 0; i < s->ngroup; i++) {
		struct scenario_group *g = &s->group[i];
		bool spread = !one_in(&r, 3);

		/* Fast paths take short values, and send no frames to their own NIC. */
		if (one_in(&r, 2) && g->value_max > NBFW_FIXED_VALUE)
			g->value_max = NBFW_FIXED_VALUE;
		if (spread && g->size > s->net.members)
			g->size = s->net.members;
		for (uint32_t rank = 1; spread && rank < g->size; rank++)
			g->nic[rank] = (g->nic[0] + rank) % s->net.members;
	}
}

void scenario_draw(struct scenario *s, uint64_t seed)
{
	*s = (struct scenario){ .seed = seed, .rng = { seed }, .queue_limit = 4096 };
	struct rng *r = &s->rng;

	s->net = (struct sim_net_options){
		.members = 1 + rng_below(r, SCENARIO_NICS_MAX),
		.latency = SIM_US + time_below(r, 20 * SIM_US),
		.overhead = time_below(r, SIM_US / 2),
		.gap = time_below(r, SIM_US / 5),
		.bytes = 1,
		.seed = rng_next(r),
	};
	s->turn_cost = time_below(r, SIM_US / 5) + 1;
	s->notice = time_below(r, SIM_US);
	s->pull_ns = 100000 + rng_below(r, 900000);
	s->budget_ns = (64 + rng_below(r, 200)) * s->pull_ns;
	s->arrive = time_below(r, 200 * SIM_US);
	s->ngroup = 1 + rng_below(r, SCENARIO_GROUPS_MAX);
	for (uint32_t i = 0; i < s->ngroup; i++)
		draw_group(s, &s->group[i]);
	s->quiet = one_in(r, 10);
	draw_fast_paths(s);
	if (s->quiet) {
		/* Longer than every barrier of this scenario, so no member sends a PULL. */
		s->pull_ns = 50000000;
		s->budget_ns = 64 * s->pull_ns;
		return;
	}
	draw_wire(s);
	draw_blows(s);
}

static bool is_on(const struct scenario_group *g, uint32_t nic)
{
	for (uint32_t i = 0; i < g->size; i++)
		if (g->nic[i] == nic)
			return true;
	return false;
}

bool scenario_is_fatal(const struct scenario *s, uint32_t group)
{
	for (uint32_t i = 0; i < s->nblow; i++) {
		const struct blow *b = &s->blow[i];
		bool of_group = b->group == group;

		if (b->fault == FAULT_LONG_CUT ||
		    ((b->fault == FAULT_KILL || b->fault == FAULT_LEAVE) && of_group) ||
		    ((b->fault == FAULT_RESTART || b->fault == FAULT_DEAD ||
		      b->fault == FAULT_KEEP) &&
		     is_on(&s->group[group], b->nic)))
			return true;
	}
	return false;
}

bool scenario_may_blame(const struct scenario *s, uint32_t group, uint32_t rank)
{
	if (rank >= s->group[group].size)
		return false;
	for (uint32_t i = 0; i < s->nblow; i++) {
		const struct blow *b = &s->blow[i];

		if (b->fault == FAULT_LONG_CUT)
			return true;
		if ((b->fault == FAULT_KILL || b->fault == FAULT_LEAVE) && b->group == group &&
		    b->rank == rank)
			return true;
		if ((b->fault == FAULT_RESTART || b->fault == FAULT_DEAD ||
		     b->fault == FAULT_KEEP) &&
		    s->group[group].nic[rank] == b->nic)
			return true;
	}
	return false;
}

const char *fault_text(enum fault fault)
{
	static const char *const text[] = {
#define FAULT_TEXT(name, text) text,
		FAULTS(FAULT_TEXT)
#undef FAULT_TEXT
	};

	return text[fault];
}

void scenario_print(const struct scenario *s, FILE *to)
{
	char name[NBAR_NAME_MAX];

	fprintf(to, "# seed %llu: %u NICs, pull %llu us, budget %llu ms, queue %u\n",
		(unsigned long long)s->seed, s->net.members, (unsigned long long)s->pull_ns / 1000,
		(unsigned long long)s->budget_ns / 1000000, s->queue_limit);
	fprintf(to, "# per million: loss %u, repeat %u, reorder %u by %llu us, refuse %u\n",
		s->net.loss, s->net.repeat, s->net.reorder,
		(unsigned long long)(s->net.reorder_by / SIM_US), s->refuse);
	fprintf(to, "# NICs that lend 0x%x; per million: posts before sleeps %u, unsent %u\n",
		s->lends, s->sleeps, s->unsent);
	for (uint32_t i = 0; i < s->ngroup; i++) {
		const struct scenario_group *g = &s->group[i];

		nbfw_alg_name(g->alg, name);
		fprintf(to, "# group %u: %s of %u, %u barriers, %u ahead, values of %u bytes; NICs",
			i, name, g->size, g->goal, g->ahead, g->value_max);
		for (uint32_t rank = 0; rank < g->size; rank++)
			fprintf(to, " %u", g->nic[rank]);
		fputs("\n", to);
	}
	for (uint32_t i = 0; i < s->nblow; i++) {
		const struct blow *b = &s->blow[i];

		fprintf(to, "# at %.3f us: %s: NIC %u, group %u, rank %u, until %.3f us, %llu ns\n",
			(double)b->at / (double)SIM_US, fault_text(b->fault), b->nic, b->group,
			b->rank, (double)b->end / (double)SIM_US, (unsigned long long)b->amount);
	}
}
