/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_join_faults.c - the set-up of a communicator when one call fails at one rank: each system
 * call and allocation, and each call of the MPI, in turn.
 *
 * All ranks then decide alike, none waits for ever, the rank that failed says why, and nothing is
 * left behind.
 */
#include <errno.h>

#include "ranks.h"

#define RANKS 4u
#define MOST 400u /* calls of a set-up, at most */
/* A rank whose first barrier is in vain gives up after 8 s. By the clock of the test, a call into
 * the MPI takes this long, so that 4,000 calls are enough. */
#define PROGRESS_S 0.002

static struct {
	uint32_t rank, n, mpi;
	const char *name;
	int error;
} plan;

/* The set-up, and two more barriers. Notes: result and reason; the name of the failed call. */
static void set_up(void)
{
	struct rank_shown *mine = &ranks->rank[ranks_me];
	struct ranks_comm c;
	const char *failed;
	int rc;

	ranks_progress_takes = plan.mpi ? 0 : PROGRESS_S;
	ranks_open(&c, 0, 0, ranks->size);
	for (uint32_t i = 0; i < NBMPI_PAYS; i++)
		expect(ranks_barrier(&c) == NBMPI_BY_MPI, "barrier %u", i);
	if (ranks_me == plan.rank) {
		faults_set(plan.n, plan.name, plan.error);
		ranks_mpi_fails(plan.mpi);
	}
	rc = ranks_barrier(&c);
	failed = faults_end();
	ranks_mpi_fails(0);
	mine->note[0] = (uint64_t)(int64_t)rc;
	mine->note[1] = c.nbar->why;
	mine->note[3] = c.nbar->why_rank;
	mine->note[2] = failed != NULL;
	snprintf(mine->error, sizeof(mine->error), "%s", failed ? failed : "");
	if (rc == NBMPI_MPI_FAILED) {
		struct nbmpi_request r;

		expect(nbmpi_comm_code(c.nbar) == MPI_BROKEN, "code %d", nbmpi_comm_code(c.nbar));
		expect(nbmpi_barrier(c.nbar) == NBMPI_FAILED, "a barrier after the failure");
		expect(nbmpi_ibarrier(c.nbar, &r) == NBMPI_FAILED, "a nonblocking barrier");
		expect(!c.nbar->group && !c.nbar->memory && !c.nbar->port, "something is left");
		return;
	}
	if (plan.mpi)
		return;
	/* A NIC ends the port of a process whose connection has ended. */
	for (int i = 0; i < 2; i++) {
		int later = ranks_barrier(&c);

		expect(later == rc || (plan.error == ECONNRESET && later < 0), "%d, then %d", rc,
		       later);
	}
	if (rc == 0)
		return;
	expect(rc == NBMPI_BY_MPI && c.nbar->why != NBMPI_WHY_none, "%d", rc);
	expect(!c.nbar->group && !c.nbar->memory && !c.nbar->port, "something is left");
}

static void world(uint32_t each)
{
	ranks_begin(RANKS, each);
	ranks_run(set_up);
	for (uint32_t r = 1; r < RANKS && !ranks->broken; r++)
		require(ranks->rank[r].note[0] == ranks->rank[0].note[0] &&
				ranks->rank[r].note[1] == ranks->rank[0].note[1] &&
				ranks->rank[r].note[3] == ranks->rank[0].note[3],
			"call %u (%s) fails at rank %u: rank %u: %d, %u; rank 0: %d, %u", plan.n,
			ranks->rank[plan.rank].error, plan.rank, r, (int)ranks->rank[r].note[0],
			(unsigned)ranks->rank[r].note[1], (int)ranks->rank[0].note[0],
			(unsigned)ranks->rank[0].note[1]);
}

/* False: no call has failed, because the set-up makes fewer. */
static bool fails_at(uint32_t each, uint32_t rank, uint32_t n, const char *name, int error)
{
	char text[80];
	uint32_t named;

	plan.rank = rank;
	plan.n = n;
	plan.name = name;
	plan.error = error;
	plan.mpi = 0;
	world(each);
	if (!ranks->rank[rank].note[2]) {
		require(ranks->rank[0].note[0] == 0, "nothing has failed: %s", ranks->rank[0].said);
		return false;
	}
	/* If several ranks have failed, the lowest is named. */
	named = (uint32_t)ranks->rank[0].note[3];
	snprintf(text, sizeof(text), "fallback to MPI's barrier: rank %u: ", named);
	if (ranks->rank[0].note[0] == NBMPI_BY_MPI)
		require(named < RANKS && strstr(ranks->rank[named].said, text),
			"call %u (%s), rank %u: %s", n, ranks->rank[rank].error, rank,
			ranks->rank[rank].said);
	return true;
}

/* At the ranks of a mask. */
static void each_call_fails(uint32_t each, uint32_t mask)
{
	static const int errors[] = { ENOMEM, EMFILE, ECONNRESET };
	const uint32_t stride = unit_sanitized() ? 3 : 1;
	uint32_t some = 0;

	for (uint32_t rank = 0; rank < RANKS; rank++)
		for (uint32_t n = 1 + rank % stride; mask & 1u << rank && n < MOST; n += stride) {
			if (!fails_at(each, rank, n, NULL, errors[n % 3]))
				break;
			some += ranks->rank[0].note[0] == NBMPI_BY_MPI;
		}
	require(some > 10 / stride, "only %u failures count", some);
}

static void two_hosts_of_two(void **state)
{
	each_call_fails(2, 15);
}

static void hosts_of_one(void **state)
{
	each_call_fails(1, 9);
}

static void one_host(void **state)
{
	each_call_fails(RANKS, 3);
}

/* What each call's failure means, in words. */
static void reasons(void **state)
{
	static const struct {
		uint32_t rank, n;
		const char *name, *says;
		enum nbmpi_why why;
	} cases[] = {
		{ 0, 1, "malloc", "cannot list its ranks: Cannot allocate memory",
		  NBMPI_WHY_memory },
		{ 1, 1, "malloc", "cannot list its ranks: Cannot allocate memory",
		  NBMPI_WHY_memory },
		{ 0, 1, "getrandom", "cannot draw a number for it: ", NBMPI_WHY_memory },
		{ 3, 1, "getrandom", "cannot draw a number for it: ", NBMPI_WHY_memory },
		{ 0, 1, "open", "cannot make it: ", NBMPI_WHY_memory },
		{ 0, 1, "posix_fallocate", "cannot make it: ", NBMPI_WHY_memory },
		{ 2, 1, "mmap", "cannot make it: ", NBMPI_WHY_memory },
		{ 1, 1, "open",
		  "cannot open that of the first rank of this host: ", NBMPI_WHY_memory },
		{ 1, 1, "fstat",
		  "cannot open that of the first rank of this host: ", NBMPI_WHY_memory },
		{ 1, 2, "fstat", "cannot map it: ", NBMPI_WHY_memory },
		{ 1, 1, "mmap", "cannot map it: ", NBMPI_WHY_memory },
		{ 0, 1, "calloc", "cannot keep a port: Cannot allocate memory", NBMPI_WHY_memory },
		{ 1, 1, "calloc", "cannot exchange addresses: Cannot allocate memory",
		  NBMPI_WHY_memory },
		{ 1, 2, "calloc", "cannot keep a port: Cannot allocate memory", NBMPI_WHY_memory },
		{ 0, 1, "connect", "no port of a NIC could be opened: ", NBMPI_WHY_nic },
		{ 1, 1, "connect",
		  "a process could not attach to the NIC of its host: ", NBMPI_WHY_attach },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t rank = cases[i].rank;

		require(fails_at(2, rank, cases[i].n, cases[i].name, ENOMEM), "%s is not called",
			cases[i].name);
		require(ranks->rank[0].note[1] == cases[i].why && ranks->rank[0].note[3] == rank,
			"%s: %u", cases[i].name, (unsigned)ranks->rank[0].note[1]);
		require(strstr(ranks->rank[rank].said, cases[i].says), "%s: %s", cases[i].name,
			ranks->rank[rank].said);
	}
}

/* If the MPI fails, every rank learns it from the MPI, or was done before. */
static void the_mpi_fails(void **state)
{
	for (uint32_t each = 1; each <= RANKS; each *= 2)
		for (uint32_t rank = 0; rank < (each == 2 ? RANKS : 2); rank++) {
			bool failed = true;

			for (uint32_t n = 1; failed && n < MOST; n++) {
				memset(&plan, 0, sizeof(plan));
				plan.rank = rank;
				plan.mpi = n;
				world(each);
				failed = (int)ranks->rank[rank].note[0] == NBMPI_MPI_FAILED;
				for (uint32_t r = 0; r < RANKS; r++)
					require((int)ranks->rank[r].note[0] == NBMPI_MPI_FAILED ||
							ranks->rank[r].note[0] == 0,
						"call %u, rank %u: %d", n, r,
						(int)ranks->rank[r].note[0]);
			}
			require(!failed, "rank %u always fails", rank);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(reasons),  UNIT(two_hosts_of_two), UNIT(hosts_of_one),
		UNIT(one_host), UNIT(the_mpi_fails),
	};

	return run_with_ranks(4, tests);
}
