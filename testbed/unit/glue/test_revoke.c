/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_revoke.c - a rank waits in a barrier of the glue, and another rank revokes the communicator,
 * or has ended.
 *
 * Without an MPI and without a NIC: two ranks of one host. The test plays rank 1.
 */
#include "two_ranks.h"

#define REVOKED 76 /* the MPI's error code */
#define ENDED 77
#define TESTS 1000 /* more tests than the glue makes from one question to the MPI to the next */

static int code_now;
static uint32_t asked;
static struct nbmpi_comm *arrives; /* rank 1 arrives there, when rank 0 asks */

static int revoked(void *mpi)
{
	asked++;
	if (arrives)
		nbar_process_team_post(&arrives->memory->procs, NULL, 1, NULL);
	arrives = NULL;
	return code_now;
}

static void progress(void)
{
}

static char said[200];

static int error(const char *text)
{
	snprintf(said, sizeof(said), "%s", text);
	return ENDED;
}

static const struct nbmpi_ops ops = {
	.revoked = revoked, .progress = progress, .receive = progress, .error = error
};
static const struct nbmpi_ops ops_without = { .progress = progress, .receive = progress };

/* Rank 0 of two. It never looks whether the process of rank 1 is alive. */
static struct nbmpi_comm *two_ranks(const struct nbmpi_ops *with)
{
	struct nbmpi_start start = { .ops = with };
	struct nbmpi_comm *c;

	nbmpi_config_init(&start.config);
	nbmpi_start(&start);
	code_now = 0;
	c = two_ranks_open();
	c->looked_after = 1e18;
	return c;
}

static int test_often(struct nbmpi_request *r)
{
	int rc = 0;

	for (int i = 0; i < TESTS && rc == 0; i++)
		rc = nbmpi_test(r);
	return rc;
}

static void a_request_fails(void **state)
{
	struct nbmpi_comm *c = two_ranks(&ops);
	struct nbmpi_request r;

	assert_int_equal(nbmpi_ibarrier(c, &r), 0);
	asked = 0;
	assert_int_equal(test_often(&r), 0);
	assert_int_equal(asked, TESTS / 64);
	code_now = REVOKED;
	assert_int_equal(test_often(&r), NBMPI_FAILED);
	assert_int_equal(r.code, REVOKED);
	assert_int_equal(nbmpi_comm_code(c), REVOKED);
	two_ranks_close(c);
}

static void a_blocking_barrier_fails(void **state)
{
	struct nbmpi_comm *c = two_ranks(&ops);

	code_now = REVOKED;
	assert_int_equal(nbmpi_barrier(c), NBMPI_FAILED);
	assert_int_equal(nbmpi_barrier(c), NBMPI_FAILED);
	assert_int_equal(nbmpi_comm_code(c), REVOKED);
	two_ranks_close(c);
}

/* The other rank has arrived before it revoked: the barrier is complete. */
static void a_complete_barrier_stays_complete(void **state)
{
	struct nbmpi_comm *c = two_ranks(&ops);
	struct nbmpi_request r;

	assert_int_equal(nbmpi_ibarrier(c, &r), 0);
	assert_int_equal(nbar_process_team_post(&c->memory->procs, NULL, 1, NULL), 0);
	code_now = REVOKED;
	assert_int_equal(test_often(&r), 1);
	two_ranks_close(c);
}

/* A rank looks at the others only once in a while, whatever it finds. */
static void ranks_that_have_ended(void **state)
{
	struct nbmpi_comm *c = two_ranks(&ops);
	struct nbmpi_request r;

	assert_int_equal(nbmpi_ibarrier(c, &r), 0);
	c->looked_after = -1;
	assert_int_equal(test_often(&r), 0);
	assert_true(c->looked_after > 0);
	c->looked_after = 1e18;
	c->memory->mate[1] = (struct nbmpi_mate){ .rank = 1, .pid = 1 << 30, .born = 1 };
	assert_int_equal(test_often(&r), 0);
	c->looked_after = -1;
	assert_int_equal(test_often(&r), NBMPI_FAILED);
	assert_int_equal(r.code, ENDED);
	assert_non_null(strstr(said, "missing: rank 1 (its process 1073741824 has ended"));
	two_ranks_close(c);
}

/* While rank 0 looks, rank 1 arrives and ends: this barrier is complete. */
static void a_rank_that_ends_normally(void **state)
{
	struct nbmpi_comm *c = two_ranks(&ops);
	struct nbmpi_request r;

	assert_int_equal(nbmpi_ibarrier(c, &r), 0);
	c->looked_after = -1;
	c->memory->mate[1] = (struct nbmpi_mate){ .rank = 1, .pid = 1 << 30, .born = 1 };
	arrives = c;
	assert_int_equal(test_often(&r), 1);
	assert_null(arrives);
	two_ranks_close(c);
}

static void an_mpi_that_cannot_revoke(void **state)
{
	struct nbmpi_comm *c = two_ranks(&ops_without);
	struct nbmpi_request r;

	assert_int_equal(nbmpi_ibarrier(c, &r), 0);
	assert_int_equal(test_often(&r), 0);
	assert_int_equal(nbar_process_team_post(&c->memory->procs, NULL, 1, NULL), 0);
	assert_int_equal(test_often(&r), 1);
	two_ranks_close(c);
}

UNIT_MAIN(NULL, NULL, UNIT(a_request_fails), UNIT(a_blocking_barrier_fails),
	  UNIT(a_complete_barrier_stays_complete), UNIT(ranks_that_have_ended),
	  UNIT(a_rank_that_ends_normally), UNIT(an_mpi_that_cannot_revoke))
