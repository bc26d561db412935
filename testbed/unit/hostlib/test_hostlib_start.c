/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_start.c - a port of a NIC in the kernel's network path: its completions lie beside
 * the page, and a start socket takes posts and requests for wakes.
 *
 * Linked with --wrap for send, and for calls of futexes: in a sleep, the NIC completes the barrier.
 */
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "nic_end.h"
#include "nbar_extra.h"

static struct nbar_results results;
static struct nbar_completion *const place = results.completion;
static int start_end; /* the NIC's end of the start socket */
static struct nbar_group *g;
static const void *futex; /* of the last call */
static uint32_t sleeps;

static bool start_is(uint32_t cell, uint32_t posted, uint32_t asks)
{
	struct nbar_start s = { .cell = 99 };

	return recv(start_end, &s, sizeof(s), MSG_DONTWAIT) == sizeof(s) && s.cell == cell &&
	       s.posted == posted && s.sleeps == asks && !s.values && !s.reserved;
}

static bool start_is_empty(void)
{
	char byte;

	return recv(start_end, &byte, 1, MSG_DONTWAIT) < 0;
}

/* The doorbell was written before: the NIC may look at it at once. */
ssize_t __real_send(int fd, const void *message, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *message, size_t size, int flags)
{
	static uint32_t asked;
	const struct nbar_start *s = message;

	if (fd != port.start)
		return __real_send(fd, message, size, flags);
	if (!s->sleeps)
		assert_int_equal(page.doorbell[s->cell].posted, s->posted);
	else
		assert_int_not_equal(page.doorbell[s->cell].wake_seq, asked);
	asked = page.doorbell[s->cell].wake_seq;
	return __real_send(fd, message, size, flags);
}

/* Before a thread sleeps, it has told the NIC. */
long __wrap_syscall(long number, ...)
{
	va_list rest;

	va_start(rest, number);
	futex = va_arg(rest, const void *);
	const int op = va_arg(rest, int);

	va_end(rest);
	assert_int_equal(number, SYS_futex);
	if (op != FUTEX_WAIT)
		return 0;
	sleeps++;
	assert_int_equal(page.doorbell[g->cell].wake_seq, sleeps);
	assert_true(start_is(g->cell, (uint32_t)g->posted, 1));
	place[g->cell].word++;
	return 0;
}

static int begin(void **state)
{
	const struct nbar_endpoint none = { { 0 } };
	int sv[2];

	set_up(state);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sv), 0);
	memset(&results, 0, sizeof(results));
	port.results = &results;
	port.has_start = true;
	port.start = sv[0];
	start_end = sv[1];
	sleeps = 0;
	answer(NBAR_OP_GROUP_OPEN, 1, 0, 3);
	assert_int_equal(open_group(&g), 0);
	heard(NBAR_OP_GROUP_OPEN, 1);
	answer_by(NBAR_OP_GROUP_CONNECT, 2,
		  sizeof(struct nbar_reply) + sizeof(struct nbar_rep_group_connect), NULL, 0);
	assert_int_equal(nbar_group_connect(g, &none), 0);
	heard(NBAR_OP_GROUP_CONNECT, 2);
	page.kick = 1;
	return 0;
}

static int end(void **state)
{
	close(port.start);
	close(start_end);
	return tear_down(state);
}

static void posts_go_to_the_start_socket(void **state)
{
	uint32_t ticket;

	for (uint32_t n = 1; n <= 2; n++) {
		assert_int_equal(nbar_post(g, &ticket), 0);
		assert_int_equal(page.doorbell[3].posted, n);
		assert_true(start_is(3, n, 0));
	}
	assert_true(start_is_empty());
	heard_nothing(); /* no kick: the socket wakes the NIC */
	assert_int_equal(nbar_test(g, ticket), 0);
	page.completion[3].word = 2; /* not here */
	assert_int_equal(nbar_test(g, ticket), 0);
	place[3].word = 2;
	assert_int_equal(nbar_test(g, ticket), 1);
}

/* The NIC has ended, or the buffer of the start socket is full: libnbar kicks the daemon instead.
 */
static void a_start_that_fails_kicks(void **state)
{
	struct request r;

	close(start_end);
	assert_int_equal(nbar_post(g, NULL), 0);
	r = heard(NBAR_OP_KICK, 0);
	assert_int_equal(r.head.length, sizeof(r.head));
	/* No kick goes to a NIC that is gone. */
	port.link.down = NBLIB_GONE;
	nblib_start(g, 1, false);
	heard_nothing();
	port.link.down = NBLIB_UP;
	start_end = dup(STDIN_FILENO);
}

/* What a post carries follows it; the result lies where the NIC writes it. */
static void values_follow_a_post(void **state)
{
	struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 8 }, out;
	struct {
		struct nbar_start start;
		uint8_t value[sizeof(v)];
	} got;
	uint32_t ticket;

	g->values = results.value[2];
	g->value_max = 64;
	for (int i = 0; i < 8; i++)
		v.of.f64[i] = 0.5 * i;
	assert_int_equal(nbar_post_value(g, &v, &ticket), 0);
	assert_int_equal(recv(start_end, &got, sizeof(got), MSG_DONTWAIT), 20 + 8 + 64);
	assert_true(got.start.cell == 3 && got.start.posted == 1 && got.start.values == 1);
	assert_memory_equal(got.value, &v, 8 + 64); /* the head has no epoch, as in a frame */
	results.value[2][1].value.op |= NBAR_VALUE_RESULT;
	results.value[2][1].value.of.f64[0] = 7;
	place[3].word = 1;
	assert_int_equal(nbar_result(g, ticket, &out), 0);
	assert_true(out.of.f64[0] == 7 && out.of.f64[7] == 3.5);
	/* Eight later, the place still has the result: a post without a value sends none. */
	place[3].word = g->posted = 8;
	assert_int_equal(nbar_post(g, &ticket), 0);
	assert_int_equal(recv(start_end, &got, sizeof(got), MSG_DONTWAIT), 20);
	assert_true(got.start.posted == 9 && got.start.values == 1);
	/* Nor does one whose place has an older value, or no value: another thread writes there. */
	results.value[2][2].value = (struct nbar_value){ .op = NBAR_SUM, .type = NBAR_DOUBLE };
	for (uint32_t i = 0; i < 2; i++) {
		results.value[2][2].value.epoch = 2 + 8 * i;
		results.value[2][2].value.count = i ? 1000 : 1;
		place[3].word = g->posted = 9;
		assert_int_equal(nbar_post(g, &ticket), 0);
		assert_int_equal(recv(start_end, &got, sizeof(got), MSG_DONTWAIT), 20);
	}
	/* A request for a wake has none. */
	page.doorbell[3].wake_seq++;
	nblib_start(g, 10, true);
	assert_int_equal(recv(start_end, &got, sizeof(got), MSG_DONTWAIT), 20);
	assert_true(got.start.sleeps == 1 && got.start.values == 1);
	g->values = NULL;
}

/* The last process of a team posts the barrier of the group. */
static void the_last_of_a_team_posts(void **state)
{
	static struct nbar_process_team procs;

	assert_int_equal(nbar_process_team_init(&procs, 2), 0);
	assert_int_equal(nbar_process_team_post(&procs, g, 1, NULL), 0);
	assert_true(start_is_empty());
	assert_int_equal(nbar_process_team_post(&procs, g, 0, NULL), 0);
	assert_int_equal(page.doorbell[3].posted, 1);
	assert_true(start_is(3, 1, 0));
	heard_nothing();
	/* Without a start socket, a kick. */
	port.has_start = false;
	place[3].word = 1;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(nbar_process_team_post(&procs, g, i, NULL), 0);
	heard(NBAR_OP_KICK, 0);
	assert_true(start_is_empty());
}

/* The futex stays in the page. */
static void sleepers_tell_the_nic(void **state)
{
	const struct nbar_wait_policy policy = { .block = 1 };
	uint32_t ticket;

	nbar_group_set_wait(g, &policy);
	for (uint32_t n = 1; n <= 2; n++) {
		assert_int_equal(nbar_post(g, &ticket), 0);
		assert_true(start_is(3, n, 0));
		assert_int_equal(nbar_wait(g, ticket, NBAR_FOREVER), 0);
		assert_int_equal(sleeps, n);
		assert_ptr_equal(futex, &page.completion[3].wake);
	}
	assert_true(start_is_empty());
	futex = NULL;
	nblib_wake_group(g);
	assert_ptr_equal(futex, &page.completion[3].wake);
	heard_nothing();
}

static void pollers_tell_the_nic(void **state)
{
	int events[2];
	uint32_t ticket;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events), 0);
	answer_by(NBAR_OP_GROUP_EVENTS, 3, sizeof(struct nbar_reply), events, 1);
	assert_true(nbar_group_fd(g) >= 0);
	heard(NBAR_OP_GROUP_EVENTS, 3);
	assert_int_equal(nbar_post(g, &ticket), 0);
	assert_true(start_is(3, 1, 0));
	assert_int_equal(nbar_group_arm(g, ticket), 0);
	assert_int_equal(page.doorbell[3].wake_seq, 1);
	assert_true(start_is(3, 1, 1));
	assert_true(start_is_empty());
	heard_nothing();
	close(events[0]);
	close(events[1]);
}

#define START(test) UNIT_IN(test, begin, end)
UNIT_MAIN(NULL, NULL, START(posts_go_to_the_start_socket), START(a_start_that_fails_kicks),
	  START(values_follow_a_post), START(the_last_of_a_team_posts),
	  START(sleepers_tell_the_nic), START(pollers_tell_the_nic))
