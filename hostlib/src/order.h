/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.h - all the ordering of the host library, one named function a use.
 *
 * Every function names its partner: the access on the other side without which it orders nothing.
 * Partners are in firmware/nic/page.c (the NIC), or here, where one thread of this process meets
 * another. No other file of the library uses atomics. What is not promised: nothing here flushes
 * stores to devices, and nothing orders RDMA or MPI traffic.
 */
#ifndef NBAR_ORDER_H
#define NBAR_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* --- this host and its NIC ---------------------------------------------------------------- */

/* Posts every barrier up to epoch. Release, pairs with the acquire of `posted` in scan_doorbell:
 * what this host wrote before it arrived comes before all that its NIC does for the barrier. */
static inline void order_post(uint32_t *posted, uint32_t epoch)
{
	__atomic_store_n(posted, epoch, __ATOMIC_RELEASE);
}

/* Reads a completion word. Acquire, pairs with the release in page_complete, and for a team
 * without a group with that in order_team_signal: who sees the barrier complete sees what the
 * members wrote before it. */
static inline uint64_t order_completion_read(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Reads the rank that a failure names. Relaxed: it was written before the completion word, which
 * the caller has read by order_completion_read. */
static inline uint32_t order_failed_rank_read(const uint32_t *failed_rank)
{
	return __atomic_load_n(failed_rank, __ATOMIC_RELAXED);
}

/* Reads the futex word before a sleep. Acquire, pairs with the release in the NIC's wake(): a
 * sleeper that finds the new value also finds the completion that it was bumped for. */
static inline uint32_t order_wake_read(const uint32_t *wake)
{
	return __atomic_load_n(wake, __ATOMIC_ACQUIRE);
}

/*
 * Asks to be woken. Pairs with the read of `wake_seq` in scan_doorbell. Release, so that the bump
 * comes after order_wake_read: the answer to it is never taken for an older one. Acquire, so that
 * the completion word is read after it. The NIC may see the bump late, but it sees it, and then
 * wakes for any completion since its last wake: no store-load fence is needed on either side.
 */
static inline void order_ask(uint32_t *wake_seq)
{
	__atomic_fetch_add(wake_seq, 1, __ATOMIC_ACQ_REL);
}

/* Reads how many ranks are late. Acquire, pairs with the release in page_stragglers: that many
 * entries have been written. */
static inline uint32_t order_stragglers_read(const uint32_t *nstragglers)
{
	return __atomic_load_n(nstragglers, __ATOMIC_ACQUIRE);
}

/* Reads one of them. Relaxed: after order_stragglers_read; the list is advisory. */
static inline uint32_t order_straggler_read(const uint32_t *straggler)
{
	return __atomic_load_n(straggler, __ATOMIC_RELAXED);
}

/* --- signal rings ------------------------------------------------------------------------- */

/* Hands an entry to the NIC. Release, pairs with the acquire of `seq` in scan_sends: the entry is
 * whole. */
static inline void order_signal_publish(uint32_t *seq, uint32_t sequence)
{
	__atomic_store_n(seq, sequence, __ATOMIC_RELEASE);
}

/* True if the NIC has filled the entry of this sequence number. Acquire, pairs with the release of
 * `seq` in page_deliver. */
static inline bool order_signal_ready(const uint32_t *seq, uint32_t sequence)
{
	return __atomic_load_n(seq, __ATOMIC_ACQUIRE) == sequence;
}

/* Fields of an entry. Relaxed: its seq orders them. Atomic, because a NIC reads entries that its
 * host may be spoiling, and a host should not trust its NIC more than that. */
static inline void order_signal_put(uint32_t *field, uint32_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static inline uint32_t order_signal_get(const uint32_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

/* Reads how many entries the NIC has taken. Acquire, pairs with the release of `sends_taken` in
 * scan_sends: those may be overwritten. */
static inline uint32_t order_taken_read(const uint32_t *taken)
{
	return __atomic_load_n(taken, __ATOMIC_ACQUIRE);
}

/* Tells the NIC how many entries this host has taken. Release, pairs with the acquire of
 * `recvs_taken` in page_deliver: they have been read. */
static inline void order_taken_write(uint32_t *taken, uint32_t count)
{
	__atomic_store_n(taken, count, __ATOMIC_RELEASE);
}

/* --- threads of this process -------------------------------------------------------------- */

/*
 * Words of a team: the epoch is in the lower half, so that order_completion_read reads them as it
 * does the NIC's. Counts a thread down in the upper half, and returns the word as it was. Release,
 * pairs with the acquire of the same operation by the last thread: it has seen what the others
 * wrote, and its order_post or order_team_signal hands that on.
 */
static inline uint64_t order_team_arrive(uint64_t *word)
{
	return __atomic_fetch_sub(word, UINT64_C(1) << 32, __ATOMIC_ACQ_REL);
}

/* The last thread sets the count for the next barrier. Relaxed: nobody arrives there before he has
 * seen the release of this one, which follows. */
static inline void order_team_reset(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/*
 * Writes a word that threads of a team wait for, and returns what was there. Release, pairs with
 * the acquire in order_completion_read. One exchange, because a sleeper sets its flag in the same
 * word (order_team_ask): whichever comes second sees the other.
 */
static inline uint64_t order_team_signal(uint64_t *word, uint64_t value)
{
	return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
}

/*
 * Reads a word that is about to be written by this thread, and takes its cache line for that: a
 * compare-and-exchange that changes nothing. *seen: as read before. Acquire, as in
 * order_completion_read.
 */
static inline void order_team_take(uint64_t *word, uint64_t *seen)
{
	__atomic_compare_exchange_n(word, seen, *seen, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

/* A thread sets the flag that asks order_team_signal for a wake, and reads the word. Relaxed: that
 * both are one operation on one word is all it takes (see there); order_completion_read follows. */
static inline uint64_t order_team_ask(uint64_t *word, uint64_t flag)
{
	return __atomic_fetch_or(word, flag, __ATOMIC_RELAXED) | flag;
}

/* A thread says with which barrier the team's group has failed, to those who wait within the team:
 * 1 << 32 | ticket. Relaxed: it orders nothing; what there is to know of the failure is in the
 * group. */
static inline void order_team_break(uint64_t *broken, uint32_t ticket)
{
	__atomic_store_n(broken, UINT64_C(1) << 32 | ticket, __ATOMIC_RELAXED);
}

static inline uint64_t order_team_broken(const uint64_t *broken)
{
	return __atomic_load_n(broken, __ATOMIC_RELAXED);
}

/* Draws the next number below size; size if there is none. Relaxed: it orders nothing. */
static inline uint32_t order_team_join(uint32_t *joined, uint32_t size)
{
	uint32_t n = __atomic_load_n(joined, __ATOMIC_RELAXED);

	while (n < size && !__atomic_compare_exchange_n(joined, &n, n + 1, true, __ATOMIC_RELAXED,
							__ATOMIC_RELAXED))
		;
	return n;
}

/* --- processes of this node ------------------------------------------------------------------ */

/*
 * A process of a process team arrives: writes its last ticket, then reads those of the others (by
 * order_procs_read). Sequentially consistent, both: of those who arrive at a barrier, the last one
 * in that order sees all the others. Release and acquire with it: who sees a process arrive sees
 * what it wrote before.
 */
static inline void order_procs_arrive(uint32_t *arrived, uint32_t ticket)
{
	__atomic_exchange_n(arrived, ticket, __ATOMIC_SEQ_CST);
}

static inline uint32_t order_procs_read(const uint32_t *arrived)
{
	return __atomic_load_n(arrived, __ATOMIC_SEQ_CST);
}

/*
 * The last barrier of a large process team that is complete. Two pairs:
 * - Release with the acquire in order_procs_done: it hands on what the writer saw by
 *   order_procs_read.
 * - Sequentially consistent with order_procs_sleeps, as order_procs_arrive is in a small process
 * team: the writer stores `done` (or `arrived`) and then loads `sleepers`; a process that will
 * sleep adds to `sleepers` and then loads `done` (or `arrived`). One of the two sees the other. A
 * release store would wait in the store buffer while the load of `sleepers` passes it: then neither
 * sees the other, and the process sleeps for ever. Never goes back: nobody writes a barrier before
 * all have done with writing the one before.
 */
static inline void order_procs_release(uint32_t *done, uint32_t ticket)
{
	__atomic_exchange_n(done, ticket, __ATOMIC_SEQ_CST);
}

static inline uint32_t order_procs_done(const uint32_t *done)
{
	return __atomic_load_n(done, __ATOMIC_SEQ_CST);
}

/* A process says that it will sleep (n: 1), and then looks again; the process that completes a
 * barrier looks afterwards whether anybody sleeps. Sequentially consistent, all four: see
 * order_procs_release. */
static inline void order_procs_sleeps(uint32_t *sleepers, int n)
{
	__atomic_fetch_add(sleepers, (uint32_t)n, __ATOMIC_SEQ_CST);
}

static inline bool order_procs_any_sleeps(const uint32_t *sleepers)
{
	return __atomic_load_n(sleepers, __ATOMIC_SEQ_CST) != 0;
}

/* The futex of a process team: bumped before sleepers are woken. Release, pairs with
 * order_wake_read. */
static inline void order_procs_wake(uint32_t *wake)
{
	__atomic_fetch_add(wake, 1, __ATOMIC_RELEASE);
}

/* Last epoch posted on a group: the one thread that posts writes it, others look at it to check
 * their tickets. Relaxed: it orders nothing. */
static inline void order_posted_write(uint64_t *posted, uint64_t count)
{
	__atomic_store_n(posted, count, __ATOMIC_RELAXED);
}

static inline uint64_t order_posted_read(const uint64_t *posted)
{
	return __atomic_load_n(posted, __ATOMIC_RELAXED);
}

/* A port that is down stays down: any thread may find out, all others may be late to see it.
 * Relaxed: it orders nothing. */
static inline void order_down_write(uint32_t *down, uint32_t why)
{
	__atomic_store_n(down, why, __ATOMIC_RELAXED);
}

static inline uint32_t order_down_read(const uint32_t *down)
{
	return __atomic_load_n(down, __ATOMIC_RELAXED);
}

/* Statistics. Relaxed: they order nothing. */
static inline void order_stat_add(uint64_t *stat, uint64_t n)
{
	__atomic_fetch_add(stat, n, __ATOMIC_RELAXED);
}

static inline uint64_t order_stat_read(const uint64_t *stat)
{
	return __atomic_load_n(stat, __ATOMIC_RELAXED);
}

/* Tells the processor that this is a loop that waits. Orders nothing. */
static inline void order_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__ARM_ARCH_7A__)
	__asm__("yield" ::: "memory");
#endif
}

#endif
