/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_link.c - rare cases on a control socket: calls that the kernel ends early, lack of
 * memory, replies that make no sense, and a full list of requests.
 */
#include <malloc.h>

#include "nic_end.h"
#include "nbar_extra.h"
#include "order.h"

#define CONNECTED (sizeof(struct nbar_reply) + sizeof(struct nbar_rep_group_connect))

static struct nblib_call connect_call(void)
{
	static struct nbar_req_group_connect peers;
	static struct nbar_rep_group_connect reply;

	return (struct nblib_call){ .op = NBAR_OP_GROUP_CONNECT,
				    .body = { { &peers, sizeof(peers) } },
				    .fixed = { &reply, sizeof(reply) } };
}

/* --- calls that end early -------------------------------------------------------------------- */

/* The kernel reports once that the NIC left a request unread. The reply is there nevertheless. */
static void a_reset_hides_no_late_reply(void **state)
{
	struct nbar_group *g;

	assert_int_equal(open_group(&g), -ETIME);
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	answer(NBAR_OP_GROUP_OPEN, 3, 0, 6);
	fails.peeks = fails.reads = fails.receives = 1;
	assert_int_equal(open_group(&g), 0);
	assert_int_equal(fails.peeks + fails.reads + fails.receives, 0);
	assert_int_equal(g->cell, 6);
	heard(NBAR_OP_GROUP_OPEN, 1);
	assert_int_equal(heard(NBAR_OP_GROUP_CLOSE, 2).cell, 5);
}

/* A late reply that cannot be read ends the port, for calls that wait and for calls that do not
 * wait. */
static void a_late_reply_that_is_lost_ends_the_port(void **state)
{
	struct nblib_call call = connect_call();
	struct nbar_group *g;

	for (uint32_t starts = 0; starts < 2; starts++) {
		assert_int_equal(nblib_link_start(&port.link, &call), 0);
		answer(NBAR_OP_GROUP_CONNECT, 1, -EBUSY, 0);
		fails.reads = 2;
		assert_int_equal(starts ? nblib_link_start(&port.link, &call)
					: nblib_link_call(&port.link, &call),
				 -ENETDOWN);
		assert_int_equal(fails.reads, 0);
		assert_int_equal(port.link.nlate, 0);
		assert_int_equal(open_group(&g), -ENETDOWN);
		heard(NBAR_OP_GROUP_CONNECT, 1);
		tear_down(state);
		set_up(state);
	}
}

/* The NIC must learn of the abort: the next call sends the abort that the first call could not
 * send. */
static void an_abort_is_sent_when_memory_is_there(void **state)
{
	struct nbar_group *g;

	open_groups(&g, 1);
	g->runs = g->connected = true;
	assert_int_equal(nbar_post(g, NULL), 0);
	for (uint32_t i = 0; i < 2; i++) {
		fails.sends = 1;
		fails.send_error = i ? ENOMEM : ENOBUFS;
		assert_int_equal(nbar_group_abort(g), -ENOMEM);
		assert_int_equal(nbar_test(g, 1), -ECANCELED);
		heard_nothing();
	}
	assert_int_equal(nbar_group_abort(g), 0);
	assert_int_equal(heard(NBAR_OP_GROUP_ABORT, 4).cell, 0);
	assert_int_equal(nbar_group_abort(g), 0);
	heard_nothing();
}

/* While a thread sends the abort, another thread aborts the group too. */
static struct {
	struct nbar_group *group; /* NULL: no other thread aborts */
	int rc;
} other_abort;

static void *abort_main(void *arg)
{
	other_abort.rc = nbar_group_abort(other_abort.group);
	return NULL;
}

int __real_nblib_link_start(struct nblib_link *l, struct nblib_call *call);
int __wrap_nblib_link_start(struct nblib_link *l, struct nblib_call *call)
{
	static bool again;
	pthread_t thread;

	if (!other_abort.group)
		return __real_nblib_link_start(l, call);
	if (!again) {
		again = true;
		assert_int_equal(pthread_create(&thread, NULL, abort_main, NULL), 0);
		pthread_join(thread, NULL);
		again = false;
	}
	return nblib_fail(-EAGAIN, "not sent");
}

/* 0 means that the NIC learns of the abort: no thread may return 0 while no thread has sent the
 * abort. */
static void an_abort_that_another_thread_cannot_send(void **state)
{
	struct nbar_group *g;

	open_groups(&g, 1);
	g->runs = g->connected = true;
	other_abort.group = g;
	assert_int_equal(nbar_group_abort(g), -EAGAIN);
	assert_int_equal(other_abort.rc, -EAGAIN);
	other_abort.group = NULL;
	heard_nothing();
	assert_int_equal(nbar_group_abort(g), 0);
	heard(NBAR_OP_GROUP_ABORT, 2);
	assert_int_equal(nbar_group_abort(g), 0);
	heard_nothing();
}

/* A second reset ends the link. */
static void a_reset_that_stays_ends_the_port(void **state)
{
	struct nbar_group *g;

	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	fails.receives = 2;
	assert_int_equal(open_group(&g), -ENETDOWN);
	assert_true(nblib_link_look(&port.link));
}

/* Number 0 belongs to no request. */
static void numbers_wrap(void **state)
{
	struct nbar_group *g;

	port.link.seq = UINT32_MAX - 1;
	answer(NBAR_OP_GROUP_OPEN, UINT32_MAX, 0, 5);
	assert_int_equal(open_group(&g), 0);
	heard(NBAR_OP_GROUP_OPEN, UINT32_MAX);
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 6);
	assert_int_equal(open_group(&g), 0);
	heard(NBAR_OP_GROUP_OPEN, 1);
}

/* A call that does not wait may be tried again. A call that waits fails after its time limit. */
static void a_socket_that_is_full(void **state)
{
	struct nblib_call call = abort_call();

	fails.sends = 2;
	fails.send_error = EAGAIN;
	assert_int_equal(nblib_link_start(&port.link, &call), -EAGAIN);
	assert_non_null(strstr(nbar_error(), "has not read earlier requests yet"));
	assert_int_equal(nblib_link_call(&port.link, &call), -ETIME);
	assert_int_equal(port.link.nlate, 0);
	heard_nothing();
}

/* An interrupted call is repeated. */
static void an_interrupted_send(void **state)
{
	struct nbar_group *g;

	answer(NBAR_OP_GROUP_OPEN, 1, 0, 3);
	fails.sends = 2;
	fails.send_error = EINTR;
	assert_int_equal(open_group(&g), 0);
	heard(NBAR_OP_GROUP_OPEN, 1);
}

/* A request may have as many bytes as a message. */
static void the_longest_request(void **state)
{
	static const char byte[NBAR_MESSAGE_MAX];
	struct nblib_call call = abort_call();
	size_t length = sizeof(struct nbar_request) + call.body[0].iov_len;

	call.body[1] = (struct iovec){ (void *)(uintptr_t)byte, NBAR_MESSAGE_MAX - length };
	assert_int_equal(nblib_link_start(&port.link, &call), 0);
	assert_int_equal(heard(NBAR_OP_GROUP_ABORT, 1).head.length, NBAR_MESSAGE_MAX);
	call.body[1].iov_len++;
	assert_int_equal(nblib_link_start(&port.link, &call), -EINVAL);
	assert_non_null(strstr(nbar_error(), "65537 bytes is longer than the 65536"));
	heard_nothing();
}

/* A request that the system refuses for any other reason ends the port; no thread waits for a
 * reply. */
static void a_request_that_cannot_be_sent_ends_the_port(void **state)
{
	struct nbar_group *g;

	fails.sends = 1;
	fails.send_error = EIO;
	assert_int_equal(open_group(&g), -ENETDOWN);
	assert_true(nblib_link_look(&port.link));
}

/* The bytes that this program holds; 0 under a sanitizer, which finds leaks by itself. */
static void closed_groups_leave_no_memory(void **state)
{
	enum { GROUPS = 64, BYTES_MIN = 16 /* of an allocation */ };
	size_t before = 0;
	struct nbar_group *g;

	for (uint32_t i = 0; i < 2 * GROUPS; i++) {
		if (i == GROUPS)
			before = mallinfo2().uordblks;
		answer(NBAR_OP_GROUP_OPEN, 2 * i + 1, 0, 0);
		answer(NBAR_OP_GROUP_CLOSE, 2 * i + 2, 0, 0);
		assert_int_equal(open_group(&g), 0);
		nbar_group_close(g);
		heard(NBAR_OP_GROUP_OPEN, 2 * i + 1);
		heard(NBAR_OP_GROUP_CLOSE, 2 * i + 2);
	}
	assert_true(mallinfo2().uordblks < before + GROUPS * BYTES_MIN);
}

/* Another thread of the parent may have held the lock. No thread unlocks it in the child. */
static void the_child_of_a_fork_takes_no_lock(void **state)
{
	struct nblib_call call = connect_call();

	assert_int_equal(pthread_mutex_trylock(&port.link.lock), 0);
	order_down_write(&port.link.down, NBLIB_FORKED);
	assert_int_equal(nblib_link_call(&port.link, &call), -ENETDOWN);
	assert_int_equal(nblib_link_start(&port.link, &call), -ENETDOWN);
	assert_true(nblib_link_look(&(struct nblib_link){ .sock = -1, .down = NBLIB_FORKED }));
	pthread_mutex_unlock(&port.link.lock);
	heard_nothing();
}

/* The environment sets the wait policy of a group when the group is opened or attached. */
static void a_group_has_the_policy_of_the_environment(void **state)
{
	const struct nbar_share share = { .cell = 9, .size = 1 };
	struct nbar_group *g;

	setenv("NBAR_WAIT", "0,5,1", 1);
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 3);
	assert_int_equal(open_group(&g), 0);
	assert_int_equal(g->wait.yield_us, 5);
	answer(NBAR_OP_GROUP_ATTACH, 2, 0, 0);
	assert_int_equal(nbar_group_attach(&port, &share, &g), 0);
	assert_int_equal(g->wait.yield_us, 5);
	unsetenv("NBAR_WAIT");
}

static void a_statistic_may_be_empty(void **state)
{
	const size_t length = sizeof(struct nbar_reply) + sizeof(struct nbar_rep_group_latency);
	struct nbar_group_stat stat, none;
	uint32_t index = 1;

	memset(&stat, 0xff, sizeof(stat));
	memset(&none, 0, sizeof(none));
	answer_by(NBAR_OP_GROUP_LATENCY, 1, length, NULL, 0);
	assert_int_equal(nblib_stat_group(&port.link, 0, 0, &index, &stat), 0);
	assert_memory_equal(&stat, &none, sizeof(none));
	assert_int_equal(index, 0);
}

/* --- replies that make no sense -------------------------------------------------------------- */

/* A late reply must have both the number and the op of its request. */
static void a_late_reply_has_the_op_of_its_request(void **state)
{
	struct nbar_group *g;

	assert_int_equal(open_group(&g), -ETIME);
	answer(NBAR_OP_GROUP_CONNECT, 1, 0, 0);
	assert_int_equal(open_group(&g), -EPROTO);
	assert_int_equal(port.link.nlate, 1);
}

/* Such a reply names no cell that the library could close. */
static void a_late_reply_that_is_cut_closes_nothing(void **state)
{
	struct nbar_group *g;

	assert_int_equal(open_group(&g), -ETIME);
	heard(NBAR_OP_GROUP_OPEN, 1);
	answer_by(NBAR_OP_GROUP_OPEN, 1, sizeof(struct nbar_reply), NULL, 0);
	answer(NBAR_OP_GROUP_OPEN, 2, 0, 6);
	assert_int_equal(open_group(&g), 0);
	heard(NBAR_OP_GROUP_OPEN, 2);
	heard_nothing();
}

static void a_reply_is_not_longer_than_its_op_says(void **state)
{
	struct nblib_call call = connect_call();

	answer_by(NBAR_OP_GROUP_CONNECT, 1, CONNECTED + 1, NULL, 0);
	assert_int_equal(nblib_link_call(&port.link, &call), -EPROTO);
	answer_by(NBAR_OP_GROUP_CONNECT, 2, CONNECTED, NULL, 0);
	assert_int_equal(nblib_link_call(&port.link, &call), 0);
}

static void a_cell_has_one_group(void **state)
{
	struct nbar_group *g, *other;

	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	assert_int_equal(open_group(&g), 0);
	answer(NBAR_OP_GROUP_OPEN, 2, 0, 5);
	assert_int_equal(open_group(&other), -EPROTO);
	assert_ptr_equal(port.group[5], g);
}

/* The NIC names the peers of a plan, at most NBAR_PEERS_MAX. In a "signal" group, all other ranks
 * are peers. */
static void large_groups_have_room_for_their_peers(void **state)
{
	struct nbar_group_attr attr = { .size = NBAR_PEERS_MAX + 7 };
	struct nbar_endpoint endpoint;
	const uint32_t *peer;
	struct nbar_group *g;

	answer(NBAR_OP_GROUP_OPEN, 1, 0, 5);
	assert_int_equal(nbar_group_open(&port, &attr, &g, &endpoint), 0);
	assert_int_equal(nbar_group_peers(g, &peer), 0);
	attr.alg = "signal";
	attr.rank = 1;
	answer(NBAR_OP_GROUP_OPEN, 2, 0, 6);
	assert_int_equal(nbar_group_open(&port, &attr, &g, &endpoint), 0);
	assert_int_equal(nbar_group_peers(g, &peer), attr.size - 1);
	assert_int_equal(peer[0], 0);
	assert_int_equal(peer[1], 2);
	assert_int_equal(peer[attr.size - 2], attr.size - 1);
	attr = (struct nbar_group_attr){ .size = NBAR_SIZE_MAX }; /* the largest */
	answer(NBAR_OP_GROUP_OPEN, 3, 0, 7);
	assert_int_equal(nbar_group_open(&port, &attr, &g, &endpoint), 0);
}

/* A message of one byte is a reply, but not the reply of a NIC. */
static void the_shortest_reply(void **state)
{
	struct nbar_group *g;

	assert_int_equal(send(nic_end, "!", 1, 0), 1);
	assert_int_equal(open_group(&g), -EPROTO);
	assert_non_null(strstr(nbar_error(), "is no NIC of nbar"));
	assert_false(nblib_link_look(&port.link));
}

/* --- ends ------------------------------------------------------------------------------------ */

static void look_at_the_limit(void)
{
	struct timeval limit;
	socklen_t size = sizeof(limit);

	assert_int_equal(getsockopt(port.link.sock, SOL_SOCKET, SO_RCVTIMEO, &limit, &size), 0);
	assert_int_equal(limit.tv_sec, 1);
}

/* To end a link, the library reads until the daemon closes its end, but not for long. It repeats an
 * interrupted read. */
static void a_link_ends_once(void **state)
{
	close(nic_end);
	nic_end = -1;
	fails.reads = 2;
	fails.error = EINTR;
	fails.wait = look_at_the_limit;
	nblib_link_end(&port.link);
	assert_int_equal(fails.reads, 0);
	assert_null(fails.wait);
	assert_int_equal(port.link.sock, -1);
}

/* A daemon that does not close its end is not waited for again. */
static void an_end_is_not_waited_for_twice(void **state)
{
	fails.reads = 2;
	fails.error = EAGAIN;
	nblib_link_end(&port.link);
	assert_int_equal(fails.reads, 1);
}

/* --- many requests --------------------------------------------------------------------------- */

static void fill_the_list(struct nblib_call *call)
{
	for (uint32_t i = 0; i < NBLIB_LATE_MAX; i++) {
		assert_int_equal(nblib_link_start(&port.link, call), 0);
		heard(NBAR_OP_GROUP_ABORT, i + 1);
	}
}

static void answer_the_first(void)
{
	answer(NBAR_OP_GROUP_ABORT, 1, 0, 0);
	answer(NBAR_OP_GROUP_ABORT, 2, 0, 0);
	answer(NBAR_OP_GROUP_OPEN, NBLIB_LATE_MAX + 1, 0, 3);
}

static void answer_nonsense(void)
{
	answer(NBAR_OP_GROUP_ABORT, 99999, 0, 0);
}

/* A call waits for room in the list as long as for a reply, and no longer. */
static void a_full_list_is_waited_for(void **state)
{
	struct nblib_call call = abort_call();
	struct nbar_group *g;

	fill_the_list(&call);
	fails.wait = answer_the_first;
	assert_int_equal(open_group(&g), 0);
	assert_int_equal(port.link.nlate, NBLIB_LATE_MAX - 2);
	heard(NBAR_OP_GROUP_OPEN, NBLIB_LATE_MAX + 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(nblib_link_start(&port.link, &call), 0);
	assert_false(port.link.overdue);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(open_group(&g), -ETIME);
	assert_true(port.link.overdue);
	port.link.overdue = false;
	fails.wait = answer_nonsense;
	assert_int_equal(open_group(&g), -ENETDOWN);
}

/* A thread that waits finds the end of the NIC, for a reply or for room in the list. An errno of an
 * earlier call means nothing. */
static void an_end_is_no_time_limit(void **state)
{
	struct nblib_call call = abort_call();
	struct nbar_group *g;

	for (uint32_t i = 0; i < 4; i++) {
		if (i % 2)
			fill_the_list(&call);
		shutdown(nic_end, SHUT_WR);
		errno = i / 2 ? EINTR : EAGAIN;
		assert_int_equal(open_group(&g), -ENETDOWN);
		tear_down(state);
		set_up(state);
	}
}

static void a_connect_without_memory_is_tried_again(void **state)
{
	struct nbar_endpoint endpoint = { .byte = { 0 } };
	struct nbar_group *g;

	open_groups(&g, 1);
	fails.sends = 1;
	fails.send_error = ENOMEM;
	assert_int_equal(nbar_group_connect(g, &endpoint), -ENOMEM);
	heard_nothing();
	answer_by(NBAR_OP_GROUP_CONNECT, 3, CONNECTED, NULL, 0);
	assert_int_equal(nbar_group_connect(g, &endpoint), 0);
	heard(NBAR_OP_GROUP_CONNECT, 3);
}

#define LINK(test) UNIT_IN(test, set_up, tear_down)
UNIT_MAIN(NULL, NULL, LINK(a_reset_hides_no_late_reply),
	  LINK(a_late_reply_that_is_lost_ends_the_port),
	  LINK(an_abort_is_sent_when_memory_is_there),
	  LINK(an_abort_that_another_thread_cannot_send), LINK(a_reset_that_stays_ends_the_port),
	  LINK(numbers_wrap), LINK(a_socket_that_is_full), LINK(an_interrupted_send),
	  LINK(the_longest_request), LINK(a_request_that_cannot_be_sent_ends_the_port),
	  LINK(closed_groups_leave_no_memory), LINK(the_child_of_a_fork_takes_no_lock),
	  LINK(a_group_has_the_policy_of_the_environment), LINK(a_statistic_may_be_empty),
	  LINK(a_late_reply_has_the_op_of_its_request),
	  LINK(a_late_reply_that_is_cut_closes_nothing),
	  LINK(a_reply_is_not_longer_than_its_op_says), LINK(a_cell_has_one_group),
	  LINK(large_groups_have_room_for_their_peers), LINK(the_shortest_reply),
	  LINK(a_link_ends_once), LINK(an_end_is_not_waited_for_twice),
	  LINK(a_full_list_is_waited_for), LINK(an_end_is_no_time_limit),
	  LINK(a_connect_without_memory_is_tried_again))
