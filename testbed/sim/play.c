/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * play.c - see play.h.
 */
#include "play.h"

#define EVENTS_MAX 20000000u
#define GOAL_MAX 16u
#define SHOTS 50u /* frames, requests or doorbells in an attack */

enum { EV_COME = SIM_WORLD_USER, EV_CLOSE, EV_BLOW, EV_HEAL };
enum part { RUNNING, DONE, FAILED, GONE };

struct player {
	struct sim_host *host;
	enum part part;
	uint32_t posted, done;
};

struct play {
	struct scenario s;
	struct sim_world *w;
	struct player player[SCENARIO_GROUPS_MAX][SCENARIO_SIZE_MAX];
	uint32_t entered[SCENARIO_GROUPS_MAX][GOAL_MAX];
	struct nbfw_value result[SCENARIO_GROUPS_MAX][GOAL_MAX]; /* of who had it first */
	uint32_t running;
	struct tallies *t;
	char *why;
	size_t room;
	bool bad;
	bool may_close; /* hosts may close as soon as they have run all their barriers */
	bool over;      /* all hosts have ended: no fault happens any more */
};

#define wrong(p, ...)                                               \
	do {                                                        \
		if (!(p)->bad)                                      \
			snprintf((p)->why, (p)->room, __VA_ARGS__); \
		(p)->bad = true;                                    \
	} while (0)

static struct player *player_of(struct play *p, const struct sim_host *h, uint32_t *group)
{
	*group = h->user >> 8;
	return &p->player[*group][h->user & 0xff];
}

static void leave_off(struct play *p, struct player *x, enum part part)
{
	p->running -= x->part == RUNNING;
	x->part = part;
}

/* The time when a host arrives at its next barrier. */
static void come_later(struct play *p, const struct sim_host *h)
{
	sim_time wait = p->s.arrive ? rng_next(&p->s.rng) % p->s.arrive : 0;

	if (p->s.slow && rng_percent(&p->s.rng, p->s.slow)) {
		p->t->fault[FAULT_SLOW]++;
		wait += (1 + rng_below(&p->s.rng, 3)) * p->s.budget_ns * SIM_NS;
	}
	sim_world_push(p->w, p->w->now + wait, EV_COME, h->index, 0);
}

/* What a rank contributes to a barrier. False: the barrier has no values. */
static bool contribution(const struct play *p, uint32_t group, uint32_t barrier, uint32_t rank,
			 struct nbfw_value *out)
{
	static const struct {
		uint8_t op, type, size;
	} kinds[] = { { 0 },
		      { NBAR_SUM, NBAR_UINT64, 8 },
		      { NBAR_SUM, NBAR_DOUBLE, 8 },
		      { NBAR_SUM, NBAR_INT8, 1 },
		      { NBAR_BXOR, NBAR_UINT16, 2 },
		      { NBAR_MAX, NBAR_FLOAT, 4 },
		      { NBAR_MAXLOC, NBAR_FLOAT_INT, 8 } };
	struct rng r = { p->s.seed ^ (uint64_t)group << 48 ^ (uint64_t)barrier << 32 };
	uint32_t kind = rng_below(&r, sizeof(kinds) / sizeof(kinds[0]));
	uint32_t most = p->s.group[group].value_max, n;

	if (most == 0 || kind == 0)
		return false;
	n = 1 + rng_below(&r, most / kinds[kind].size);
	*out = (struct nbfw_value){ .op = kinds[kind].op,
				    .type = kinds[kind].type,
				    .count = { (uint8_t)n, (uint8_t)(n >> 8) } };
	r.state ^= rank * UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t i = 0; i < nbfw_value_length(out); i += 8) {
		uint64_t bits = rng_next(&r);
		double real = (double)bits; /* sums of such numbers round */

		memcpy(out->byte + i, out->type == NBAR_DOUBLE ? (void *)&real : (void *)&bits, 8);
	}
	return true;
}

/* The result is the fold of all contributions. How sums of doubles round depends on the plan, but
 * all members have the same bits. */
static void check_result(struct play *p, const struct sim_host *h, uint32_t group, uint32_t barrier)
{
	struct nbfw_value want, one, got, *first = &p->result[group][barrier - 1];
	bool good;

	if (!contribution(p, group, barrier, 0, &want))
		return;
	for (uint32_t rank = 1; rank < p->s.group[group].size; rank++) {
		contribution(p, group, barrier, rank, &one);
		nbfw_value_fold(&want, &want, &one);
	}
	memcpy(&got, sim_host_value(h, barrier), sizeof(got));
	good = got.op == (want.op | NBAR_VALUE_RESULT) && memcmp(got.zero, &barrier, 4) == 0;
	memcpy(&got, &want, 1);
	memset(got.zero, 0, sizeof(got.zero));
	if (first->op == 0)
		*first = got;
	good &= memcmp(&got, first, NBFW_VALUE_HEAD + nbfw_value_length(&want)) == 0;
	for (uint32_t i = 0; want.type == NBAR_DOUBLE && i < nbfw_value_length(&want); i += 8) {
		double x, y;

		memcpy(&x, got.byte + i, 8);
		memcpy(&y, want.byte + i, 8);
		good &= x - y < 1e6 && y - x < 1e6;
		memcpy(want.byte + i, &x, 8);
	}
	good &= memcmp(&got, &want, NBFW_VALUE_HEAD + nbfw_value_length(&want)) == 0;
	if (!good)
		wrong(p, "rank %u of group %u has another result of barrier %u than the fold",
		      h->rank, group, barrier);
	p->t->results++;
}

static void on_come(struct play *p, struct sim_host *h)
{
	uint32_t group, most;
	struct player *x = player_of(p, h, &group);
	const struct scenario_group *g = &p->s.group[group];

	if (x->part != RUNNING || !h->page)
		return;
	most = x->done + 1 + rng_below(&p->s.rng, g->ahead);
	while (x->posted < most && x->posted < g->goal) {
		struct nbar_value *v = sim_host_value(h, x->posted + 1);

		p->entered[group][x->posted++]++;
		if (contribution(p, group, x->posted, h->rank, (struct nbfw_value *)(void *)v))
			v->epoch = x->posted;
	}
	sim_host_post(p->w, h, x->posted);
}

static void on_failure(struct play *p, struct sim_host *h, const struct sim_event *ev)
{
	uint32_t group;
	struct player *x = player_of(p, h, &group);

	if (!scenario_is_fatal(&p->s, group))
		wrong(p, "rank %u of group %u fails with status %u, and nothing has happened",
		      h->rank, group, ev->info);
	else if (!scenario_may_blame(&p->s, group, ev->arg))
		wrong(p, "rank %u of group %u blames rank %u, to which nothing has happened",
		      h->rank, group, ev->arg);
	p->t->fault[FAULT_FAILED]++;
	for (uint32_t i = 0; i < p->s.nblow; i++)
		p->t->fault[FAULT_LONG_CUT] += p->s.blow[i].fault == FAULT_LONG_CUT;
	leave_off(p, x, FAILED);
}

static void on_progress(void *arg, struct sim_host *h, const struct sim_event *ev)
{
	struct play *p = arg;
	struct player *x;
	uint32_t group;

	if (h->user == SIM_NOBODY) /* the attacker's host */
		return;
	x = player_of(p, h, &group);
	if (x->part == GONE)
		return;
	if (x->part == FAILED)
		wrong(p, "rank %u of group %u goes on after its failure", h->rank, group);
	if (ev->epoch < x->done || ev->epoch > x->posted)
		wrong(p, "rank %u of group %u completes barrier %u after %u, posted %u", h->rank,
		      group, ev->epoch, x->done, x->posted);
	for (; !p->bad && x->done < ev->epoch; x->done++) {
		p->t->completed++;
		check_result(p, h, group, x->done + 1);
		if (p->entered[group][x->done] != p->s.group[group].size)
			wrong(p, "rank %u of group %u completes barrier %u, which %u of %u started",
			      h->rank, group, x->done + 1, p->entered[group][x->done],
			      p->s.group[group].size);
	}
	if (ev->info != NBAR_STATUS_OK) {
		on_failure(p, h, ev);
	} else if (x->done == p->s.group[group].goal) {
		leave_off(p, x, DONE);
		if (p->may_close && rng_percent(&p->s.rng, 50))
			sim_world_push(p->w, p->w->now, EV_CLOSE, h->index, 0);
	} else if (x->done == x->posted) {
		come_later(p, h);
	}
}

static void shoot_frames(struct play *p, const struct blow *b)
{
	struct rng *r = &p->s.rng;

	for (uint32_t i = 0; i < SHOTS; i++) {
		struct nbfw_token t = {
			.type = (uint8_t)(1 + rng_below(r, NBFW_TYPE_END - 1)),
			.handle = rng_below(r, 3) << 16 | rng_below(r, 8),
			.cookie = rng_next(r),
			.src = rng_below(r, 16),
			.epoch = rng_below(r, 16),
			.slot = rng_below(r, 8),
			.arg = rng_below(r, 16),
			.info = rng_below(r, 8),
			.sender = rng_below(r, 3) << 16 | rng_below(r, 8),
			.reply_cookie = rng_next(r),
		};

		sim_world_inject(p->w, rng_below(r, p->w->nnic), b->nic, &t,
				 p->w->now + rng_next(r) % SIM_US);
	}
}

/* A further host, of another user, sends random requests, or writes random doorbells. */
static void shoot_from_host(struct play *p, const struct blow *b)
{
	struct sim_host *h = sim_host_begin(p->w, b->nic);
	struct rng *r = &p->s.rng;
	uint8_t body[256];

	if (!h)
		return;
	h->user = SIM_NOBODY;
	if (b->fault == FAULT_DOORBELL && sim_group_begin(p->w, &h, 1, "auto", NULL, 0))
		wrong(p, "a group of one is refused");
	for (uint32_t i = 0; i < SHOTS; i++) {
		uint32_t n = rng_below(r, sizeof(body));

		for (uint32_t at = 0; at < n; at++)
			body[at] = (uint8_t)(rng_percent(r, 60) ? 0 : rng_next(r));
		if (b->fault == FAULT_REQUEST)
			p->t->fault[FAULT_REQUEST] +=
				sim_host_request(p->w, h, (enum nbar_op)rng_below(r, 12), body, n,
						 NULL) < 0;
		else
			sim_host_post(p->w, h, (uint32_t)rng_next(r));
		if (rng_percent(r, 20))
			sim_world_step(p->w, p->w->now);
	}
}

static void end_host(struct play *p, uint32_t group, uint32_t rank, uint8_t cause)
{
	struct player *x = &p->player[group][rank];

	sim_host_end(p->w, x->host, cause);
	leave_off(p, x, GONE);
}

/* When a NIC ends, its hosts end too. */
static void end_nic(struct play *p, uint32_t nic, bool restart)
{
	for (uint32_t g = 0; g < p->s.ngroup; g++)
		for (uint32_t r = 0; r < p->s.group[g].size; r++)
			if (p->s.group[g].nic[r] == nic)
				leave_off(p, &p->player[g][r], GONE);
	if (restart)
		sim_nic_restart(p->w, nic);
	else
		sim_nic_kill(p->w, nic);
}

static void cut(struct play *p, bool on)
{
	p->w->cut = on;
	for (uint32_t i = 0; on && i < p->w->nnic; i++)
		p->w->nic[i]->side = rng_below(&p->s.rng, 2);
}

static void on_blow(struct play *p, const struct blow *b, uint32_t index)
{
	switch (b->fault) {
	case FAULT_CUT:
	case FAULT_LONG_CUT:
		cut(p, true);
		sim_world_push(p->w, b->end, EV_HEAL, 0, index);
		return;
	case FAULT_JUMP:
		sim_nic_jump(p->w, b->nic, b->amount);
		break;
	case FAULT_RESTART:
	case FAULT_DEAD:
		end_nic(p, b->nic, b->fault == FAULT_RESTART);
		break;
	case FAULT_KILL:
		end_host(p, b->group, b->rank, NBAR_STATUS_HOST_DIED);
		break;
	case FAULT_LEAVE:
		end_host(p, b->group, b->rank, NBAR_STATUS_CLOSED);
		break;
	case FAULT_KEEP:
		p->w->nic[b->nic]->loses = true;
		return;
	case FAULT_STRANGER:
		shoot_frames(p, b);
		return;
	case FAULT_REQUEST:
	case FAULT_DOORBELL:
		shoot_from_host(p, b);
		return;
	default:
		break;
	}
	p->t->fault[b->fault]++;
}

static void on_user(void *arg, const struct sim_event *ev)
{
	struct play *p = arg;

	if (ev->type == EV_BLOW && p->over)
		return;
	if (ev->type == EV_BLOW)
		on_blow(p, &p->s.blow[ev->arg], ev->arg);
	else if (ev->type == EV_HEAL)
		cut(p, false);
	else if (ev->type == EV_COME)
		on_come(p, p->w->host[ev->to]);
	else
		sim_host_end(p->w, p->w->host[ev->to], NBAR_STATUS_CLOSED);
}

static void check_nic(struct play *p, const struct sim_nic *n, uint64_t sent)
{
	const struct nbnic *nic = &n->device.nic;

	if (p->w->wrong)
		wrong(p, "%s", p->w->wrong);
	if (sent > NBNIC_PASS_FRAMES(nic->quota))
		wrong(p, "NIC %u sends %llu frames in a pass", n->index, (unsigned long long)sent);
	for (uint32_t i = 0; i < nic->high; i++) {
		const struct nbnic_group *g = nic->group[i];
		int broken = g && g->state ? nbfw_check(g->state, g->plan) : 0;

		if (broken)
			wrong(p, "invariant %d does not hold at rank %u on NIC %u", broken, g->rank,
			      n->index);
	}
}

static void step_all(struct play *p, bool (*over)(const struct play *p), sim_time until)
{
	for (uint32_t i = 0; i < EVENTS_MAX && !p->bad && !over(p); i++) {
		uint64_t sent = p->w->frames;

		if (!sim_world_step(p->w, until))
			return;
		if (p->w->turned != SIM_NOBODY)
			check_nic(p, p->w->nic[p->w->turned], p->w->frames - sent);
	}
}

static bool nobody_runs(const struct play *p)
{
	return p->running == 0;
}

static bool never(const struct play *p)
{
	return false;
}

static int open_groups(struct play *p)
{
	for (uint32_t i = 0; i < p->s.ngroup; i++) {
		const struct scenario_group *g = &p->s.group[i];
		struct sim_host *host[SCENARIO_SIZE_MAX];
		char name[NBAR_NAME_MAX];

		nbfw_alg_name(g->alg, name);
		for (uint32_t rank = 0; rank < g->size; rank++) {
			host[rank] = sim_host_begin(p->w, g->nic[rank]);
			if (!host[rank])
				return -NBAR_ENOMEM;
			host[rank]->user = i << 8 | rank;
			p->player[i][rank].host = host[rank];
		}
		p->running += g->size;
		int r = sim_group_begin(p->w, host, g->size, name, NULL, g->value_max);

		if (r)
			return r;
		for (uint32_t rank = 0; rank < g->size; rank++)
			come_later(p, host[rank]);
	}
	return 0;
}

static int begin(struct play *p)
{
	struct sim_world *w = p->w;

	w->arg = p;
	w->user = on_user;
	w->progress = on_progress;
	w->turn_cost = p->s.turn_cost;
	w->notice = p->s.notice;
	w->queue_limit = p->s.queue_limit;
	w->refuse = p->s.refuse;
	w->pull_ns = p->s.pull_ns;
	w->budget_ns = p->s.budget_ns;
	w->lends = p->s.lends;
	w->sleeps = p->s.sleeps;
	w->unsent = p->s.unsent;
	w->unlent = p->s.unlent;
	w->waits = p->s.waits;
	w->full_for = p->s.full_for;
	int r = sim_world_begin(w, &p->s.net);

	for (uint32_t i = 0; !r && i < w->nnic; i++)
		w->nic[i]->clock_ns = rng_next(&p->s.rng) >> rng_below(&p->s.rng, 64) >> 2;
	if (!r)
		r = open_groups(p);
	p->may_close = true;
	for (uint32_t i = 0; i < p->s.nblow; i++) {
		sim_world_push(w, p->s.blow[i].at, EV_BLOW, 0, i);
		/* A closed group answers for the retry budget, by its NIC's clock. A jump of this
		 * clock shortens the time in which it answers. */
		p->may_close &= p->s.blow[i].amount < p->s.budget_ns / 4;
	}
	return r;
}

static void check_quiet(struct play *p)
{
	uint64_t tokens = 0;

	for (uint32_t i = 0; i < p->s.ngroup; i++) {
		const struct scenario_group *g = &p->s.group[i];
		struct sim_plans plans;

		if (sim_plans_generate(&plans, g->alg, g->size))
			return;
		tokens += plans.tokens * g->goal;
		sim_plans_free(&plans);
	}
	p->t->quiet++;
	if (p->w->frames + p->w->fast_frames != tokens)
		wrong(p, "%llu frames without a fault, where %llu are enough",
		      (unsigned long long)(p->w->frames + p->w->fast_frames),
		      (unsigned long long)tokens);
}

/* All members have completed or failed: the hosts close, and the NICs forget the groups. */
static void finish(struct play *p)
{
	struct sim_world *w = p->w;
	bool lost = false;

	p->over = true;
	if (p->running > 0)
		wrong(p, "%u members neither complete nor fail", p->running);
	for (uint32_t i = 0; i < w->nhost; i++)
		sim_host_end(w, w->host[i], NBAR_STATUS_CLOSED);
	/* A group lingers for the retry budget by its own NIC's clock, and longer if it still has
	 * frames to send. */
	step_all(p, never, w->now + 100 * p->s.budget_ns * SIM_NS);
	for (uint32_t i = 0; i < w->nnic; i++)
		lost |= w->nic[i]->lost > 0;
	for (uint32_t i = 0; i < w->nnic; i++)
		if (!w->nic[i]->dead && (w->nic[i]->device.nic.nlinger || w->nic[i]->device.nopen))
			wrong(p, "NIC %u still has %u groups and %u ports", i,
			      w->nic[i]->device.nic.nlinger, w->nic[i]->device.nopen);
	if (w->blocks > 0)
		wrong(p, "%llu blocks of memory are left", (unsigned long long)w->blocks);
	/* A member that has lost its state may see an epoch that it does not expect. */
	if (sim_world_counted(w, NBAR_COUNTER_frames_bad) > 0 && !lost)
		wrong(p, "frames that no correct member sends");
	if (p->s.quiet && !p->bad)
		check_quiet(p);
}

static void count(struct play *p)
{
	uint64_t *f = p->t->fault;
	struct sim_world *w = p->w;

	f[FAULT_LOSS] += w->net.lost;
	f[FAULT_REPEAT] += w->net.repeated;
	f[FAULT_REORDER] += w->net.reordered;
	f[FAULT_NOISE] += w->noise / SIM_US;
	for (uint32_t i = 0; i < w->nnic; i++) {
		f[FAULT_OVERFLOW] += w->nic[i]->dropped;
		f[FAULT_REFUSE] += w->nic[i]->refused;
		f[FAULT_CUT] += w->nic[i]->cut;
		f[FAULT_KEEP] += w->nic[i]->lost;
	}
	for (uint32_t i = 0; i < p->s.nblow; i++)
		if (p->s.blow[i].fault == FAULT_STRANGER)
			f[FAULT_STRANGER] += sim_world_counted(w, NBAR_COUNTER_frames_stranger);
	f[FAULT_DOORBELL] += sim_world_counted(w, NBAR_COUNTER_doorbells_bad);
	p->t->fast += w->fast_completed;
	p->t->events += w->queue.popped;
}

bool play(uint64_t seed, struct tallies *t, char *why, size_t room)
{
	struct play *p = calloc(1, sizeof(*p));
	bool good;

	if (!p || !(p->w = calloc(1, sizeof(*p->w)))) {
		free(p);
		snprintf(why, room, "no memory");
		return false;
	}
	p->t = t;
	p->why = why;
	p->room = room;
	scenario_draw(&p->s, seed);
	if (begin(p))
		wrong(p, "a NIC refuses a group, or there is no memory");
	step_all(p, nobody_runs, UINT64_MAX);
	if (!p->bad)
		finish(p);
	count(p);
	good = !p->bad;
	sim_world_end(p->w);
	free(p->w);
	free(p);
	return good;
}
