/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nics.h - the world of the NIC loop: two or three NICs with one member each, their hosts, and the
 * frames between the NICs. Shared by the files nics*.c.
 *
 * The NICs are the object code of libnbnic.a. Each member has two lives: it opens a group,
 * connects, posts barriers and closes; then it opens the next group, which may get the handle of
 * the first. Each NIC runs passes until it has no more to do. A NIC's clock moves when a timer
 * fires, or when a host waits until a closed group no longer lingers.
 */
#ifndef TESTBED_MC_NICS_H
#define TESTBED_MC_NICS_H

#include "chart.h"
#include "nic.h"
#include "search.h"

#define NICS_MAX 3u
#define NICS_LIVES 2u
#define NICS_FRAMES_MAX 64u
#define NICS_BLOCK 2048u /* bytes of a group */
#define NICS_HEARD 4u    /* used entries in a NIC's table of other NICs */
#define NICS_VALUE (NBFW_VALUE_HEAD + 8u)
#define NICS_PULL_NS (UINT64_C(1) << 20)
#define NICS_BUDGET_NS (NICS_PULL_NS * 256)

struct nics_config {
	const char *alg;
	uint8_t size;
	uint8_t goal[NICS_LIVES]; /* barriers of each life; 0: no such life */
	uint8_t repeats, timers;  /* frames that arrive twice; timers that fire */
	uint8_t leaves;           /* hosts that close before their last barrier is done */
	uint8_t expires;          /* hosts that wait until their group no longer lingers */
	uint8_t full;             /* how often a wire has no room */
	bool values;              /* all barriers carry values; the second is number 0 */
};

struct nics_frame {
	struct nbfw_token token;
	uint8_t from, to;
	uint8_t value[NICS_VALUE]; /* if token.value_length is not 0 */
	uint8_t zero[6];
};

/* The host's data of its group. */
struct nics_group {
	uint8_t block; /* 1: the NIC has the block of the group */
	uint8_t posted, done, results;
	bool connected, failed, closed;
};

/* Saved with a state. nics_save.c saves the NICs separately. */
struct nics_state {
	struct nics_group group[NICS_MAX][NICS_LIVES];
	uint64_t now[NICS_MAX];
	bool no_room[NICS_MAX];                         /* the wire of the NIC takes no frame */
	uint8_t repeats, timers, leaves, expires, full; /* how many are left */
	uint8_t guilty; /* ranks that have left early, or whose group no longer lingers */
	uint8_t nframe;
	uint32_t handle[NICS_MAX][NICS_LIVES];
	struct nics_frame frame[NICS_FRAMES_MAX];
};

struct nics {
	struct nics_config cfg;
	struct nbnic nic[NICS_MAX];
	uint64_t block[NICS_MAX][NICS_LIVES][NICS_BLOCK / 8];
	uint32_t plan[NICS_MAX][256];
	struct nbfw_alg alg;
	uint32_t base; /* number of the barrier before the first */
	struct nbar_endpoint endpoint[NICS_MAX][NICS_LIVES]; /* without the handles */
	size_t bytes;                                        /* size of the largest block */
	struct nics_state s;
	uint32_t frames_most;
	const char *why;
	struct chart *chart;
};

/* nics_world.c */
bool nics_begin(struct nics *n, const struct nics_config *cfg);
void nics_first(struct nics *n);

/* Actions of a host: whether it may take the action, and the action. */
bool nics_may_open(const struct nics *n, uint32_t rank, uint32_t life);
bool nics_may_connect(const struct nics *n, uint32_t rank, uint32_t life);
bool nics_may_post(const struct nics *n, uint32_t rank, uint32_t life);
bool nics_has_ended(const struct nics *n, uint32_t rank, uint32_t life);
void nics_open(struct nics *n, uint32_t rank, uint32_t life);
void nics_connect(struct nics *n, uint32_t rank, uint32_t life);
void nics_post(struct nics *n, uint32_t rank, uint32_t life);
void nics_close(struct nics *n, uint32_t rank, uint32_t life);

/* The network and the clock. */
void nics_take(struct nics *n, uint32_t frame, bool again);
void nics_wait(struct nics *n, uint32_t rank, uint64_t until);

/* The earliest deadline of the armed timers of a NIC; UINT64_MAX: none. */
uint64_t nics_due(const struct nics *n, uint32_t rank);

/* Runs poll passes of a NIC until it has no more work at this time. */
void nics_work(struct nics *n, uint32_t rank);

/* nics_save.c: the state of the real NICs, and its fingerprint. */
size_t nics_save(void *ctx, void *out);
void nics_load(void *ctx, const void *in);
uint64_t nics_fingerprint(void *ctx);
size_t nics_most_bytes(void);

/* nics_events.c: the callbacks of a world; and fair delivery from any state. */
void nics_world(struct nics *n, struct mc_world *w);

#endif
