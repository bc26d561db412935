/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wakes.c - what a pass does itself to wake the hosts of a port, and what it leaves to the
 * thread of the user; ends of sockets while passes use them.
 */
#include "unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nicd.h"
#include "wakes.h"

#define SLEEPERS 12u
#define CELLS 4u
#define ROUNDS 3000u

static struct mailbox mailbox;
static struct waker waker;
static struct nbar_page page;

static int begin(void **state)
{
	(void)state;
	mailbox = (struct mailbox){ 0 };
	mailbox_share(&mailbox, nicd_clock); /* calls run in the caller */
	waker = (struct waker){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(waker.fd);
	return 0;
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Threads that sleep, and have been woken. */
static uint32_t asleep, awake;

static void *sleep_main(void *arg)
{
	(void)arg;
	__atomic_fetch_add(&asleep, 1, __ATOMIC_SEQ_CST);
	while (syscall(SYS_futex, &page.completion[1].wake, FUTEX_WAIT, 0, NULL, NULL, 0) < 0)
		continue; /* a signal; the word does not change */
	__atomic_fetch_add(&awake, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void until(uint32_t *count, uint32_t n)
{
	while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < n)
		usleep(1000);
}

static void a_pass_wakes_few_sleepers(void **state)
{
	struct wakes *w = wakes_new(&waker, &page);
	pthread_t id[SLEEPERS];

	(void)state;
	asleep = awake = 0;
	for (uint32_t i = 0; i < SLEEPERS; i++)
		assert_int_equal(pthread_create(&id[i], NULL, sleep_main, NULL), 0);
	until(&asleep, SLEEPERS);
	usleep(50000); /* the last step from the counter into the kernel */
	wakes_wake(w, 1);
	until(&awake, WAKES_MAX);
	usleep(50000);
	assert_int_equal(__atomic_load_n(&awake, __ATOMIC_SEQ_CST), WAKES_MAX);
	/* The waker knows. */
	assert_true(readable(waker.fd));
	waker_serve(&waker);
	until(&awake, SLEEPERS);
	for (uint32_t i = 0; i < SLEEPERS; i++)
		pthread_join(id[i], NULL);
	wakes_end(w);
	waker_serve(&waker);
}

static void no_pass_sends_or_closes(void **state)
{
	struct wakes *w = wakes_new(&waker, &page);
	int one = wakes_events_make(w, &mailbox, 1, 9), two;
	char byte;

	(void)state;
	assert_true(one >= 0);
	assert_int_equal(wakes_events(w), 1);
	wakes_wake(w, 0);
	assert_false(readable(waker.fd));
	/* Twice marked, once on the list. */
	wakes_wake(w, 1);
	wakes_wake(w, 1);
	assert_false(readable(one));
	assert_true(readable(waker.fd));
	waker_serve(&waker);
	assert_int_equal(recv(one, &byte, 1, MSG_DONTWAIT), 1);
	assert_false(readable(one));
	/* Another socket in its place; the waker closes the first. */
	two = wakes_events_make(w, &mailbox, 1, 0);
	assert_true(two >= 0 && wakes_events(w) == 1);
	assert_false(readable(one));
	wakes_wake(w, 1);
	waker_serve(&waker);
	assert_int_equal(recv(one, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(two, &byte, 1, MSG_DONTWAIT), 1);
	wakes_events_drop(w, &mailbox, 1);
	wakes_events_drop(w, &mailbox, 1);
	assert_int_equal(wakes_events(w), 0);
	assert_false(readable(two));
	waker_serve(&waker);
	assert_int_equal(recv(two, &byte, 1, MSG_DONTWAIT), 0);
	close(one);
	close(two);
	/* The end of the port. */
	one = wakes_events_make(w, &mailbox, 2, 9);
	wakes_wake(w, 2);
	wakes_end(w);
	assert_false(readable(one));
	waker_serve(&waker);
	assert_int_equal(recv(one, &byte, 1, MSG_DONTWAIT), 0);
	close(one);
}

static void sockets_are_limited(void **state)
{
	struct wakes *w = wakes_new(&waker, &page);
	int fd[NBAR_EVENTS_MAX];

	(void)state;
	assert_int_equal(wakes_events_make(w, &mailbox, 0, 0), -EMFILE);
	for (uint32_t i = 0; i < NBAR_EVENTS_MAX; i++) {
		fd[i] = wakes_events_make(w, &mailbox, i, 1);
		assert_true(fd[i] >= 0);
	}
	assert_int_equal(wakes_events_make(w, &mailbox, NBAR_EVENTS_MAX, 9), -ENOSPC);
	for (uint32_t i = 0; i < NBAR_EVENTS_MAX; i++)
		close(fd[i]);
	wakes_end(w);
	waker_serve(&waker);
}

/* As in an in-process NIC. */
static void without_a_waker(void **state)
{
	struct wakes *w = wakes_new(NULL, &page);
	int fd = wakes_events_make(w, &mailbox, 3, 9);
	char byte;

	(void)state;
	wakes_wake(w, 3);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 1);
	wakes_events_drop(w, &mailbox, 3);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	close(fd);
	wakes_end(w);
}

static struct wakes *used;
static bool passes_over, waker_over;

static void *pass_main(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; !__atomic_load_n(&passes_over, __ATOMIC_ACQUIRE); i++) {
		if (!mailbox_enter(&mailbox))
			continue;
		wakes_wake(used, i % CELLS);
		mailbox_leave(&mailbox);
	}
	return NULL;
}

static void *waker_main(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&waker_over, __ATOMIC_ACQUIRE)) {
		uint64_t n;
		struct pollfd p = { .fd = waker.fd, .events = POLLIN };

		if (poll(&p, 1, 1000) == 1 && read(waker.fd, &n, sizeof(n)) == sizeof(n))
			waker_serve(&waker);
	}
	return NULL;
}

/* Each socket still gets a wake that comes after it, while passes, requests and the waker run. */
static void no_wake_is_lost(void **state)
{
	pthread_t pass, wakes;
	const uint64_t one = 1;
	int fd[CELLS];

	(void)state;
	used = wakes_new(&waker, &page);
	passes_over = waker_over = false;
	for (uint32_t i = 0; i < CELLS; i++)
		fd[i] = -1;
	assert_int_equal(pthread_create(&wakes, NULL, waker_main, NULL), 0);
	assert_int_equal(pthread_create(&pass, NULL, pass_main, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		int before = fd[i % CELLS];
		struct pollfd p = { .events = POLLIN };

		if (i % 3 == 0)
			wakes_events_drop(used, &mailbox, i % CELLS);
		fd[i % CELLS] = wakes_events_make(used, &mailbox, i % CELLS, 9);
		if (before >= 0)
			close(before);
		p.fd = fd[i % CELLS];
		if (i % 10 == 0)
			assert_int_equal(poll(&p, 1, 20000), 1);
	}
	__atomic_store_n(&passes_over, true, __ATOMIC_RELEASE);
	pthread_join(pass, NULL);
	wakes_end(used);
	for (uint32_t i = 0; i < CELLS; i++) {
		char bytes[64];

		/* Until the waker closes the other end. */
		while (recv(fd[i], bytes, sizeof(bytes), 0) != 0)
			usleep(100);
		close(fd[i]);
	}
	__atomic_store_n(&waker_over, true, __ATOMIC_RELEASE);
	assert_int_equal(write(waker.fd, &one, sizeof(one)), sizeof(one));
	pthread_join(wakes, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_pass_wakes_few_sleepers, begin, end),
		cmocka_unit_test_setup_teardown(no_pass_sends_or_closes, begin, end),
		cmocka_unit_test_setup_teardown(sockets_are_limited, begin, end),
		cmocka_unit_test_setup_teardown(without_a_waker, begin, end),
		cmocka_unit_test_setup_teardown(no_wake_is_lost, begin, end),
	};

	return cmocka_run_group_tests_name("wakes", tests, NULL, NULL);
}
