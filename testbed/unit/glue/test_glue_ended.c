/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_glue_ended.c - failures of barriers, and what a rank then says: ranks that are killed or
 * stop calling barriers, members that leave, NICs that lose all frames; and waits that last long by
 * a clock that the test moves.
 */
#include <errno.h>
#include <signal.h>

#include "ranks.h"

static uint32_t victim;

static bool says(uint32_t rank, const char *text)
{
	return strstr(ranks->rank[rank].said, text) != NULL;
}

/* --- killed ranks ------------------------------------------------------------------------------
 */

/* The victim is killed before its next barrier; the barriers of all others fail. */
static void one_is_killed(void)
{
	struct nbmpi_counters n;
	struct nbmpi_request r;
	struct ranks_comm c;
	int rc;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	expect(ranks_barrier(&c) == 0, "a barrier");
	if (ranks_me == victim)
		raise(SIGKILL);
	rc = ranks_barrier(&c);
	expect(rc == NBMPI_FAILED && nbmpi_comm_code(c.nbar) == MPI_TEXT, "%d", rc);
	/* It stays failed. */
	expect(nbmpi_barrier(c.nbar) == NBMPI_FAILED, "the next barrier");
	expect(nbmpi_ibarrier(c.nbar, &r) == NBMPI_FAILED, "a nonblocking barrier");
	nbmpi_counters_read(&n);
	expect(n.failed == 1, "%u", (unsigned)n.failed);
	expect(n.fallback == NBMPI_PAYS + 1, "%u", (unsigned)n.fallback);
	/* This rank ends now. The others still name the victim. */
}

static void kill_one(uint32_t size, uint32_t each, uint32_t rank, enum nbmpi_wait wait)
{
	ranks_begin(size, each);
	ranks->config.wait = wait;
	victim = rank;
	ranks->killed[rank] = true;
	ranks_run(one_is_killed);
}

static bool named(const char *missing)
{
	for (uint32_t r = 0; r < ranks->size; r++)
		if (r != victim && !strstr(ranks->rank[r].error, missing))
			return false;
	return true;
}

static void on_one_host(void **state)
{
	char text[160];

	for (uint32_t rank = 0; rank < 3; rank++) {
		kill_one(3, 3, rank, rank ? NBMPI_WAIT_BLOCK : NBMPI_WAIT_AUTO);
		snprintf(text, sizeof(text),
			 "nbar: barrier over 3 ranks failed; missing: rank %u (its process %d has "
			 "ended: look there for what went wrong)",
			 rank, ranks->rank[rank].pid);
		require(strcmp(ranks->rank[rank ? 0 : 1].error, text) == 0, "%s",
			ranks->rank[rank ? 0 : 1].error);
		require(named(text), "rank %u: %s", rank, text);
	}
}

static void on_hosts_of_one_rank(void **state)
{
	kill_one(3, 1, 1, NBMPI_WAIT_AUTO);
	require(named("barrier over 3 ranks failed; missing: rank 1"), "%s", ranks->rank[0].error);
	require(!says(0, "an unknown reason"), "%s", ranks->rank[0].said);
}

/* A NIC knows only hosts: all ranks of the host are named, except the rank that says so. */
static void on_hosts_of_two_ranks(void **state)
{
	for (victim = 2; victim < 4; victim++) {
		uint32_t mate = victim ^ 1;
		char text[80];

		kill_one(4, 2, victim, victim == 2 ? NBMPI_WAIT_YIELD : NBMPI_WAIT_BLOCK);
		snprintf(text, sizeof(text), "missing: rank %u (host 1)", victim);
		for (uint32_t r = 0; r < 2; r++)
			require(strstr(ranks->rank[r].error, "missing: rank 2 or 3 (host 1)"), "%s",
				ranks->rank[r].error);
		require(strstr(ranks->rank[mate].error, text), "%s", ranks->rank[mate].error);
		require(!named("(rank") && !strstr(ranks->rank[0].error, "(rank 1"), "%s",
			ranks->rank[0].error);
	}
}

static void on_a_host_of_many_ranks(void **state)
{
	kill_one(12, 10, 4, NBMPI_WAIT_YIELD);
	require(strstr(ranks->rank[11].error,
		       "missing: rank 0, 1, 2, 3, 4, 5, 6, 7 or 2 more (host 0)"),
		"%s", ranks->rank[11].error);
}

/* --- a member that leaves ----------------------------------------------------------------------
 */

/* The leader of a host closes the communicator; for the others, a barrier is under way. */
static void one_leaves(void)
{
	struct nbmpi_request r[2];
	struct ranks_comm c;
	int rc = 0;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	expect(nbmpi_ibarrier(c.nbar, &r[0]) == 0, "the first");
	if (ranks_me != victim)
		expect(nbmpi_ibarrier(c.nbar, &r[1]) == 0, "the second");
	while (nbmpi_test(&r[0]) == 0)
		nbmpi_yield();
	ranks_signal(0);
	ranks_await(0, ranks->size);
	if (ranks_me == victim) {
		nbmpi_comm_close(c.nbar);
		return;
	}
	/* One of them has been closed, too: its request learns all the same. */
	if (ranks_me == 2)
		nbmpi_comm_close(c.nbar);
	while ((rc = nbmpi_test(&r[1])) == 0)
		nbmpi_yield();
	expect(rc == NBMPI_FAILED && r[1].code == MPI_TEXT && r[1].orphan == (ranks_me == 2),
	       "%d, code %d", rc, r[1].code);
}

static void a_member_leaves(void **state)
{
	victim = 1;
	ranks_begin(3, 1);
	ranks_run(one_leaves);
	require(strstr(ranks->rank[0].error, "missing: rank 1") &&
			strstr(ranks->rank[2].error, "missing: rank 1"),
		"%s; %s", ranks->rank[0].error, ranks->rank[2].error);
	/* A freed communicator cannot be asked for its ranks: the host's number must do. */
	victim = 0;
	ranks_begin(5, 2);
	ranks_run(one_leaves);
	require(strstr(ranks->rank[4].error, "rank 0 or 1 (host 0)"), "%s", ranks->rank[4].error);
	require(strstr(ranks->rank[2].error, "missing: host 0"), "%s", ranks->rank[2].error);
}

/* --- a complete barrier stays complete ---------------------------------------------------------
 */

/* A rank ends after its last barrier, before the others look at it. */
static void the_last_barrier(void)
{
	struct nbmpi_request r;
	struct ranks_comm c;
	int rc = 0;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	expect(nbmpi_ibarrier(c.nbar, &r) == 0, "the last barrier");
	if (ranks_me != victim)
		ranks_await(0, 1);
	while ((rc = nbmpi_test(&r)) == 0)
		nbmpi_yield();
	expect(rc == 1, "%d", rc);
	if (ranks_me == victim) {
		ranks_signal(0);
		raise(SIGKILL);
	}
}

static void a_rank_may_end_after_its_last_barrier(void **state)
{
	ranks_begin(3, 3);
	victim = 1;
	ranks->killed[1] = true;
	ranks_run(the_last_barrier);
}

/* --- waits that last long ----------------------------------------------------------------------
 */

static bool is_set_up;
static const struct nbar_group *waiting; /* the group of NICs of this rank, if it has one */

/* Rank 1 arrives when rank 0 has said twice that it waits. */
static void one_is_late(void)
{
	struct ranks_comm c;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	waiting = c.nbar->group;
	is_set_up = true;
	if (ranks_me == ranks->size - 1)
		ranks_await(0, 1);
	else
		clock_restore();
	yields_are_counted = ranks_me == 0;
	expect(ranks_barrier(&c) == 0, "a barrier");
}

static bool silent; /* the NIC of this host does not run */

int __wrap_nbar_nic_why(const struct nbar_group *g, char *out, size_t size)
{
	return snprintf(out, size, "%s", silent ? "the NIC is silent" : "");
}

/* Each call into the MPI moves the clock by a second, but only after the NIC has named the missing
 * rank. */
static void progress_takes_time(void)
{
	uint32_t rank;

	ranks->rank[ranks_me].progress++;
	if (!is_set_up || ranks_me == ranks->size - 1 ||
	    (waiting && nbar_missing(waiting, &rank, 1) == 0))
		return;
	clock_advance(1);
	/* The glue looks at the clock every 16 rounds, each a second: for the first time after at
	 * most 16 s. 16 s later it knows that it has waited for over 10 s. */
	if (clock_ahead() == 33 && ranks->config.verbose)
		expect(lseek(2, 0, SEEK_CUR) > 0, "it has said nothing");
	if (clock_ahead() == 70)
		ranks_signal(0);
}

static void late(void)
{
	struct nbmpi_ops ops = *nbmpi_self.start.ops;

	ops.progress = ops.receive = progress_takes_time;
	nbmpi_self.start.ops = &ops;
	one_is_late();
}

/* After 10, 20 and 40 s, at the next look at the clock. The text is rounded, and the glue's limit
 * is not: after "20 s", the next limit is 20 or 40 s. A look comes 16 s of the fake clock after the
 * one before; besides, real seconds have passed. */
static void lines_are_true(const char *said, double real)
{
	const char *at = said;

	for (double least = 10, most = 10; most <= 40;) {
		at = strstr(at, "nbar: rank 0 of 2 has waited ");
		double seconds =
			at ? strtod(at + strlen("nbar: rank 0 of 2 has waited "), NULL) : 0;

		require(seconds >= least && seconds <= most + 17 + real, "%.0f: %s", least, said);
		at = strstr(at, " s in a barrier; missing: ");
		require(at, "%s", said);
		while (least <= seconds - 1)
			least *= 2;
		while (most <= seconds + 1)
			most *= 2;
	}
}

static void long_waits_are_said(void **state)
{
	double begun;

	for (int wait = NBMPI_WAIT_AUTO; wait <= NBMPI_WAIT_BLOCK; wait++)
		for (uint32_t each = 1; each <= 2; each++) {
			ranks_begin(2, each);
			ranks->config.verbose = 1;
			ranks->config.wait = (enum nbmpi_wait)wait;
			begun = nbmpi_now_s();
			ranks_run(late);
			lines_are_true(ranks->rank[0].said, nbmpi_now_s() - begun);
			require(says(0, each == 2 ? "missing: nobody known\n"
					: silent  ? "missing: the NIC is silent\n"
						  : "missing: rank 1"),
				"%s", ranks->rank[0].said);
			silent = each == 2 ? !silent : silent;
			require(!says(1, "has waited"), "%s", ranks->rank[1].said);
		}
	ranks_begin(2, 2);
	ranks->config.verbose = 0;
	ranks->config.wait = NBMPI_WAIT_BLOCK;
	ranks_run(late);
	require(!says(0, "has waited"), "%s", ranks->rank[0].said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(on_one_host),           UNIT(on_hosts_of_one_rank),
		UNIT(on_hosts_of_two_ranks), UNIT(on_a_host_of_many_ranks),
		UNIT(a_member_leaves),       UNIT(a_rank_may_end_after_its_last_barrier),
		UNIT(long_waits_are_said),
	};

	return run_with_ranks(4, tests);
}
