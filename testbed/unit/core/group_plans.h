/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_plans.h - the plans of all ranks of a group, and the proof that they make a barrier.
 *
 * For tests only. Reads plans by the structs of the ABI, not by the code under test.
 */
#ifndef TESTBED_GROUP_PLANS_H
#define TESTBED_GROUP_PLANS_H

#include <sys/mman.h>
#include <unistd.h>

#include "plan.h"
#include "unit/unit.h"

struct group_plans {
	uint32_t size;
	struct nbar_plan **plan; /* of each rank; all plans lie in one block */
	void *block;
	uint32_t *first_slot; /* of each rank, in sent_step[]; then the number of all slots */
	uint16_t *sent_step;  /* of each slot: the step in which its sender sends; see match */
};

/* One signal: src sends it when it enters src_step, dst waits for it in dst_step. */
struct edge {
	uint32_t src, src_step;
	uint32_t dst, dst_step;
};

/* A block, aligned to words of 32 bits, with no memory behind its last word: an access beyond it ends
 * the test. Valid until the next call for the same place (0 or 1). Its bytes are not 0. */
static inline void *group_plans_at_end(uint32_t place, size_t length)
{
	static uint8_t *end[2];
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = 64 * page;

	if (!end[place]) {
		uint8_t *at = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_ptr_not_equal(at, MAP_FAILED);
		end[place] = at + room;
		assert_int_equal(mprotect(end[place], page, PROT_NONE), 0);
	}
	length = (length + 3) & ~(size_t)3;
	assert_in_range(length, 0, room);
	return memset(end[place] - length, 0xa5, length);
}

#define GROUP_PLANS_BYTES_A_RANK 1280u /* enough for each plan except that of a linear root */

/* Every algorithm that makes plans, with every value of its parameter in the table. */
static inline struct nbfw_alg group_plans_first(void)
{
	return (struct nbfw_alg){ NBFW_ALG_FIRST, nbfw_alg_row(NBFW_ALG_FIRST)->low };
}

static inline struct nbfw_alg group_plans_next(struct nbfw_alg alg)
{
	if (++alg.n > nbfw_alg_row(alg.kind)->high) {
		alg.kind = (enum nbfw_alg_kind)(alg.kind + 1);
		alg.n = alg.kind < NBFW_ALG_END ? nbfw_alg_row(alg.kind)->low : 0;
	}
	return alg;
}

#define group_plans_each(alg)                                                    \
	for (struct nbfw_alg alg = group_plans_first(); alg.kind < NBFW_ALG_END; \
	     alg = group_plans_next(alg))

/* A random algorithm that makes plans, with a parameter of at most 5. */
static inline struct nbfw_alg group_plans_any(struct rng *rng)
{
	struct nbfw_alg alg = { (enum nbfw_alg_kind)(NBFW_ALG_FIRST +
						     rng_below(rng, NBFW_ALG_END - NBFW_ALG_FIRST)),
				0 };
	const struct nbfw_alg_row *row = nbfw_alg_row(alg.kind);
	uint32_t most = row->high < 5 ? row->high : 5;

	alg.n = row->low + rng_below(rng, most - row->low + 1);
	return alg;
}

/* The name of alg, until the next call. */
static inline const char *group_plans_text(struct nbfw_alg alg)
{
	static char name[NBAR_NAME_MAX];

	nbfw_alg_name(alg, name);
	return name;
}

static inline void group_plans_free(struct group_plans *set)
{
	free(set->plan);
	free(set->block);
	free(set->first_slot);
	free(set->sent_step);
	*set = (struct group_plans){ 0 };
}

static inline struct group_plans group_plans_new(uint32_t size, size_t capacity)
{
	struct group_plans set = { .size = size };

	set.plan = calloc(size, sizeof(set.plan[0]));
	set.block = calloc(1, capacity);
	set.first_slot = calloc(size + 1, sizeof(set.first_slot[0]));
	return set;
}

/* Counts the slots before each rank. To be called after all plans have been made. */
static inline void group_plans_index(struct group_plans *set)
{
	for (uint32_t r = 0; r < set->size; r++)
		set->first_slot[r + 1] = set->first_slot[r] + set->plan[r]->nrecv;
	set->sent_step = calloc(set->first_slot[set->size] + 1, sizeof(set->sent_step[0]));
}

static inline struct group_plans group_plans_generate(struct nbfw_alg alg, uint32_t size)
{
	size_t capacity = (size_t)size * GROUP_PLANS_BYTES_A_RANK, used = 0;
	struct group_plans set = group_plans_new(size, capacity);

	for (uint32_t r = 0; r < size; r++) {
		void *at = (char *)set.block + used;
		int32_t length = nbfw_plan_generate(alg, size, r, at, capacity - used);

		require(length > 0, "%s size %u rank %u", group_plans_text(alg), size, r);
		set.plan[r] = at;
		used += (size_t)length;
	}
	group_plans_index(&set);
	return set;
}

/* Makes plans from a list of signals. Slots are numbered by step, then by place in the list. */
static inline struct group_plans group_plans_from_edges(uint32_t size, const struct edge *edge,
							uint32_t n)
{
	size_t most = sizeof(struct nbar_plan) + (2 * (size_t)n + 1) * sizeof(struct nbar_step) +
		      n * (sizeof(struct nbar_send) + sizeof(struct nbar_recv));
	struct group_plans set = group_plans_new(size, size * most);
	uint32_t *slot = calloc(n + 1, sizeof(slot[0]));

	for (uint32_t r = 0; r < size; r++) {
		struct nbar_plan *p = (void *)((char *)set.block + r * most);

		*p = (struct nbar_plan){ .magic = NBAR_PLAN_MAGIC, .rank = r, .size = size };
		set.plan[r] = p;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t step = edge[i].src == r ? edge[i].src_step : 0;

			p->nsend += edge[i].src == r;
			if (edge[i].dst == r) {
				step = edge[i].dst_step > step ? edge[i].dst_step : step;
				for (uint32_t j = 0; j < n; j++)
					if (edge[j].dst == r &&
					    (edge[j].dst_step < edge[i].dst_step ||
					     (edge[j].dst_step == edge[i].dst_step && j < i)))
						slot[i]++;
				p->nrecv++;
			}
			if ((edge[i].src == r || edge[i].dst == r) && step >= p->nstep)
				p->nstep = step + 1;
		}
	}
	for (uint32_t r = 0; r < size; r++) {
		struct nbar_plan *p = set.plan[r];
		struct nbar_step *step = (struct nbar_step *)(p + 1);
		struct nbar_send *send = (struct nbar_send *)(step + p->nstep);
		struct nbar_recv *recv = (struct nbar_recv *)(send + p->nsend);
		uint32_t nsend = 0, nrecv = 0;

		for (uint32_t s = 0; s < p->nstep; s++) {
			step[s] = (struct nbar_step){ nsend, 0, nrecv, 0 };
			for (uint32_t i = 0; i < n; i++) {
				if (edge[i].src == r && edge[i].src_step == s)
					send[nsend++] = (struct nbar_send){ edge[i].dst, slot[i] };
				if (edge[i].dst == r && edge[i].dst_step == s)
					recv[nrecv++] = (struct nbar_recv){ edge[i].src };
			}
			step[s].nsend = nsend - step[s].first_send;
			step[s].nslot = nrecv - step[s].first_slot;
		}
	}
	free(slot);
	group_plans_index(&set);
	return set;
}

/*
 * True if every send goes to a slot that waits for its sender, and every slot gets exactly one
 * send. Fills sent_step[].
 */
static inline bool group_plans_match(struct group_plans *set)
{
	uint32_t nslot = set->first_slot[set->size], nsend = 0;

	for (uint32_t i = 0; i < nslot; i++)
		set->sent_step[i] = UINT16_MAX;
	for (uint32_t r = 0; r < set->size; r++) {
		const struct nbar_plan *p = set->plan[r];
		const struct nbar_step *step = (const struct nbar_step *)(p + 1);
		const struct nbar_send *send = (const struct nbar_send *)(step + p->nstep);

		for (uint32_t s = 0; s < p->nstep; s++) {
			for (uint32_t i = 0; i < step[s].nsend; i++, send++, nsend++) {
				const struct nbar_plan *q =
					send->dst < set->size ? set->plan[send->dst] : p;
				uint16_t *sent = &set->sent_step[set->first_slot[q->rank]];

				if (q == p || send->slot >= q->nrecv ||
				    nbfw_plan_recvs(q)[send->slot].src != r ||
				    sent[send->slot] != UINT16_MAX)
					return false;
				sent[send->slot] = (uint16_t)s;
			}
		}
	}
	return nsend == nslot;
}

/* State of the test below: the step of each rank, and its knowledge when it entered each step. */
struct spread {
	uint32_t *at;      /* step that each rank is in */
	size_t *first_row; /* of each rank, in row[]; rows of a rank are in the order of its steps
			    */
	uint64_t *row;     /* one bit per column */
	size_t words;      /* of a row */
};

/* Moves rank r to its next step, if all signals that its present step waits for have been sent. */
static inline bool spread_step(const struct group_plans *set, struct spread *k, uint32_t r)
{
	const struct nbar_plan *p = set->plan[r];
	const struct nbar_step *step = &nbfw_plan_steps(p)[k->at[r]];
	const struct nbar_recv *recv = nbfw_plan_recvs(p) + step->first_slot;
	const uint16_t *sent = set->sent_step + set->first_slot[r] + step->first_slot;
	uint64_t *row = k->row + (k->first_row[r] + k->at[r]) * k->words;
	uint64_t *next = row + k->words;

	for (uint32_t i = 0; i < step->nslot; i++)
		if (k->at[recv[i].src] < sent[i])
			return false;
	memcpy(next, row, k->words * sizeof(row[0]));
	for (uint32_t i = 0; i < step->nslot; i++) {
		const uint64_t *of = k->row + (k->first_row[recv[i].src] + sent[i]) * k->words;

		for (size_t w = 0; w < k->words; w++)
			next[w] |= of[w];
	}
	k->at[r]++;
	return true;
}

/*
 * The knowledge-matrix test: K_0 = I + S_0, K_a = K_(a-1) + K_(a-1) S_a, and the plans are a
 * barrier if and only if no entry of the last K is zero. Ranks may be in different steps, so stage
 * a consists of all steps that can end next. A signal carries only the knowledge that its sender
 * had when the sender entered the step. Also false if ranks wait for each other in a circle. Needs
 * group_plans_match. column: the ranks whose arrival the test follows; NULL: all.
 */
static inline bool group_plans_spreads(const struct group_plans *set, const uint32_t *column,
				       uint32_t ncolumn)
{
	uint32_t ncol = column ? ncolumn : set->size, done = 0;
	struct spread k = { .words = (ncol + 63) / 64 };
	bool moved = true, full = true;

	k.at = calloc(set->size, sizeof(k.at[0]));
	k.first_row = calloc(set->size + 1, sizeof(k.first_row[0]));
	for (uint32_t r = 0; r < set->size; r++)
		k.first_row[r + 1] = k.first_row[r] + set->plan[r]->nstep + 1;
	k.row = calloc(k.first_row[set->size], k.words * sizeof(k.row[0]));
	for (uint32_t c = 0; c < ncol; c++)
		k.row[k.first_row[column ? column[c] : c] * k.words + c / 64] |= UINT64_C(1)
										 << c % 64;
	while (moved) {
		moved = false;
		for (uint32_t r = 0; r < set->size; r++)
			if (k.at[r] < set->plan[r]->nstep && spread_step(set, &k, r))
				moved = true;
	}
	for (uint32_t r = 0; r < set->size; r++) {
		const uint64_t *last = k.row + (k.first_row[r] + k.at[r]) * k.words;

		done += k.at[r] == set->plan[r]->nstep;
		for (uint32_t w = 0; w < k.words && full; w++)
			full = last[w] ==
			       (w < ncol / 64 ? UINT64_MAX : (UINT64_C(1) << ncol % 64) - 1);
	}
	free(k.at);
	free(k.first_row);
	free(k.row);
	return full && done == set->size;
}

static inline bool group_plans_is_barrier(struct group_plans *set)
{
	return group_plans_match(set) && group_plans_spreads(set, NULL, 0);
}

/* The signals of a set that matches, as a list; *n is their number. */
static inline struct edge *group_plans_edges(const struct group_plans *set, uint32_t *n)
{
	struct edge *edge = calloc(set->first_slot[set->size] + 1, sizeof(edge[0]));

	*n = 0;
	for (uint32_t r = 0; r < set->size; r++) {
		const struct nbar_plan *p = set->plan[r];

		for (uint32_t s = 0; s < p->nstep; s++) {
			const struct nbar_step *step = &nbfw_plan_steps(p)[s];

			for (uint32_t i = step->first_slot; i < step->first_slot + step->nslot; i++)
				edge[(*n)++] =
					(struct edge){ nbfw_plan_recvs(p)[i].src,
						       set->sent_step[set->first_slot[r] + i], r,
						       s };
		}
	}
	return edge;
}

/* All ranks signal the root, then the root signals all ranks. */
static inline struct group_plans group_plans_linear(uint32_t size, uint32_t root)
{
	struct edge *edge = calloc(2 * (size_t)size, sizeof(edge[0]));
	uint32_t n = 0;

	for (uint32_t r = 0; r < size; r++) {
		if (r != root) {
			edge[n++] = (struct edge){ r, 0, root, 0 };
			edge[n++] = (struct edge){ root, 1, r, 0 };
		}
	}
	struct group_plans set = group_plans_from_edges(size, edge, n);

	free(edge);
	return set;
}

/* Random signals, stage by stage, until each rank knows that all have arrived. size is 2 or
 * more. */
static inline struct group_plans group_plans_random(uint32_t size, struct rng *rng)
{
	struct edge edge[4096];
	struct group_plans set = { 0 };
	uint32_t n = 0;

	for (uint32_t stage = 0; n < 4000; stage++) {
		for (uint32_t i = 1 + rng_below(rng, 2 * size); i > 0; i--) {
			uint32_t src = rng_below(rng, size);
			uint32_t dst = (src + 1 + rng_below(rng, size - 1)) % size;

			edge[n++] = (struct edge){ src, stage, dst, stage };
		}
		group_plans_free(&set);
		set = group_plans_from_edges(size, edge, n);
		if (group_plans_is_barrier(&set))
			break;
	}
	return set;
}

#endif
