/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_world.h - NICs with one member each, over a simulated wire and clock.
 *
 * For tests only. The wire is a queue. The clock moves only in pass_time. The test decides which
 * frames are lost, which host posts, and when time passes.
 */
#ifndef TESTBED_NIC_WORLD_H
#define TESTBED_NIC_WORLD_H

#include "nic.h"

#define MEMBERS_MAX 32
#define QUEUE_MAX 65536
#define MS UINT64_C(1000000)

struct frame {
	uint32_t from, to;
	struct nbfw_token token;
};

struct member {
	struct world *world;
	uint32_t index;
	struct nbnic nic;
	struct nbnic_group *group;
	struct nbar_endpoint endpoint;
	uint32_t completions, epoch, status, failed_rank; /* as reported to the host */
	uint32_t nstragglers, straggler[NBAR_STRAGGLERS_MAX];
	uint16_t why[NBAR_STRAGGLERS_MAX]; /* the reason of each straggler */
	uint8_t host; /* the state of the host that its NIC reports: enum nbar_why; 0: late */
	uint32_t released;
	uint32_t signals, signal_src, signal_word0;
	bool ring_full, unplugged;
};

struct world {
	struct member member[MEMBERS_MAX];
	struct frame queue[QUEUE_MAX];
	uint32_t head, tail, size, sent;
	uint32_t loss_percent, duplicate_percent;
	uint64_t now;
	const char *alg;
};

extern const struct nbnic_ops world_ops;
extern const struct nbnic_config world_config;

/* Opens a group on a member's NIC. Negative errno if the NIC refuses it. */
int open_group(struct member *m, const char *alg, uint32_t size, uint32_t rank,
	       struct nbnic_group **out);

/* Make a world of size members: groups open but not connected, or connected. There is one world at
 * a time. */
struct world *world_open(uint32_t size, const char *alg);
struct world *world_connected(uint32_t size, const char *alg);
void connect_member(struct world *w, uint32_t i);
void world_close(struct world *w);

/* Carries frames until the wire is empty. */
void settle(struct world *w);

/* Lets time pass; the NICs run. */
void pass_time(struct world *w, uint64_t ns);

/* One host posts a barrier; or all hosts post it, and the wire runs until it is empty. */
void post(struct world *w, uint32_t i, uint32_t epoch);
void post_all(struct world *w, uint32_t epoch);

/* Sum of a counter over all NICs. */
uint64_t counted(struct world *w, enum nbar_counter c);

#endif
