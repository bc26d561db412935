/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_pace.h - spin or yield: how a waiting thread notices that others want its processor.
 *
 * Nobody counts threads and processors: other programs, containers and quotas hide both. A thread
 * that yields is back within a microsecond if nobody else wants its processor; it is late if
 * another thread has run. After a late yield the thread yields, until several yields in a row were
 * prompt; then it spins again, and yields once after each burst of tests, to see whether that is
 * still right. Bursts double while yields are prompt. If a yield is late before the bursts are
 * long, spinning was wrong: next time the thread waits for twice as many prompt yields.
 *
 * Threads that wait for each other on one processor hand it to each other by late yields, and the
 * scheduler may leave them there for long, although another processor is idle. So after many late
 * yields a thread tries another processor, and returns if yields are late there, too; each time it
 * waits longer before it tries. A random part of that wait keeps two threads from trying together.
 *
 * Pure: the caller yields and has the clock. One struct for each thread, all zero at the beginning.
 * For libnbar and the glue; not installed.
 */
#ifndef NBAR_PACE_H
#define NBAR_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* A yield is late if it takes more than NBAR_PACE_LATE times as long as the fastest yield of this
 * thread. A thread that has never been alone on its processor has not seen a fast yield, so the
 * first guess is LONG. A yield that looks faster than SHORT says nothing: clocks have a grain. */
#define NBAR_PACE_LATE 2u
#define NBAR_PACE_LONG_NS 1000u
#define NBAR_PACE_SHORT_NS 300u
#define NBAR_PACE_BURST_MAX 16u    /* rounds of tests between two yields; 1 at first */
#define NBAR_PACE_PATIENCE_MIN 4u  /* prompt yields in a row before the thread spins again, ... */
#define NBAR_PACE_PATIENCE_MAX 64u /* ... doubled up to this number */
#define NBAR_PACE_TRY_LATE 128u    /* late yields before the thread tries another processor, ... */
#define NBAR_PACE_TRY_STEPS 6u     /* ... times four after each try, so many times: about 1 s */

struct nbar_pace {
	uint32_t spins;    /* rounds of tests until the next yield */
	uint32_t burst;    /* their number after the last prompt yield; 0: it was late, or none */
	uint32_t yields;   /* prompt yields that are missing until the thread spins */
	uint32_t patience; /* their number after the last late yield */
	uint32_t fastest_ns;
	uint32_t stays; /* late yields until it tries; 0: not known yet */
	uint32_t tries; /* up to the limit */
	uint32_t guest; /* prompt yields that are missing until it stays where it tries */
	bool returns;   /* to `home`; else it goes to any other processor */
	int home;       /* before the last try; the caller's own */
};

/* True if the last yields say that nobody else wants this processor. */
static inline bool nbar_pace_is_alone(const struct nbar_pace *p)
{
	return p->yields == 0;
}

/* Asked before each round of the wait. True: test many times in a row. False: yield, and call
 * nbar_pace_yielded. */
static inline bool nbar_pace_spins(struct nbar_pace *p)
{
	if (p->spins == 0)
		return false;
	p->spins--;
	return true;
}

static inline bool nbar_pace_is_late(struct nbar_pace *p, uint64_t took_ns)
{
	uint32_t fastest = p->fastest_ns ? p->fastest_ns : NBAR_PACE_LONG_NS;

	if (took_ns < fastest)
		fastest = took_ns > NBAR_PACE_SHORT_NS ? (uint32_t)took_ns : NBAR_PACE_SHORT_NS;
	p->fastest_ns = fastest;
	return took_ns > NBAR_PACE_LATE * (uint64_t)fastest;
}

/* After a late yield. True: move. */
static inline bool nbar_pace_moves(struct nbar_pace *p, uint64_t took_ns)
{
	uint32_t n = NBAR_PACE_TRY_LATE << 2 * p->tries;

	p->returns = p->guest > 0;
	p->guest = 0;
	if (p->returns)
		return true;
	if (p->stays == 0)
		p->stays = n + (uint32_t)took_ns * UINT32_C(2654435761) % n;
	if (--p->stays > 0)
		return false;
	if (p->tries < NBAR_PACE_TRY_STEPS)
		p->tries++;
	p->guest = NBAR_PACE_PATIENCE_MIN;
	return true;
}

/* The thread has yielded, and was back after took_ns. True: move. */
static inline bool nbar_pace_yielded(struct nbar_pace *p, uint64_t took_ns)
{
	if (nbar_pace_is_late(p, took_ns)) {
		if (p->burst > 0 && p->burst < NBAR_PACE_BURST_MAX &&
		    p->patience < NBAR_PACE_PATIENCE_MAX)
			p->patience *= 2;
		if (p->patience < NBAR_PACE_PATIENCE_MIN)
			p->patience = NBAR_PACE_PATIENCE_MIN;
		p->yields = p->patience;
		p->burst = p->spins = 0;
		return nbar_pace_moves(p, took_ns);
	}
	if (p->guest > 0)
		p->guest--;
	if (p->yields > 0 && --p->yields > 0)
		return false;
	if (p->burst == NBAR_PACE_BURST_MAX)
		p->patience /= 2;
	p->burst = p->burst == 0 ? 1 : 2 * p->burst;
	if (p->burst > NBAR_PACE_BURST_MAX)
		p->burst = NBAR_PACE_BURST_MAX;
	p->spins = p->burst;
	return false;
}

#endif
