/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_internal.h - what the files of the NIC loop share; no other file includes it.
 *
 * The files, lowest layer first: send.c sends frames; probe.c asks whether peers hear this NIC;
 * rtt.c sends PULLs early after a loss; why.c names stragglers; nic.c turns events into actions;
 * group.c makes and ends groups; pass.c is the scheduler. A file calls only files of lower layers.
 */
#ifndef NBNIC_INTERNAL_H
#define NBNIC_INTERNAL_H

#include "nic.h"

#define NBNIC_CONTAINER(link, member) \
	((struct nbnic_group *)(void *)((char *)(link)-offsetof(struct nbnic_group, member)))

static inline struct nbfw_values *nbnic_values(const struct nbnic_group *g)
{
	return NBNIC_VALUES ? g->values : NULL;
}

/* Frames that this pass may still send. */
static inline uint32_t nbnic_frames_left(const struct nbnic *nic)
{
	return NBNIC_PASS_FRAMES(nic->quota) - nic->used.frames;
}

/* send.c */

/* Sends one frame if the wire has room, and counts it. False: no room; try no other frame in this
 * pass. */
bool nbnic_transmit(struct nbnic *nic, const struct nbnic_addr *to, const struct nbfw_token *t,
		    enum nbar_counter counter);

/* Sends at most `limit` of the tokens and aborts that wait, while the pass has room. Returns how
 * many sends it has finished. */
uint32_t nbnic_send_some(struct nbnic *nic, struct nbnic_group *g, uint32_t limit);

/* Sends what an action asks for: at once, as far as the budgets go; the rest is queued. */
void nbnic_send(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_action *a);

/* Frames that the groups of a port may still send within events of this pass. */
uint32_t *nbnic_share_left(struct nbnic *nic, uint32_t port);

/* Answers a PULL to its sender, or drops the answer. g: NULL, or of which a TOKEN is repeated. */
void nbnic_send_reply(struct nbnic *nic, const struct nbnic_group *g, uint32_t rank,
		      const struct nbfw_action *a, const struct nbfw_token *pull,
		      const struct nbnic_addr *from);

/* Begins a PULL job: asks for the missing slots in [first, end). The job replaces any earlier job.
 */
void nbnic_pull_begin(struct nbnic *nic, struct nbnic_group *g, uint32_t first, uint32_t end);

/* Goes on with the job: asks for at most `limit` slots now. Returns the number of slots; the job
 * has ended when pull_left is 0. */
uint32_t nbnic_pull_some(struct nbnic *nic, struct nbnic_group *g, uint32_t limit, uint64_t now);

/* probe.c */

/* Returns the index of the peer with this rank, or npeer. Not for "signal" groups. */
uint32_t nbnic_peer_find(const struct nbnic_group *g, uint32_t rank);

/* Goes on with the rounds of PROBEs: at most `most` frames now. Returns how many were sent. */
__attribute__((cold)) uint32_t nbnic_probe_serve(struct nbnic *nic, uint32_t most);

/* Takes a PROBE, and answers it; or an ECHO. */
void nbnic_probe_receive(struct nbnic *nic, struct nbnic_group *g, const struct nbnic_addr *from,
			 const struct nbfw_token *t);

/* rtt.c */

#if NBNIC_ADAPT
/* The number of sweeps over the timers in the shortest first interval of all groups. */
#define NBNIC_RTT_SWEEPS 8u

/* A new group: it has lost no token, and sends no early PULLs. */
void nbnic_rtt_begin(const struct nbnic *nic, struct nbnic_group *g);

/* The timer of a group is due. True: no TIMEOUT is due; it may have begun early
 * PULLs. */
bool nbnic_rtt_fire(struct nbnic *nic, struct nbnic_group *g, uint64_t now);

/* PULLs of a group are out. */
void nbnic_rtt_asked(struct nbnic *nic, struct nbnic_group *g, uint64_t now);

/* All PULLs of a group are out. Returns when its timer is due. If a TIMEOUT has caused the PULLs,
 * the next TIMEOUT comes after ns. */
uint64_t nbnic_rtt_due(const struct nbnic *nic, struct nbnic_group *g, uint64_t ns, uint64_t now);

/* Learns from a TOKEN, LATER or ABORT whether the last PULL was necessary, and how long its answer
 * took. Call it before the engine gets the frame. */
void nbnic_rtt_learn(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_token *t,
		     uint64_t now);
#endif

/* why.c */

/* Answers a PULL; a LATER names the straggler, and says why the group waits for it. */
void nbnic_why_answer(struct nbnic *nic, struct nbnic_group *g, struct nbfw_action *a,
		      const struct nbfw_token *pull, const struct nbnic_addr *from, uint64_t now);

/* Learns from a LATER that the engine has used: which rank is missing, and why. */
void nbnic_why_learn(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_token *later,
		     uint64_t now);

/* After a timeout: forgets ranks that no LATER has repeated, adds silent sources, and tells the
 * host. */
void nbnic_why_review(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_action *a,
		      uint64_t now);

/* trace.c. Cold: the compiler keeps the calls away from the path of a token. */
__attribute__((cold)) void nbnic_trace_note_group(struct nbnic *nic, const struct nbnic_group *g,
						  enum nbar_trace_what what, uint32_t epoch,
						  uint32_t peer);
__attribute__((cold)) void nbnic_trace_note_frame(struct nbnic *nic, uint32_t handle, uint32_t rank,
						  uint32_t peer, const struct nbfw_token *t,
						  enum nbar_trace_what what);
__attribute__((cold)) void nbnic_trace_note_send(struct nbnic *nic, const struct nbnic_group *g,
						 const struct nbar_send *send,
						 const struct nbfw_token *t);

/* Notes an event of a group, while somebody traces. */
static inline void nbnic_trace_group(struct nbnic *nic, const struct nbnic_group *g,
				     enum nbar_trace_what what, uint32_t epoch, uint32_t peer)
{
	if (NBNIC_TRACE && __builtin_expect(nic->tracing, 0))
		nbnic_trace_note_group(nic, g, what, epoch, peer);
}

/* Notes a frame, while somebody traces. handle: of the group at this NIC; rank: of its member here.
 */
static inline void nbnic_trace_frame(struct nbnic *nic, uint32_t handle, uint32_t rank,
				     uint32_t peer, const struct nbfw_token *t,
				     enum nbar_trace_what what)
{
	if (NBNIC_TRACE && __builtin_expect(nic->tracing, 0))
		nbnic_trace_note_frame(nic, handle, rank, peer, t, what);
}

/* Notes a frame that is a send of the plan, while somebody traces. */
static inline void nbnic_trace_send(struct nbnic *nic, const struct nbnic_group *g,
				    const struct nbar_send *send, const struct nbfw_token *t)
{
	if (NBNIC_TRACE && __builtin_expect(nic->tracing, 0))
		nbnic_trace_note_send(nic, g, send, t);
}

/* The index of the highest bit of v, which is not 0. The loop is for machines where the compiler
 * would call its library. */
static inline uint32_t nbnic_bit_highest(uint64_t v)
{
#if defined(__x86_64__) || defined(__aarch64__)
	return 63u - (uint32_t)__builtin_clzll(v);
#else
	uint32_t n = 0;

	for (; v > 1; v >>= 1)
		n++;
	return n;
#endif
}

/* Counts a barrier that is complete, in some 20 instructions. Call it before all other work of a
 * completion: then the compiler need not keep its arguments over other calls. last: 1 + the slot of
 * the last token; 0: the barrier was complete when the host arrived. */
static inline void nbnic_latency_note(struct nbnic *nic, const struct nbnic_group *g, size_t last,
				      uint64_t now)
{
#if NBNIC_LATENCY
	struct nbnic_last *l = &g->last[last];
	uint64_t ns = now - g->started, units = ns >> NBNIC_LATENCY_SHIFT;

	nic->latency.ns += ns;
	nic->latency.bucket[nbnic_bit_highest(2 * units + 1)]++;
	l->barriers++;
	l->ns += ns;
	if (units > l->most)
		l->most = units;
#else
	(void)nic, (void)g, (void)last, (void)now;
#endif
}

/* nic.c */

/* Feeds START, TIMEOUT or LEAVE to the engine of a group, and carries out the actions. */
void nbnic_feed(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_event *ev,
		uint64_t now);

/* Starts posted barriers that can start: `limit` at most, and queues the rest. Returns the number
 * of barriers started. */
uint32_t nbnic_start_posted(struct nbnic *nic, struct nbnic_group *g, uint32_t limit, uint64_t now);
#define NBNIC_STARTS_A_CALL 16u

/* An address that no NIC has. */
extern const struct nbnic_addr nbnic_addr_nobody;

/* Where a peer of a "signal" group is, or would be, in the order of recv_peer: by rank, then by
 * handle, then by the address of its NIC. */
uint32_t nbnic_signal_find(const struct nbnic_group *g, uint32_t rank, uint64_t handle,
			   const struct nbnic_addr *addr);

/* group.c */

/* Gives the block of a group back (ops.release) and frees the handle. */
void nbnic_group_release(struct nbnic *nic, uint32_t index);

static inline uint32_t nbnic_index(uint32_t handle)
{
	return handle & 0xffff;
}

static inline uint64_t nbnic_interval(const struct nbnic *nic, const struct nbfw_state *s)
{
	return s->tries < NBFW_WINDOW ? nic->interval[s->tries] : nic->budget_ns / NBFW_WINDOW;
}

/* The time when a PULL leaves, which its answer repeats; never 0. */
static inline uint32_t nbnic_stamp(uint64_t now)
{
	return (uint32_t)(now >> NBNIC_STAMP_SHIFT) | 1;
}

/* Arms the timer of a group. */
static inline void nbnic_arm(struct nbnic *nic, struct nbnic_group *g, uint64_t deadline)
{
	g->armed = true;
	g->deadline = deadline;
	if (deadline < nic->due)
		nic->due = deadline;
}

/* The time from the begin of a step to its first PULL. */
static inline uint64_t nbnic_first(const struct nbnic *nic, const struct nbnic_group *g)
{
#if NBNIC_ADAPT
	(void)nic;
	return g->first;
#else
	(void)g;
	return nic->interval[0];
#endif
}

static inline bool nbnic_sends_wait(const struct nbnic_group *g)
{
	return g->token_at != g->token_end || g->abort_at != g->abort_end;
}

/* True if a barrier that the host has posted can start: the sends of the last barrier must be out.
 */
static inline bool nbnic_may_start(const struct nbnic_group *g)
{
	return g->life == NBAR_LIFE_CONNECTED && !g->state->running &&
	       g->state->cause == NBAR_STATUS_OK && g->state->epoch != g->posted &&
	       g->token_at == g->token_end;
}

static inline uint64_t nbnic_addr_word(const struct nbnic_addr *a, uint32_t i)
{
	uint64_t word;

	__builtin_memcpy(&word,
			 (const uint8_t *)__builtin_assume_aligned(a, sizeof(word)) +
				 i * sizeof(word),
			 sizeof(word));
	return word;
}

/* True if both addresses are of one NIC. */
static inline bool nbnic_addr_same(const struct nbnic_addr *a, const struct nbnic_addr *b)
{
	return nbnic_addr_word(a, 0) == nbnic_addr_word(b, 0) &&
	       nbnic_addr_word(a, 1) == nbnic_addr_word(b, 1) &&
	       nbnic_addr_word(a, 2) == nbnic_addr_word(b, 2);
}
_Static_assert(NBNIC_ADDR_NAME == 3 * sizeof(uint64_t), "three words name a NIC");

/* True if a frame (no SIGNAL) comes from this connected peer. The wire tells the NIC of the sender,
 * and the NIC tells for which of its members it speaks. */
static inline bool nbnic_is_of(const struct nbnic_peer *p, const struct nbnic_addr *from,
			       const struct nbfw_token *t)
{
	return t->sender == p->handle && nbnic_addr_same(&p->addr, from);
}

/* Names a NIC by its address; never 0. FNV-1a, but by words of 32 bits, the upper half mixed in. */
static inline uint32_t nbnic_addr_hash(const struct nbnic_addr *a)
{
	uint32_t hash = UINT32_C(2166136261), word;

	for (size_t i = 0; i < NBNIC_ADDR_NAME; i += sizeof(word)) {
		__builtin_memcpy(&word, a->byte + i, sizeof(word));
		hash = (hash ^ word) * UINT32_C(16777619);
		hash ^= hash >> 15;
	}
	return hash | 1;
}

/* The entry of the NIC with this hash. If entry->nic differs, another NIC has taken the entry. */
static inline const struct nbnic_heard *nbnic_heard_at(const struct nbnic *nic, uint32_t hash)
{
	return &nic->heard[hash / 2 % NBNIC_HEARD_MAX];
}

static inline void nbnic_note_heard(struct nbnic *nic, uint32_t hash, uint64_t now)
{
	struct nbnic_heard *h = &nic->heard[hash / 2 % NBNIC_HEARD_MAX];

	h->nic = hash;
	h->time = (uint32_t)(now >> NBNIC_HEARD_SHIFT);
}

#endif
