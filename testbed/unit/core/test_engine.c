/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_engine.c - golden traces of the engine, rule by rule.
 *
 * A trace is text with one line per event: event => actions of the engine. @1 is the first barrier
 * of the trace; "tokens @1 to 3.0" are tokens for slot 0 of rank 3. Each trace runs from several
 * epochs, so it also crosses the wrap at 2^32. "63 x timeout" are 63 timeouts.
 */
#include "engine.h"
#include "group_plans.h"

static const char *const cause_name[] = { "ok",       "silent",  "host-died", "closed",
					  "nic-down", "aborted", "mismatch" };

static uint8_t cause_of(const char *name)
{
	for (uint8_t i = 0; i < NBAR_STATUS_END; i++)
		if (!strcmp(name, cause_name[i]))
			return i;
	return (uint8_t)strtoul(name, NULL, 0);
}

/* An event from its text, which ends at " => ". */
static struct nbfw_event event_of(const char *line, uint32_t base)
{
	static const char *const types[] = { "", "token", "pull", "later", "abort", "signal" };
	struct nbfw_event ev = { .type = NBFW_EV_TOKEN };
	struct nbfw_token *t = &ev.token;
	char word[32] = "", cause[32] = "";

	if (!strncmp(line, "start ", 6)) {
		ev.type = NBFW_EV_START;
	} else if (!strncmp(line, "timeout ", 8)) {
		ev.type = NBFW_EV_TIMEOUT;
	} else if (sscanf(line, "leave %31s from %u", word, &t->src) >= 1) {
		ev.type = NBFW_EV_LEAVE;
		ev.cause = cause_of(word);
	} else {
		int n = sscanf(line, "%31s @%u slot %u from %u rank %u %31s", word, &t->epoch,
			       &t->slot, &t->src, &t->arg, cause);

		require(n >= 4, "no such event: %s", line);
		t->epoch += base;
		t->info = cause_of(cause);
		for (uint8_t i = 1; i < 6; i++)
			if (!strcmp(word, types[i]))
				t->type = i;
	}
	return ev;
}

static void add(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

/* Writes the actions as text. */
static void action_text(const struct nbfw_state *s, const struct nbar_plan *p,
			const struct nbfw_action *a, uint32_t base, char *out, size_t size)
{
	static const char *const verdict[] = { "", ", duplicate", ", stale", ", bad" };
	static const char *const timer[] = { "", ", arm", ", disarm" };
	const struct nbar_send *send = nbfw_plan_sends(p);
	bool pulls = false;

	*out = 0;
	add(out, size, "%s", verdict[a->verdict]);
	if (a->complete)
		add(out, size, ", complete @%u", s->epoch - base);
	if (a->failed)
		add(out, size, ", failed %s %u", cause_name[s->cause], s->failed_rank);
	if (a->send_first < a->send_end)
		add(out, size, ", %s @%u to", a->send_type == NBFW_TOKEN ? "tokens" : "aborts",
		    a->send_epoch - base);
	for (uint32_t i = a->send_first; i < a->send_end; i++)
		add(out, size, " %u.%u", send[i].dst, send[i].slot);
	for (uint32_t i = a->pull_first; i < a->pull_end; i++) {
		if (nbfw_missing(s, p, i)) {
			add(out, size, "%s %u", pulls ? "" : ", pull", i);
			pulls = true;
		}
	}
	if (a->reply == NBFW_TOKEN) {
		assert_int_equal(a->reply_arg, NBAR_RANK_NONE);
		add(out, size, ", reply token");
	}
	if (a->reply == NBFW_LATER)
		add(out, size, ", reply later rank %u", a->reply_arg);
	if (a->reply == NBFW_ABORT)
		add(out, size, ", reply abort rank %u %s", a->reply_arg, cause_name[a->reply_info]);
	add(out, size, "%s", timer[a->timer]);
	memmove(out, *out ? out + 2 : "-", *out ? strlen(out + 2) + 1 : 2);
}

/* A member, and the rest of its trace. */
struct member {
	struct nbfw_state *s;
	const struct nbar_plan *p;
	uint32_t base;
	char trace[8192];
};

/* Runs the events of a trace, and compares the actions with those of the trace. */
static void run_trace_from(struct member *m, const char *trace)
{
	char first[1024], actions[1024];

	m->trace[0] = 0;
	for (const char *line = trace; *line; line = strchr(line, '\n') + 1) {
		const char *end = strstr(line, " => ");
		uint32_t times = 1;
		int skip = 0;

		if (sscanf(line, "%u x %n", &times, &skip) != 1)
			times = 1;
		struct nbfw_event ev = event_of(line + skip, m->base);

		for (uint32_t i = 0; i < times; i++) {
			struct nbfw_action a;

			nbfw_step(m->s, m->p, &ev, &a);
			action_text(m->s, m->p, &a, m->base, actions, sizeof(actions));
			if (i == 0)
				strcpy(first, actions);
			require(!strcmp(first, actions), "%u of %u: %s after:\n%s", i + 1, times,
				actions, m->trace);
			require(nbfw_check(m->s, m->p) == 0, "invariant %d after:\n%s",
				nbfw_check(m->s, m->p), m->trace);
		}
		add(m->trace, sizeof(m->trace), "%.*s => %s\n", (int)(end - line), line, actions);
	}
	assert_string_equal(m->trace, trace);
}

static void run_trace(const struct nbar_plan *p, const char *trace)
{
	static const uint32_t bases[] = { 0, UINT32_MAX, UINT32_MAX - 1, INT32_MAX, 12344 };

	for (uint32_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		struct member m = { .p = p, .base = bases[i] };

		m.s = malloc(nbfw_state_size(p));
		nbfw_init(m.s, p, bases[i]);
		run_trace_from(&m, trace);
		free(m.s);
	}
}

static void run_trace_alg(enum nbfw_alg_kind kind, uint32_t n, uint32_t size, uint32_t rank,
			  const char *trace)
{
	uint32_t block[GROUP_PLANS_BYTES_A_RANK / 4];
	const struct nbfw_alg alg = { kind, n };

	assert_true(nbfw_plan_generate(alg, size, rank, block, sizeof(block)) > 0);
	run_trace((struct nbar_plan *)block, trace);
}

/* R1: the host learns of the end before the last, send-only step is sent. */
static void test_r1_complete_before_last_sends(void **state)
{
	run_trace_alg(NBFW_ALG_PAIRWISE, 0, 3, 0,
		      "start => arm\n"
		      "token @1 slot 0 from 2 => tokens @1 to 1.0, arm\n"
		      "token @1 slot 1 from 1 => complete @1, tokens @1 to 2.0, disarm\n"
		      "start => arm\n"
		      "token @2 slot 1 from 1 => -\n"
		      "token @2 slot 0 from 2 => complete @2, tokens @2 to 1.0 2.0, disarm\n");
	run_trace_alg(NBFW_ALG_PAIRWISE, 0, 3, 2,
		      "start => tokens @1 to 0.0, arm\n"
		      "token @1 slot 0 from 0 => complete @1, disarm\n");
}

/* R2: accepts tokens of the running and the next epoch, each in its own set, and of no other
 * epoch. */
static void test_r2_two_epochs(void **state)
{
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "token @1 slot 0 from 3 => -\n" /* before the host arrives */
		      "token @2 slot 0 from 3 => bad\n"
		      "token @0 slot 0 from 3 => stale\n"
		      "start => tokens @1 to 1.0 2.1, arm\n"
		      "token @2 slot 0 from 3 => -\n" /* of the next barrier, while this one runs */
		      "token @2 slot 1 from 2 => -\n"
		      "token @3 slot 1 from 2 => bad\n"
		      "token @0 slot 1 from 2 => stale\n"
		      "token @1 slot 1 from 2 => complete @1, disarm\n"
		      "token @1 slot 1 from 2 => stale\n"
		      "token @2 slot 0 from 3 => duplicate\n"
		      "start => complete @2, tokens @2 to 1.0 2.1, disarm\n"
		      "start => tokens @3 to 1.0, arm\n" /* the token of @1 does not count */
		      "token @3 slot 0 from 3 => tokens @3 to 2.1, arm\n"
		      "token @1 slot 1 from 2 => stale\n"
		      "token @3 slot 1 from 2 => complete @3, disarm\n");
}

/* R3: steps end in order, one event may end several, and a token counts once. */
static void test_r3_steps(void **state)
{
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 8, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "token @1 slot 2 from 4 => -\n"
		      "token @1 slot 1 from 6 => -\n"
		      "token @1 slot 1 from 6 => duplicate\n"
		      "start => bad\n"
		      "token @1 slot 0 from 7 => complete @1, tokens @1 to 2.1 4.2, disarm\n");
	run_trace_alg(NBFW_ALG_DISSEMINATION, 3, 8, 0,
		      "start => tokens @1 to 1.0 2.1 3.2, arm\n"
		      "token @1 slot 2 from 5 => -\n"
		      "token @1 slot 0 from 7 => -\n"
		      "token @1 slot 0 from 7 => duplicate\n"
		      "token @1 slot 1 from 6 => tokens @1 to 4.3, arm\n"
		      "token @1 slot 3 from 4 => complete @1, disarm\n");
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 1, 0,
		      "start => complete @1, disarm\n"
		      "start => complete @2, disarm\n");
}

/* R3: a frame that no member may send is bad, and changes nothing. */
static void test_r3_bad_frames(void **state)
{
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "token @1 slot 0 from 1 => bad\n"
		      "token @1 slot 2 from 3 => bad\n"
		      "token @1 slot 4294967295 from 3 => bad\n"
		      "later @1 slot 0 from 1 rank 2 => bad\n"
		      "later @1 slot 0 from 3 rank 4 => bad\n"
		      "abort @1 slot 0 from 2 rank 3 silent => bad\n"
		      "abort @1 slot 0 from 3 rank 4 silent => bad\n"
		      "abort @1 slot 0 from 3 rank 1 ok => bad\n"
		      "abort @1 slot 0 from 3 rank 1 7 => bad\n"
		      "pull @1 slot 0 from 2 => bad\n"
		      "pull @1 slot 1 from 1 => bad\n"
		      "pull @3 slot 0 from 1 => bad\n"
		      "signal @1 slot 0 from 3 => bad\n"
		      "other @1 slot 0 from 3 => bad\n"
		      "leave ok => bad\n"
		      "leave 7 => bad\n"
		      "token @1 slot 0 from 3 => tokens @1 to 2.1, arm\n");
}

/* R4: a PULL for a sent token gets the token; a PULL for a token that is not sent yet gets LATER.
 */
static void test_r4_answers_to_pulls(void **state)
{
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "pull @1 slot 0 from 1 => reply later rank 0\n" /* rank 0 is late */
		      "pull @0 slot 0 from 1 => reply token\n"
		      "pull @-1 slot 0 from 1 => reply token\n"
		      "pull @-2 slot 0 from 1 => stale\n"
		      "start => tokens @1 to 1.0, arm\n"
		      "pull @1 slot 0 from 1 => reply token\n"
		      "pull @1 slot 1 from 2 => reply later rank 3\n" /* rank 0 waits for 3 */
		      "pull @0 slot 1 from 2 => reply token\n"
		      "pull @2 slot 0 from 1 => reply later rank 3\n"
		      "token @1 slot 0 from 3 => tokens @1 to 2.1, arm\n"
		      "pull @1 slot 1 from 2 => reply token\n"
		      "token @1 slot 1 from 2 => complete @1, disarm\n"
		      "pull @1 slot 1 from 2 => reply token\n"
		      "pull @2 slot 1 from 2 => reply later rank 0\n");
}

/* R4: a timeout asks for the missing tokens of the step, and for no others. */
static void test_r4_pulls(void **state)
{
	run_trace_alg(NBFW_ALG_DISSEMINATION, 3, 16, 0,
		      "timeout => stale\n"
		      "start => tokens @1 to 1.0 2.1 3.2, arm\n"
		      "timeout => pull 0 1 2, arm\n"
		      "token @1 slot 1 from 14 => -\n"
		      "timeout => pull 0 2, arm\n"
		      "token @1 slot 0 from 15 => -\n"
		      "timeout => pull 2, arm\n"
		      "token @1 slot 2 from 13 => tokens @1 to 4.3 8.4 12.5, arm\n"
		      "timeout => pull 3 4 5, arm\n"
		      "token @1 slot 5 from 4 => -\n"
		      "token @1 slot 3 from 12 => -\n"
		      "token @1 slot 4 from 8 => complete @1, disarm\n"
		      "timeout => stale\n");
}

/* R5: silence for a window ends the barrier with the rank of the silent source; a LATER gives the
 * source one more window. */
static void test_r5_silent_and_late(void **state)
{
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "63 x timeout => pull 0, arm\n"
		      "timeout => failed silent 3, aborts @1 to 2.1, disarm\n"
		      "timeout => stale\n"
		      "token @1 slot 0 from 3 => stale\n");
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "63 x timeout => pull 0, arm\n"
		      "later @1 slot 0 from 3 rank 1 => -\n"
		      "timeout => pull 0, arm\n"
		      /* The straggler is passed on, but a member never names itself. */
		      "pull @1 slot 1 from 2 => reply later rank 1\n"
		      "later @1 slot 0 from 3 rank 0 => -\n"
		      "pull @1 slot 1 from 2 => reply later rank 3\n"
		      "127 x timeout => pull 0, arm\n"
		      "timeout => failed silent 3, aborts @1 to 2.1, disarm\n");
}

/* R5: each step has its own window; a LATER for another epoch or step does not count. */
static void test_r5_windows(void **state)
{
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "later @1 slot 0 from 3 rank 3 => stale\n"
		      "start => tokens @1 to 1.0, arm\n"
		      "later @1 slot 1 from 2 rank 3 => stale\n"
		      "later @0 slot 0 from 3 rank 3 => stale\n"
		      "later @2 slot 0 from 3 rank 3 => stale\n"
		      "later @1 slot 0 from 3 rank 3 => -\n"
		      "63 x timeout => pull 0, arm\n"
		      "token @1 slot 0 from 3 => tokens @1 to 2.1, arm\n"
		      "later @1 slot 0 from 3 rank 3 => stale\n"
		      "pull @2 slot 0 from 1 => reply later rank 2\n" /* the LATER of rank 2 is out
									 of date */
		      "63 x timeout => pull 1, arm\n"
		      "timeout => failed silent 2, disarm\n");
	/* The answer of one source does not count for another. */
	run_trace_alg(NBFW_ALG_DISSEMINATION, 3, 4, 0,
		      "start => tokens @1 to 1.0 2.1 3.2, arm\n"
		      "later @1 slot 0 from 3 rank 3 => -\n"
		      "later @1 slot 2 from 1 rank 3 => -\n"
		      "63 x timeout => pull 0 1 2, arm\n"
		      "timeout => failed silent 2, disarm\n");
	/* A window begins after each LATER, and with each barrier. */
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 2, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "63 x timeout => pull 0, arm\n"
		      "later @1 slot 0 from 1 rank 1 => -\n"
		      "64 x timeout => pull 0, arm\n"
		      "later @1 slot 0 from 1 rank 1 => -\n"
		      "64 x timeout => pull 0, arm\n"
		      "later @1 slot 0 from 1 rank 1 => -\n"
		      "token @1 slot 0 from 1 => complete @1, disarm\n"
		      "start => tokens @2 to 1.0, arm\n"
		      "63 x timeout => pull 0, arm\n"
		      "timeout => failed silent 1, disarm\n");
}

/* R6: a failure is reported once, passed on to the members that wait for this member, and is the
 * answer to later PULLs. */
static void test_r6_failure(void **state)
{
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 8, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "abort @2 slot 0 from 7 rank 5 silent => stale\n" /* @1 comes first */
		      "abort @0 slot 0 from 7 rank 5 silent => stale\n"
		      "abort @1 slot 1 from 6 rank 5 host-died => failed host-died 5, aborts @1 to "
		      "2.1 4.2, disarm\n"
		      "abort @1 slot 0 from 7 rank 3 silent => stale\n"
		      "pull @1 slot 0 from 1 => reply token\n"
		      "pull @1 slot 1 from 2 => reply abort rank 5 host-died\n"
		      "pull @2 slot 0 from 1 => reply abort rank 5 host-died\n"
		      "later @1 slot 0 from 7 rank 7 => stale\n"
		      "token @1 slot 0 from 7 => stale\n"
		      "token @2 slot 0 from 7 => stale\n"
		      "start => stale\n"
		      "leave closed => stale\n"
		      "timeout => stale\n");
	/* Between two barriers, an ABORT lets the next barrier fail. */
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 2, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "token @1 slot 0 from 1 => complete @1, disarm\n"
		      "abort @1 slot 0 from 1 rank 1 nic-down => stale\n"
		      "abort @3 slot 0 from 1 rank 1 nic-down => stale\n"
		      "abort @2 slot 0 from 1 rank 1 nic-down => failed nic-down 1, aborts @2 to "
		      "1.0, disarm\n"
		      "start => stale\n"
		      "pull @1 slot 0 from 1 => reply token\n");
	/* A token whose value does not fit: its sender is named. */
	run_trace_alg(NBFW_ALG_PAIRWISE, 0, 4, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "leave mismatch from 4 => bad\n"
		      "leave mismatch from 1 => failed mismatch 1, aborts @1 to 2.1, disarm\n");
	/* An ABORT of a source is stale if the source's token for this barrier has come. */
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "token @1 slot 1 from 2 => -\n"
		      "abort @1 slot 1 from 2 rank 2 closed => stale\n"
		      "token @1 slot 0 from 3 => complete @1, tokens @1 to 2.1, disarm\n");
}

/* R6 and R7: a host that leaves during a barrier is a failure; a host that closes between two
 * barriers is not. */
static void test_r7_leaving(void **state)
{
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "leave host-died => failed host-died 0, aborts @1 to 2.1, disarm\n"
		      "pull @1 slot 1 from 2 => reply abort rank 0 host-died\n");
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "leave nic-down => failed nic-down 0, aborts @1 to 1.0 2.1, disarm\n"
		      "leave closed => stale\n");
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 2, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "token @1 slot 0 from 1 => complete @1, disarm\n"
		      "leave closed => failed closed 0, disarm\n"
		      "pull @1 slot 0 from 1 => reply token\n" /* the token was lost */
		      "pull @2 slot 0 from 1 => reply abort rank 0 closed\n");
	run_trace_alg(NBFW_ALG_DISSEMINATION, 1, 4, 0,
		      "start => tokens @1 to 1.0, arm\n"
		      "leave closed => failed closed 0, aborts @1 to 2.1, disarm\n");
}

/* A plan of a tuner: ranks 0 and 1 exchange signals, rank 2 signals rank 0, and rank 0 signals all
 * ranks. A step may be empty. */
static void test_custom_plan(void **state)
{
	const struct edge edge[] = {
		{ 1, 0, 0, 0 }, { 2, 0, 0, 2 }, { 0, 3, 1, 0 }, { 0, 3, 2, 0 }
	};
	struct group_plans set = group_plans_from_edges(3, edge, 4);

	assert_true(group_plans_is_barrier(&set));
	run_trace(set.plan[0],
		  "start => arm\n"
		  "token @1 slot 1 from 2 => -\n"
		  "timeout => pull 0, arm\n"
		  "token @1 slot 0 from 1 => complete @1, tokens @1 to 1.0 2.0, disarm\n"
		  "start => arm\n"
		  "token @2 slot 0 from 1 => arm\n"
		  "timeout => pull 1, arm\n"
		  "token @2 slot 1 from 2 => complete @2, tokens @2 to 1.0 2.0, disarm\n");
	group_plans_free(&set);
}

UNIT_MAIN(NULL, NULL, UNIT(test_r1_complete_before_last_sends), UNIT(test_r2_two_epochs),
	  UNIT(test_r3_steps), UNIT(test_r3_bad_frames), UNIT(test_r4_answers_to_pulls),
	  UNIT(test_r4_pulls), UNIT(test_r5_silent_and_late), UNIT(test_r5_windows),
	  UNIT(test_r6_failure), UNIT(test_r7_leaving), UNIT(test_custom_plan))
