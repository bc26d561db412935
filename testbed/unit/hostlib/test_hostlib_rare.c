/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_rare.c - calls of the host library where they make no sense: on a link that is down,
 * in the child of a fork, on a group that is not connected, in a process that is only attached.
 */
#include <errno.h>

#include "cluster.h"
#include "internal.h"
#include "order.h"
#include "unit/nics.h"

#define require_error(call, error)                                     \
	do {                                                           \
		int rc_ = call;                                        \
		require(rc_ == -(error), "%d: %s", rc_, nbar_error()); \
	} while (0)

static void errors_have_the_numbers_of_this_system(void **state)
{
#define SAME(name, number) assert_int_equal(nblib_errno(-number), -name);
	NBAR_ERRORS(SAME)
#undef SAME
	assert_int_equal(nblib_errno(-9999), -EPROTO);
	assert_int_equal(nblib_errno(0), -EPROTO);
}

/* Each call fails at once if the NIC is gone, or if the port belongs to the parent process. */
static void a_link_that_is_down_is_told(void **state)
{
	static const uint32_t word[NBAR_SIGNAL_WORDS] = { 1 };
	struct nbar_process_team procs;
	struct nbar_rep_nic_stat stat;
	const struct nbar_group_attr attr = { .size = 1 };
	struct nbar_endpoint endpoint;
	struct nbar_group *g;
	struct cluster c, s;
	uint32_t ticket;

	for (uint32_t down = NBLIB_GONE; down <= NBLIB_FORKED; down++) {
		cluster_start(&c, 2, 1, "pairwise");
		cluster_start(&s, 2, 1, "signal");
		require_ok(nbar_process_team_init(&procs, 1));
		for (uint32_t r = 0; r < 2; r++)
			require_ok(nbar_post(c.g[r], &ticket));
		require_ok(nbar_wait(c.g[0], ticket, NBAR_FOREVER));
		assert_true(nbar_group_fd(c.g[0]) >= 0);
		order_down_write(&c.port[0]->link.down, down);
		order_down_write(&s.port[0]->link.down, down);
		assert_int_equal(nbar_group_arm(c.g[0], ticket), 1); /* the barrier is complete */
		require_error(nbar_group_arm(c.g[0], ticket + 1), ENETDOWN);
		require_error(nbar_process_team_post(&procs, c.g[0], 0, &ticket), ENETDOWN);
		require_error(nbar_signal_send(s.g[0], 0, word), ENETDOWN);
		require_error(nbar_group_open(c.port[0], &attr, &g, &endpoint), ENETDOWN);
		require_ok(nbar_group_abort(c.g[0]));
		require_ok(nbar_nic_stat("n0", &stat)); /* the NIC itself runs */
		cluster_end(&c);
		cluster_end(&s);
	}
}

static void a_group_must_be_connected(void **state)
{
	struct nbar_process_team procs;
	struct cluster c;
	uint32_t ticket = 0;

	cluster_open(&c, 2, 1, "pairwise");
	require_ok(nbar_process_team_init(&procs, 1));
	require_error(nbar_process_team_post(&procs, c.g[0], 0, &ticket), ENOTCONN);
	require_ok(nbar_process_team_post(&procs, NULL, 0, &ticket));
	assert_int_equal(ticket, 1);
	require_ok(nbar_process_team_wait(&procs, NULL, ticket, NULL, NBAR_FOREVER));
	require_error(nbar_process_team_post(&procs, NULL, 1, &ticket), ERANGE);
	cluster_end(&c);
}

static void an_attached_process_gets_no_fd(void **state)
{
	const struct nbar_group_attr attr = { .size = 1 };
	struct nbar_endpoint endpoint;
	struct nbar_port *port;
	struct nbar_group *g;
	struct nbar_share share, again;
	struct cluster c;

	cluster_start(&c, 2, 1, "pairwise");
	nbar_group_share(c.g[0], &share);
	require_ok(nbar_attach("n0", &share, &port));
	require_ok(nbar_group_attach(port, &share, &g));
	nbar_group_share(g, &again); /* another process may attach through this process */
	assert_memory_equal(&again, &share, sizeof(share));
	require_error(nbar_group_fd(g), EPERM);
	assert_non_null(strstr(nbar_error(), "that opened it can poll"));
	nbar_group_close(g);
	setenv("NBAR_WAIT", "sometimes", 1);
	require_error(nbar_group_attach(port, &share, &g), EINVAL);
	require_error(nbar_group_open(port, &attr, &g, &endpoint), EINVAL);
	unsetenv("NBAR_WAIT");
	share.rank = share.size;
	require_error(nbar_group_attach(port, &share, &g), ERANGE);
	share.rank = 0;
	share.cell = NBAR_GROUPS_MAX;
	require_error(nbar_group_attach(port, &share, &g), EINVAL);
	assert_string_equal(nbar_error(), "cell 1024: a port has cells 0 to 1023");
	share.cell = again.cell;
	require_ok(nbar_group_attach(port, &share, &g));
	nbar_close(port);
	cluster_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(errors_have_the_numbers_of_this_system),
		UNIT(a_link_that_is_down_is_told),
		UNIT(a_group_must_be_connected),
		UNIT(an_attached_process_gets_no_fd),
	};

	return run_with_nics(1, tests);
}
