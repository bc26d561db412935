/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_glue_log.c - the messages of the glue: who is missing, why a communicator falls back or has
 * failed, and what has been counted. The test replies for the NIC.
 */
#include "unit/unit.h"

#include <errno.h>

#include "comm_internal.h"
#include "unit/said.h"

#define CODE 55 /* of the MPI, for a failure */

static int nmissing;
static uint32_t missing_host[NBAR_STRAGGLERS_MAX];
static uint16_t missing_why[NBAR_STRAGGLERS_MAX];
static const char *nic_why, *cause;
static uint32_t ranks_a_host;
static char failure[1024];

int __wrap_nbar_missing_why(const struct nbar_group *g, uint32_t *rank, uint16_t *why, uint32_t n)
{
	assert_true(g && n == NBAR_STRAGGLERS_MAX);
	memcpy(rank, missing_host, sizeof(missing_host));
	memcpy(why, missing_why, sizeof(missing_why));
	return nmissing;
}

int __wrap_nbar_nic_why(const struct nbar_group *g, char *out, size_t size)
{
	assert_non_null(g);
	return snprintf(out, size, "%s", nic_why);
}

const char *__wrap_nbar_error(void)
{
	return cause;
}

static uint64_t host_of(void *mpi, uint32_t rank)
{
	return 1000 + rank / ranks_a_host;
}

static int error_of(const char *text)
{
	snprintf(failure, sizeof(failure), "%s", text);
	return CODE;
}

static const struct nbmpi_ops ops = { .host = host_of, .error = error_of };
static struct nbmpi_comm c;

/* Rank `rank` of a communicator with a group, with `size` ranks, `each` on a host. */
static void comm_is(uint32_t rank, uint32_t size, uint32_t each)
{
	memset(&c, 0, sizeof(c));
	c.rank = rank;
	c.size = size;
	c.nhost = (size + each - 1) / each;
	c.group = (struct nbar_group *)&c; /* only its presence counts */
	c.path = NBMPI_OFFLOADED;
	c.why_rank = NBAR_RANK_NONE;
	ranks_a_host = each;
}

static int begin(void **state)
{
	memset(&nbmpi_self.start, 0, sizeof(nbmpi_self.start));
	nbmpi_self.start.ops = &ops;
	strcpy(nbmpi_self.start.config.alg, "auto");
	nbmpi_self.start.config.verbose = 1;
	nmissing = 0;
	nic_why = "";
	cause = "the cause";
	memset(missing_why, 0, sizeof(missing_why));
	comm_is(0, 4, 1);
	return 0;
}

static void missing_is(const char *want)
{
	char line[512];

	snprintf(line, sizeof(line),
		 "nbar: rank %u of %u has waited 4000 s in a barrier; missing: %s\n", c.rank,
		 c.size, want);
	said_begin();
	nbmpi_log_missing(&c, 4000.4);
	assert_string_equal(said_end(), line);
}

static void one_rank_a_host(void **state)
{
	comm_is(0, 300, 1);
	missing_is("nobody known");
	nmissing = 1;
	missing_host[0] = 256;
	missing_is("rank 256");
	missing_host[0] = 299;
	missing_why[0] = (uint16_t)(NBAR_WHY_HOST_LATE << 13 | 1 << 9 | 466);
	missing_is("rank 299: late for 1.0 s");
	missing_host[1] = 300;
	missing_why[1] = 0;
	missing_host[2] = 0;
	missing_why[2] = (uint16_t)(NBAR_WHY_NIC_SILENT << 13 | 1 << 9 | 466);
	nmissing = 3;
	missing_is("rank 299: late for 1.0 s, an unknown rank, rank 0: NIC silent for 1.0 s");
	nic_why = "its own NIC does not run";
	missing_is("its own NIC does not run");
	nic_why = "";
	c.group = NULL;
	missing_is("nobody known");
}

static void several_ranks_a_host(void **state)
{
	nmissing = 1;
	missing_host[0] = 0;
	comm_is(1, 12, 4);
	missing_is("rank 0, 2 or 3 (host 0)");
	missing_host[0] = 1;
	missing_is("rank 4, 5, 6 or 7 (host 1)");
	comm_is(0, 4, 2);
	missing_is("rank 2 or 3 (host 1)");
	missing_host[0] = 0;
	missing_is("rank 1 (host 0)");
	missing_host[0] = 2;
	missing_is("an unknown rank");
	missing_host[0] = 1;
	comm_is(0, 16, 8);
	missing_is("rank 8, 9, 10, 11, 12, 13, 14 or 15 (host 1)");
	comm_is(0, 18, 9);
	missing_is("rank 9, 10, 11, 12, 13, 14, 15, 16 or 1 more (host 1)");
	comm_is(0, 514, 257);
	missing_is("rank 257, 258, 259, 260, 261, 262, 263, 264 or 249 more (host 1)");
	c.closed = true; /* the MPI cannot be asked any more */
	missing_is("host 1");
}

static void failed_as(int error, const char *want)
{
	c.failed = 0;
	assert_int_equal(nbmpi_fail(&c, error), NBMPI_FAILED);
	assert_string_equal(failure, want);
	assert_true(c.error == NBMPI_FAILED && c.code == CODE && c.failed == 1);
}

#define FAILED(n) "nbar: barrier over " n " ranks failed; missing: "

static void failures(void **state)
{
	const struct nbmpi_mate mate = { .rank = 9, .pid = 77 };

	cause = "rank 3 and rank 4 are silent";
	failed_as(-EIO, FAILED("4") "nobody known (rank 3 and rank 4 are silent)");
	comm_is(1, 4, 2);
	failed_as(-EIO, FAILED("4") "nobody known (host 3 and host 4 are silent)");
	nmissing = 1;
	missing_host[0] = 1;
	failed_as(-EIO, FAILED("4") "rank 2 or 3 (host 1) (host 3 and host 4 are silent)");
	assert_int_equal(nbmpi_fail_ended(&c, &mate), NBMPI_FAILED);
	assert_string_equal(failure, FAILED("4") "rank 9 (its process 77 has ended: look there for "
						 "what went wrong)");
	assert_true(c.error == NBMPI_FAILED && c.code == CODE && c.failed == 2);
}

/* The in-process NIC of a leader that has ended names nobody: it is the leader. */
static void ended_leader(void **state)
{
	comm_is(3, 4, 2);
	c.leader = 2;
	nbmpi_self.start.config.where = NBMPI_WHERE_HOST;
	failed_as(-ENETDOWN, FAILED("4") "rank 2 (the cause)");
	failed_as(-EIO, FAILED("4") "nobody known (the cause)");
	nmissing = 1;
	missing_host[0] = 0;
	failed_as(-ENETDOWN, FAILED("4") "rank 0 or 1 (host 0) (the cause)");
	nmissing = 0;
	c.rank = 2;
	failed_as(-ENETDOWN, FAILED("4") "nobody known (the cause)");
	c.rank = 3;
	nbmpi_self.start.config.where = NBMPI_WHERE_NIC;
	failed_as(-ENETDOWN, FAILED("4") "nobody known (the cause)");
	nbmpi_self.start.config.where = NBMPI_WHERE_HOST;
	c.group = NULL;
	failed_as(-ENETDOWN, FAILED("4") "nobody known (the cause)");
}

static void path_is(int verbose, const char *reason, const char *want)
{
	nbmpi_self.start.config.verbose = verbose;
	said_begin();
	nbmpi_log_path(&c, reason);
	assert_string_equal(said_end(), want);
}

static void paths(void **state)
{
	comm_is(0, 4, 1);
	path_is(2, "",
		"nbar: communicator of 4 ranks on 4 hosts: barriers offloaded to NICs, auto\n");
	path_is(1, "", "");
	c.rank = 1;
	path_is(2, "", "");
	comm_is(0, 4, 4);
	c.group = NULL;
	path_is(2, "", "nbar: communicator of 4 ranks on 1 host: barriers by its ranks\n");
}

#define FALLBACK "nbar: communicator of 4 ranks: fallback to MPI's barrier: "

static void fallbacks(void **state)
{
	c.path = NBMPI_PLAIN;
	c.why = NBMPI_WHY_slow;
	path_is(0, "", "");
	path_is(2, "", FALLBACK "the NICs were slower\n");
	c.rank = 1; /* rank 0 prints it */
	path_is(1, "", "");
	c.why_rank = 1;
	path_is(1, "text", FALLBACK "rank 1: the NICs were slower: text\n");
	c.rank = 0; /* rank 1 prints it */
	path_is(1, "", "");
	c.why_rank = 0;
	c.why = NBMPI_WHY_alone;
	path_is(1, "", "");
	path_is(2, "", FALLBACK "rank 0: it has one rank\n");
	/* What the user can mend: once at verbosity 0, each reason. */
	c.why = NBMPI_WHY_nic;
	path_is(0, "", FALLBACK "rank 0: no port of a NIC could be opened\n");
	path_is(0, "", "");
	path_is(1, "", FALLBACK "rank 0: no port of a NIC could be opened\n");
	c.why = NBMPI_WHY_reach;
	path_is(0, "", FALLBACK "rank 0: the NICs of its hosts do not hear each other\n");
	path_is(0, "", "");
	c.why = NBMPI_WHY_END; /* no rank sends it */
	path_is(0, "", "");
	path_is(1, "", FALLBACK "rank 0: an unknown reason\n");
}

static void counters(void **state)
{
	static struct nbmpi_comm other, values;
	struct nbmpi_counters n;

	comm_is(0, 4, 1);
	c.offloaded = 10;
	c.failed = 1;
	c.fallback[NBMPI_WHY_disabled] = 2;
	c.fallback[NBMPI_WHY_opening] = 3;
	c.fallback[NBMPI_WHY_none] = 4;
	other = c;
	other.nhost = 1;
	other.offloaded = 20;
	values = (struct nbmpi_comm){ .kind = NBMPI_ALLREDUCES, .offloaded = 7 };
	values.fallback[NBMPI_WHY_opening] = 5;
	c.next = &other;
	other.next = &values;
	memset(&nbmpi_self.gone, 0, sizeof(nbmpi_self.gone));
	nbmpi_self.gone.by_nic = 100;
	nbmpi_self.gone.comms = 5;
	nbmpi_self.comm = &c;
	nbmpi_counters_read(&n);
	assert_true(n.by_nic == 110 && n.by_host == 20 && n.failed == 2 && n.comms == 7);
	assert_true(n.fallback == 18 && n.why[NBMPI_WHY_disabled] == 4);
	assert_true(n.why[NBMPI_WHY_opening] == 6);
	assert_true(n.why[NBMPI_WHY_none] == 8);
	assert_true(n.allreduces_by_nic == 7 && n.allreduces_by_mpi == 5);
	assert_true(n.why_allreduce[NBMPI_WHY_opening] == 5);
	assert_true(nbmpi_self.gone.by_nic == 100);
	said_begin();
	nbmpi_log_counters();
	assert_string_equal(
		said_end(),
		"nbar: 110 barriers offloaded, 20 within the host, 18 by fallback, 2 failed, on 7 "
		"communicators\n"
		"nbar: 8 barriers by fallback: \n"
		"nbar: 4 barriers by fallback: nbar is not enabled, or refused its settings at the "
		"start\n"
		"nbar: 6 barriers by fallback: they have taken too little time yet, or are "
		"nonblocking\n"
		"nbar: 7 allreduces offloaded, 5 by fallback\n"
		"nbar: 5 allreduces by fallback: they have taken too little time yet, or are "
		"nonblocking\n");
	nbmpi_self.start.config.verbose = 0;
	said_begin();
	nbmpi_log_counters();
	assert_string_equal(said_end(), "");
	nbmpi_self.comm = NULL;
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(one_rank_a_host, begin),
	  cmocka_unit_test_setup(several_ranks_a_host, begin),
	  cmocka_unit_test_setup(failures, begin), cmocka_unit_test_setup(ended_leader, begin),
	  cmocka_unit_test_setup(paths, begin), cmocka_unit_test_setup(fallbacks, begin),
	  cmocka_unit_test_setup(counters, begin))
