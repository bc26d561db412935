/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic.h - the NIC: groups around the engine, as one reactive object.
 *
 * A device (device.h), or a test, passes doorbells, frames and the time in, and carries out the
 * calls of struct nbnic_ops. A NIC allocates nothing, reads no clock and has no globals. One thread
 * at a time may call into one NIC; ops are called from inside these calls and must not call back.
 *
 * Times are nanoseconds of any clock that never goes back.
 */
#ifndef NBNIC_NIC_H
#define NBNIC_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "engine.h"
#include "nbar_abi.h"
#include "nbar_trace.h"
#include "plan.h"
#include "rota.h"
#include "token.h"
#include "value.h"

#define NBNIC_ADDR_SIZE 48u
#define NBNIC_EPROTO NBAR_EPROTO

/* The address of a NIC on its wire; only the wire knows the format. Unused bytes are 0. The first
 * NBNIC_ADDR_NAME bytes tell the NICs of a wire apart, and the receiver of a frame knows them of
 * its sender; the others say how to reach the NIC. */
struct nbnic_addr {
	_Alignas(uint64_t) uint8_t byte[NBNIC_ADDR_SIZE]; /* compared by words */
};
#define NBNIC_ADDR_NAME 24u

struct nbnic_peer {
	uint32_t rank;
	uint32_t handle; /* 0: not connected yet (no handle is 0) */
	uint64_t cookie;
	/* Not connected yet: the NIC that tokens have come from, and cookie is the handle of their
	 * sender; or an address that no NIC has. */
	struct nbnic_addr addr;
};

struct nbnic_straggler {
	uint32_t rank;
	uint32_t tick;  /* timeouts of the group when last heard of */
	uint32_t since; /* when others began to wait for it: now >> NBAR_WHY_SHIFT */
	uint16_t why;   /* with its age when last heard of: nbar_abi.h */
};

/* The asker: the member whose PULL was the last to be answered with LATER. It gets another LATER
 * when this member knows more. */
struct nbnic_asker {
	struct nbfw_token pull;
	struct nbnic_addr from;
	uint32_t rank; /* the straggler that the last LATER named ... */
	uint32_t kind; /* ... and why: enum nbar_why */
	uint32_t step; /* of this member when the PULL came; NBNIC_ASKER_TOLD: no more LATER */
};
#define NBNIC_ASKER_TOLD 0xffffffffu

/* Barriers in which the token of one slot arrived last: see struct nbar_last. */
struct nbnic_last {
	uint64_t barriers, ns;
	uint64_t most; /* in units of NBNIC_LATENCY_SHIFT */
};
#define NBNIC_LATENCY_SHIFT 9u

/* Latency of all barriers of a NIC: see struct nbar_rep_nic_latency. The reply has fewer buckets:
 * its last bucket is the sum of the remaining buckets here. */
struct nbnic_latency {
	uint64_t ns;
	uint64_t bucket[64 - NBNIC_LATENCY_SHIFT + 1];
};

/* One member of a group. Lives in a block that the caller gave to nbnic_group_build. */
struct nbnic_group {
	/* The first 64 bytes: what every frame needs. */
	uint32_t handle;
	uint32_t rank;
	uint64_t cookie;
	struct nbfw_state *state;     /* NULL: "signal" */
	const struct nbar_plan *plan; /* NULL: "signal" */
	struct nbnic_peer *peer;      /* sorted by rank, but "signal": in connect order */
	uint16_t *send_peer;          /* peer of each send of the plan */
	uint16_t *recv_peer;          /* peer of each slot; "signal": the peers in order of rank */
	uint64_t deadline;            /* of the armed timer, or of the lingering */
	/* The next 64: what an event needs. */
	uint32_t port, cell;
	uint32_t posted; /* epoch up to which the host has arrived */
	uint8_t life;    /* enum nbar_group_life */
	uint8_t user;    /* account of the owner */
	bool is_signal;  /* raw messages: no plan, no state */
	bool is_special; /* "signal", or with values: kept out of the path of a token */
	bool armed;
	bool lent;       /* the wire has the state: lend.c */
	bool pull_heard; /* the PULL job is in its second round: slots that were heard */
	uint16_t token_at, token_end; /* sends of the last epoch started that are still to go out */
	uint16_t abort_at, abort_end; /* sends to abort; once, as a failure is final */
	uint32_t timeouts;            /* of this barrier; straggler[].tick counts them */
	uint32_t nstragglers;
	struct nbnic_link send; /* in nic.sends: has frames to send, or barriers to start */
	struct nbnic_link pull; /* in nic.pulls: has slots to ask for */
#if NBNIC_ADAPT
	uint64_t first; /* time before the first PULL of a step: pull_ns, or less after a loss */
#endif
#if NBNIC_LATENCY
	uint64_t started;        /* when the last barrier started */
	struct nbnic_last *last; /* [0]: of this member's host; [1 + slot]: of each slot */
#endif
	/* The rest. */
#if NBNIC_ADAPT
	struct nbnic_rtt {
		uint64_t smooth, off; /* the round trip, and its deviation; 0: not measured yet */
		uint64_t every;       /* least interval of early PULLs; a 64th of the budget: the
				       * group sends none */
		uint64_t timeout;     /* when the next TIMEOUT of the engine is due */
		uint64_t begun;       /* when the step began */
		uint32_t epoch, step; /* to which timeout, begun and the fields below belong */
		bool is_timeout;      /* a TIMEOUT has caused the last PULLs */
		bool asked;           /* a PULL has had no answer yet */
		bool slowed, late;    /* `every` has grown in this step; for a late member */
	} rtt;
#endif
	uint16_t pull_first, pull_end; /* the slots that the job is about */
	uint16_t pull_left;            /* slots that the job may still ask for */
	uint16_t pull_span;            /* slots that this round has not looked at */
	uint16_t pull_at[2];           /* where each round goes on: silent slots, heard slots */
	struct nbfw_values *values;    /* NULL: the barriers carry none */
	uint32_t *recv_nic;            /* the NIC that each slot is filled from: nbnic_addr_hash */
	uint8_t *reached;              /* of each peer: bits of probe.c; NULL: "signal" */
	struct nbnic_link probe;       /* in nic.probes: peers wait for a PROBE, ... */
	uint32_t probe_at;             /* ... from this one on */
	uint32_t nanswered;            /* peers that have answered a PROBE */
	uint64_t probe_next;           /* when the next round of PROBEs may begin */
	uint32_t linger_unsent;        /* sends that waited when the lingering was prolonged */
	struct nbnic_link linger;      /* in nic.linger, in the order of closing */
	struct nbnic_link user_linger; /* in nic.user[user].groups, in the same order */
	uint32_t bytes;                /* of the block */
	uint32_t size, digest;
	uint32_t npeer, npeer_max, nconnected;
	struct nbnic_straggler straggler[NBAR_STRAGGLERS_MAX];
	struct nbnic_asker asker;
	uint32_t asked_epoch; /* the barrier for which PULLs came before the host arrived ... */
	uint32_t asked_since; /* ... and the time of the first PULL: now >> NBAR_WHY_SHIFT */
	uint16_t host_why;    /* nbar_why of the host in the last answer */
	char alg[NBAR_NAME_MAX];
};
_Static_assert(sizeof(void *) != 8 || offsetof(struct nbnic_group, port) == 64, "the first line");

struct nbnic_ops {
	/* Sends one token; it may be lost, but must leave at once: no batching. False: the wire has
	 * no room now; nothing was sent, and a later call may succeed. */
	bool (*transmit)(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t);
	/* Tells the host the status of its group, the last epoch completed, and the failed rank. */
	void (*complete)(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch, uint32_t status,
			 uint32_t failed_rank);
	/* Tells the host which ranks hold up the running barrier; n = 0: none known any more. */
	void (*stragglers)(void *ctx, uint32_t port, uint32_t cell,
			   const struct nbnic_straggler *straggler, uint32_t n);
	/* Gives the host a message; false: its ring is full. */
	bool (*deliver)(void *ctx, uint32_t port, uint32_t cell, uint32_t src,
			const uint32_t word[NBAR_SIGNAL_WORDS]);
	/* The block of a group is no longer in use. */
	void (*release)(void *ctx, struct nbnic_group *block);
	/* Why the host of a port has not arrived: enum nbar_why. NULL: the host is late. */
	uint8_t (*host)(void *ctx, uint32_t port, uint64_t now);
	/* Notes an event; called only while nic.tracing. May be NULL where nic.tracing is never
	 * set. */
	void (*trace)(void *ctx, const struct nbar_trace_event *e);
	/* Takes a lent group back: lend.c. */
	void (*take)(void *ctx, struct nbnic_group *g, uint64_t now);
	/* Reads the value that the host has posted for a barrier, with at most `most` bytes of
	 * elements: their length, 0 if there is none, or -NBAR_EINVAL. This and the next may be
	 * NULL where no group has values. */
	int (*operand)(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch,
		       struct nbfw_value *out, uint32_t most);
	/* Gives the host a result of this length, with its head, before the completion of its
	 * barrier. */
	void (*result)(void *ctx, uint32_t port, uint32_t cell, uint32_t epoch,
		       const struct nbfw_value *v, uint32_t length);
};

struct nbnic_config {
	uint64_t pull_ns;      /* first interval without a token after which a PULL asks for it */
	uint64_t budget_ns;    /* silence after which a peer has failed; how long groups linger */
	uint64_t memory_bytes; /* of the groups of a NIC; 0: NBNIC_MEMORY_BYTES */
	uint64_t linger_bytes; /* of lingering groups; 0: a quarter of NBNIC_MEMORY_BYTES. A device
				  sets it */
	uint32_t quota;        /* of a pass, at least NBNIC_QUOTA_MIN; 0: NBNIC_QUOTA */
	uint32_t user_percent; /* what one user may have of ports, groups and memory; 0: all */
	uint32_t patience; /* the first TIMEOUT comes after pull_ns << patience. A device sets it */
};
#define NBNIC_PULL_NS_DEFAULT UINT64_C(1000000)
/* Longer than the 5 s for which a debugger may stop a daemon. */
#define NBNIC_BUDGET_NS_DEFAULT UINT64_C(8000000000)

/* When a NIC of peers was last heard: a frame with a right cookie came from it. */
struct nbnic_heard {
	uint32_t nic;  /* nbnic_addr_hash */
	uint32_t time; /* now >> NBNIC_HEARD_SHIFT */
};
#define NBNIC_HEARD_SHIFT NBAR_WHY_SHIFT

/* A PULL carries the time when it leaves: now >> NBNIC_STAMP_SHIFT, with the lowest bit set. */
#define NBNIC_STAMP_SHIFT 6u

/* The lingering groups of a user. */
struct nbnic_user_linger {
	struct nbnic_link groups;
	uint64_t bytes;
	uint32_t n;
};

struct nbnic {
	/* The first 128 bytes: what every pass looks at. */
	const struct nbnic_ops *ops;
	void *ctx;
	uint32_t pass; /* its number; wraps */
	uint32_t quota;
	/* What this pass has used of its budget. */
	struct nbnic_used {
		uint32_t frames;    /* sent, of all types; of these ... */
		uint32_t inlined;   /* ... within their event */
		uint32_t signals;   /* ... of hosts */
		uint32_t strangers; /* ... answers to PULLs for groups that are not known */
		uint32_t starts, wakes;
	} used;
	bool full; /* the wire has refused a frame in this pass: the queues wait for the next */
	bool sweeping;
	bool tracing; /* the caller sets it, before the first pass */
	bool probing; /* groups may be in probes */
	uint16_t wire;
	uint32_t nsignal;    /* open "signal" groups: without one, no send ring is read */
	uint32_t nlinger;    /* groups in linger */
	uint64_t due;        /* no armed timer is due before */
	uint64_t sweep_next; /* when the next sweep over the timers may begin */
	uint64_t doubt_end;  /* until then, tokens are looked at: as signs of life of the NICs they
			      * come from, and as answers to PULLs */
	struct nbnic_rota sends, pulls;
	/* The rest. */
	struct nbnic_link linger;
	uint32_t queue_turn; /* the last pass that could send from queues */
	uint32_t sweep_at;   /* the next index to look at, while sweeping ... */
	uint32_t sweep_left; /* ... and how many are left */
	uint32_t pull_left;  /* PULLs that may go out before pull_next */
	bool pulls_round_up; /* PULLs get the larger half of an odd quota; changes in each such pass
			      */
	bool probes_first;   /* PROBEs and PULLs have turns; changes in each pass with PROBEs */
	struct nbnic_rota probes;
	uint64_t pull_next;
	uint64_t pace_ns; /* half of pull_ns */
#if NBNIC_ADAPT
	uint64_t sweep_ns; /* between two sweeps; shorter than pace_ns after a loss */
#endif
	struct nbnic_addr addr;
	uint64_t interval[NBFW_WINDOW]; /* first window's, by tries; their sum is the budget */
	uint64_t budget_ns;             /* later windows share it out evenly */
	uint32_t nopen;
	uint64_t linger_bytes, linger_bytes_max;
	struct nbnic_user_linger user[NBNIC_USERS_MAX];
	uint32_t high;  /* one beyond the highest index in use */
	uint32_t fresh; /* indices from here on were never used */
	uint32_t nfree; /* in free[]: used before, but free now */
	uint64_t counter[NBAR_COUNTER_END];
#if NBNIC_LATENCY
	struct nbnic_latency latency;
#endif
	struct nbnic_rota_port sends_port[NBNIC_PORTS_MAX], pulls_port[NBNIC_PORTS_MAX];
	struct nbnic_rota_port probes_port[NBNIC_PORTS_MAX];
	struct nbnic_share {
		uint32_t pass; /* left counts for this pass; in any other pass it is the quota */
		uint32_t left;
	} share[NBNIC_PORTS_MAX];
	struct nbnic_heard heard[NBNIC_HEARD_MAX];
	uint16_t generation[NBNIC_HANDLES];
	uint16_t free[NBNIC_HANDLES];
	struct nbnic_group *group[NBNIC_HANDLES];
};

/* Prepares a NIC that has no groups; the NIC must not move in memory afterwards. wire and addr go
 * into every endpoint address that it gives out. -EINVAL: pull_ns is 0, budget_ns is less than
 * NBFW_WINDOW * pull_ns, or the quota is too small. */
int nbnic_init(struct nbnic *nic, const struct nbnic_ops *ops, void *ctx, uint16_t wire,
	       const struct nbnic_addr *addr, const struct nbnic_config *config);

/* Bytes of the block that nbnic_group_build needs. plan is NULL for "signal": then the block has
 * room for `size` peers, at most NBAR_PEERS_MAX. */
size_t nbnic_group_size(const struct nbar_plan *plan, uint32_t size);

/* The same with values of at most value_max bytes; 0: without values. */
size_t nbnic_group_size_values(const struct nbar_plan *plan, uint32_t size, uint32_t value_max);

struct nbnic_open {
	uint32_t port, cell;
	uint32_t value_max; /* not 0: nbfw_value_plans(kind) holds */
	uint8_t user;       /* account of the owner, below NBNIC_USERS_MAX */
	uint32_t rank, size;
	uint32_t tag;
	uint64_t cookie; /* random, fresh for each group */
	const char *alg; /* the name to show; its canonical form is `kind` */
	struct nbfw_alg kind;
	const struct nbar_plan *plan; /* copied; it passes nbfw_plan_check; NULL for "signal" */
};

/*
 * Makes a group in block (nbnic_group_size_values bytes, aligned for uint64_t). This takes long
 * with a large plan, so the function touches no NIC: any thread may call it.
 */
struct nbnic_group *nbnic_group_build(const struct nbnic_open *arg, void *block);

/*
 * Opens a group: from here on the NIC accepts frames for the group, and owns its block until
 * ops.release. -ENOSPC: NBNIC_GROUPS_MAX are open. -EINVAL: no port has such a number.
 */
int nbnic_group_open(struct nbnic *nic, struct nbnic_group *g);

/* The group's own endpoint address. */
void nbnic_group_endpoint(const struct nbnic *nic, const struct nbnic_group *g,
			  struct nbar_endpoint *out);

/* Reads the address of the NIC and the rank from an endpoint address. False: it is no endpoint
 * address, or one of another wire or version. Needs no NIC: any thread may call it. */
bool nbnic_endpoint_addr(const struct nbar_endpoint *endpoint, uint16_t wire,
			 struct nbnic_addr *out, uint32_t *rank);

/* Whether nbnic_group_connect would accept these endpoint addresses after `first` others. Like
 * nbnic_group_connect it sets *bad, counted from the first of all, and *why. */
int nbnic_group_check(const struct nbnic *nic, const struct nbnic_group *g, uint32_t first,
		      const struct nbar_endpoint *endpoint, uint32_t n, uint32_t *bad,
		      const char **why);

/*
 * Sets peers: for a plan, in the order of g->peer, continuing where the last call ended; for
 * "signal", any peers, appended. With the last peer the group runs. If one endpoint address is
 * refused, the whole call has no effect: -EPROTO, *bad is its index and *why a constant text.
 */
int nbnic_group_connect(struct nbnic *nic, struct nbnic_group *g,
			const struct nbar_endpoint *endpoint, uint32_t n, uint64_t now,
			uint32_t *bad, const char **why);

struct nbnic_reach {
	uint32_t missing;              /* peers that have not answered a PROBE yet */
	const struct nbnic_peer *peer; /* the first of them, or that of the rank; NULL: none */
	bool is_heard;                 /* a PROBE of this peer has arrived here */
};

/*
 * Says which peers of a group (with a plan) have not answered. If rank is NBAR_RANK_NONE, sends
 * PROBEs to these peers, at most one to each in a pull interval; else sends nothing, and finds the
 * peer of this rank.
 */
void nbnic_group_reach(struct nbnic *nic, struct nbnic_group *g, uint32_t rank, uint64_t now,
		       struct nbnic_reach *out);

/*
 * The host is done with the group (CLOSED), has died (HOST_DIED), or the NIC stops (NIC_DOWN). The
 * group leaves its cell and lingers: it answers pulls until the retry budget has passed.
 */
void nbnic_group_close(struct nbnic *nic, struct nbnic_group *g, uint8_t cause, uint64_t now);

/* Ends the lingering of all groups of this account before their time. */
void nbnic_group_forget_user(struct nbnic *nic, uint32_t user);

/* An attached process of the host has died, or a process has aborted the group: the group fails,
 * the NIC tells all members, and the group stays until its owner closes it. "signal" groups are not
 * affected. */
void nbnic_group_fail(struct nbnic *nic, struct nbnic_group *g, uint8_t cause, uint64_t now);

/* The NIC has lost its wire: all open groups fail as in nbnic_group_fail, and "signal" groups get
 * the status. */
void nbnic_fail(struct nbnic *nic, uint8_t cause, uint64_t now);

/* Releases every group, and tells neither hosts nor members; for the end of a NIC. */
void nbnic_fini(struct nbnic *nic);

/* The host has arrived at all barriers up to epoch `posted`. */
void nbnic_doorbell(struct nbnic *nic, struct nbnic_group *g, uint32_t posted, uint64_t now);

/* The host sends a raw message to a peer of a "signal" group. False: the wire has no room, or the
 * port has used up its share of this pass; the caller keeps the message and tries again. */
bool nbnic_signal(struct nbnic *nic, struct nbnic_group *g, uint32_t peer,
		  const uint32_t word[NBAR_SIGNAL_WORDS]);

/* A frame from the wire. `from` is the sender, as the wire knows it, and not as the frame says it:
 * a NIC speaks for its own members alone. Answers to PULLs go there. */
void nbnic_receive(struct nbnic *nic, const struct nbnic_addr *from, const struct nbfw_token *t,
		   uint64_t now);

/*
 * Ends a pass: call it after the frames and doorbells. It does a bounded part of the work on
 * timers, PULLs, waiting sends and starts, and groups whose lingering is over; without such work it
 * takes a few ns. True: something was done.
 */
bool nbnic_work(struct nbnic *nic, uint64_t now);

/* Sets the quota, at least NBNIC_QUOTA_MIN. The pass ends here, because its budget follows from one
 * quota. */
void nbnic_quota_set(struct nbnic *nic, uint32_t quota);

/* Returns the time at which nbnic_work has work again, if nothing comes in before. 0: now;
 * UINT64_MAX: never. */
uint64_t nbnic_next(const struct nbnic *nic);

/* Takes the group back if it is lent: before all that looks at its state. */
static inline void nbnic_take(struct nbnic *nic, struct nbnic_group *g, uint64_t now)
{
	if (NBNIC_LEND && __builtin_expect(g->lent, 0))
		nic->ops->take(nic->ctx, g, now);
}

/* What the wire wants for a lent group: that the NIC wakes those who sleep; takes it back; takes it
 * back because it has seen no progress for as long as the NIC had asked for. */
enum nbnic_want { NBNIC_WANT_WAKE = 1, NBNIC_WANT_TAKE, NBNIC_WANT_TIMEOUT };
void nbnic_lend_wanted(struct nbnic *nic, uint32_t index, enum nbnic_want what, uint64_t now);

/* Fills what the NIC knows of a group; pid and uid are left to the caller. */
void nbnic_group_info(const struct nbnic_group *g, struct nbar_group_info *out);

static inline void nbnic_count(struct nbnic *nic, enum nbar_counter c)
{
	nic->counter[c]++;
}

#endif
