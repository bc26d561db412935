/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wakes.c - what a pass does itself to wake the hosts of a port, and what it leaves to the
 * thread of the user; ends of sockets while passes use them.
 */
#include "calls.h"

#include <fcntl.h>
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

static bool steps;            /* futex wakes are noted, and wake nobody */
static int nwoken, woken_max; /* what the next wakes say; the limit that the last had */
static uint32_t *woken_word;
static void (*at_futex)(void);

int __real_socketpair(int family, int type, int protocol, int fd[2]);
int __wrap_socketpair(int family, int type, int protocol, int fd[2])
{
	return call_fails(EMFILE) ? -1 : __real_socketpair(family, type, protocol, fd);
}

long __real_syscall(long number, uint32_t *word, int op, int n, void *t, void *two, int three);
long __wrap_syscall(long number, uint32_t *word, int op, int n, void *t, void *two, int three)
{
	void (*now)(void) = at_futex;

	if (!steps)
		return __real_syscall(number, word, op, n, t, two, three);
	assert_true(number == SYS_futex && op == FUTEX_WAKE);
	woken_word = word;
	woken_max = n;
	at_futex = NULL;
	if (now)
		now();
	return nwoken;
}

static int begin(void **state)
{
	mailbox = (struct mailbox){ 0 };
	mailbox_share(&mailbox, nicd_clock); /* calls run in the caller */
	waker = (struct waker){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	steps = false;
	nwoken = 0;
	calls = fail_at = 0;
	blocks = 0;
	at_futex = NULL;
	return 0;
}

static int end(void **state)
{
	close(waker.fd);
	assert_int_equal(blocks, 0);
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

	assert_int_equal(wakes_events_make(w, &mailbox, 0, 0), -EMFILE);
	for (uint32_t i = 0; i < NBAR_EVENTS_MAX; i++) {
		fd[i] = wakes_events_make(w, &mailbox, i, 1);
		assert_true(fd[i] >= 0);
	}
	assert_int_equal(wakes_events_make(w, &mailbox, NBAR_EVENTS_MAX, 9), -ENOSPC);
	/* Another socket of the same cell takes none more. */
	close(fd[5]);
	fd[5] = wakes_events_make(w, &mailbox, 5, 0);
	assert_true(fd[5] >= 0);
	assert_int_equal(wakes_events(w), NBAR_EVENTS_MAX);
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

/* --- step by step -------------------------------------------------------------------------- */

static const uint32_t cells[] = { 0, 1, 63, 64, NBAR_GROUPS_MAX - 1 };
#define NCELLS (sizeof(cells) / sizeof(cells[0]))

static struct wakes *port[2];
static int sock[2][NCELLS];

static int begin_steps(void **state)
{
	begin(state);
	steps = true;
	for (uint32_t p = 0; p < 2; p++) {
		port[p] = wakes_new(&waker, &page);
		for (size_t i = 0; i < NCELLS; i++)
			sock[p][i] = wakes_events_make(port[p], &mailbox, cells[i], 9);
	}
	return 0;
}

static int end_steps(void **state)
{
	char byte;

	for (uint32_t p = 0; p < 2; p++)
		wakes_end(port[p]);
	waker_serve(&waker);
	for (uint32_t p = 0; p < 2; p++)
		for (size_t i = 0; i < NCELLS; i++) {
			assert_int_equal(recv(sock[p][i], &byte, 1, MSG_DONTWAIT), 0);
			close(sock[p][i]);
		}
	return end(state);
}

/* How often the waker was woken since the last call. */
static uint64_t waker_woken(void)
{
	uint64_t n = 0;

	(void)!read(waker.fd, &n, sizeof(n));
	return n;
}

/* The waker serves its list, and wakes the poller of just this cell of each of these ports. */
static void wakes_just(uint32_t ports, size_t cell)
{
	char byte;

	waker_serve(&waker);
	for (uint32_t p = 0; p < 2; p++)
		for (size_t i = 0; i < NCELLS; i++)
			require(recv(sock[p][i], &byte, 1, MSG_DONTWAIT) ==
					(ports >> p & 1 && i == cell ? 1 : -1),
				"port %u, cell %u", p, cells[i]);
}

/* A pass wakes the word of the cell; the poller is left to the waker, which wakes all others. */
static void each_cell_has_its_poller(void **state)
{
	for (uint32_t p = 0; p < 2; p++)
		for (size_t i = 0; i < NCELLS; i++) {
			wakes_wake(port[p], cells[i]);
			assert_ptr_equal(woken_word, &page.completion[cells[i]].wake);
			assert_int_equal(woken_max, WAKES_MAX);
			assert_int_equal(waker_woken(), 1);
			wakes_just(1 << p, i);
			assert_ptr_equal(woken_word, &page.completion[cells[i]].wake);
			assert_int_equal(woken_max, INT_MAX);
			assert_int_equal(waker_woken(), 0);
		}
	/* Both ports: the waker is woken once. */
	wakes_wake(port[0], cells[2]);
	wakes_wake(port[1], cells[2]);
	assert_int_equal(waker_woken(), 1);
	wakes_just(3, 2);
}

/* Without a poller, the waker has work only if the pass has woken as many as it may. */
static void more_sleepers_than_a_pass_wakes(void **state)
{
	for (nwoken = 0; nwoken <= WAKES_MAX; nwoken++) {
		wakes_wake(port[0], 7);
		assert_int_equal(waker_woken(), nwoken == WAKES_MAX);
	}
	nwoken = 0;
	wakes_just(0, 0);
	assert_ptr_equal(woken_word, &page.completion[7].wake);
	assert_int_equal(woken_max, INT_MAX);
}

static size_t another;

static void wakes_another(void)
{
	wakes_wake(port[0], cells[another]); /* the waker is behind it */
}

static void drops_one(void)
{
	wakes_events_drop(port[0], &mailbox, cells[4]);
}

static void ends_it(void)
{
	wakes_end(port[0]);
}

/* What comes while the waker is at the same port is left for another round, which it begins. */
static void nothing_is_lost_meanwhile(void **state)
{
	char byte;

	/* In each word of marks, not only in the first. */
	for (another = 1; another < 4; another += 2) {
		wakes_wake(port[0], cells[another == 1 ? 3 : 4]);
		waker_woken();
		at_futex = wakes_another;
		wakes_just(1, another == 1 ? 3 : 4);
		assert_int_equal(waker_woken(), 1);
		wakes_just(1, another);
		assert_int_equal(waker_woken(), 0);
	}
	wakes_wake(port[0], cells[1]);
	waker_woken();
	at_futex = drops_one;
	wakes_just(1, 1);
	assert_int_equal(waker_woken(), 1);
	assert_int_equal(recv(sock[0][4], &byte, 1, MSG_DONTWAIT), -1);
	waker_serve(&waker);
	assert_int_equal(recv(sock[0][4], &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(wakes_events(port[0]), NCELLS - 1);
	wakes_wake(port[0], cells[1]);
	waker_woken();
	at_futex = ends_it;
	waker_serve(&waker);
	assert_int_equal(recv(sock[0][1], &byte, 1, MSG_DONTWAIT), 1);
	assert_int_equal(waker_woken(), 1);
	waker_serve(&waker);
	assert_int_equal(recv(sock[0][1], &byte, 1, MSG_DONTWAIT), 0);
	wakes_end(port[1]);
	waker_serve(&waker);
	for (size_t i = 0; i < 2 * NCELLS; i++)
		close(sock[i / NCELLS][i % NCELLS]);
}

static void without_a_waker_all_are_woken(void **state)
{
	struct wakes *w = wakes_new(NULL, &page);

	wakes_wake(w, 5);
	assert_ptr_equal(woken_word, &page.completion[5].wake);
	assert_int_equal(woken_max, INT_MAX);
	wakes_end(w);
	assert_int_equal(waker_woken(), 0);
}

/* A socket that cannot be made: the earlier one stays, and nothing else. */
static void what_fails_leaves_nothing_behind(void **state)
{
	static const int errors[] = { ENOMEM, ENOMEM, EMFILE };
	struct wakes *w;
	int fd, spare;

	fail_at = calls + 1;
	assert_null(wakes_new(&waker, &page));
	for (uint32_t had = 0; had < 2; had++)
		for (uint32_t i = had; i < 3; i++) {
			w = wakes_new(&waker, &page);
			fd = had ? wakes_events_make(w, &mailbox, 3, 1) : -1;
			spare = dup(STDIN_FILENO);
			close(spare);
			fail_at = calls + 1 + i - had;
			assert_int_equal(wakes_events_make(w, &mailbox, 3, 1), -errors[i]);
			assert_int_equal(wakes_events(w), had);
			assert_int_equal(dup(STDIN_FILENO), spare);
			close(spare);
			wakes_wake(w, 3);
			waker_serve(&waker);
			if (had) {
				assert_true(readable(fd));
				close(fd);
			}
			wakes_end(w);
			waker_serve(&waker);
		}
}

/* Our end holds few messages, sends none to itself, and is closed on exec. */
static void a_poller_that_does_not_read(void **state)
{
	struct wakes *w = wakes_new(NULL, &page);
	int fd = wakes_events_make(w, &mailbox, 3, 1);
	uint32_t n = 0;
	char byte;

	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	for (uint32_t i = 0; i < 1000; i++)
		wakes_wake(w, 3);
	while (recv(fd, &byte, 1, 0) == 1)
		n++;
	assert_in_range(n, 1, 20);
	assert_int_equal(send(fd, "", 1, MSG_NOSIGNAL), -1);
	close(fd);
	wakes_wake(w, 3); /* no signal */
	wakes_end(w);
}

#define STEPS(name) UNIT_IN(name, begin_steps, end_steps)

UNIT_MAIN(NULL, NULL, UNIT_IN(a_pass_wakes_few_sleepers, begin, end),
	  UNIT_IN(no_pass_sends_or_closes, begin, end), UNIT_IN(sockets_are_limited, begin, end),
	  UNIT_IN(without_a_waker, begin, end), UNIT_IN(no_wake_is_lost, begin, end),
	  STEPS(each_cell_has_its_poller), STEPS(more_sleepers_than_a_pass_wakes),
	  UNIT_IN(nothing_is_lost_meanwhile, begin_steps, end),
	  STEPS(without_a_waker_all_are_woken),
	  UNIT_IN(what_fails_leaves_nothing_behind, begin, end),
	  UNIT_IN(a_poller_that_does_not_read, begin, end))
