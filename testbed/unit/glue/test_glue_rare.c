/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_glue_rare.c - what seldom happens to the glue: a NIC that ends and is started again, a host
 * of too many ranks, no memory, and what a NIC says about missing ranks.
 */
#include <errno.h>

#include "ranks.h"

static int down; /* this many calls of nbar_group_open find that the NIC has ended */
int __real_nbar_group_open(struct nbar_port *port, const struct nbar_group_attr *attr,
			   struct nbar_group **out, struct nbar_endpoint *endpoint);
int __wrap_nbar_group_open(struct nbar_port *port, const struct nbar_group_attr *attr,
			   struct nbar_group **out, struct nbar_endpoint *endpoint)
{
	if (down > 0 && down--)
		return -ENETDOWN;
	return __real_nbar_group_open(port, attr, out, endpoint);
}

static struct {
	int n;
	uint32_t host[NBAR_STRAGGLERS_MAX];
	uint16_t why; /* of the first one */
} missing;

int __wrap_nbar_missing_why(const struct nbar_group *g, uint32_t *ranks_out, uint16_t *why,
			    uint32_t n)
{
	assert_int_equal(n, NBAR_STRAGGLERS_MAX);
	memset(why, 0, n * sizeof(*why));
	why[0] = missing.why;
	memcpy(ranks_out, missing.host, sizeof(missing.host));
	return missing.n;
}

static const char *error_now; /* the library's text about a failure; NULL: as it is */
const char *__real_nbar_error(void);
const char *__wrap_nbar_error(void)
{
	return error_now ? error_now : __real_nbar_error();
}

/* --- the NIC of our port ends ------------------------------------------------------------------
 */

static enum nbmpi_why open_group(struct nbmpi_comm *c)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 2 };
	struct nbar_endpoint endpoint;

	return nbmpi_port_open_group(c, "n0", &attr, &endpoint);
}

static void the_next_group_gets_a_new_port(void **state)
{
	struct nbmpi_comm c = { .size = 2 }, next = c, last = c;
	struct nbmpi_port *first, *second;

	assert_int_equal(open_group(&c), NBMPI_WHY_none);
	first = nbmpi_self.own;
	assert_ptr_equal(c.port, first);
	down = 1;
	assert_int_equal(open_group(&next), NBMPI_WHY_none);
	second = nbmpi_self.own;
	assert_ptr_equal(next.port, second);
	assert_ptr_not_equal(first, second);
	/* The first one stays as long as it has a group. */
	assert_ptr_equal(nbmpi_self.ports, first);
	down = 1;
	assert_int_equal(open_group(&last), NBMPI_WHY_none);
	assert_ptr_equal(nbmpi_self.ports, second);
	nbmpi_port_close_group(&next);
	assert_ptr_equal(nbmpi_self.ports, second);
	nbmpi_port_close_group(&c);
	assert_ptr_equal(nbmpi_self.ports, first);
	nbmpi_port_close_group(&last);
	nbmpi_ports_close();
	assert_null(nbmpi_self.ports);
	assert_null(nbmpi_self.own);
}

static void a_port_without_a_group_is_closed_at_once(void **state)
{
	struct nbmpi_comm c = { .size = 2 };

	assert_int_equal(open_group(&c), NBMPI_WHY_none);
	nbmpi_port_close_group(&c);
	assert_non_null(nbmpi_self.own);
	down = 2;
	assert_int_equal(open_group(&c), NBMPI_WHY_group);
	assert_int_equal(down, 0);
	assert_null(nbmpi_self.own);
	assert_null(nbmpi_self.ports);
	assert_null(c.port);
	assert_int_equal(open_group(&c), NBMPI_WHY_none);
	nbmpi_port_close_group(&c);
	nbmpi_ports_close();
}

/* --- one rank of many --------------------------------------------------------------------------
 */

#define HOST_RANKS (NBAR_PROCESS_TEAM_MAX + 1)

static uint32_t *many_mates(void *mpi, uint32_t *n, enum nbmpi_why *why)
{
	uint32_t *rank = malloc(HOST_RANKS * sizeof(*rank));

	expect(rank, "no memory");
	for (uint32_t r = 0; r < HOST_RANKS; r++)
		rank[r] = r;
	*n = HOST_RANKS;
	return rank;
}

static int sum_alone(void *mpi, struct nbmpi_sum *sum)
{
	sum->before = 0;
	return 0;
}

static void too_many(void)
{
	static const struct nbmpi_ops ops = { .mates = many_mates, .sum = sum_alone };
	struct nbmpi_comm *c;

	nbmpi_self.start.ops = &ops;
	c = nbmpi_comm_open(NULL, 0, HOST_RANKS, false, NBMPI_BARRIERS);
	expect(c, "no communicator");
	for (uint32_t i = 0; i < NBMPI_PAYS; i++)
		expect(nbmpi_barrier(c) == NBMPI_BY_MPI, "barrier %u", i);
	expect(nbmpi_barrier(c) == NBMPI_BY_MPI, "the set-up");
	expect(c->why == NBMPI_WHY_memory && c->why_rank == 0, "%d", (int)c->why);
}

static void a_host_of_too_many_ranks(void **state)
{
	ranks_begin(1, 1);
	ranks_run(too_many);
	require(strstr(ranks->rank[0].said,
		       "rank 0: the processes of a host could not share memory: "),
		"%s", ranks->rank[0].said);
	require(strstr(ranks->rank[0].said, "1024"), "%s", ranks->rank[0].said);
	error_now = "100 %%"; /* no format */
	ranks_run(too_many);
	error_now = NULL;
	require(strstr(ranks->rank[0].said, "could not share memory: 100 %%\n"), "%s",
		ranks->rank[0].said);
}

static void poor(void)
{
	struct nbmpi_counters n;

	faults_set(1, "calloc", ENOMEM);
	expect(!nbmpi_comm_open(NULL, 0, 2, false, NBMPI_BARRIERS),
	       "a communicator without memory");
	faults_end();
	nbmpi_counters_read(&n);
	expect(n.comms == 0, "it counts");
}

static void no_communicator_without_memory(void **state)
{
	ranks_begin(1, 1);
	ranks_run(poor);
}

/* --- without ranks -----------------------------------------------------------------------------
 */

/* The list of communicators stays whole, whichever one ends. */
static void closed_in_any_order(void **state)
{
	struct nbmpi_start start = { .rank = 0 };
	struct nbmpi_counters n;
	struct nbmpi_comm *c[4];

	nbmpi_config_init(&start.config);
	nbmpi_start(&start);
	for (int i = 0; i < 4; i++)
		c[i] = nbmpi_comm_open(NULL, 0, 2, true, NBMPI_BARRIERS);
	nbmpi_comm_close(c[1]);
	nbmpi_comm_close(c[0]);
	assert_ptr_equal(nbmpi_self.comm, c[3]);
	assert_ptr_equal(c[3]->next, c[2]);
	assert_null(c[2]->next);
	nbmpi_comm_close(c[3]);
	assert_ptr_equal(nbmpi_self.comm, c[2]);
	assert_int_equal(nbmpi_barrier(c[2]), NBMPI_BY_MPI);
	nbmpi_counters_read(&n);
	assert_int_equal(n.comms, 4);
	nbmpi_stop();
	assert_null(nbmpi_self.comm);
}

static void an_intercommunicator(void **state)
{
	struct nbmpi_start start = { .rank = 0 };
	struct nbmpi_comm *c;

	nbmpi_config_init(&start.config);
	nbmpi_start(&start);
	c = nbmpi_comm_open(NULL, 0, 2, true, NBMPI_BARRIERS);
	assert_non_null(c);
	for (int i = 0; i < 20; i++)
		assert_int_equal(nbmpi_barrier(c), NBMPI_BY_MPI);
	assert_ptr_equal(nbmpi_comm_fallbacks(c), &c->fallback[NBMPI_WHY_inter]);
	assert_int_equal(*nbmpi_comm_fallbacks(c), 20);
	nbmpi_stop();
	assert_null(nbmpi_self.comm);
}

/* --- what a NIC says ---------------------------------------------------------------------------
 */

static char error_text[1024];

static int error(const char *text)
{
	snprintf(error_text, sizeof(error_text), "%s", text);
	return 17;
}

static uint64_t host(void *mpi, uint32_t rank)
{
	return 1 + rank / 2;
}

/* The text about a failure, of rank 1. */
static const char *failure(uint32_t nhost, uint32_t size, enum nbmpi_where where, int err)
{
	static const struct nbmpi_ops ops = { .error = error, .host = host };
	struct nbmpi_comm c = { .rank = 1, .size = size, .nhost = nhost, .leader = 0 };
	struct nbmpi_start start = { .ops = &ops };

	nbmpi_config_init(&start.config);
	start.config.where = where;
	nbmpi_start(&start);
	c.group = (struct nbar_group *)&c; /* only its presence counts */
	assert_int_equal(nbmpi_fail(&c, err), NBMPI_FAILED);
	assert_int_equal(c.error, NBMPI_FAILED);
	assert_int_equal(c.code, 17);
	assert_int_equal(c.failed, 1);
	return error_text;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void missing_ranks_are_named(void **state)
{
	missing.n = 2;
	missing.host[0] = 3;
	missing.host[1] = 1;
	assert_true(begins(failure(4, 4, NBMPI_WHERE_NIC, -EHOSTUNREACH),
			   "nbar: barrier over 4 ranks failed; missing: rank 3, rank 1 ("));
	assert_true(begins(failure(4, 8, NBMPI_WHERE_NIC, -EHOSTUNREACH),
			   "nbar: barrier over 8 ranks failed; missing: rank 6 or 7 (host 3), "
			   "rank 2 or 3 (host 1) ("));
	missing.why = NBAR_WHY_HOST_STOPPED << 13;
	assert_true(begins(failure(4, 4, NBMPI_WHERE_NIC, -EHOSTUNREACH),
			   "nbar: barrier over 4 ranks failed; missing: rank 3: process stopped, "
			   "late for 0.0 s, rank 1 ("));
	missing.why = 0;
	/* Without memory, a host is only a number. */
	faults_set(1, "malloc", ENOMEM);
	assert_true(begins(failure(4, 8, NBMPI_WHERE_NIC, -EHOSTUNREACH),
			   "nbar: barrier over 8 ranks failed; missing: host 3, rank 2 or 3 "
			   "(host 1) ("));
	faults_end();
	missing.host[0] = 0;
	blocks_behind = 0; /* as if host 0 had one more rank; rank 1 itself is not missing */
	assert_true(begins(failure(4, 8, NBMPI_WHERE_NIC, -EHOSTUNREACH),
			   "nbar: barrier over 8 ranks failed; missing: rank 0 (host 0), "
			   "rank 2 or 3 (host 1) ("));
	/* A NIC may say anything. */
	missing.host[0] = 4;
	assert_true(
		begins(failure(4, 4, NBMPI_WHERE_NIC, -EHOSTUNREACH),
		       "nbar: barrier over 4 ranks failed; missing: an unknown rank, rank 1 ("));
	missing.n = -EINVAL;
	assert_true(begins(failure(4, 4, NBMPI_WHERE_NIC, -EHOSTUNREACH),
			   "nbar: barrier over 4 ranks failed; missing: nobody known ("));
}

/* The library's rank is the number of a host. */
static void the_cause_names_hosts(void **state)
{
	missing.n = 0;
	error_now = "rank 3 is 100 %% lost; look at rank 3 or rank 11";
	assert_string_equal(failure(4, 4, NBMPI_WHERE_NIC, -EHOSTUNREACH),
			    "nbar: barrier over 4 ranks failed; missing: nobody known (rank 3 is "
			    "100 %% lost; look at rank 3 or rank 11)");
	assert_string_equal(failure(4, 8, NBMPI_WHERE_NIC, -EHOSTUNREACH),
			    "nbar: barrier over 8 ranks failed; missing: nobody known (host 3 is "
			    "100 %% lost; look at host 3 or host 11)");
	error_now = NULL;
}

/* The in-process NIC of a leader ends with it. */
static void the_leader_has_ended(void **state)
{
	missing.n = 0;
	assert_true(begins(failure(2, 4, NBMPI_WHERE_HOST, -ENETDOWN),
			   "nbar: barrier over 4 ranks failed; missing: rank 0 ("));
	assert_true(begins(failure(2, 4, NBMPI_WHERE_HOST, -ECONNRESET),
			   "nbar: barrier over 4 ranks failed; missing: nobody known ("));
	assert_true(begins(failure(2, 4, NBMPI_WHERE_NIC, -ENETDOWN),
			   "nbar: barrier over 4 ranks failed; missing: nobody known ("));
	missing.n = 1;
	missing.host[0] = 1;
	assert_true(begins(failure(2, 4, NBMPI_WHERE_HOST, -ENETDOWN),
			   "nbar: barrier over 4 ranks failed; missing: rank 2 or 3 (host 1) ("));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(the_next_group_gets_a_new_port),
		UNIT(a_port_without_a_group_is_closed_at_once),
		UNIT(a_host_of_too_many_ranks),
		UNIT(no_communicator_without_memory),
		UNIT(closed_in_any_order),
		UNIT(an_intercommunicator),
		UNIT(missing_ranks_are_named),
		UNIT(the_cause_names_hosts),
		UNIT(the_leader_has_ended),
	};

	return run_with_ranks(1, tests);
}
