/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_requests.c - what holds for every request on a control socket: it takes the lock,
 * and a refusal reaches the caller.
 */
#include "nic_end.h"
#include "nbar_extra.h"

static void *lock_main(void *arg)
{
	int *rc = arg;

	*rc = pthread_mutex_trylock(&port.link.lock);
	if (*rc == 0)
		pthread_mutex_unlock(&port.link.lock);
	return NULL;
}

/* True if a thread holds the lock of the link that is not a new thread. */
static bool is_locked(void)
{
	pthread_t thread;
	int rc = 0;

	assert_int_equal(pthread_create(&thread, NULL, lock_main, &rc), 0);
	pthread_join(thread, NULL);
	return rc == EBUSY;
}

/* The lock is recursive here. A call that locks as often as it unlocks leaves the lock to the test;
 * a call that does not lock would give it away. */
#define BALANCED(call)                                                    \
	do {                                                              \
		assert_int_equal(pthread_mutex_lock(&port.link.lock), 0); \
		call;                                                     \
		assert_true(is_locked());                                 \
		pthread_mutex_unlock(&port.link.lock);                    \
		assert_false(is_locked());                                \
	} while (0)

static void each_request_takes_the_lock(void **state)
{
	struct nblib_call call = abort_call();
	pthread_mutexattr_t attr;

	assert_int_equal(pthread_mutexattr_init(&attr), 0);
	assert_int_equal(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE), 0);
	assert_int_equal(pthread_mutex_init(&port.link.lock, &attr), 0);
	pthread_mutexattr_destroy(&attr);
	BALANCED(assert_int_equal(nblib_link_start(&port.link, &call), 0));
	answer(NBAR_OP_GROUP_ABORT, 2, 0, 0);
	BALANCED(assert_int_equal(nblib_link_call(&port.link, &call), 0));
	answer(NBAR_OP_GROUP_ABORT, 3, -EBUSY, 0);
	BALANCED(assert_int_equal(nblib_link_call(&port.link, &call), -EBUSY));
	pthread_mutex_destroy(&port.link.lock);
	port.link.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* Whatever its number: -EPERM is -1. After a refusal the next request counts. */
static void each_refusal_reaches_the_caller(void **state)
{
	static const int error[] = { EBUSY, EPERM };
	struct nbar_endpoint endpoint = { .byte = { 0 } };
	uint32_t seq = 0;

	for (uint32_t i = 0; i < 2; i++) {
		const struct nbar_share share = { .cell = 9, .size = 1 };
		const int status = -error[i];
		struct nbar_group *g = NULL;

		answer(NBAR_OP_GROUP_OPEN, ++seq, status, 0);
		assert_int_equal(open_group(&g), status);
		assert_string_equal(nbar_error(), "NIC n0: why");
		answer(NBAR_OP_GROUP_ATTACH, ++seq, status, 0);
		assert_int_equal(nbar_group_attach(&port, &share, &g), status);
		assert_null(g);
		answer(NBAR_OP_GROUP_OPEN, ++seq, 0, i);
		assert_int_equal(open_group(&g), 0);
		answer(NBAR_OP_GROUP_EVENTS, ++seq, status, 0);
		assert_int_equal(nbar_group_fd(g), status);
		answer(NBAR_OP_GROUP_CONNECT, ++seq, status, 0);
		assert_int_equal(nbar_group_connect(g, &endpoint), status);
		answer(NBAR_OP_GROUP_CONNECT, ++seq, status, 0);
		assert_int_equal(nbar_group_connect_peers(g, &endpoint), status);
		assert_int_equal(nbar_post(g, NULL), -ENOTCONN);
		answer_by(NBAR_OP_GROUP_CONNECT, ++seq,
			  sizeof(struct nbar_reply) + sizeof(struct nbar_rep_group_connect), NULL,
			  0);
		assert_int_equal(nbar_group_connect(g, &endpoint), 0);
	}
}

/* After the last message, the NIC must miss no peers. */
static void a_connect_that_lacks_peers_is_an_error(void **state)
{
	struct {
		struct nbar_reply head;
		struct nbar_rep_group_connect body;
	} reply = { .body = { .missing = 3 } };
	struct nbar_endpoint endpoint = { .byte = { 0 } };
	struct nbar_group *g;

	open_groups(&g, 1);
	reply.head = (struct nbar_reply){
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = NBAR_OP_GROUP_CONNECT,
		.length = sizeof(reply),
		.seq = 2,
	};
	assert_int_equal(send(nic_end, &reply, sizeof(reply), 0), sizeof(reply));
	assert_int_equal(nbar_group_connect(g, &endpoint), -EPROTO);
	assert_non_null(strstr(nbar_error(), "misses 3 peers"));
	assert_int_equal(nbar_post(g, NULL), -ENOTCONN);
}

/* --- structs --------------------------------------------------------------------------------- */

/* What a struct of the program lacks, is 0: the default of each field. */
static void a_short_struct_is_filled_up(void **state)
{
	const uint32_t theirs[] = { 8, 7, 6, 5 };
	const struct {
		uint32_t theirs, copied;
	} cases[] = { { 0, 2 }, { 8, 2 }, { 12, 3 }, { 16, 4 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t ours[5];

		memset(ours, 0xff, sizeof(ours));
		assert_int_equal(nblib_struct_read("x", ours, 16, 8, theirs, cases[i].theirs), 0);
		for (uint32_t k = 0; k < 4; k++)
			assert_int_equal(ours[k], k < cases[i].copied ? theirs[k] : 0);
		assert_int_equal(ours[4], UINT32_MAX);
	}
}

#define REQUEST(test) UNIT_IN(test, set_up, tear_down)
UNIT_MAIN(NULL, NULL, REQUEST(each_request_takes_the_lock),
	  REQUEST(each_refusal_reaches_the_caller), REQUEST(a_connect_that_lacks_peers_is_an_error),
	  UNIT(a_short_struct_is_filled_up))
