/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mailbox.c - the slot between two threads of a daemon, step by step in one thread: the other
 * thread runs within the system calls of the first.
 */
#include "unit/unit.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mailbox.h"

static struct mailbox m;
static uint32_t nbusy; /* attempts at the lock that fail */
static uint32_t nyield, nnap, nwait, nwake, ncall;
static uint64_t told; /* the time that a call got */

int __real_pthread_mutex_trylock(pthread_mutex_t *lock);

int __wrap_sched_yield(void)
{
	assert_int_equal(nnap, 0);
	assert_int_equal(m.wanted, 1);
	nyield++;
	return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	assert_true(t->tv_sec == 0 && t->tv_nsec == 50000 && !left);
	assert_int_equal(m.wanted, 1);
	nnap++;
	return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *lock)
{
	if (nbusy == 0)
		return __real_pthread_mutex_trylock(lock);
	nbusy--;
	return 1;
}

/* The polling thread serves the slot while the control thread waits for the second time. */
long __wrap_syscall(long number, uint32_t *word, int operation, uint32_t value)
{
	assert_true(number == SYS_futex && word == &m.full && value == 1);
	if (operation == FUTEX_WAKE_PRIVATE) {
		assert_int_equal(m.full, 0);
		nwake++;
		return 0;
	}
	assert_int_equal(operation, FUTEX_WAIT_PRIVATE);
	assert_int_equal(m.full, 1); /* otherwise the wait would not sleep */
	if (++nwait == 2)
		assert_true(mailbox_serve(&m, 77));
	return 0;
}

static int cancel_state(void)
{
	int before, same;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
	pthread_setcancelstate(before, &same);
	return before;
}

static void call(void *arg, uint64_t now)
{
	assert_ptr_equal(arg, &told);
	assert_int_equal(m.wanted, 0);
	if (mailbox_is_shared(&m))
		assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
	told = now;
	ncall++;
}

static uint64_t clock_of_test(void)
{
	return 88;
}

static int begin(void **state)
{
	memset(&m, 0, sizeof(m));
	m.bell = -1;
	nbusy = nyield = nnap = nwait = nwake = ncall = 0;
	told = 0;
	return 0;
}

static void a_slot(void **state)
{
	uint64_t n;

	assert_false(mailbox_is_shared(&m));
	assert_false(mailbox_serve(&m, 5));
	m.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	mailbox_call(&m, call, &told);
	assert_true(ncall == 1 && told == 77 && nwait == 2 && nwake == 1 && m.full == 0);
	assert_int_equal(read(m.bell, &n, sizeof(n)), sizeof(n));
	assert_true(n == 1);
	assert_false(mailbox_serve(&m, 5));
	mailbox_ring(&m);
	mailbox_ring(&m);
	assert_int_equal(read(m.bell, &n, sizeof(n)), sizeof(n));
	assert_true(n == 2);
	close(m.bell);
	assert_int_equal(ncall, 1);
}

/* A call yields 16 times, then sleeps; a pass does not begin while a call waits. */
static void a_lock(void **state)
{
	static const uint32_t busy[] = { 0, 1, 16, 17, 20 };

	m.wanted = 7;
	mailbox_share(&m, clock_of_test);
	assert_true(mailbox_is_shared(&m) && m.wanted == 0);
	for (uint32_t i = 0; i < 5; i++) {
		nyield = nnap = 0;
		nbusy = busy[i];
		mailbox_call(&m, call, &told);
		assert_true(ncall == i + 1 && told == 88 && m.wanted == 0 && m.full == 0);
		assert_int_equal(nyield, busy[i] < 16 ? busy[i] : 16);
		assert_int_equal(nnap, busy[i] < 16 ? 0 : busy[i] - 16);
		assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	}
	assert_true(nwait == 0 && nwake == 0);
	m.wanted = 1;
	assert_false(mailbox_enter(&m));
	m.wanted = 0;
	nbusy = 1;
	assert_false(mailbox_enter(&m));
	assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(mailbox_enter(&m));
		assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
		assert_false(mailbox_enter(&m));
		mailbox_leave(&m);
		assert_int_equal(cancel_state(), PTHREAD_CANCEL_ENABLE);
	}
	pthread_mutex_destroy(&m.lock);
}

static void a_list(void **state)
{
	struct mailbox_list l = { NULL };
	struct mailbox_item a = { NULL, 0 }, b = { NULL, 0 };

	assert_null(mailbox_take(&l));
	assert_true(mailbox_add(&l, &a));
	assert_false(mailbox_add(&l, &a));
	assert_false(mailbox_add(&l, &b));
	assert_ptr_equal(mailbox_take(&l), &b);
	assert_ptr_equal(b.next, &a);
	assert_null(a.next);
	assert_null(mailbox_take(&l));
	assert_false(mailbox_add(&l, &a)); /* taken, and not released */
	assert_null(mailbox_take(&l));
	mailbox_release(&a);
	assert_true(mailbox_add(&l, &a));
	assert_ptr_equal(mailbox_take(&l), &a);
	assert_null(a.next);
}

static void a_set(void **state)
{
	uint64_t set[3] = { 0 };

	assert_true(mailbox_marks(&set[0]) == 0 && !mailbox_is_marked(&set[0]));
	mailbox_mark(set, 0);
	mailbox_mark(set, 63);
	mailbox_mark(set, 63);
	mailbox_mark(set, 65);
	assert_true(mailbox_is_marked(&set[0]) && mailbox_is_marked(&set[1]));
	assert_false(mailbox_is_marked(&set[2]));
	mailbox_mark(set, 128);
	assert_true(mailbox_marks(&set[2]) == 1);
	assert_true(mailbox_marks(&set[0]) == (UINT64_C(1) << 63 | 1));
	assert_true(mailbox_marks(&set[1]) == 2 && mailbox_marks(&set[2]) == 0);
	assert_false(mailbox_is_marked(&set[0]));
	assert_true(mailbox_marks(&set[1]) == 0);
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(a_slot, begin), cmocka_unit_test_setup(a_lock, begin),
	  cmocka_unit_test_setup(a_list, begin), cmocka_unit_test_setup(a_set, begin))
