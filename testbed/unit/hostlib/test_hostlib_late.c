/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_late.c - a NIC that answers too late: only the request fails, the port goes on, and
 * the library recognizes late replies by their numbers.
 */
#include <pthread.h>

#include "nic_end.h"

/* Other work of the port goes on. */
static void the_request_fails_alone(void **state)
{
	struct nbar_group *g, *other;

	answer(NBAR_OP_GROUP_OPEN, 1, 0, 3);
	assert_int_equal(open_group(&g), 0);
	g->runs = g->connected = true;
	assert_int_equal(nbar_post(g, NULL), 0);
	assert_int_equal(open_group(&other), -ETIME);
	assert_non_null(strstr(nbar_error(), "NIC n0: its daemon has not answered in time"));
	assert_false(nblib_link_look(&port.link));
	assert_int_equal(nbar_test(g, 1), 0);
	page.completion[3].word = 1;
	assert_int_equal(nbar_test(g, 1), 1);
	assert_int_equal(nbar_post(g, NULL), 0);
}

static void a_late_group_is_closed(void **state)
{
	struct nbar_group *g;

	assert_int_equal(open_group(&g), -ETIME);
	heard(NBAR_OP_GROUP_OPEN, 1);
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	answer(NBAR_OP_GROUP_OPEN, 3, 0, 6);
	assert_int_equal(open_group(&g), 0);
	assert_int_equal(g->cell, 6);
	assert_int_equal(heard(NBAR_OP_GROUP_CLOSE, 2).cell, 5);
	heard(NBAR_OP_GROUP_OPEN, 3);
	assert_int_equal(port.link.nlate, 1);
	answer(NBAR_OP_GROUP_CLOSE, 2, 0, 0);
	answer(NBAR_OP_GROUP_OPEN, 4, -EBUSY, 0);
	assert_int_equal(open_group(&g), -EBUSY);
	assert_int_equal(port.link.nlate, 0);
	heard(NBAR_OP_GROUP_OPEN, 4);
	heard_nothing();
}

/* The groups of a link that is down have ended: the library reads no late reply, and closes none.
 */
static void a_link_that_is_down_takes_no_late_reply(void **state)
{
	struct nbar_group *g;

	assert_int_equal(open_group(&g), -ETIME);
	heard(NBAR_OP_GROUP_OPEN, 1);
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	port.link.down = NBLIB_GONE;
	assert_int_equal(open_group(&g), -ENETDOWN);
	assert_int_equal(port.link.nlate, 1);
	heard_nothing();
}

/* A late refusal leaves nothing to close. */
static void a_late_refusal_is_dropped(void **state)
{
	const struct nbar_share share = { .cell = 9, .size = 1 };
	struct nbar_group *g;

	assert_int_equal(open_group(&g), -ETIME);
	answer(NBAR_OP_GROUP_OPEN, 1, -ENOSPC, 0);
	answer(NBAR_OP_GROUP_OPEN, 2, 0, 6);
	assert_int_equal(open_group(&g), 0);
	heard(NBAR_OP_GROUP_OPEN, 1);
	heard(NBAR_OP_GROUP_OPEN, 2);
	heard_nothing();
	assert_int_equal(port.link.nlate, 0);
	assert_int_equal(nbar_group_attach(&port, &share, &g), -ETIME);
	answer(NBAR_OP_GROUP_ATTACH, 3, -ENOSPC, 0);
	answer(NBAR_OP_GROUP_OPEN, 4, 0, 7);
	assert_int_equal(open_group(&g), 0);
	heard(NBAR_OP_GROUP_ATTACH, 3);
	heard(NBAR_OP_GROUP_OPEN, 4);
	heard_nothing();
	assert_int_equal(port.link.nlate, 0);
}

static void a_late_attachment_is_closed(void **state)
{
	const struct nbar_share share = { .cell = 9, .rank = 0, .size = 1 };
	struct nbar_group *g;

	assert_int_equal(nbar_group_attach(&port, &share, &g), -ETIME);
	heard(NBAR_OP_GROUP_ATTACH, 1);
	answer(NBAR_OP_GROUP_ATTACH, 1, 0, 0);
	answer(NBAR_OP_GROUP_ATTACH, 3, 0, 0);
	assert_int_equal(nbar_group_attach(&port, &share, &g), 0);
	assert_int_equal(heard(NBAR_OP_GROUP_CLOSE, 2).cell, 9);
	heard(NBAR_OP_GROUP_ATTACH, 3);
}

/* The group may be connected or not. */
static void a_connect_without_an_answer_is_not_tried_again(void **state)
{
	struct nbar_group *g;
	struct nbar_endpoint endpoint = { .byte = { 0 } };

	answer(NBAR_OP_GROUP_OPEN, 1, 0, 3);
	assert_int_equal(open_group(&g), 0);
	heard(NBAR_OP_GROUP_OPEN, 1);
	assert_int_equal(nbar_group_connect(g, &endpoint), -ETIME);
	heard(NBAR_OP_GROUP_CONNECT, 2);
	assert_int_equal(nbar_group_connect(g, &endpoint), -ETIME);
	assert_non_null(strstr(nbar_error(), "close the group"));
	heard_nothing();
	assert_int_equal(nbar_post(g, NULL), -ENOTCONN);
}

/* The NIC's thread wakes up when the next request is there. */
static void *answer_both(void *arg)
{
	struct request r;

	require(recv(nic_end, &r, sizeof(r), 0) > 0 && r.head.seq == 1, "number %u", r.head.seq);
	require(recv(nic_end, &r, sizeof(r), 0) > 0 && r.head.seq == 2, "number %u", r.head.seq);
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	answer(NBAR_OP_GROUP_OPEN, 2, 0, 6);
	return arg;
}

static void a_late_reply_comes_before_the_next(void **state)
{
	const struct timeval forever = { 0 };
	struct nbar_group *g;
	pthread_t thread;

	assert_int_equal(open_group(&g), -ETIME);
	setsockopt(port.link.sock, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	assert_int_equal(pthread_create(&thread, NULL, answer_both, NULL), 0);
	assert_int_equal(open_group(&g), 0);
	pthread_join(thread, NULL);
	assert_int_equal(g->cell, 6);
	assert_int_equal(heard(NBAR_OP_GROUP_CLOSE, 3).cell, 5);
}

static void a_number_of_no_request_is_nonsense(void **state)
{
	struct nbar_group *g;

	answer(NBAR_OP_GROUP_OPEN, 2, 0, 6);
	assert_int_equal(open_group(&g), -EPROTO);
	answer(NBAR_OP_GROUP_OPEN, 0, 0, 6); /* a NIC of a version without numbers */
	assert_int_equal(open_group(&g), -EPROTO);
}

/* The library takes the reply to a request once. */
static void a_late_reply_that_comes_twice(void **state)
{
	struct nbar_group *g;

	assert_int_equal(open_group(&g), -ETIME);
	for (uint32_t i = 0; i < 2; i++)
		answer(NBAR_OP_GROUP_OPEN, 1, -EBUSY, 0);
	assert_int_equal(open_group(&g), -EPROTO);
	assert_int_equal(port.link.nlate, 0);
}

static void must_not_wait(void)
{
	fail_msg("waits again");
}

/* The number of unanswered requests is limited. Closing a port waits once, not for each group. */
static void too_many_unanswered(void **state)
{
	struct nbar_group *g[3], *more;
	uint32_t seq = 0;

	for (uint32_t i = 0; i < 3; i++) {
		answer(NBAR_OP_GROUP_OPEN, ++seq, 0, i);
		assert_int_equal(open_group(&g[i]), 0);
		heard(NBAR_OP_GROUP_OPEN, seq);
	}
	for (uint32_t i = 0; i < NBLIB_LATE_MAX - 2; i++) {
		assert_int_equal(open_group(&more), -ETIME);
		heard(NBAR_OP_GROUP_OPEN, ++seq);
	}
	nbar_group_close(g[0]);
	heard(NBAR_OP_GROUP_CLOSE, ++seq);
	nbar_group_close(g[1]);
	heard(NBAR_OP_GROUP_CLOSE, ++seq);
	assert_int_equal(port.link.nlate, NBLIB_LATE_MAX);
	fails.wait = must_not_wait;
	assert_int_equal(open_group(&more), -ETIME);
	fails.wait = NULL;
	heard_nothing();
	for (uint32_t i = 4; i <= seq; i++)
		answer(i <= seq - 2 ? NBAR_OP_GROUP_OPEN : NBAR_OP_GROUP_CLOSE, i, -EBUSY, 0);
	answer(NBAR_OP_GROUP_OPEN, seq + 1, 0, 7);
	assert_int_equal(open_group(&more), 0);
	assert_int_equal(port.link.nlate, 0);
	assert_false(port.link.overdue); /* the next close waits for its reply */
}

/* The NIC finds these closes, and then the end of the port. */
static void heard_closes_and_the_end(uint32_t n, uint32_t seq)
{
	char byte;

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(heard(NBAR_OP_GROUP_CLOSE, ++seq).cell, i);
	assert_int_equal(recv(nic_end, &byte, 1, MSG_DONTWAIT), 0);
	assert_true(nblib_link_look(&port.link));
}

/* A group whose close cannot be sent must not stay open in the NIC: the port ends. */
static void too_many_closes_end_the_port(void **state)
{
	enum { GROUPS = NBLIB_LATE_MAX + 6 };
	struct nbar_group *g[GROUPS];

	open_groups(g, GROUPS);
	for (uint32_t i = 0; i < GROUPS; i++)
		nbar_group_close(g[i]);
	heard_closes_and_the_end(NBLIB_LATE_MAX, GROUPS);
	assert_int_equal(open_group(&g[0]), -ENETDOWN);
}

static void a_close_that_does_not_fit_ends_the_port(void **state)
{
	enum { GROUPS = NBLIB_LATE_MAX / 2 };
	const struct timeval patience = { .tv_usec = PATIENCE_US };
	const int least = 1; /* the kernel rounds up to a few messages */
	struct nbar_group *g[GROUPS];
	uint32_t sent;

	open_groups(g, GROUPS);
	setsockopt(port.link.sock, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	setsockopt(port.link.sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	for (uint32_t i = 0; i < GROUPS; i++)
		nbar_group_close(g[i]);
	sent = port.link.nlate;
	assert_in_range(sent, 1, GROUPS - 1);
	heard_closes_and_the_end(sent, GROUPS);
}

/* A group that the NIC has opened too late must be closed, too, or the port ends. */
static void a_late_group_that_cannot_be_closed_ends_the_port(void **state)
{
	const struct timeval patience = { .tv_usec = PATIENCE_US };
	const int least = 1;
	struct nbar_group *g;
	char byte[sizeof(struct nbar_request)] = { 0 };

	assert_int_equal(open_group(&g), -ETIME);
	heard(NBAR_OP_GROUP_OPEN, 1);
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	setsockopt(port.link.sock, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	setsockopt(port.link.sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (send(port.link.sock, byte, sizeof(byte), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(open_group(&g), -ENETDOWN);
	assert_true(nblib_link_look(&port.link));
}

/* The library notices the end of a NIC, even if an unread late reply is in the socket. */
static void a_nic_that_ends_is_missed(void **state)
{
	struct nbar_group *g;

	assert_int_equal(open_group(&g), -ETIME);
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	assert_false(nblib_link_look(&port.link));
	close(nic_end);
	nic_end = -1;
	assert_true(nblib_link_look(&port.link));
	assert_int_equal(open_group(&g), -ENETDOWN);
}

/* The library undoes the effect of such a request, too. As many replies may be missing as for calls
 * that wait. */
static void requests_without_a_waiting_thread(void **state)
{
	struct nbar_req_group_open request = { .alg = "auto", .size = 1 };
	struct nblib_call open = { .op = NBAR_OP_GROUP_OPEN,
				   .body = { { &request, sizeof(request) } } };

	assert_int_equal(nblib_link_start(&port.link, &open), 0);
	heard(NBAR_OP_GROUP_OPEN, 1);
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	assert_int_equal(nblib_link_start(&port.link, &open), 0);
	assert_int_equal(heard(NBAR_OP_GROUP_CLOSE, 2).cell, 5);
	heard(NBAR_OP_GROUP_OPEN, 3);
	for (uint32_t i = 0; i < NBLIB_LATE_MAX - 2; i++) {
		assert_int_equal(nblib_link_start(&port.link, &open), 0);
		heard(NBAR_OP_GROUP_OPEN, 4 + i);
	}
	assert_int_equal(nblib_link_start(&port.link, &open), -EAGAIN);
	assert_non_null(strstr(nbar_error(), "NIC n0: 64 requests have no reply yet"));
	heard_nothing();
	answer(NBAR_OP_GROUP_CLOSE, 2, 0, 0);
	assert_int_equal(nblib_link_start(&port.link, &open), 0);
}

#define LATE(test) UNIT_IN(test, set_up, tear_down)
UNIT_MAIN(NULL, NULL, LATE(the_request_fails_alone), LATE(a_late_group_is_closed),
	  LATE(a_link_that_is_down_takes_no_late_reply), LATE(a_late_refusal_is_dropped),
	  LATE(a_late_attachment_is_closed), LATE(a_connect_without_an_answer_is_not_tried_again),
	  LATE(a_late_reply_comes_before_the_next), LATE(a_number_of_no_request_is_nonsense),
	  LATE(a_late_reply_that_comes_twice), LATE(too_many_unanswered),
	  LATE(too_many_closes_end_the_port), LATE(a_close_that_does_not_fit_ends_the_port),
	  LATE(a_late_group_that_cannot_be_closed_ends_the_port), LATE(a_nic_that_ends_is_missed),
	  LATE(requests_without_a_waiting_thread))
