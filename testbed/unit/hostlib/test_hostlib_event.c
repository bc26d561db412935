/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_event.c - programs with an event loop, against real NICs: descriptors for poll(),
 * connecting in parts, aborts; and structs of other versions.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "cluster.h"
#include "unit/nics.h"
#include "unit/unit.h"
#include "unit/hostlib/team.h"

#define NICS 3u

/* --- descriptors ----------------------------------------------------------------------------- */

/* True if the descriptor is readable now. */
static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* An event loop. The thread must not wait in the library. */
static int poll_until_over(struct nbar_group *g, uint32_t ticket)
{
	struct pollfd p = { .fd = nbar_group_fd(g), .events = POLLIN };
	int rc;

	require(p.fd >= 0, "%s", nbar_error());
	while ((rc = nbar_group_arm(g, ticket)) == 0)
		require(poll(&p, 1, -1) == 1, "poll: %d", errno);
	return rc;
}

static void *post_soon(void *arg)
{
	for (int i = 0; i < 50; i++)
		breathe();
	require_ok(nbar_post(arg, NULL));
	return NULL;
}

static void poll_wakes_when_a_barrier_completes(void **state)
{
	struct cluster c;
	pthread_t thread;
	uint32_t ticket;
	int fd;

	cluster_start(&c, 2, NICS, "pairwise");
	fd = nbar_group_fd(c.g[0]);
	require(fd >= 0 && nbar_group_fd(c.g[0]) == fd, "%s", nbar_error());
	for (uint32_t i = 1; i <= 20; i++) {
		require_ok(nbar_post(c.g[0], &ticket));
		assert_int_equal(nbar_group_arm(c.g[0], ticket), 0);
		if (i == 1)
			assert_false(readable(fd));
		assert_int_equal(pthread_create(&thread, NULL, post_soon, c.g[1]), 0);
		assert_int_equal(poll_until_over(c.g[0], ticket), 1);
		pthread_join(thread, NULL);
		assert_int_equal(nbar_group_arm(c.g[0], ticket), 1);
	}
	cluster_end(&c);
}

static void one_epoll_set_has_many_groups(void **state)
{
	enum { GROUPS = 8 };
	struct cluster c[GROUPS];
	uint32_t ticket, done = 0;
	int set = epoll_create1(EPOLL_CLOEXEC);

	for (uint32_t i = 0; i < GROUPS; i++) {
		struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u32 = i };

		cluster_start(&c[i], 2, NICS, "dissemination:1");
		require_ok(nbar_post(c[i].g[0], &ticket));
		assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, nbar_group_fd(c[i].g[0]), &ev), 0);
		assert_int_equal(nbar_group_arm(c[i].g[0], ticket), 0);
	}
	for (uint32_t i = GROUPS; i-- > 0;)
		require_ok(nbar_post(c[i].g[1], NULL));
	while (done != (1u << GROUPS) - 1) {
		struct epoll_event ev;

		assert_int_equal(epoll_wait(set, &ev, 1, -1), 1);
		if (nbar_group_arm(c[ev.data.u32].g[0], 1) == 1)
			done |= 1u << ev.data.u32;
	}
	/* A group that is closed leaves the set with its descriptor. */
	for (uint32_t i = 0; i < GROUPS; i++)
		cluster_end(&c[i]);
	struct epoll_event ev;

	assert_int_equal(epoll_wait(set, &ev, 1, 0), 0);
	close(set);
}

static void poll_wakes_when_a_member_leaves(void **state)
{
	struct cluster c;
	uint32_t ticket;

	cluster_start(&c, 3, NICS, "pairwise");
	require_ok(nbar_post(c.g[0], &ticket));
	assert_int_equal(nbar_group_arm(c.g[0], ticket), -EINVAL); /* no descriptor yet */
	nbar_group_close(c.g[2]);
	assert_int_equal(poll_until_over(c.g[0], ticket), -ESHUTDOWN);
	assert_non_null(strstr(nbar_error(), "rank 2"));
	/* The failure stays, and the call does not block. */
	assert_int_equal(poll_until_over(c.g[0], ticket), -ESHUTDOWN);
	/* The group can post no more, so each later ticket gets this error. */
	assert_int_equal(nbar_test(c.g[0], ticket + 1), -ESHUTDOWN);
	assert_int_equal(nbar_wait(c.g[0], ticket + 1, NBAR_FOREVER), -ESHUTDOWN);
	cluster_end(&c);
}

static void a_descriptor_is_asked_for_first(void **state)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 2, .alg = "signal" };
	struct nbar_endpoint endpoint;
	struct nbar_group *g;
	struct cluster c;

	cluster_start(&c, 2, NICS, "pairwise");
	require_ok(nbar_post(c.g[0], NULL));
	assert_int_equal(nbar_group_arm(c.g[0], 1), -EINVAL);
	require_ok(nbar_group_open(c.port[0], &attr, &g, &endpoint));
	assert_int_equal(nbar_group_fd(g), -EINVAL);
	assert_int_equal(nbar_group_abort(g), -EINVAL);
	assert_int_equal(nbar_group_arm(c.g[0], 7), -EINVAL);
	cluster_end(&c);
}

/* Opens as many descriptors as a port may have. A closed descriptor makes room for another. */
static void descriptors_have_a_limit(void **state)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 1 };
	struct nbar_group *g[NBAR_EVENTS_MAX + 1];
	struct nbar_endpoint endpoint;
	struct nbar_port *port;

	require_ok(nbar_open("n0", &port));
	for (uint32_t i = 0; i <= NBAR_EVENTS_MAX; i++)
		require_ok(nbar_group_open(port, &attr, &g[i], &endpoint));
	for (uint32_t i = 0; i < NBAR_EVENTS_MAX; i++)
		require(nbar_group_fd(g[i]) >= 0, "%u: %s", i, nbar_error());
	assert_int_equal(nbar_group_fd(g[NBAR_EVENTS_MAX]), -ENOSPC);
	nbar_group_close(g[3]);
	require(nbar_group_fd(g[NBAR_EVENTS_MAX]) >= 0, "%s", nbar_error());
	nbar_close(port);
}

/* --- connecting ------------------------------------------------------------------------------ */

/* More peers than one message holds, and a bad endpoint among the last. */
static void connecting_in_parts_names_the_bad_rank(void **state)
{
	enum { SIZE = 1500 };
	static struct nbar_endpoint all[SIZE];
	struct nbar_endpoint last;
	struct nbar_group_attr attr = { .size = SIZE, .alg = "linear" };
	struct nbar_port *port;
	struct nbar_group *g, *one;

	require_ok(nbar_open("n0", &port));
	require_ok(nbar_group_open(port, &attr, &g, &all[0]));
	for (uint32_t r = 1; r < SIZE; r++) {
		attr.rank = r;
		require_ok(nbar_group_open(port, &attr, &one, &all[r]));
		nbar_group_close(one);
	}
	last = all[SIZE - 1];
	all[SIZE - 1] = all[5];
	assert_int_equal(nbar_group_connect(g, all), -EPROTO);
	assert_non_null(strstr(nbar_error(), "1499"));
	assert_int_equal(nbar_post(g, NULL), -ENOTCONN);
	/* A second try sends the rest: the NIC has the addresses of the first message. */
	all[SIZE - 1] = last;
	require_ok(nbar_group_connect(g, all));
	nbar_close(port);
}

/* --- aborts ---------------------------------------------------------------------------------- */

struct waiter {
	struct nbar_group *g;
	struct nbar_team *team;
	uint32_t ticket;
	int rc;
};

static void *wait_main(void *arg)
{
	struct waiter *w = arg;

	w->rc = w->team ? nbar_team_barrier(w->team, 0) : nbar_wait(w->g, w->ticket, NBAR_FOREVER);
	return NULL;
}

static void an_abort_ends_all_waits(void **state)
{
	const struct nbar_wait_policy block = { .block = 1 };
	struct waiter w[3];
	pthread_t thread[3];
	struct cluster c;

	cluster_start(&c, 3, NICS, "pairwise");
	/* Ranks 0 and 1 wait, two threads for rank 0; rank 2 never comes. */
	nbar_group_set_wait(c.g[0], &block);
	nbar_group_set_wait(c.g[1], &block);
	for (uint32_t i = 0; i < 3; i++) {
		w[i] = (struct waiter){ .g = c.g[i / 2] };
		if (i != 1)
			require_ok(nbar_post(w[i].g, NULL));
		w[i].ticket = 1;
		assert_int_equal(pthread_create(&thread[i], NULL, wait_main, &w[i]), 0);
	}
	breathe();
	require_ok(nbar_group_abort(c.g[0]));
	require_ok(nbar_group_abort(c.g[0]));
	for (uint32_t i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].rc, -ECANCELED);
	}
	assert_int_equal(nbar_test(c.g[0], 1), -ECANCELED);
	assert_non_null(strstr(nbar_error(), "this process has aborted"));
	assert_int_equal(nbar_post(c.g[0], NULL), -ECANCELED);
	/* A thread that has not waited yet gets the error, too. */
	assert_int_equal(nbar_barrier(c.g[2]), -ECANCELED);
	assert_non_null(strstr(nbar_error(), "rank 0 has aborted"));
	/* Rank 2 may abort, too: nothing changes for the others. */
	require_ok(nbar_group_abort(c.g[2]));
	assert_int_equal(nbar_test(c.g[1], 1), -ECANCELED);
	assert_non_null(strstr(nbar_error(), "rank 0 has aborted"));
	cluster_end(&c);
}

static void an_abort_wakes_poll(void **state)
{
	struct cluster c;
	uint32_t ticket;

	cluster_start(&c, 2, NICS, "pairwise");
	for (uint32_t r = 0; r < 2; r++)
		require(nbar_group_fd(c.g[r]) >= 0, "%s", nbar_error());
	require_ok(nbar_post(c.g[1], &ticket));
	require_ok(nbar_group_abort(c.g[0]));
	assert_int_equal(poll_until_over(c.g[1], ticket), -ECANCELED);
	assert_true(readable(nbar_group_fd(c.g[0])));
	assert_int_equal(nbar_group_arm(c.g[0], 1), -ECANCELED);
	cluster_end(&c);
}

static void what_completed_before_an_abort_stays_so(void **state)
{
	struct cluster c;

	cluster_start(&c, 2, NICS, "pairwise");
	for (uint32_t r = 0; r < 2; r++)
		require_ok(nbar_post(c.g[r], NULL));
	for (uint32_t r = 0; r < 2; r++)
		require_ok(nbar_wait(c.g[r], 1, NBAR_FOREVER));
	require_ok(nbar_group_abort(c.g[0]));
	assert_int_equal(nbar_test(c.g[0], 1), 1);
	assert_int_equal(nbar_wait(c.g[1], 1, 0), 0);
	cluster_end(&c);
	/* Aborts a group before it is connected. */
	cluster_open(&c, 2, NICS, "pairwise");
	require_ok(nbar_group_abort(c.g[0]));
	(void)nbar_group_connect(c.g[0], c.endpoint);
	assert_true(nbar_post(c.g[0], NULL) < 0);
	cluster_end(&c);
}

static void an_abort_frees_a_team(void **state)
{
	struct nbar_team team;
	struct waiter w[2];
	pthread_t thread[2];
	struct cluster c;

	cluster_start(&c, 2, NICS, "pairwise");
	require_ok(team_init(&team, 3, c.g[0])); /* the third thread never arrives */
	for (uint32_t i = 0; i < 2; i++) {
		w[i] = (struct waiter){ .team = &team };
		assert_int_equal(pthread_create(&thread[i], NULL, wait_main, &w[i]), 0);
	}
	breathe();
	require_ok(nbar_group_abort(c.g[0]));
	for (uint32_t i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].rc, -ECANCELED);
	}
	cluster_end(&c);
}

/* --- versions -------------------------------------------------------------------------------- */

static void structs_of_other_versions(void **state)
{
	struct {
		struct nbar_group_attr attr;
		uint64_t more;
	} newer = { .attr = { .struct_size = sizeof(newer), .size = 1 } };
	char text[128];
	struct nbar_endpoint endpoint;
	struct nbar_share share;
	struct nbar_port *port, *other;
	struct nbar_group *g;

	require_ok(nbar_open("n0", &port));
	require_ok(nbar_group_open(port, &newer.attr, &g, &endpoint));
	require_ok(nbar_group_connect(g, &endpoint));
	require_ok(nbar_barrier(g));
	nbar_group_share(g, &share);
	assert_int_equal(share.struct_size, sizeof(share));
	share.struct_size += 8;
	assert_int_equal(nbar_attach("n0", &share, &other), -EPROTO);
	nbar_group_close(g);
	newer.more = UINT64_MAX;
	snprintf(text, sizeof(text),
		 "struct nbar_group_attr has a field that this library does not know "
		 "(byte %zu of %zu)",
		 (size_t)((char *)&newer.more - (char *)&newer), sizeof(newer));
	assert_int_equal(nbar_group_open(port, &newer.attr, &g, &endpoint), -E2BIG);
	assert_non_null(strstr(nbar_error(), text));
	newer.attr.struct_size = 8;
	assert_int_equal(nbar_group_open(port, &newer.attr, &g, &endpoint), -EINVAL);
	assert_non_null(strstr(nbar_error(), "struct nbar_group_attr: struct_size is 8, and"));
	newer.attr.struct_size = sizeof(newer.attr);
	require_ok(nbar_group_open(port, &newer.attr, &g, &endpoint));
	nbar_close(port);
}

/* --- the NIC ends: these tests come last, because the others need the NIC -------------------- */

static void poll_wakes_when_the_nic_ends(void **state)
{
	struct nbar_group_attr attr = { .rank = 0, .size = 2 };
	struct nbar_endpoint endpoint[2];
	struct nbar_group *g[2];
	struct nbar_port *port;
	uint32_t ticket;
	int rc;

	require_ok(nbar_open("n0", &port));
	for (attr.rank = 0; attr.rank < 2; attr.rank++)
		require_ok(nbar_group_open(port, &attr, &g[attr.rank], &endpoint[attr.rank]));
	for (uint32_t i = 0; i < 2; i++)
		require_ok(nbar_group_connect(g[i], endpoint));
	require(nbar_group_fd(g[0]) >= 0, "%s", nbar_error());
	require_ok(nbar_post(g[0], &ticket));
	assert_int_equal(nbar_group_arm(g[0], ticket), 0);
	inproc_stop(nics);
	nics = NULL;
	rc = poll_until_over(g[0], ticket);
	assert_int_equal(rc, -ENETDOWN);
	require_ok(nbar_group_abort(g[0]));
	require_ok(nbar_group_abort(g[0]));
	assert_int_equal(nbar_group_fd(g[1]), -ENETDOWN);
	nbar_close(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(poll_wakes_when_a_barrier_completes),
		UNIT(one_epoll_set_has_many_groups),
		UNIT(poll_wakes_when_a_member_leaves),
		UNIT(a_descriptor_is_asked_for_first),
		UNIT(descriptors_have_a_limit),
		UNIT(connecting_in_parts_names_the_bad_rank),
		UNIT(an_abort_ends_all_waits),
		UNIT(an_abort_wakes_poll),
		UNIT(what_completed_before_an_abort_stays_so),
		UNIT(an_abort_frees_a_team),
		UNIT(structs_of_other_versions),
		UNIT(poll_wakes_when_the_nic_ends),
	};

	return run_with_nics(NICS, tests);
}
