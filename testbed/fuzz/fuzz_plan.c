/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_plan.c - the input is a plan that a client uploads, then events for the engine that runs it.
 *
 * The plan is given as bytes, or as changes of a plan of the firmware. A plan that the check
 * accepts must be safe for the engine: after each event the invariants hold.
 */
#include "engine.h"
#include "fuzz.h"
#include "plan.h"

#define PLAN_MAX 8192u
#define EVENTS_MAX 500u

static struct nbfw_event event_of(struct fuzz_input *in, const struct nbfw_state *s)
{
	struct nbfw_event ev = { .type = fuzz_u8(in) % 6 };

	ev.cause = fuzz_u8(in) % 8;
	ev.token.type = fuzz_u8(in) % (NBFW_TYPE_END + 1);
	ev.token.src = fuzz_u8(in);
	ev.token.epoch = s->epoch + fuzz_near(in);
	ev.token.slot = fuzz_u8(in) & 0x80 ? fuzz_u32(in) : fuzz_u8(in);
	ev.token.arg = fuzz_u8(in) & 0x80 ? NBAR_RANK_NONE : fuzz_u8(in);
	ev.token.info = fuzz_u8(in);
	return ev;
}

/* The sends and slots that an action names are within the plan. */
static void check_action(const struct nbfw_action *a, const struct nbar_plan *p)
{
	fuzz_require(a->send_first <= p->nsend && a->send_end <= p->nsend);
	fuzz_require(a->pull_first <= a->pull_end && a->pull_end <= p->nrecv);
	fuzz_require(!(a->complete && a->failed));
}

static void run(const struct nbar_plan *p, struct fuzz_input *in)
{
	struct nbfw_state *s = calloc(1, nbfw_state_size(p));
	struct nbfw_action a;

	fuzz_require(s);
	nbfw_init(s, p, fuzz_u8(in) & 1 ? UINT32_MAX : 0);
	for (uint32_t n = 0; in->left > 0 && n < EVENTS_MAX; n++) {
		struct nbfw_event ev = event_of(in, s);

		nbfw_step(s, p, &ev, &a);
		fuzz_require(nbfw_check(s, p) == 0);
		check_action(&a, p);
		for (uint32_t slot = 0; slot < p->nrecv && slot < 64; slot++)
			nbfw_hear(s, p, slot);
		fuzz_require(nbfw_missing_count(s, p) <= p->nrecv);
	}
	free(s);
}

/* The bytes of the input, or a plan of the firmware with some bytes changed. The block has exactly
 * the length of the plan, so a sanitizer sees an access beyond it. */
static struct nbar_plan *upload(struct fuzz_input *in, size_t *length)
{
	struct nbfw_alg alg = { NBFW_ALG_FIRST + fuzz_u8(in) % (NBFW_ALG_END - NBFW_ALG_FIRST), 0 };
	uint32_t size = 1 + fuzz_u8(in) % 40, rank = fuzz_u8(in) % size;
	struct nbar_plan *p = malloc(PLAN_MAX);
	int32_t n;

	fuzz_require(p);
	alg.n = nbfw_alg_row(alg.kind)->low + fuzz_u8(in) % 4;
	n = nbfw_plan_generate(alg, size, rank, p, PLAN_MAX);
	if (n > 0) {
		*length = (size_t)n;
		for (uint32_t changes = fuzz_u8(in) % 4; changes > 0; changes--)
			((uint8_t *)p)[fuzz_u16(in) % *length] ^= fuzz_u8(in);
	} else {
		*length = fuzz_take(in, p, fuzz_u16(in) % PLAN_MAX);
	}
	p = realloc(p, *length ? *length : 1);
	fuzz_require(p);
	return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	size_t length;
	struct nbar_plan *p = upload(&in, &length);
	uint64_t *scratch = malloc(nbfw_plan_scratch(length) * sizeof(*scratch) + 1);
	const char *why = NULL;

	fuzz_require(scratch);
	if (nbfw_plan_check(p, length, scratch, &why) == 0)
		run(p, &in);
	else
		fuzz_require(why && *why);
	free(scratch);
	free(p);
	return 0;
}
