/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c - checks models of all waits of host and NIC: no thread sleeps for ever when its barrier
 * is complete, and a thread that goes on sees all writes before the barrier.
 *
 * `make mc-wait` runs this program with hostlib/src/order.h as argument. Each step has the name of
 * a function in order.h, and must have the memory order of that function. The explorer runs every
 * model, and again with each seeded bug: there it must find a bad run. Speaks TAP; -v prints the
 * bad runs of seeded bugs.
 */
#include <stdlib.h>
#include <string.h>

#include "wait.h"

/* --- seeded bugs ------------------------------------------------------------------------------ */

struct bug {
	void (*model)(struct mc_model *m);
	const char *text;
	struct {
		const char *name;
		enum mc_op from, to;
		enum mc_order order;
	} change[2];
	bool found[MC_MEMORIES]; /* true for each memory on which the explorer must find the bug */
};

#define SAME(op) op, op
static const struct bug bugs[] = {
	{ wait_procs_large,
	  "done is stored with release, as it once was",
	  { { "order_procs_release", MC_EXCHANGE, MC_STORE, MC_RELEASE } },
	  { true, true } },
	{ wait_procs_large,
	  "done is exchanged with release",
	  { { "order_procs_release", SAME(MC_EXCHANGE), MC_ACQ_REL } },
	  { false, true } },
	{ wait_procs_large,
	  "done is read with acquire",
	  { { "order_procs_done", SAME(MC_LOAD), MC_ACQUIRE } },
	  { false, true } },
	{ wait_procs_large,
	  "sleepers are counted without SEQ_CST",
	  { { "order_procs_sleeps", SAME(MC_ADD), MC_ACQ_REL } },
	  { false, true } },
	{ wait_procs_large,
	  "sleepers are read with acquire",
	  { { "order_procs_any_sleeps", SAME(MC_LOAD), MC_ACQUIRE } },
	  { false, true } },
	{ wait_procs_large,
	  "arrivals are read relaxed",
	  { { "order_procs_read", SAME(MC_LOAD), MC_RELAXED } },
	  { false, true } },
	{ wait_procs_large,
	  "the futex is not bumped",
	  { { "order_procs_wake", MC_ADD, MC_LOAD, MC_RELAXED } },
	  { true, true } },
	{ wait_procs_small,
	  "an arrival is stored with release",
	  { { "order_procs_arrive", MC_EXCHANGE, MC_STORE, MC_RELEASE } },
	  { true, true } },
	{ wait_procs_small,
	  "an arrival is read with acquire",
	  { { "order_procs_read", SAME(MC_LOAD), MC_ACQUIRE } },
	  { false, true } },
	{ wait_procs_small,
	  "sleepers are read relaxed",
	  { { "order_procs_any_sleeps", SAME(MC_LOAD), MC_RELAXED } },
	  { false, true } },
	{ wait_team_far,
	  "the release is a load and a store",
	  { { "order_team_signal", MC_EXCHANGE, MC_STORE, MC_RELEASE } },
	  { true, true } },
	{ wait_team_far,
	  "a sleeper reads the word instead of changing it",
	  { { "order_team_ask", MC_OR, MC_LOAD, MC_SEQ_CST } },
	  { true, true } },
	{ wait_team_far,
	  "the release is relaxed",
	  { { "order_team_signal", SAME(MC_EXCHANGE), MC_RELAXED } },
	  { false, true } },
	{ wait_team_far,
	  "an arrival is relaxed",
	  { { "order_team_arrive", SAME(MC_ADD), MC_RELAXED } },
	  { false, true } },
	{ wait_team_far,
	  "the released word is read relaxed",
	  { { "order_completion_read", SAME(MC_LOAD), MC_RELAXED } },
	  { false, true } },
	{ wait_nic_two,
	  "the completion is written relaxed",
	  { { "page_complete, word", SAME(MC_STORE), MC_RELAXED } },
	  { false, true } },
	{ wait_nic_two,
	  "the completion is read relaxed",
	  { { "order_completion_read", SAME(MC_LOAD), MC_RELAXED } },
	  { false, true } },
	{ wait_nic_two,
	  "the barrier is posted relaxed",
	  { { "order_post", SAME(MC_STORE), MC_RELAXED } },
	  { false, true } },
	{ wait_nic_two,
	  "a sleeper does not request to be woken",
	  { { "order_ask", MC_ADD, MC_LOAD, MC_ACQUIRE } },
	  { true, true } },
	{ wait_nic_two,
	  "the NIC forgets a completion before the request to wake",
	  { { "page_complete, missed", MC_SET, MC_COPY, MC_RELAXED } },
	  { true, true } },
	{ wait_nic_two,
	  "the futex word may be read after the request to wake",
	  { { "order_wake_read", SAME(MC_LOAD), MC_RELAXED },
	    { "order_ask", SAME(MC_ADD), MC_ACQUIRE } },
	  { false, true } },
	{ wait_nic_two,
	  "the futex is bumped relaxed",
	  { { "wake, bump", SAME(MC_ADD), MC_RELAXED } },
	  { false, true } },
	{ wait_mailbox,
	  "the slot is filled relaxed",
	  { { "mailbox_call, full", SAME(MC_STORE), MC_RELAXED } },
	  { false, true } },
	{ wait_mailbox,
	  "the slot is emptied relaxed",
	  { { "mailbox_serve, full", SAME(MC_STORE), MC_RELAXED } },
	  { false, true } },
	{ wait_kick,
	  "the host reads whether the NIC sleeps, and adds nothing",
	  { { "order_kick_wanted", MC_ADD, MC_LOAD, MC_SEQ_CST } },
	  { true, true } },
	{ wait_kick,
	  "the NIC stores that it sleeps",
	  { { "page_ask_kicks", MC_EXCHANGE, MC_STORE, MC_RELEASE } },
	  { true, true } },
	{ wait_kick,
	  "the NIC exchanges that it sleeps, but acquires nothing",
	  { { "page_ask_kicks", SAME(MC_EXCHANGE), MC_RELEASE } },
	  { false, true } },
	{ wait_lent,
	  "the word is stored after the lock",
	  { { "kernel_in, word", MC_STORE, MC_SET, MC_RELAXED },
	    { "kernel_in, late word", MC_SET, MC_STORE, MC_RELAXED } },
	  { true, true } },
	{ wait_lent,
	  "the program does not note a sleeper",
	  { { "kernel_out, sleeper", MC_STORE, MC_SET, MC_RELAXED } },
	  { true, true } },
	{ wait_lent,
	  "the daemon lends, and does not look again",
	  { { "lend_group, wake_seq", MC_LOAD, MC_COPY, MC_RELAXED } },
	  { true, true } },
	{ wait_lent,
	  "the daemon lends, and forgets the sleeper",
	  { { "kernel_hand, sleeper", MC_STORE, MC_SET, MC_RELAXED } },
	  { true, true } },
	{ wait_lent,
	  "the lock is given back relaxed",
	  { { "unlock", SAME(MC_STORE), MC_RELAXED } },
	  { false, true } },
	{ wait_signals_sent,
	  "an entry is published relaxed",
	  { { "order_signal_publish", SAME(MC_STORE), MC_RELAXED } },
	  { false, true } },
	{ wait_signals_sent,
	  "the NIC looks at an entry relaxed",
	  { { "page_signals, seq", SAME(MC_AWAIT), MC_RELAXED } },
	  { false, true } },
	{ wait_signals_sent,
	  "the NIC takes an entry relaxed",
	  { { "page_signals, sends_taken", SAME(MC_STORE), MC_RELAXED } },
	  { false, true } },
	{ wait_signals_received,
	  "an entry is delivered relaxed",
	  { { "page_deliver, seq", SAME(MC_STORE), MC_RELAXED } },
	  { false, true } },
	{ wait_signals_received,
	  "the host looks at an entry relaxed",
	  { { "order_signal_ready", SAME(MC_AWAIT), MC_RELAXED } },
	  { false, true } },
	{ wait_signals_received,
	  "the host takes an entry relaxed",
	  { { "order_taken_write", SAME(MC_STORE), MC_RELAXED } },
	  { false, true } },
};

static void seed(struct mc_model *m, const struct bug *bug)
{
	uint32_t changed = 0;

	for (uint32_t i = 0; i < 2 && bug->change[i].name; i++)
		for (uint32_t t = 0; t < m->nthread; t++)
			for (uint32_t k = 0; k < m->thread[t].nstep; k++) {
				struct mc_step *p = &m->thread[t].step[k];

				if (!p->name || strcmp(p->name, bug->change[i].name) != 0 ||
				    p->op != bug->change[i].from)
					continue;
				p->op = bug->change[i].to;
				p->order = bug->change[i].order;
				changed++;
			}
	if (changed == 0) {
		fprintf(stderr, "no step to seed: %s\n", bug->text);
		exit(2);
	}
}

/* --- the models against order.h --------------------------------------------------------------- */

static const char *const order_names[] = { "RELAXED", "ACQUIRE", "RELEASE", "ACQ_REL", "SEQ_CST" };

static const char *builtin(enum mc_op op)
{
	switch (op) {
	case MC_LOAD:
	case MC_AWAIT:
		return "__atomic_load_n(";
	case MC_STORE:
		return "__atomic_store_n(";
	case MC_EXCHANGE:
		return "__atomic_exchange_n(";
	case MC_ADD:
		return "__atomic_fetch_"; /* add or sub */
	case MC_OR:
		return "__atomic_fetch_or(";
	case MC_LOCK:
	case MC_SLEEP:
	case MC_WAKE:
	case MC_SET:
	case MC_COPY:
	case MC_IF:
	case MC_IF_SAME:
	case MC_GOTO:
	case MC_CHECK:
	case MC_END:
		break;
	}
	return "";
}

/* True if the function of a step has the operation and the order of the step. */
static bool agrees(const struct mc_step *p, const char *text)
{
	char head[64], order[32];
	const char *at, *op, *end;

	snprintf(head, sizeof(head), " %s(", p->name);
	snprintf(order, sizeof(order), "__ATOMIC_%s", order_names[p->order]);
	at = strstr(text, head);
	op = at ? strstr(at, "__atomic_") : NULL;
	end = at ? strstr(at, "\n}") : NULL;
	at = at ? strstr(at, "__ATOMIC_") : NULL;
	return op && at && end && op < end && at < end &&
	       strncmp(op, builtin(p->op), strlen(builtin(p->op))) == 0 &&
	       strncmp(at, order, strlen(order)) == 0;
}

/* The first step that differs from its function, or NULL. */
static const char *drifted(const struct mc_model *m, const char *text)
{
	for (uint32_t t = 0; t < m->nthread; t++)
		for (uint32_t k = 0; k < m->thread[t].nstep; k++) {
			const struct mc_step *p = &m->thread[t].step[k];

			if (p->name && strncmp(p->name, "order_", 6) == 0 && !agrees(p, text))
				return p->name;
		}
	return NULL;
}

/* --------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*model)(struct mc_model *m);
} models[] = {
	{ "three of a large process team", wait_procs_large },
	{ "two of a large process team, twice", wait_procs_large_twice },
	{ "three of a small process team", wait_procs_small },
	{ "two of a small process team, twice", wait_procs_small_twice },
	{ "three of a team", wait_team_far },
	{ "two of a team, twice", wait_team_far_twice },
	{ "three of a team on one word", wait_team_near },
	{ "two of a team on one word, twice", wait_team_near_twice },
	{ "a NIC and two processes that wait", wait_nic_two },
	{ "a NIC and a process that waits twice", wait_nic_twice },
	{ "a call to a sleeping NIC", wait_mailbox },
	{ "a post to a sleeping NIC", wait_kick },
	{ "a sleeper of a group that is lent", wait_lent },
	{ "a ring of signals to the NIC", wait_signals_sent },
	{ "a ring of signals from the NIC", wait_signals_received },
};
static const char *const memories[] = { "x86-TSO", "C11" };
static uint32_t ntest, nfailed;

static void say(bool ok, const char *name, const char *text, enum mc_memory memory,
		const struct mc_result *r)
{
	nfailed += !ok;
	printf("%s %u - %s: %s, %s (%llu states, %llu cut)\n", ok ? "ok" : "not ok", ++ntest, name,
	       text, memories[memory], (unsigned long long)r->states, (unsigned long long)r->cut);
	fflush(stdout);
}

static void run(const char *name, void (*build)(struct mc_model *m), const struct bug *bug,
		bool verbose)
{
	for (enum mc_memory memory = MC_TSO; memory < MC_MEMORIES; memory++) {
		static struct mc_model m;
		bool expected = bug && bug->found[memory];
		struct mc_result r;

		memset(&m, 0, sizeof(m));
		build(&m);
		if (bug)
			seed(&m, bug);
		if (bug && !expected)
			continue;
		r = mc_explore(&m, memory, !expected || verbose ? stdout : NULL);
		say(r.bad == expected && (bug || r.cut == 0), name,
		    bug ? bug->text : "nobody is left asleep", memory, &r);
	}
}

static void orders_agree(const char *path)
{
	static char text[65536];
	FILE *f = fopen(path, "r");
	const char *name = NULL;

	if (!f || fread(text, 1, sizeof(text) - 1, f) == 0)
		name = path;
	for (size_t i = 0; !name && i < sizeof(models) / sizeof(models[0]); i++) {
		static struct mc_model m;

		memset(&m, 0, sizeof(m));
		models[i].model(&m);
		name = drifted(&m, text);
	}
	if (f)
		fclose(f);
	nfailed += name != NULL;
	printf("%s %u - the models do what order.h does%s%s\n", name ? "not ok" : "ok", ++ntest,
	       name ? ", but for " : "", name ? name : "");
}

static void litmus(void)
{
	for (enum mc_memory memory = MC_TSO; memory < MC_MEMORIES; memory++) {
		const char *name = litmus_fails(memory);

		nfailed += name != NULL;
		printf("%s %u - litmus tests come out as known, %s%s%s\n", name ? "not ok" : "ok",
		       ++ntest, memories[memory], name ? ", but for " : "", name ? name : "");
	}
}

int main(int argc, char **argv)
{
	bool verbose = argc > 2 && strcmp(argv[2], "-v") == 0;

	litmus();
	orders_agree(argc > 1 ? argv[1] : "hostlib/src/order.h");
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		run(models[i].name, models[i].model, NULL, verbose);
		for (size_t k = 0; k < sizeof(bugs) / sizeof(bugs[0]); k++)
			if (bugs[k].model == models[i].model)
				run(models[i].name, models[i].model, &bugs[k], verbose);
	}
	printf("1..%u\n", ntest);
	return nfailed > 0;
}
