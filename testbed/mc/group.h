/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.h - the world of the engine: the members of one group, their hosts, and the frames between
 * them. Shared by the files group*.c.
 *
 * The engine is the object code of libnbfw.a. There are two networks:
 *
 * GROUP_COUNTED  A member may take a frame at any time, or never (the frame is lost, or late). A
 *                taken frame may stay in flight (it is repeated), `repeats` times in a run. Timers
 *                may fire at any time, `timeouts` times in a run.
 * GROUP_ANY      A member may take each frame at any time, never, or any number of times. Timers
 *                may fire at any time, any number of times. So a timeout and a PULL only add
 *                frames, and a state with more frames permits all runs of a state with fewer.
 *                Timeouts and PULLs therefore happen at once, and are no events. PULLs and LATERs
 *                are removed when their step ends.
 */
#ifndef TESTBED_MC_GROUP_H
#define TESTBED_MC_GROUP_H

#include "chart.h"
#include "engine.h"
#include "plan.h"
#include "search.h"

#define GROUP_SIZE_MAX 5u
#define GROUP_FRAMES_MAX 160u
#define GROUP_STATE_WORDS 8u        /* of each member: enough for 32 slots */
#define GROUP_BASE (UINT32_MAX - 1) /* the second barrier is number 0 */

enum group_net { GROUP_COUNTED, GROUP_ANY };

/* What may happen in a run, and how often. */
struct group_config {
	const char *alg;
	uint8_t size, goal; /* members; barriers that each host wants */
	enum group_net net;
	uint8_t repeats, timeouts; /* GROUP_COUNTED */
	uint8_t leaves, crashes;   /* hosts that leave or die; NICs that fall silent */
	uint8_t windows;           /* windows that end, even if the other members are only slow */
	bool laters;               /* GROUP_ANY: true: LATERs are delivered; false: all are lost */
	uint8_t slots; /* plans with more slots, of all ranks, are left out; 0: no limit */
	bool patience; /* from each state, a host may be late for two windows */
};

struct group_member {
	uint32_t state[GROUP_STATE_WORDS]; /* struct nbfw_state */
	uint8_t started, done;             /* numbers of barriers */
	uint8_t sent;                      /* number of frames sent in the last barrier */
	bool armed, failed, left, crashed;
};

struct group_state {
	struct group_member m[GROUP_SIZE_MAX];
	uint8_t repeats, timeouts, leaves, crashes, windows; /* how many are left */
	uint8_t guilty; /* bits: ranks that others may report as failed */
	uint8_t nframe;
	uint8_t zero;
	uint64_t frame[GROUP_FRAMES_MAX]; /* sorted */
};

struct group {
	struct group_config cfg;
	const struct nbar_plan *plan[GROUP_SIZE_MAX];
	uint32_t block[GROUP_SIZE_MAX][256];
	uint32_t nslot, widest; /* slots of all plans; slots of the widest step */
	uint32_t nsame;         /* renamings of the ranks that change no plan */
	uint8_t same[120][GROUP_SIZE_MAX];
	struct group_state s;
	uint32_t frames_most; /* most frames in flight so far */
	const char *why;      /* the property that the current event breaks */
	struct chart *chart;  /* NULL while exploring */
	bool probing;         /* group_probe delivers: it needs no bound of frames */
};

/* A frame in 64 bits; equal frames have equal keys. Epochs are counted from GROUP_BASE. */
struct group_frame {
	uint8_t type, dst, src, slot, arg, info;
	uint8_t epoch;
};

static inline uint64_t group_key(struct group_frame f)
{
	return (uint64_t)f.epoch << 48 | (uint64_t)f.type << 40 | (uint64_t)f.dst << 36 |
	       (uint64_t)f.src << 32 | (uint64_t)f.slot << 24 | (uint64_t)f.arg << 8 | f.info;
}

static inline struct group_frame group_frame(uint64_t key)
{
	return (struct group_frame){ .epoch = (uint8_t)(key >> 48),
				     .type = (uint8_t)(key >> 40),
				     .dst = key >> 36 & 15,
				     .src = key >> 32 & 15,
				     .slot = (uint8_t)(key >> 24),
				     .arg = (uint8_t)(key >> 8),
				     .info = (uint8_t)key };
}

static inline struct nbfw_state *group_engine(struct group_member *m)
{
	return (struct nbfw_state *)(void *)m->state;
}

/* group_world.c */

/* Makes the plans. False: no such algorithm, or it has too many slots. */
bool group_begin(struct group *g, const struct group_config *cfg);
void group_first(struct group *g);

/* Gives one event to the engine of a rank, checks the actions that the engine returns, and carries
 * them out. */
void group_step(struct group *g, uint32_t rank, const struct nbfw_event *ev);
void group_start(struct group *g, uint32_t rank);
void group_timeout(struct group *g, uint32_t rank);
void group_take(struct group *g, uint64_t key, bool implied);
/* Puts a taken frame into the network once more. */
void group_again(struct group *g, uint64_t key);
bool group_may_start(const struct group *g, uint32_t rank);

/* group_events.c: the callbacks of a world. */
void group_world(struct group *g, struct mc_world *w);

/* group_probe.c: loses all frames in flight; then all members go on without a fault. Returns NULL,
 * or the reason why a member neither completes its barriers nor fails. Destroys the state. */
const char *group_probe(struct group *g);

/* Checks the properties of the state itself, without an event. Returns NULL or a reason. Changes
 * nothing. */
const char *group_look(struct group *g);

/* group_same.c */
void group_same_find(struct group *g);
uint64_t group_fingerprint(struct group *g);

#endif
