/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order.h - all memory ordering of the host library: one named function for each use.
 *
 * Each function names its partner: the access on the other side that it pairs with. A function
 * without its partner orders nothing. Partners are in firmware/nic/page.c (the NIC), or in this
 * file (threads and processes). No other file of the library uses atomics. These functions do not
 * flush stores to devices, and do not order RDMA or MPI traffic.
 */
#ifndef NBAR_ORDER_H
#define NBAR_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* --- this host and its NIC ---------------------------------------------------------------- */

/* Posts every barrier up to epoch. Release, pairs with the acquire of `posted` in scan_doorbell:
 * the host's writes before its arrival come before everything that its NIC does for the barrier. */
static inline void order_post(uint32_t *posted, uint32_t epoch)
{
	__atomic_store_n(posted, epoch, __ATOMIC_RELEASE);
}

/*
 * After a post: true if the NIC sleeps, so that this host must kick it. Adds 0, and pairs with the
 * exchange in nbnic_page_ask_kicks: the later of the two operations sees the earlier. Either the
 * host sees the request, or the NIC, which looks once more before it sleeps, sees the post. A load
 * could pass the store before it. The line is the host's own while the NIC is awake: 6 to 20 ns.
 */
static inline bool order_kick_wanted(uint32_t *kick)
{
	return __atomic_fetch_add(kick, 0, __ATOMIC_ACQ_REL) != 0;
}

/* The same for a remote NIC, which writes the word into this host's copy, and forgets a request
 * that a kick has answered: clears the word. Relaxed: it orders nothing, as the NIC sleeps only for
 * a short time. */
static inline bool order_kick_take(uint32_t *kick)
{
	return __atomic_load_n(kick, __ATOMIC_RELAXED) != 0 &&
	       __atomic_exchange_n(kick, 0, __ATOMIC_RELAXED) != 0;
}

/* A process with a remote NIC pushes for other processes now. Acquire: take_asks in
 * wire/rdma/host.c has pushed before it clears the word. */
static inline bool order_asked(const uint32_t *asked)
{
	return __atomic_load_n(asked, __ATOMIC_ACQUIRE);
}

/* True if a remote NIC has pushed all that it wrote before its reply to request `seq`. Acquire:
 * what arrived before is seen; the NIC's pushes arrive in order. */
static inline bool order_settled(const uint32_t *settled, uint32_t seq)
{
	return (int32_t)(__atomic_load_n(settled, __ATOMIC_ACQUIRE) - seq) >= 0;
}

/* Reads a completion word. Acquire, pairs with the release in nbnic_page_complete; for a team
 * without a group, with the release in order_team_signal. A thread that sees the barrier complete
 * also sees what the members wrote before the barrier. */
static inline uint64_t order_completion_read(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Reads the rank that a failure names. Relaxed: the NIC wrote the rank before the completion word,
 * which the caller has read by order_completion_read. */
static inline uint32_t order_failed_rank_read(const uint32_t *failed_rank)
{
	return __atomic_load_n(failed_rank, __ATOMIC_RELAXED);
}

/* Reads the futex word before a sleep. Acquire, pairs with the release in the NIC's wake(): a
 * sleeper that reads the new value also sees the completion that caused the wake. */
static inline uint32_t order_wake_read(const uint32_t *wake)
{
	return __atomic_load_n(wake, __ATOMIC_ACQUIRE);
}

/*
 * Asks the NIC for a wake: increments `wake_seq`. Pairs with the read of `wake_seq` in
 * scan_doorbell. Release, so that the increment comes after order_wake_read: the host never takes
 * the resulting wake for an older wake. Acquire, so that the host reads the completion word after
 * the increment. The NIC may see the increment late, but then wakes the host for any completion
 * since the last wake. So neither side needs a store-load fence.
 */
static inline void order_ask(uint32_t *wake_seq)
{
	__atomic_fetch_add(wake_seq, 1, __ATOMIC_ACQ_REL);
}

/* Reads how many stragglers are in the list. Acquire, pairs with the release in
 * nbnic_page_stragglers: the NIC has written this many entries. */
static inline uint32_t order_stragglers_read(const uint32_t *nstragglers)
{
	return __atomic_load_n(nstragglers, __ATOMIC_ACQUIRE);
}

/* Reads the rank in an entry, after order_stragglers_read. Relaxed: the list is advisory. */
static inline uint32_t order_straggler_read(const uint32_t *straggler)
{
	return __atomic_load_n(straggler, __ATOMIC_RELAXED);
}

/* Reads why the rank in an entry is missing. Relaxed: the list is advisory. */
static inline uint16_t order_why_read(const uint16_t *why)
{
	return __atomic_load_n(why, __ATOMIC_RELAXED);
}

/* Reads the sign of life of the NIC. Relaxed, pairs with the store in nbnic_page_live: it orders
 * nothing. */
static inline uint32_t order_life_read(const uint32_t *life)
{
	return __atomic_load_n(life, __ATOMIC_RELAXED);
}

/* --- signal rings ------------------------------------------------------------------------- */

/* Hands an entry to the NIC. Release, pairs with the acquire of `seq` in nbnic_page_signals: the
 * NIC sees the whole entry. */
static inline void order_signal_publish(uint32_t *seq, uint32_t sequence)
{
	__atomic_store_n(seq, sequence, __ATOMIC_RELEASE);
}

/* True if the NIC has filled the entry of this sequence number. Acquire, pairs with the release of
 * `seq` in nbnic_page_deliver. */
static inline bool order_signal_ready(const uint32_t *seq, uint32_t sequence)
{
	return __atomic_load_n(seq, __ATOMIC_ACQUIRE) == sequence;
}

/* Write and read a field of an entry. Relaxed: the seq of the entry orders the fields. Atomic: one
 * side may overwrite an entry while the other side reads it. */
static inline void order_signal_put(uint32_t *field, uint32_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static inline uint32_t order_signal_get(const uint32_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

/* Reads how many entries the NIC has taken. Acquire, pairs with the release of `sends_taken` in
 * nbnic_page_signals: the host may overwrite these entries. */
static inline uint32_t order_taken_read(const uint32_t *taken)
{
	return __atomic_load_n(taken, __ATOMIC_ACQUIRE);
}

/* Tells the NIC how many entries this host has taken. Release, pairs with the acquire of
 * `recvs_taken` in nbnic_page_deliver: the host has read these entries. */
static inline void order_taken_write(uint32_t *taken, uint32_t count)
{
	__atomic_store_n(taken, count, __ATOMIC_RELEASE);
}

/* --- threads of this process -------------------------------------------------------------- */

/*
 * A word of a team has the epoch in its lower half, so order_completion_read can read it like a
 * completion word. This function counts a thread down in the upper half, and returns the old word.
 * Release, pairs with the acquire of the same operation by the last thread: the last thread sees
 * what the others wrote, and its order_post or order_team_signal passes this on.
 */
static inline uint64_t order_team_arrive(uint64_t *word)
{
	return __atomic_fetch_sub(word, UINT64_C(1) << 32, __ATOMIC_ACQ_REL);
}

/* The last thread sets the count for the next barrier. Relaxed: the release of this barrier
 * follows, and a thread arrives at the next barrier only after it has seen this release. */
static inline void order_team_reset(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/*
 * Writes a word that threads of a team wait for, and returns the old word. Release, pairs with
 * the acquire in order_completion_read. It is an exchange, because a sleeper sets its flag in the
 * same word (order_team_ask): the later of the two operations sees the earlier operation.
 */
static inline uint64_t order_team_signal(uint64_t *word, uint64_t value)
{
	return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
}

/*
 * Reads a word that this thread will write soon, and fetches the cache line for writing: a
 * compare-and-exchange that does not change the value. *seen: the value read before. Acquire, as in
 * order_completion_read.
 */
static inline void order_team_take(uint64_t *word, uint64_t *seen)
{
	__atomic_compare_exchange_n(word, seen, *seen, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

/* A thread sets the flag that asks order_team_signal for a wake, and reads the word, in one
 * operation. Relaxed: order_team_signal is also one operation on this word; order_completion_read
 * follows. */
static inline uint64_t order_team_ask(uint64_t *word, uint64_t flag)
{
	return __atomic_fetch_or(word, flag, __ATOMIC_RELAXED) | flag;
}

/* A thread tells the threads that wait within the team which barrier of the team's group has
 * failed: 1 << 32 | ticket. Relaxed: it orders nothing; the group has the details of the failure.
 */
static inline void order_team_break(uint64_t *broken, uint32_t ticket)
{
	__atomic_store_n(broken, UINT64_C(1) << 32 | ticket, __ATOMIC_RELAXED);
}

static inline uint64_t order_team_broken(const uint64_t *broken)
{
	return __atomic_load_n(broken, __ATOMIC_RELAXED);
}

/* --- processes of this node ------------------------------------------------------------------ */

/*
 * A process of a process team arrives: it writes its last ticket, then reads the tickets of the
 * others (by order_procs_read). Both are sequentially consistent: of the processes that arrive at a
 * barrier, the last one in this order sees all others. They also release and acquire: a process
 * that sees an arrival also sees all that the arriving process wrote before it.
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
 * Writes the last complete barrier of a large process team. The store has two partners:
 * - The acquire in order_procs_done. With this release, a process that reads `done` also sees what
 *   the writer saw by order_procs_read.
 * - order_procs_sleeps (sequentially consistent; in a small process team, order_procs_arrive is the
 *   store): the writer stores `done` (or `arrived`) and then loads `sleepers`; a process that will
 *   sleep adds to `sleepers` and then loads `done` (or `arrived`). So at least one process sees
 *   what the other has written. If the store was only a release, each load could pass the store
 *   before it. Then neither process would see the other, and one would sleep for ever.
 * The value never decreases: all have written a barrier before any process writes the next barrier.
 */
static inline void order_procs_release(uint32_t *done, uint32_t ticket)
{
	__atomic_exchange_n(done, ticket, __ATOMIC_SEQ_CST);
}

/* True for the first of the processes that see all arrive at this barrier. Relaxed: it orders
 * nothing, order_procs_arrive does. Its partner is the same statement in another process. */
static inline bool order_procs_claim(uint32_t *done, uint32_t ticket)
{
	return __atomic_exchange_n(done, ticket, __ATOMIC_RELAXED) != ticket;
}

static inline uint32_t order_procs_done(const uint32_t *done)
{
	return __atomic_load_n(done, __ATOMIC_SEQ_CST);
}

/* A process announces that it will sleep (n is 1), and then checks the barrier again. A process
 * that completes a barrier checks afterwards whether any process sleeps. All four accesses are
 * sequentially consistent: see order_procs_release. */
static inline void order_procs_sleeps(uint32_t *sleepers, int n)
{
	__atomic_fetch_add(sleepers, (uint32_t)n, __ATOMIC_SEQ_CST);
}

static inline bool order_procs_any_sleeps(const uint32_t *sleepers)
{
	return __atomic_load_n(sleepers, __ATOMIC_SEQ_CST) != 0;
}

/* The futex of a process team: incremented before sleepers are woken. Release, pairs with
 * order_wake_read. */
static inline void order_procs_wake(uint32_t *wake)
{
	__atomic_fetch_add(wake, 1, __ATOMIC_RELEASE);
}

/* The last epoch posted on a group. Only the posting thread writes it; other threads read it to
 * check their tickets. Relaxed: it orders nothing. */
static inline void order_posted_write(uint64_t *posted, uint64_t count)
{
	__atomic_store_n(posted, count, __ATOMIC_RELAXED);
}

static inline uint64_t order_posted_read(const uint64_t *posted)
{
	return __atomic_load_n(posted, __ATOMIC_RELAXED);
}

/* A port that is down stays down. Any thread may detect this, and the other threads may see it
 * late. Relaxed: it orders nothing. */
static inline void order_down_write(uint32_t *down, uint32_t why)
{
	__atomic_store_n(down, why, __ATOMIC_RELAXED);
}

static inline uint32_t order_down_read(const uint32_t *down)
{
	return __atomic_load_n(down, __ATOMIC_RELAXED);
}

/* A port of a remote NIC has been shared, and stays so. Relaxed: no other process has the share
 * before its program passes it on, and until then none asks. */
static inline void order_shared_write(uint32_t *shared)
{
	__atomic_store_n(shared, 1, __ATOMIC_RELAXED);
}

static inline bool order_shared(const uint32_t *shared)
{
	return __atomic_load_n(shared, __ATOMIC_RELAXED) != 0;
}

/* A group runs from its connection until any thread aborts it, and never again. Relaxed: a thread
 * that sees this word late learns of the abort from the NIC. */
static inline bool order_runs(const uint32_t *runs)
{
	return __atomic_load_n(runs, __ATOMIC_RELAXED);
}

static inline void order_runs_write(uint32_t *runs, bool value)
{
	__atomic_store_n(runs, value, __ATOMIC_RELAXED);
}

/* Marks a group as aborted, or the abort as sent; true: the mark was set before. Relaxed: it orders
 * nothing. */
static inline bool order_abort(uint32_t *mark)
{
	return __atomic_exchange_n(mark, true, __ATOMIC_RELAXED);
}

static inline bool order_aborted(const uint32_t *aborted)
{
	return __atomic_load_n(aborted, __ATOMIC_RELAXED);
}

/* A text of a group that one thread writes and all read. The claim is relaxed: it orders nothing,
 * and only one thread gets it. */
static inline bool order_text_claim(uint32_t *state)
{
	uint32_t none = 0;

	return __atomic_compare_exchange_n(state, &none, 1, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* The text is complete. Release, pairs with the acquire in order_text_read. */
static inline void order_text_write(uint32_t *state)
{
	__atomic_store_n(state, 2, __ATOMIC_RELEASE);
}

/* True if the text is complete. Acquire, pairs with the release in order_text_write. */
static inline bool order_text_read(const uint32_t *state)
{
	return __atomic_load_n(state, __ATOMIC_ACQUIRE) == 2;
}

/* Statistics. Relaxed: they order nothing. */
static inline void order_stat_add(uint64_t *stat, uint64_t n)
{
	__atomic_fetch_add(stat, n, __ATOMIC_RELAXED);
}

static inline void order_stat_write(uint64_t *stat, uint64_t n)
{
	__atomic_store_n(stat, n, __ATOMIC_RELAXED);
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
