/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_join.c - communicators of the glue, from the first barrier to the last: the set-up of hosts
 * and ranks in several shapes, the reasons against it, what the ranks print, and their counters.
 */
#include <fcntl.h>

#include "node.h"
#include "ranks.h"

static int memory_make(uint64_t key, uint32_t leader, uint32_t nlocal)
{
	return nbmpi_memory_make(key, &(struct nbmpi_comm){ .leader = leader, .nlocal = nlocal });
}

#define MORE 50u /* barriers after the set-up */

static bool says(uint32_t rank, const char *text)
{
	return strstr(ranks->rank[rank].said, text) != NULL;
}

/* --- offloaded ---------------------------------------------------------------------------------
 */

static void barriers(void)
{
	struct nbmpi_counters n;
	struct nbmpi_request r[3];
	struct ranks_comm c;
	int rc;

	ranks_open(&c, 0, 0, ranks->size);
	expect(!nbmpi_comm_offloaded(c.nbar, NULL) && !nbmpi_comm_fallbacks(c.nbar), "opening");
	rc = ranks_set_up(&c);
	expect(rc == 0, "the set-up: %d", rc);
	expect(nbmpi_comm_offloaded(c.nbar, NULL) && !nbmpi_comm_fallbacks(c.nbar), "offloaded");
	expect(ranks->rank[ranks_me].mpi_barriers == NBMPI_PAYS, "by the MPI: %u",
	       ranks->rank[ranks_me].mpi_barriers);
	for (uint32_t i = 0; i < MORE; i++) {
		rc = ranks_barrier(&c);
		expect(rc == 0, "barrier %u: %d", i, rc);
	}
	/* Several at once, tested in any order. */
	for (uint32_t i = 0; i < 3; i++) {
		rc = nbmpi_ibarrier(c.nbar, &r[i]);
		expect(rc == 0, "barrier %u: %d", i, rc);
	}
	for (int i = 2; i >= 0; i--) {
		while ((rc = nbmpi_test(&r[i])) == 0)
			nbmpi_yield();
		expect(rc == 1 && !r[i].orphan && r[i].code == 0, "request %d: %d", i, rc);
	}
	nbmpi_counters_read(&n);
	expect(n.by_nic == (ranks->each < ranks->size ? MORE + 3 : 0), "%u", (unsigned)n.by_nic);
	expect(n.by_host == (ranks->each < ranks->size ? 0 : MORE + 3), "%u", (unsigned)n.by_host);
	expect(n.fallback == NBMPI_PAYS + 1 && n.why[NBMPI_WHY_opening] == n.fallback, "%u",
	       (unsigned)n.fallback);
	expect(n.failed == 0 && n.comms == 1, "%u", (unsigned)n.comms);
	nbmpi_comm_close(c.nbar);
	nbmpi_counters_read(&n);
	expect(n.by_nic + n.by_host == MORE + 3 && n.comms == 1, "closed");
}

static void shape(uint32_t size, uint32_t each)
{
	ranks_begin(size, each);
	ranks_run(barriers);
	require(says(0, "barriers offloaded, "), "%s", ranks->rank[0].said);
	require(says(0, "53 barriers offloaded, 0 within the host, 9 by fallback, 0 failed, on 1 "
			"communicators\n") == (each < size),
		"%s", ranks->rank[0].said);
	require(says(0, "nbar: 9 barriers by fallback: they have taken too little time "
			"yet, or are nonblocking\n"),
		"%s", ranks->rank[0].said);
}

static void on_hosts_of_one_rank(void **state)
{
	shape(2, 1);
	require(says(0, "communicator of 2 ranks on 2 hosts: barriers offloaded to NICs, auto\n"),
		"%s", ranks->rank[0].said);
	require(!says(1, "communicator of"), "%s", ranks->rank[1].said);
	shape(5, 1);
}

static void on_one_host(void **state)
{
	shape(2, 2);
	require(says(0, "communicator of 2 ranks on 1 host: barriers by its ranks\n"), "%s",
		ranks->rank[0].said);
	shape(5, 8);
}

static void on_hosts_of_several_ranks(void **state)
{
	shape(4, 2);
	shape(7, 3);
	require(says(0, "communicator of 7 ranks on 3 hosts"), "%s", ranks->rank[0].said);
}

/* If a program closes its standard input, the next descriptor is 0: which one depends on the call
 * of the MPI in which that happens. */
static uint32_t closes_0;

static void without_descriptor_0(void)
{
	if (fcntl(0, F_DUPFD_CLOEXEC, 10) < 0)
		dup2(2, 0);
	ranks_mpi_closes_0(closes_0);
	barriers();
}

static void descriptor_0_is_as_good(void **state)
{
	for (closes_0 = 1; closes_0 < 8; closes_0++) {
		ranks_begin(4, 2);
		ranks_run(without_descriptor_0);
	}
}

static void wait_policies(void **state)
{
	for (int wait = NBMPI_WAIT_AUTO; wait <= NBMPI_WAIT_BLOCK; wait++) {
		ranks_begin(4, 2);
		ranks->config.wait = (enum nbmpi_wait)wait;
		ranks_run(barriers);
	}
}

/* --- reasons against ---------------------------------------------------------------------------
 */

/* As when MPI starts. */
static void look_for_a_nic(void)
{
	struct nbmpi_config config = ranks->config;
	struct nbmpi_node node;

	config.nic[0] = '\0';
	setenv("NBAR_NIC", "missing%d", 1);
	nbmpi_node_self(&config, 0, &node);
	unsetenv("NBAR_NIC");
}

/* All ranks end with the same reason, and the MPI runs all barriers. */
static void plain(void)
{
	struct nbmpi_counters n;
	struct ranks_comm c;
	uint64_t *fallbacks;
	struct nbmpi_request r;

	if (ranks->mates_say == NBMPI_WHY_nic)
		look_for_a_nic();
	ranks_open(&c, 0, 0, ranks->size);
	for (uint32_t i = 0; i < 2 * NBMPI_PAYS; i++) {
		int rc = ranks_barrier(&c);

		expect(rc == NBMPI_BY_MPI, "barrier %u: %d", i, rc);
	}
	expect(nbmpi_ibarrier(c.nbar, &r) == NBMPI_BY_MPI, "a nonblocking barrier");
	fallbacks = nbmpi_comm_fallbacks(c.nbar);
	expect(fallbacks && !nbmpi_comm_offloaded(c.nbar, NULL), "plain");
	nbmpi_bump(fallbacks);
	nbmpi_counters_read(&n);
	expect(n.fallback == 2 * NBMPI_PAYS + 2 && n.by_nic + n.by_host == 0, "%u",
	       (unsigned)n.fallback);
	for (uint32_t why = 0; why < NBMPI_WHY_END; why++)
		if (n.why[why] && why != NBMPI_WHY_opening)
			ranks->rank[ranks_me].note[0] = why;
	ranks->rank[ranks_me].note[1] = n.why[NBMPI_WHY_opening];
	expect(!nbmpi_self.own || !n.why[NBMPI_WHY_few], "a port for too few hosts");
}

static void against(enum nbmpi_why why, const char *reason)
{
	char text[300];

	snprintf(text, sizeof(text), "communicator of %u ranks: fallback to MPI's barrier: %s",
		 ranks->size, reason);
	ranks_run(plain);
	for (uint32_t r = 0; r < ranks->size; r++) {
		require(ranks->rank[r].note[0] == why, "rank %u: %u", r,
			(unsigned)ranks->rank[r].note[0]);
		require(says(r, text) == (r == 0), "rank %u: %s", r, ranks->rank[r].said);
	}
}

static void before_any_message(void **state)
{
	ranks_begin(4, 2);
	ranks->config.enable = false;
	against(NBMPI_WHY_disabled, "nbar is not "
				    "enabled, or refused its settings at the start\n");
	require(ranks->rank[0].note[1] == 0, "%u", (unsigned)ranks->rank[0].note[1]);
	ranks_begin(1, 1);
	against(NBMPI_WHY_alone, "it has one rank\n");
	ranks_begin(1, 1);
	ranks->config.verbose = 1;
	ranks_run(plain);
	require(!says(0, "communicator of"), "%s", ranks->rank[0].said);
}

static void from_the_mpi(void **state)
{
	ranks_begin(4, 2);
	ranks->mates_say = NBMPI_WHY_foreign;
	against(NBMPI_WHY_foreign, "not all of its processes belong to one world that has nbar\n");
	ranks_begin(4, 2);
	ranks->mates_say = NBMPI_WHY_terms;
	against(NBMPI_WHY_terms, "its processes have different settings or versions of nbar\n");
	ranks_begin(4, 2);
	ranks->mates_say = NBMPI_WHY_nic;
	ranks->config.verbose = 0;
	against(NBMPI_WHY_nic, "rank 0: no port of a NIC could be opened: no NIC missing%d at ");
	ranks_begin(4, 2);
	ranks->mates_say = NBMPI_WHY_memory;
	against(NBMPI_WHY_memory,
		"rank 0: the processes of a host could not share memory: cannot list its "
		"ranks: Cannot allocate memory\n");
}

static void too_few_hosts(void **state)
{
	ranks_begin(4, 2);
	ranks->config.min_hosts = 3;
	against(NBMPI_WHY_few, "it is over fewer hosts than the minimum\n");
	ranks_begin(4, 4);
	ranks->config.min_hosts = 2;
	against(NBMPI_WHY_few, "it is over fewer hosts than the minimum\n");
	/* One host is too few in any case; whether it has a NIC does not matter. */
	ranks_begin(4, 4);
	ranks->config.min_hosts = 2;
	ranks->mates_say = NBMPI_WHY_nic;
	against(NBMPI_WHY_few, "it is over fewer hosts than the minimum\n");
	ranks_begin(4, 2);
	ranks->config.min_hosts = 2;
	ranks_run(barriers);
	ranks_begin(3, 3);
	ranks->config.min_hosts = 0;
	ranks_run(barriers);
}

static void without_a_nic(void **state)
{
	ranks_begin(4, 2);
	ranks->config.verbose = 0;
	strcpy(ranks->config.nic, "missing%r");
	against(NBMPI_WHY_nic, "rank 0: no port of "
			       "a NIC could be opened: no NIC missing0 at ");
	/* One host without a NIC is enough; the first of its ranks prints the reason. */
	ranks_begin(12, 2);
	ranks_run(plain);
	for (uint32_t r = 0; r < 12; r++) {
		require(ranks->rank[r].note[0] == NBMPI_WHY_nic, "rank %u", r);
		require(says(r, "rank 10: no port of a NIC could be opened: no NIC n5 at ") ==
				(r == 10),
			"rank %u: %s", r, ranks->rank[r].said);
	}
	/* A NIC refuses the algorithm. */
	ranks_begin(4, 2);
	strcpy(ranks->config.alg, "no-such-plan");
	against(NBMPI_WHY_group, "rank 0: a NIC has no group for it: ");
}

/* No frame arrives: all ranks agree on the MPI's barrier, and one line has the addresses of two
 * NICs. Where ranks share hosts, the line counts hosts. */
static void nics_without_a_wire(void **state)
{
	const char *at;
	double seconds;

	ranks_begin(3, 1);
	ranks->config.verbose = 0;
	ranks->hurry = true; /* to the end of the limit */
	ranks_nics_loss(100);
	against(NBMPI_WHY_reach, "rank 0: the NICs of its hosts do not hear each other: the NIC of "
				 "rank ");
	at = strstr(ranks->rank[0].said, "of this host, loop:0, for ");
	seconds = at ? strtod(at + strlen("of this host, loop:0, for "), NULL) : 0;
	require(says(0, ", loop:") && seconds >= 8 && seconds < 60, "%s", ranks->rank[0].said);
	ranks_begin(4, 2);
	ranks->hurry = true;
	ranks_progress_takes = 0.1; /* the second rank of a host tries in vain */
	against(NBMPI_WHY_reach, "rank 0: the NICs of its hosts do not hear each other: the NIC of "
				 "host 1, loop:1, has not answered the NIC of this host, loop:0, ");
	ranks_progress_takes = 0;
	/* Many frames are lost: the NICs hear each other. */
	ranks_nics_loss(30);
	ranks_begin(4, 1);
	ranks_run(barriers);
	ranks_nics_loss(0);
}

/* Another job has the file that this one would have with the key 0. */
static void beside_another_job(void)
{
	int memory = memory_make(0, ranks_me, 2);

	barriers();
	close(memory);
	nbmpi_memory_unlink(0, ranks_me);
}

static void each_set_up_has_a_key(void **state)
{
	ranks_begin(4, 2);
	ranks_run(beside_another_job);
}

/* --- several communicators ---------------------------------------------------------------------
 */

/* A reason that the user can mend is printed once at level 0, others never. */
static void twice(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct ranks_comm c;

		ranks_open(&c, i, 0, ranks->size);
		expect(ranks_set_up(&c) == NBMPI_BY_MPI, "communicator %u", i);
	}
}

static uint32_t times(const char *text, const char *what)
{
	uint32_t n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

static void a_reason_is_printed_once(void **state)
{
	for (int verbose = 0; verbose < 3; verbose++) {
		ranks_begin(2, 1);
		ranks->config.verbose = verbose;
		strcpy(ranks->config.nic, "missing%r");
		ranks_run(twice);
		assert_int_equal(times(ranks->rank[0].said, "no port of a NIC"),
				 verbose == 0 ? 1 : 2);
		ranks_begin(2, 2);
		ranks->config.verbose = verbose;
		ranks->config.min_hosts = 2;
		ranks_run(twice);
		assert_int_equal(times(ranks->rank[0].said, "fewer hosts"), verbose == 0 ? 0 : 2);
	}
}

/* The counters are printed from level 1 on, the path of each communicator from level 2 on. */
static void levels(void **state)
{
	for (int verbose = 0; verbose < 3; verbose++) {
		ranks_begin(2, 2);
		ranks->config.verbose = verbose;
		ranks_run(barriers);
		require(says(0, "barriers by its ranks\n") == (verbose > 1), "%s",
			ranks->rank[0].said);
		require(says(0, " failed, on 1 communicators\n") == (verbose > 0), "%s",
			ranks->rank[0].said);
		require(says(0, " barriers by fallback: ") == (verbose > 0), "%s",
			ranks->rank[0].said);
	}
}

/* Three ranks of a host, and one of another: communicators with different leaders. */
static void overlapping(void)
{
	static const uint32_t first[] = { 0, 1, 2 };
	struct ranks_comm c[3];

	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 3; i++)
			if (ranks_me >= first[i]) {
				ranks_open(&c[i], i, first[i], 4 - first[i]);
				expect(ranks_set_up(&c[i]) == 0, "communicator %u", i);
			}
		for (uint32_t i = 0; i < 3; i++)
			if (ranks_me >= first[i])
				expect(ranks_barrier(&c[i]) == 0, "communicator %u", i);
		for (uint32_t i = 3; i-- > 0;)
			if (ranks_me >= first[i] && (round < 2 || i == 1))
				nbmpi_comm_close(c[i].nbar);
	}
}

static void many_communicators(void **state)
{
	ranks_begin(4, 3);
	ranks_run(overlapping);
	require(says(3, " on 9 communicators\n"), "%s", ranks->rank[3].said);
}

/* --- requests ----------------------------------------------------------------------------------
 */

/* The program frees a communicator whose barrier is under way. */
static void freed_early(void)
{
	struct nbmpi_request r[2];
	struct ranks_comm c;
	int rc = 0;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	if (ranks_me == 0)
		ranks_await(0, ranks->size - 1);
	for (uint32_t i = 0; i < 2; i++)
		expect(nbmpi_ibarrier(c.nbar, &r[i]) == 0, "request %u", i);
	nbmpi_comm_close(c.nbar);
	/* If NICs run the barrier, they look after the ranks: this one does not. */
	if (c.nbar->group)
		c.nbar->memory->mate[1 - c.nbar->mate].born++;
	for (int i = 0; ranks_me != 0 && i < 1000; i++)
		expect(nbmpi_test(&r[0]) == 0 && r[0].orphan, "rank 0 has not begun");
	ranks_signal(0);
	for (uint32_t i = 0; i < 2; i++) {
		while ((rc = nbmpi_test(&r[i])) == 0)
			nbmpi_yield();
		expect(rc == 1, "request %u: %d", i, rc);
	}
}

static void a_request_outlives_its_communicator(void **state)
{
	ranks_begin(4, 2);
	ranks_run(freed_early);
	ranks_begin(2, 2);
	ranks_run(freed_early);
}

/* A lock that another call holds: not complete yet. */
static void held(void)
{
	struct nbmpi_request r;
	struct ranks_comm c;

	ranks_open(&c, 0, 0, ranks->size);
	expect(nbmpi_ibarrier(c.nbar, &r) == NBMPI_BY_MPI, "before the set-up");
	for (uint32_t i = 1; i < NBMPI_PAYS; i++)
		expect(nbmpi_ibarrier(c.nbar, &r) == NBMPI_BY_MPI, "barrier %u", i);
	expect(nbmpi_ibarrier(c.nbar, &r) == NBMPI_BY_MPI, "nonblocking barriers set nothing up");
	expect(ranks_barrier(&c) == 0, "the set-up");
	expect(nbmpi_ibarrier(c.nbar, &r) == 0, "offloaded");
	ranks_signal(0);
	ranks_await(0, ranks->size);
	pthread_mutex_lock(&c.nbar->lock);
	for (int i = 0; i < 1000; i++)
		expect(nbmpi_test(&r) == 0, "it takes a lock that is held");
	pthread_mutex_unlock(&c.nbar->lock);
	while (nbmpi_test(&r) == 0)
		nbmpi_yield();
}

static void a_test_never_waits(void **state)
{
	ranks_begin(2, 2);
	ranks_run(held);
}

/* Waits for its own clock: other threads do not count. */
static void long_waits_nap(void **state)
{
	uint64_t since = 0, sleeps = calls.sleeps;

	nbmpi_self.start.config.wait = NBMPI_WAIT_YIELD;
	yield_takes = 1; /* ns */
	clock_advance(1);
	nbmpi_wait_yield(&since);
	clock_advance(0.0009);
	nbmpi_wait_yield(&since);
	assert_int_equal(calls.sleeps, sleeps);
	clock_advance(0.0002);
	nbmpi_wait_yield(&since);
	nbmpi_wait_yield(&since);
	assert_int_equal(calls.sleeps, sleeps + 2);
	nbmpi_yield();
	nbmpi_self.start.config.wait = NBMPI_WAIT_SPIN;
	nbmpi_wait_yield(&since); /* as at the begin */
	assert_int_equal(since, 0);
	assert_int_equal(calls.sleeps, sleeps + 2);
	yield_takes = 0;
	clock_restore();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(on_hosts_of_one_rank),
		UNIT(on_one_host),
		UNIT(on_hosts_of_several_ranks),
		UNIT(descriptor_0_is_as_good),
		UNIT(each_set_up_has_a_key),
		UNIT(wait_policies),
		UNIT(before_any_message),
		UNIT(from_the_mpi),
		UNIT(too_few_hosts),
		UNIT(without_a_nic),
		UNIT(nics_without_a_wire),
		UNIT(a_reason_is_printed_once),
		UNIT(levels),
		UNIT(many_communicators),
		UNIT(a_request_outlives_its_communicator),
		UNIT(a_test_never_waits),
		UNIT(long_waits_nap),
	};

	return run_with_ranks(5, tests);
}
