/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_process_team_ends.c - a process that shares a member ends: the other processes and members
 * get an error.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/unit.h"
#include "cluster.h"
#include "unit/nics.h"
#include "internal.h"

#define NICS 3u

static void child_stays(int to)
{
	while (write(to, "", 1) == 1)
		pause();
	_exit(1);
}

/* Gets a share, attaches, reports that it is attached, and stays. */
static void child_attaches(int from, int to)
{
	struct nbar_share share;
	struct nbar_port *port;
	struct nbar_group *g;

	if (read(from, &share, sizeof(share)) != sizeof(share) ||
	    nbar_attach("n0", &share, &port) < 0 || nbar_group_attach(port, &share, &g) < 0)
		_exit(1);
	child_stays(to);
}

static void an_attached_process_that_dies_is_dead_to_all(void **state)
{
	struct nbar_share share;
	struct cluster c;
	uint32_t ticket[2];
	int to[2], from[2];
	char byte;
	pid_t child;

	assert_true(pipe(to) == 0 && pipe(from) == 0);
	child = fork();
	if (child == 0)
		child_attaches(to[0], from[1]);
	cluster_start(&c, 2, 2, NULL);
	nbar_group_share(c.g[0], &share);
	assert_int_equal(write(to[1], &share, sizeof(share)), sizeof(share));
	assert_int_equal(read(from[0], &byte, 1), 1);
	for (uint32_t r = 0; r < 2; r++)
		require_ok(nbar_post(c.g[r], &ticket[r]));
	for (uint32_t r = 0; r < 2; r++)
		require_ok(nbar_wait(c.g[r], ticket[r], NBAR_FOREVER));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (uint32_t r = 0; r < 2; r++) {
		int rc = 0;

		/* Rank 0 may have arrived before the NIC saw the death. Then rank 1 still completes
		 * that barrier, and the next barrier fails. */
		for (uint32_t i = 0; i < 2 && rc == 0; i++) {
			rc = nbar_post(c.g[r], &ticket[r]);
			if (rc == 0)
				rc = nbar_wait(c.g[r], ticket[r], NBAR_FOREVER);
		}
		assert_int_equal(rc, -ECONNRESET);
		assert_non_null(strstr(nbar_error(), "rank 0 "));
	}
	cluster_end(&c);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

/* Opens a member of one rank, sends its share, and stays. */
static void child_opens(int to)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 1 };
	struct nbar_share share;
	struct nbar_endpoint endpoint;
	struct nbar_port *port;
	struct nbar_group *g;

	if (nbar_open("n0", &port) < 0 || nbar_group_open(port, &attr, &g, &endpoint) < 0 ||
	    nbar_group_connect(g, &endpoint) < 0)
		_exit(1);
	nbar_group_share(g, &share);
	if (write(to, &share, sizeof(share)) != sizeof(share))
		_exit(1);
	child_stays(to);
}

static void an_owner_that_dies_is_missed(void **state)
{
	struct nbar_share share;
	struct nbar_process_team procs;
	struct nbar_port *port;
	struct nbar_group *g;
	int from[2];
	pid_t child;

	assert_int_equal(pipe(from), 0);
	child = fork();
	if (child == 0)
		child_opens(from[1]);
	assert_int_equal(read(from[0], &share, sizeof(share)), sizeof(share));
	require_ok(nbar_attach("n0", &share, &port));
	require_ok(nbar_group_attach(port, &share, &g));
	require_ok(nbar_process_team_init(&procs, 2));
	require_ok(nbar_process_team_post(&procs, g, 1, NULL));
	kill(child, SIGKILL);
	assert_int_equal(nbar_process_team_wait(&procs, g, 1, NULL, NBAR_FOREVER), -ECONNRESET);
	waitpid(child, NULL, 0);
	nbar_close(port);
	close(from[0]);
	close(from[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(an_attached_process_that_dies_is_dead_to_all),
		UNIT(an_owner_that_dies_is_missed),
	};

	return run_with_nics(NICS, tests);
}
