/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait_models.c - the models of all waits: process team, team, a group's completion word, a lent
 * group, the NIC's mailbox, signal rings.
 *
 * Called by wait.c. Each step has the name of the function that it models.
 */
#include <string.h>

#include "wait.h"

enum { R, SEEN, FLAG, UNWOKEN, NOW }; /* registers */

/* Labels. AT makes a separate label for each barrier. */
enum { WAIT, OVER, AWAKE, LAST, LOOP, QUIET, END, LABELS };
#define AT(label, barrier) ((uint8_t)((barrier)*LABELS + (label)))

/* Tickets are sets of bits: 1, 3, 7. A word has reached a ticket if it has the ticket's highest
 * bit. */
#define TICKET(barrier) ((uint8_t)((2u << (barrier)) - 1))
#define BIT(barrier) ((uint8_t)(1u << (barrier)))
#define ALL 0xffu

static void before(struct mc_thread *t, uint8_t word, uint8_t barrier)
{
	mc_store(t, "before the barrier", word, TICKET(barrier), MC_RELAXED);
}

/* Checks the data that all threads wrote before the barrier. To be called only after the last
 * barrier: after an earlier barrier, other threads may already write the data of the next barrier.
 */
static void after(struct mc_thread *t, uint8_t word, uint8_t n, uint8_t last)
{
	for (uint8_t i = 0; i < n; i++) {
		mc_load(t, "after the barrier", R, word + i, MC_RELAXED);
		mc_check(t, R, TICKET(last));
	}
}

/* --- process_team.c, wait.c: processes without a group --------------------------------------- */

enum { PROCS_DONE, PROCS_SLEEPERS, PROCS_WAKE, PROCS_ARRIVED, PROCS_DATA = PROCS_ARRIVED + 3 };

/* all_arrived: jumps to a label if another process has not arrived. */
static void procs_all_arrived(struct mc_thread *t, uint8_t size, uint8_t me, uint8_t barrier,
			      uint8_t if_not)
{
	for (uint8_t i = 0; i < size; i++) {
		if (i == me)
			continue;
		mc_load(t, "order_procs_read", R, PROCS_ARRIVED + i, MC_SEQ_CST);
		mc_if(t, R, BIT(barrier), 0, if_not);
	}
}

/* nbar_process_team_post. */
static void procs_post(struct mc_thread *t, bool large, uint8_t size, uint8_t me, uint8_t barrier)
{
	uint8_t wait = AT(WAIT, barrier);

	before(t, PROCS_DATA + me, barrier);
	mc_change(t, "order_procs_arrive", MC_EXCHANGE, R, PROCS_ARRIVED + me, TICKET(barrier),
		  MC_SEQ_CST);
	procs_all_arrived(t, size, me, barrier, wait);
	if (large)
		mc_change(t, "order_procs_release", MC_EXCHANGE, R, PROCS_DONE, TICKET(barrier),
			  MC_SEQ_CST);
	mc_load(t, "order_procs_any_sleeps", R, PROCS_SLEEPERS, MC_SEQ_CST);
	mc_if(t, R, ALL, 0, wait);
	mc_change(t, "order_procs_wake", MC_ADD, R, PROCS_WAKE, 1, MC_RELEASE);
	mc_wake(t, PROCS_WAKE);
}

/* nblib_wait_procs, with the policy that sleeps at once. */
static void procs_wait(struct mc_thread *t, bool large, uint8_t size, uint8_t me, uint8_t barrier)
{
	mc_label(t, AT(WAIT, barrier));
	mc_load(t, "order_wake_read", SEEN, PROCS_WAKE, MC_ACQUIRE);
	mc_change(t, "order_procs_sleeps", MC_ADD, R, PROCS_SLEEPERS, 1, MC_SEQ_CST);
	if (large) {
		mc_load(t, "order_procs_done", R, PROCS_DONE, MC_SEQ_CST);
		mc_if(t, R, BIT(barrier), 0, AT(LAST, barrier));
	} else {
		procs_all_arrived(t, size, me, barrier, AT(LAST, barrier));
	}
	mc_change(t, "order_procs_sleeps", MC_ADD, R, PROCS_SLEEPERS, ALL, MC_SEQ_CST);
	mc_goto(t, AT(OVER, barrier));
	mc_label(t, AT(LAST, barrier));
	mc_sleep(t, PROCS_WAKE, SEEN, ALL);
	mc_change(t, "order_procs_sleeps", MC_ADD, R, PROCS_SLEEPERS, ALL, MC_SEQ_CST);
	mc_goto(t, AT(WAIT, barrier));
	mc_label(t, AT(OVER, barrier));
}

static void procs(struct mc_model *m, bool large, uint8_t size, uint8_t barriers)
{
	static const char *const words[] = { "done",       "sleepers",   "wake",
					     "arrived[0]", "arrived[1]", "arrived[2]",
					     "data[0]",    "data[1]",    "data[2]" };
	static const char *const names[] = { "P0", "P1", "P2" };

	memcpy(m->word, words, sizeof(words));
	for (uint8_t i = 0; i < size; i++) {
		struct mc_thread *t = mc_thread(m, names[i]);

		for (uint8_t b = 0; b < barriers; b++) {
			procs_post(t, large, size, i, b);
			procs_wait(t, large, size, i, b);
		}
		after(t, PROCS_DATA, size, (uint8_t)(barriers - 1));
	}
}

void wait_procs_large(struct mc_model *m)
{
	procs(m, true, 3, 1);
}

void wait_procs_large_twice(struct mc_model *m)
{
	procs(m, true, 2, 2);
}

void wait_procs_small(struct mc_model *m)
{
	procs(m, false, 3, 1);
}

void wait_procs_small_twice(struct mc_model *m)
{
	procs(m, false, 2, 2);
}

/* --- team_kind.c, wait.c: threads ------------------------------------------------------------ */

/* The fields of a word: sleeper, threads still to arrive, epoch. */
enum { TEAM_ARRIVED, TEAM_RELEASED, TEAM_DATA };
#define TEAM_SLEEPS 0x80u
#define TEAM_COUNT 0x70u
#define TEAM_EPOCH 0x0fu
#define TEAM_ONE 0x10u

/* near: threads wait on the word with the count; otherwise on a separate word. */
static void team_barrier(struct mc_thread *t, bool near, uint8_t size, uint8_t b)
{
	uint8_t word = near ? TEAM_ARRIVED : TEAM_RELEASED;
	uint8_t next = (uint8_t)(size * TEAM_ONE | TICKET(b));

	mc_change(t, "order_team_arrive", MC_ADD, R, TEAM_ARRIVED, (uint8_t)-TEAM_ONE, MC_ACQ_REL);
	mc_if(t, R, TEAM_COUNT, TEAM_ONE, AT(LAST, b));
	mc_label(t, AT(WAIT, b));
	mc_load(t, "order_completion_read", R, word, MC_ACQUIRE);
	mc_if(t, R, BIT(b), BIT(b), AT(OVER, b));
	mc_change(t, "order_team_ask", MC_OR, SEEN, word, TEAM_SLEEPS, MC_RELAXED);
	mc_if(t, SEEN, BIT(b), BIT(b), AT(WAIT, b));
	mc_sleep(t, word, SEEN, TEAM_EPOCH);
	mc_goto(t, AT(WAIT, b));
	mc_label(t, AT(LAST, b));
	if (!near)
		mc_store(t, "order_team_reset", TEAM_ARRIVED, next, MC_RELAXED);
	mc_change(t, "order_team_signal", MC_EXCHANGE, R, word, next, MC_ACQ_REL);
	mc_if(t, R, TEAM_SLEEPS, 0, AT(OVER, b));
	mc_wake(t, word);
	mc_label(t, AT(OVER, b));
}

static void team(struct mc_model *m, bool near, uint8_t size, uint8_t barriers)
{
	static const char *const words[] = { "arrived", "released", "data[0]", "data[1]",
					     "data[2]" };
	static const char *const names[] = { "T0", "T1", "T2" };

	memcpy(m->word, words, sizeof(words));
	m->start[TEAM_ARRIVED] = (uint8_t)(size * TEAM_ONE);
	for (uint8_t i = 0; i < size; i++) {
		struct mc_thread *t = mc_thread(m, names[i]);

		for (uint8_t b = 0; b < barriers; b++) {
			before(t, TEAM_DATA + i, b);
			team_barrier(t, near, size, b);
		}
		after(t, TEAM_DATA, size, (uint8_t)(barriers - 1));
	}
}

void wait_team_far(struct mc_model *m)
{
	team(m, false, 3, 1);
}

void wait_team_far_twice(struct mc_model *m)
{
	team(m, false, 2, 2);
}

void wait_team_near(struct mc_model *m)
{
	team(m, true, 3, 1);
}

void wait_team_near_twice(struct mc_model *m)
{
	team(m, true, 2, 2);
}

/* --- wait.c and the NIC's page.c ------------------------------------------------------------- */

enum { NIC_POSTED, NIC_WORD, NIC_WAKE, NIC_WAKE_SEQ, NIC_DATA };

/* nblib_wait_group: a host, or another process that is attached. */
static void host_waits(struct mc_thread *t, uint8_t b)
{
	mc_label(t, AT(WAIT, b));
	mc_load(t, "order_wake_read", SEEN, NIC_WAKE, MC_ACQUIRE);
	mc_change(t, "order_ask", MC_ADD, R, NIC_WAKE_SEQ, 1, MC_ACQ_REL);
	mc_load(t, "order_completion_read", R, NIC_WORD, MC_ACQUIRE);
	mc_if(t, R, BIT(b), BIT(b), AT(OVER, b));
	mc_sleep(t, NIC_WAKE, SEEN, ALL);
	mc_goto(t, AT(WAIT, b));
	mc_label(t, AT(OVER, b));
}

static void nic_wakes(struct mc_thread *t)
{
	mc_set(t, FLAG, 0);
	mc_set(t, UNWOKEN, 0);
	mc_change(t, "wake, bump", MC_ADD, R, NIC_WAKE, 1, MC_RELEASE);
	mc_wake(t, NIC_WAKE);
}

/* scan_doorbell has found a new value of `wake_seq`. */
static void nic_wake_seq_changed(struct mc_thread *t, uint8_t quiet, uint8_t end)
{
	mc_if(t, UNWOKEN, ALL, 0, quiet);
	nic_wakes(t);
	mc_goto(t, end);
	mc_label(t, quiet);
	mc_set(t, FLAG, 1);
	mc_label(t, end);
}

/* Looks at the doorbell and completes the barrier. */
static void nic_barrier(struct mc_thread *t, uint8_t b)
{
	mc_set(t, NOW, TICKET(b) / 2);
	mc_await(t, "scan_doorbell, posted", R, NIC_POSTED, NOW, MC_ACQUIRE);
	mc_load(t, "scan_doorbell, wake_seq", NOW, NIC_WAKE_SEQ, MC_RELAXED);
	mc_if_same(t, NOW, SEEN, AT(END, b));
	mc_copy(t, SEEN, NOW);
	nic_wake_seq_changed(t, AT(QUIET, b), AT(END, b));
	mc_store(t, "page_complete, word", NIC_WORD, TICKET(b), MC_RELEASE);
	mc_if(t, FLAG, ALL, 0, AT(AWAKE, b));
	nic_wakes(t);
	mc_goto(t, AT(LAST, b));
	mc_label(t, AT(AWAKE, b));
	mc_set(t, UNWOKEN, 1);
	t->step[t->nstep - 1].name = "page_complete, missed";
	mc_label(t, AT(LAST, b));
}

/* After the last barrier the NIC keeps polling. */
static void nic(struct mc_thread *t, uint8_t barriers)
{
	for (uint8_t b = 0; b < barriers; b++)
		nic_barrier(t, b);
	mc_label(t, AT(LOOP, 0));
	mc_await(t, "scan_doorbell, wake_seq", SEEN, NIC_WAKE_SEQ, SEEN, MC_RELAXED);
	nic_wake_seq_changed(t, AT(QUIET, barriers), AT(END, barriers));
	mc_goto(t, AT(LOOP, 0));
	t->forever = true;
}

static void nic_and(struct mc_model *m, bool mate, uint8_t barriers)
{
	static const char *const words[] = { "posted", "word", "wake", "wake_seq", "data" };
	struct mc_thread *t;

	memcpy(m->word, words, sizeof(words));
	t = mc_thread(m, "host");
	for (uint8_t b = 0; b < barriers; b++) {
		before(t, NIC_DATA, b);
		mc_store(t, "order_post", NIC_POSTED, TICKET(b), MC_RELEASE);
	}
	for (uint8_t b = 0; b < barriers; b++)
		host_waits(t, b);
	if (mate) {
		t = mc_thread(m, "mate");
		for (uint8_t b = 0; b < barriers; b++)
			host_waits(t, b);
		after(t, NIC_DATA, 1, (uint8_t)(barriers - 1));
	}
	nic(mc_thread(m, "NIC"), barriers);
}

void wait_nic_two(struct mc_model *m)
{
	nic_and(m, true, 1);
}

void wait_nic_twice(struct mc_model *m)
{
	nic_and(m, false, 2);
}

/*
 * --- wire/kernel and lend.c: a lent group, whose barrier runs and whose last token comes
 * ----------
 *
 * The host sends to its start socket, and the program for posts runs in this call. The daemon that
 * has taken the group lends it again.
 */

enum { LENT_LOCK = NIC_POSTED, LENT = NIC_DATA, RUNNING, SLEEPER, WANTED, BELL, FRAME };
enum {
	TAKE = LABELS,
	TAKEN,
	MISSED,
	SCAN,
	SCANNED,
	FRAMES,
	MISSED_TOO,
	LEND,
	NO_SLEEPER,
	LENT_AGAIN
};
enum { COMPLETE, RUNS, COUNTED };      /* RUNNING */
enum { WANT_WAKE = 1, WANT_TAKE = 2 }; /* WANTED */

static void unlock(struct mc_thread *t)
{
	mc_store(t, "unlock", LENT_LOCK, 0, MC_RELEASE);
}

static void ring(struct mc_thread *t)
{
	mc_change(t, "ring", MC_EXCHANGE, R, BELL, 1, MC_RELEASE);
}

static void lent_host(struct mc_thread *t)
{
	mc_label(t, WAIT);
	mc_load(t, "order_wake_read", SEEN, NIC_WAKE, MC_ACQUIRE);
	mc_change(t, "order_ask", MC_ADD, R, NIC_WAKE_SEQ, 1, MC_ACQ_REL);
	mc_change(t, "kernel_out, lock", MC_LOCK, R, LENT_LOCK, 1, MC_ACQUIRE);
	mc_load(t, "kernel_out, lent", R, LENT, MC_RELAXED);
	mc_if(t, R, ALL, 0, QUIET);
	mc_store(t, "kernel_out, sleeper", SLEEPER, 1, MC_RELAXED);
	unlock(t);
	mc_goto(t, AWAKE);
	mc_label(t, QUIET);
	unlock(t);
	ring(t);
	mc_label(t, AWAKE);
	mc_load(t, "order_completion_read", R, NIC_WORD, MC_ACQUIRE);
	mc_if(t, R, ALL, 1, OVER);
	mc_sleep(t, NIC_WAKE, SEEN, ALL);
	mc_goto(t, WAIT);
	mc_label(t, OVER);
}

static void lent_token(struct mc_thread *t)
{
	mc_change(t, "kernel_in, lock", MC_LOCK, R, LENT_LOCK, 1, MC_ACQUIRE);
	mc_load(t, "kernel_in, lent", R, LENT, MC_RELAXED);
	mc_if(t, R, ALL, 0, QUIET);
	mc_store(t, "kernel_in, step", RUNNING, COMPLETE, MC_RELAXED);
	mc_store(t, "kernel_in, word", NIC_WORD, 1, MC_RELAXED);
	mc_load(t, "kernel_in, sleeper", SEEN, SLEEPER, MC_RELAXED);
	mc_store(t, "kernel_in, no sleeper", SLEEPER, 0, MC_RELAXED);
	unlock(t);
	/* Where the word must not be stored: the bug makes this a store. */
	mc_store(t, "kernel_in, late word", NIC_WORD, 1, MC_RELAXED);
	t->step[t->nstep - 1].op = MC_SET;
	t->step[t->nstep - 1].reg = NOW;
	mc_if(t, SEEN, ALL, 0, OVER);
	mc_store(t, "want", WANTED, WANT_WAKE, MC_RELAXED);
	ring(t);
	mc_goto(t, OVER);
	mc_label(t, QUIET);
	unlock(t);
	mc_store(t, "the socket of the daemon", FRAME, 1, MC_RELAXED);
	ring(t);
	mc_label(t, OVER);
}

/* page_completed, page_complete: goes on at `end`. */
static void lent_completed(struct mc_thread *t, uint8_t missed, uint8_t end)
{
	mc_if(t, FLAG, ALL, 0, missed);
	nic_wakes(t);
	mc_goto(t, end);
	mc_label(t, missed);
	mc_set(t, UNWOKEN, 1);
	mc_goto(t, end);
}

static void lent_daemon(struct mc_thread *t)
{
	mc_label(t, LOOP);
	mc_await(t, "bell_hear, rung", R, BELL, R, MC_ACQUIRE);
	mc_change(t, "bell_hear, heard", MC_EXCHANGE, R, BELL, 0, MC_ACQ_REL);
	mc_change(t, "bell_hear, wanted", MC_EXCHANGE, NOW, WANTED, 0, MC_ACQ_REL);
	mc_if(t, NOW, ALL, 0, SCAN);
	mc_load(t, "lend_wanted, lent", R, LENT, MC_RELAXED);
	mc_if(t, R, ALL, 0, SCAN);
	mc_if(t, NOW, ALL, WANT_TAKE, TAKE);
	nic_wakes(t);
	mc_goto(t, SCAN);
	mc_label(t, TAKE);
	mc_change(t, "kernel_hand, lock", MC_LOCK, R, LENT_LOCK, 1, MC_ACQUIRE);
	mc_store(t, "kernel_hand, lent", LENT, 0, MC_RELAXED);
	mc_load(t, "kernel_hand, state", NOW, RUNNING, MC_RELAXED);
	mc_if(t, NOW, ALL, RUNS, TAKEN);
	mc_if(t, NOW, ALL, COUNTED, TAKEN);
	mc_store(t, "kernel_hand, counts", RUNNING, COUNTED, MC_RELAXED);
	unlock(t);
	lent_completed(t, MISSED, SCAN);
	mc_label(t, TAKEN);
	unlock(t);
	mc_label(t, SCAN);
	mc_load(t, "scan_doorbell, lent", R, LENT, MC_RELAXED);
	mc_if(t, R, ALL, 0, SCANNED);
	mc_load(t, "kernel_poll, a frame", R, FRAME, MC_ACQUIRE);
	mc_if(t, R, ALL, 0, LOOP);
	mc_goto(t, TAKE);
	mc_label(t, SCANNED);
	mc_load(t, "scan_doorbell, wake_seq", NOW, NIC_WAKE_SEQ, MC_RELAXED);
	mc_if_same(t, NOW, SEEN, FRAMES);
	mc_copy(t, SEEN, NOW);
	nic_wake_seq_changed(t, QUIET, FRAMES);
	mc_change(t, "kernel_poll", MC_EXCHANGE, R, FRAME, 0, MC_ACQUIRE);
	mc_if(t, R, ALL, 0, LEND);
	mc_store(t, "the token steps the engine", RUNNING, COUNTED, MC_RELAXED);
	mc_store(t, "page_complete, word", NIC_WORD, 1, MC_RELEASE);
	lent_completed(t, MISSED_TOO, LEND);
	mc_label(t, LEND);
	mc_change(t, "kernel_hand, lock", MC_LOCK, R, LENT_LOCK, 1, MC_ACQUIRE);
	mc_if(t, FLAG, ALL, 0, NO_SLEEPER);
	mc_store(t, "kernel_hand, sleeper", SLEEPER, 1, MC_RELAXED);
	mc_goto(t, LENT_AGAIN);
	mc_label(t, NO_SLEEPER);
	mc_store(t, "kernel_hand, no sleeper", SLEEPER, 0, MC_RELAXED);
	mc_label(t, LENT_AGAIN);
	mc_store(t, "kernel_hand, lent", LENT, 1, MC_RELAXED);
	unlock(t);
	mc_load(t, "lend_group, wake_seq", R, NIC_WAKE_SEQ, MC_RELAXED);
	t->step[t->nstep - 1].with = SEEN; /* the bug copies instead */
	mc_if_same(t, R, SEEN, LOOP);
	mc_goto(t, TAKE);
	t->forever = true;
}

void wait_lent(struct mc_model *m)
{
	static const char *const words[] = { "lock",    "word",    "wake",   "wake_seq", "lent",
					     "running", "sleeper", "wanted", "bell",     "frame" };

	memcpy(m->word, words, sizeof(words));
	m->start[LENT] = 1;
	m->start[RUNNING] = RUNS;
	m->start[WANTED] = WANT_TAKE; /* the timer of the group */
	m->start[BELL] = 1;
	lent_host(mc_thread(m, "host"));
	lent_token(mc_thread(m, "token"));
	lent_daemon(mc_thread(m, "daemon"));
}

/* --- mailbox.c: a call from the control thread to the polling thread, which dozes --------------
 */

enum { BOX_FULL, BOX_ARG, BOX_RESULT, BOX_BELL };

void wait_mailbox(struct mc_model *m)
{
	static const char *const words[] = { "full", "arg", "result", "bell" };
	struct mc_thread *t;

	memcpy(m->word, words, sizeof(words));
	t = mc_thread(m, "call");
	mc_store(t, "fn, arg", BOX_ARG, 1, MC_RELAXED);
	mc_store(t, "mailbox_call, full", BOX_FULL, 1, MC_RELEASE);
	mc_change(t, "write of the eventfd", MC_ADD, R, BOX_BELL, 1, MC_SEQ_CST);
	mc_wake(t, BOX_BELL);
	mc_set(t, SEEN, 1);
	mc_label(t, WAIT);
	mc_load(t, "mailbox_call, full", R, BOX_FULL, MC_ACQUIRE);
	mc_if(t, R, ALL, 0, OVER);
	mc_sleep(t, BOX_FULL, SEEN, ALL);
	mc_goto(t, WAIT);
	mc_label(t, OVER);
	mc_load(t, "what the call did", R, BOX_RESULT, MC_RELAXED);
	mc_check(t, R, 1);
	t = mc_thread(m, "poll");
	mc_label(t, WAIT);
	mc_load(t, "mailbox_serve, full", R, BOX_FULL, MC_ACQUIRE);
	mc_if(t, R, ALL, 1, OVER);
	mc_sleep(t, BOX_BELL, SEEN, ALL); /* sleep_now, without its limit */
	mc_goto(t, WAIT);
	mc_label(t, OVER);
	mc_load(t, "fn, arg", R, BOX_ARG, MC_RELAXED);
	mc_check(t, R, 1);
	mc_store(t, "what the call did", BOX_RESULT, 1, MC_RELAXED);
	mc_store(t, "mailbox_serve, full", BOX_FULL, 0, MC_RELEASE);
	mc_wake(t, BOX_FULL);
}

/* --- page.c, nicd.c: the NIC sleeps, and a host kicks it ----------------------------------------
 */

enum { KICK_POSTED, KICK_ASKED, KICK_BELL, KICK_DATA };

void wait_kick(struct mc_model *m)
{
	static const char *const words[] = { "posted", "kick", "bell", "data" };
	struct mc_thread *t;

	memcpy(m->word, words, sizeof(words));
	t = mc_thread(m, "host");
	before(t, KICK_DATA, 0);
	mc_store(t, "order_post", KICK_POSTED, TICKET(0), MC_RELEASE);
	mc_change(t, "order_kick_wanted", MC_ADD, R, KICK_ASKED, 0, MC_ACQ_REL);
	mc_if(t, R, ALL, 0, OVER);
	mc_change(t, "KICK, and write of the eventfd", MC_ADD, R, KICK_BELL, 1, MC_SEQ_CST);
	mc_wake(t, KICK_BELL);
	mc_label(t, OVER);
	t = mc_thread(m, "NIC");
	mc_change(t, "page_ask_kicks", MC_EXCHANGE, R, KICK_ASKED, 1, MC_ACQ_REL);
	mc_label(t, WAIT);
	mc_load(t, "scan_doorbell, posted", R, KICK_POSTED, MC_ACQUIRE);
	mc_if(t, R, BIT(0), BIT(0), OVER);
	mc_sleep(t, KICK_BELL, SEEN, ALL); /* sleep_now, without its limit */
	mc_goto(t, WAIT);
	mc_label(t, OVER);
	after(t, KICK_DATA, 1, 0);
}

/* --- signal rings with one entry: two signals go through the entry --------------------------- */

/* The explorer runs no step before an await that precedes it in its thread. So it finds no bad run
 * if the count of taken entries is read relaxed. */

enum { RING_SEQ, RING_TAKEN, RING_FIELD };

struct ring_names {
	const char *put, *publish, *taken_read; /* steps of the thread that fills entries */
	const char *ready, *get, *taken_write;  /* steps of the thread that empties entries */
};

static void ring_fill(struct mc_thread *t, const struct ring_names *name)
{
	mc_store(t, name->put, RING_FIELD, 1, MC_RELAXED);
	mc_store(t, name->publish, RING_SEQ, 1, MC_RELEASE);
	mc_await(t, name->taken_read, R, RING_TAKEN, SEEN, MC_ACQUIRE);
	mc_store(t, name->put, RING_FIELD, 2, MC_RELAXED);
	mc_store(t, name->publish, RING_SEQ, 2, MC_RELEASE);
}

static void ring_empty(struct mc_thread *t, const struct ring_names *name)
{
	for (uint8_t n = 1; n <= 2; n++) {
		mc_await(t, name->ready, R, RING_SEQ, SEEN, MC_ACQUIRE);
		mc_load(t, name->get, NOW, RING_FIELD, MC_RELAXED);
		mc_store(t, name->taken_write, RING_TAKEN, n, MC_RELEASE);
		mc_check(t, NOW, n);
		mc_set(t, SEEN, n);
	}
}

static void signals(struct mc_model *m, const char *fills, const char *empties,
		    const struct ring_names *name)
{
	static const char *const words[] = { "seq", "taken", "field" };

	memcpy(m->word, words, sizeof(words));
	ring_fill(mc_thread(m, fills), name);
	ring_empty(mc_thread(m, empties), name);
}

void wait_signals_sent(struct mc_model *m)
{
	signals(m, "host", "NIC",
		&(struct ring_names){ .put = "order_signal_put",
				      .publish = "order_signal_publish",
				      .taken_read = "order_taken_read",
				      .ready = "page_signals, seq",
				      .get = "page_signals, word",
				      .taken_write = "page_signals, sends_taken" });
}

void wait_signals_received(struct mc_model *m)
{
	signals(m, "NIC", "host",
		&(struct ring_names){ .put = "page_deliver, word",
				      .publish = "page_deliver, seq",
				      .taken_read = "page_deliver, recvs_taken",
				      .ready = "order_signal_ready",
				      .get = "order_signal_get",
				      .taken_write = "order_taken_write" });
}
