/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mailbox.c - a slot between the control thread and the polling thread; or a lock between threads
 * that run passes.
 *
 * mailbox_serve is on the path of every pass: with an empty slot it costs one load.
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mailbox.h"

/* A call that waits for the lock first yields CALL_YIELDS times, then sleeps for CALL_NAP_NS again
 * and again, because the holder of the lock may have no processor. */
#define CALL_YIELDS 16u
#define CALL_NAP_NS 50000

void mailbox_share(struct mailbox *m, uint64_t (*clock)(void))
{
	m->clock = clock;
	m->wanted = 0;
	pthread_mutex_init(&m->lock, NULL);
}

bool mailbox_enter(struct mailbox *m)
{
	/* A waiting call goes first: otherwise a busy poller could always take the lock again.
	 * Pairs with the additions in call_shared. Relaxed: the lock orders memory, this load does
	 * not. */
	if (__atomic_load_n(&m->wanted, __ATOMIC_RELAXED) || pthread_mutex_trylock(&m->lock) != 0)
		return false;
	/* A thread that is cancelled in a system call of the wire would never release the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &m->cancel);
	return true;
}

void mailbox_leave(struct mailbox *m)
{
	int cancel = m->cancel;

	pthread_mutex_unlock(&m->lock);
	pthread_setcancelstate(cancel, NULL);
}

static void call_shared(struct mailbox *m, mailbox_fn *fn, void *arg)
{
	const struct timespec nap = { .tv_nsec = CALL_NAP_NS };
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* as in mailbox_enter */
	/* Pairs with the load in mailbox_enter. Relaxed: see there. */
	__atomic_fetch_add(&m->wanted, 1, __ATOMIC_RELAXED);
	/* Do not sleep on the lock: then the holder would need a system call to release the
	 * lock. */
	for (uint32_t i = 0; pthread_mutex_trylock(&m->lock) != 0; i++) {
		if (i < CALL_YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
	__atomic_fetch_sub(&m->wanted, 1, __ATOMIC_RELAXED);
	fn(arg, m->clock());
	pthread_mutex_unlock(&m->lock);
	pthread_setcancelstate(cancel, NULL);
}

void mailbox_call(struct mailbox *m, mailbox_fn *fn, void *arg)
{
	if (m->clock) {
		call_shared(m, fn, arg);
		return;
	}
	m->fn = fn;
	m->arg = arg;
	/* Pairs with the acquire in mailbox_serve, which sees fn, arg and the data behind them. */
	__atomic_store_n(&m->full, 1, __ATOMIC_RELEASE);
	mailbox_ring(m);
	/* Pairs with the release in mailbox_serve: we see the effects of the call. */
	while (__atomic_load_n(&m->full, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &m->full, FUTEX_WAIT_PRIVATE, 1, NULL);
}

bool mailbox_serve(struct mailbox *m, uint64_t now)
{
	/* Pairs with the release in mailbox_call. */
	if (!__atomic_load_n(&m->full, __ATOMIC_ACQUIRE))
		return false;
	m->fn(m->arg, now);
	/* Pairs with the acquire in mailbox_call. */
	__atomic_store_n(&m->full, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &m->full, FUTEX_WAKE_PRIVATE, 1);
	return true;
}

void mailbox_ring(const struct mailbox *m)
{
	const uint64_t one = 1;

	if (m->bell >= 0)
		(void)!write(m->bell, &one, sizeof(one));
}

bool mailbox_add(struct mailbox_list *l, struct mailbox_item *item)
{
	struct mailbox_item *head;

	/* Pairs with the exchange in mailbox_release: either this thread adds the item, or the one
	 * that takes sees after its release what was marked before this call. */
	if (__atomic_exchange_n(&item->listed, 1, __ATOMIC_ACQ_REL))
		return false;
	head = __atomic_load_n(&l->head, __ATOMIC_RELAXED);
	do
		item->next = head;
	/* Pairs with the exchange in mailbox_take, which sees `next` and what was marked. */
	while (!__atomic_compare_exchange_n(&l->head, &head, item, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
	return !head;
}

struct mailbox_item *mailbox_take(struct mailbox_list *l)
{
	/* Pairs with the compare_exchange in mailbox_add. */
	return __atomic_exchange_n(&l->head, NULL, __ATOMIC_ACQUIRE);
}

void mailbox_release(struct mailbox_item *item)
{
	/* Pairs with the exchange in mailbox_add. */
	__atomic_exchange_n(&item->listed, 0, __ATOMIC_ACQ_REL);
}

void mailbox_mark(uint64_t *set, uint32_t n)
{
	/* Relaxed: mailbox_add orders memory. */
	__atomic_fetch_or(&set[n / 64], UINT64_C(1) << n % 64, __ATOMIC_RELAXED);
}

uint64_t mailbox_marks(uint64_t *word)
{
	/* Relaxed: see mailbox_mark. Most words are empty: a load costs less than an exchange. */
	return __atomic_load_n(word, __ATOMIC_RELAXED)
		       ? __atomic_exchange_n(word, 0, __ATOMIC_RELAXED)
		       : 0;
}

bool mailbox_is_marked(const uint64_t *word)
{
	/* Relaxed: see mailbox_mark. */
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}
