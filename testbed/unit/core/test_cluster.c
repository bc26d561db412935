/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cluster.c - whole groups in random worlds: no member leaves a barrier early, no member
 * hangs, and failures name the right rank. world.h has the rules of the world and its oracle.
 */
#include "world.h"

/* Runs `body` in n worlds: in a quarter of them under a sanitizer, which makes each slow; in few
 * worlds if the run only measures which lines are reached. */
static void in_worlds(uint32_t n, uint32_t least, uint32_t goal, void (*body)(struct world *w))
{
	n = unit_counted() ? n / 20 : unit_sanitized() ? n / 4 : n;
	for (uint64_t seed = unit_seed(), last = seed + n; seed != last; seed++) {
		struct world w = world_new(seed, least, goal);

		body(&w);
		world_free(&w);
	}
}

static bool all_done(struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++)
		if (w->member[r].ndone < w->goal)
			return false;
	return true;
}

/* All members except those that are dead or have left. */
static bool all_others_failed(struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++)
		if (!w->member[r].dead && !w->member[r].nfail)
			return false;
	return true;
}

static void require_nobody_failed(struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++)
		world_require(w, w->member[r].nfail == 0);
}

/* Requires that every other member has failed and names this rank and this cause. */
static void require_blamed(struct world *w, uint32_t rank, uint8_t cause)
{
	for (uint32_t r = 0; r < w->size; r++) {
		if (r != rank) {
			world_require(w, w->member[r].s->failed_rank == rank);
			world_require(w, w->member[r].s->cause == cause);
		}
	}
}

static void loss(struct world *w)
{
	world_run(w, all_done);
	require_nobody_failed(w);
	/* Frames that are still under way cause no failure. */
	world_pass(w, 10000);
	require_nobody_failed(w);
	for (uint32_t r = 0; r < w->size; r++)
		world_require(w, w->member[r].ndone == w->goal);
}

static void test_loss_duplication_reordering(void **state)
{
	in_worlds(2000, 1, 8, loss);
}

/* Without loss and late hosts, members send the frames of the plans and no other frame. */
static void no_loss(struct world *w)
{
	uint64_t nsend = 0;

	w->drop = w->repeat = w->stray = w->slow = 0;
	w->delay = 1; /* a chain of 20 ranks, there and back, must be faster than a TIMEOUT */
	world_run(w, all_done);
	for (uint32_t r = 0; r < w->size; r++)
		nsend += w->set.plan[r]->nsend;
	world_pass(w, 10000);
	world_require(w, w->npull == 0);
	world_require(w, w->nframe == w->goal * nsend);
	require_nobody_failed(w);
}

static void test_no_loss_no_extra_frame(void **state)
{
	in_worlds(500, 1, 5, no_loss);
}

/* All frames are lost for 12 timeouts. That is less than a window, so barriers are only delayed. */
static void outage(struct world *w)
{
	w->drop = w->stray = 0; /* otherwise the few PULLs left in the window might be lost, too */
	world_pass(w, rng_below(&w->rng, 1000));
	w->outage = true;
	world_pass(w, 12 * WORLD_TIMEOUT);
	w->outage = false;
	world_run(w, all_done);
	require_nobody_failed(w);
}

static void test_outage(void **state)
{
	in_worlds(500, 2, 20, outage);
}

/* A NIC dies: all other members fail with its rank, and no member completes a barrier that the dead
 * member did not start. */
static void silent(struct world *w)
{
	uint32_t victim = rng_below(&w->rng, w->size);

	world_pass(w, rng_below(&w->rng, 3000));
	w->member[victim].dead = true;
	world_run(w, all_others_failed);
	require_blamed(w, victim, NBAR_STATUS_SILENT);
}

static void test_silent_member(void **state)
{
	in_worlds(500, 2, UINT32_MAX, silent);
}

/* A host dies: all other members fail with its rank, and their NICs know the cause. */
static void host_dies(struct world *w)
{
	uint32_t victim = rng_below(&w->rng, w->size);

	world_leave(w, victim, NBAR_STATUS_HOST_DIED, 3000);
	world_run(w, all_others_failed);
	require_blamed(w, victim, NBAR_STATUS_HOST_DIED);
}

static void test_host_dies(void **state)
{
	in_worlds(500, 2, UINT32_MAX, host_dies);
}

/* Two members leave at once: each other member names one of the two. */
static void two_go(struct world *w)
{
	uint32_t one = rng_below(&w->rng, w->size);
	uint32_t two = (one + 1 + rng_below(&w->rng, w->size - 1)) % w->size;

	world_leave(w, one, NBAR_STATUS_NIC_DOWN, 2000);
	world_pass(w, rng_below(&w->rng, 2000));
	w->member[two].dead = true;
	world_run(w, all_others_failed);
	for (uint32_t r = 0; r < w->size; r++) {
		const struct nbfw_state *s = w->member[r].s;

		world_require(w,
			      r == two ||
				      (s->failed_rank == one && s->cause == NBAR_STATUS_NIC_DOWN) ||
				      (s->failed_rank == two && s->cause == NBAR_STATUS_SILENT));
	}
}

static void test_two_go(void **state)
{
	in_worlds(500, 2, UINT32_MAX, two_go);
}

static uint32_t late_rank;

/* True if all other members wait, and know the straggler. */
static bool late_is_known(struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++)
		if (r != late_rank &&
		    (!w->member[r].s->running || w->member[r].s->straggler != late_rank))
			return false;
	return true;
}

/* A host comes very late: no member fails, and every waiting NIC can name it. */
static void late(struct world *w)
{
	late_rank = rng_below(&w->rng, w->size);
	world_pass(w, rng_below(&w->rng, 1000));
	w->member[late_rank].held = true;
	world_pass(w, 5 * NBFW_WINDOW * WORLD_TIMEOUT);
	require_nobody_failed(w);
	world_run(w, late_is_known);
	w->goal = w->member[late_rank].nstart + 3;
	world_release(w, late_rank);
	world_run(w, all_done);
	require_nobody_failed(w);
}

static void test_late_member(void **state)
{
	in_worlds(500, 2, UINT32_MAX, late);
}

static bool all_left(struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++) {
		struct world_member *m = &w->member[r];

		if (m->ndone == w->goal && !m->nfail && !m->held) {
			m->held = true; /* each member leaves only once */
			world_leave(w, r, NBAR_STATUS_CLOSED, 300);
		}
		if (!m->nfail)
			return false;
	}
	return true;
}

/* Each member closes soon after its last barrier. A member whose last token was lost still gets it.
 */
static void closing(struct world *w)
{
	world_run(w, all_left);
	for (uint32_t r = 0; r < w->size; r++) {
		world_require(w, w->member[r].ndone == w->goal);
		world_require(w, w->member[r].s->failed_rank == r);
	}
}

static void test_closing(void **state)
{
	in_worlds(500, 1, 3, closing);
}

static bool early_done(struct world *w)
{
	return w->member[late_rank].ndone == 2;
}

/* One member closes while the others go on: they complete the barriers that it has completed, and
 * no more. */
static void closes_early(struct world *w)
{
	late_rank = rng_below(&w->rng, w->size);
	world_run(w, early_done);
	w->member[late_rank].held = true;
	world_leave(w, late_rank, NBAR_STATUS_CLOSED, 500);
	world_run(w, all_others_failed);
	require_blamed(w, late_rank, NBAR_STATUS_CLOSED);
	for (uint32_t r = 0; r < w->size; r++)
		world_require(w, w->member[r].ndone == 2);
}

static void test_closes_early(void **state)
{
	in_worlds(300, 2, UINT32_MAX, closes_early);
}

/* Members without a clock, on a wire without loss: they carry out all actions at once. */
struct quick {
	struct group_plans set;
	struct nbfw_state **s;
	uint32_t *ndone;
	struct {
		uint32_t to;
		struct nbfw_token token;
	} * frame;
	uint32_t first, end; /* of the frames under way */
};

static void quick_step(struct quick *q, uint32_t rank, const struct nbfw_event *ev)
{
	const struct nbar_plan *p = q->set.plan[rank];
	struct nbfw_action a;

	nbfw_step(q->s[rank], p, ev, &a);
	require(a.verdict == NBFW_USED, "size %u rank %u", q->set.size, rank);
	q->ndone[rank] += a.complete;
	for (uint32_t i = a.send_first; i < a.send_end; i++) {
		const struct nbar_send *to = &nbfw_plan_sends(p)[i];

		q->frame[q->end].to = to->dst;
		q->frame[q->end++].token = (struct nbfw_token){
			.type = NBFW_TOKEN, .src = rank, .slot = to->slot, .epoch = a.send_epoch
		};
	}
}

/* A host arrives. Carries out all actions that follow. */
static void quick_start(struct quick *q, uint32_t rank)
{
	struct nbfw_event ev = { .type = NBFW_EV_START };

	quick_step(q, rank, &ev);
	ev.type = NBFW_EV_TOKEN;
	for (; q->first < q->end; q->first++) {
		ev.token = q->frame[q->first].token;
		quick_step(q, q->frame[q->first].to, &ev);
	}
}

/* One barrier per rank. In its barrier a rank arrives long after all others: no member completes
 * before this arrival, and all complete after it. */
static void delay(struct nbfw_alg alg, uint32_t size)
{
	struct quick q = { .set = group_plans_generate(alg, size) };

	require(group_plans_match(&q.set), "%s size %u", group_plans_text(alg), size);
	q.s = calloc(size, sizeof(q.s[0]));
	q.ndone = calloc(size, sizeof(q.ndone[0]));
	q.frame = calloc(q.set.first_slot[size] + 1, sizeof(q.frame[0]));
	for (uint32_t r = 0; r < size; r++) {
		q.s[r] = malloc(nbfw_state_size(q.set.plan[r]));
		nbfw_init(q.s[r], q.set.plan[r], UINT32_MAX - size / 2);
	}
	for (uint32_t last = 0; last < size; last++) {
		q.first = q.end = 0;
		for (uint32_t r = 0; r < size; r++)
			if (r != last)
				quick_start(&q, r);
		for (uint32_t r = 0; r < size; r++)
			require(q.ndone[r] == last, "%s size %u late %u", group_plans_text(alg),
				size, last);
		quick_start(&q, last);
		for (uint32_t r = 0; r < size; r++)
			require(q.ndone[r] == last + 1, "%s size %u late %u", group_plans_text(alg),
				size, last);
	}
	for (uint32_t r = 0; r < size; r++)
		free(q.s[r]);
	free(q.s);
	free(q.ndone);
	free(q.frame);
	group_plans_free(&q.set);
}

static void test_delay_every_size_to_256(void **state)
{
	uint32_t stride = unit_stride();

	group_plans_each (alg) {
		const struct nbfw_alg_row *row = nbfw_alg_row(alg.kind);

		if (alg.n < row->usual || alg.n > row->usual_end)
			continue;
		for (uint32_t size = 1; size <= 256; size += size > 32 ? stride : 1)
			delay(alg, size);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(test_loss_duplication_reordering), UNIT(test_no_loss_no_extra_frame),
	  UNIT(test_outage), UNIT(test_silent_member), UNIT(test_host_dies), UNIT(test_two_go),
	  UNIT(test_late_member), UNIT(test_closing), UNIT(test_closes_early),
	  UNIT(test_delay_every_size_to_256))
