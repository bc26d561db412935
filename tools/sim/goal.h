/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * goal.h - schedules in GOAL, the language of LogGOPSim (Hoefler, Schneider, Lumsdaine 2010):
 * written from plans, read from text, and run by the rules of LogGOPSim.
 *
 * It reads num_ranks, rank, send, recv and calc with tags, requires and irequires; it supports one
 * processor and one NIC per rank, and messages that are sent eagerly. It checks all contents of a
 * file.
 */
#ifndef NBAR_TOOLS_SIM_GOAL_H
#define NBAR_TOOLS_SIM_GOAL_H

#include <stdio.h>

#include "sim.h"

#define GOAL_RANKS_MAX NBAR_SIZE_MAX
#define GOAL_BYTES_MAX 65535u /* of a message that is sent eagerly */
#define GOAL_OPS_MAX UINT32_C(100000000)

enum goal_type { GOAL_SEND, GOAL_RECV, GOAL_CALC };

struct goal_op {
	uint8_t type;
	uint32_t rank, peer, tag;
	uint64_t size;     /* bytes; of calc: ns */
	uint32_t waits;    /* number of operations that this operation waits for */
	uint32_t next_dep; /* first of its dependants in dep[]; 0: none */
};

/* A dependant of an operation, in a list. */
struct goal_dep {
	uint32_t op, next;
	bool at_start; /* irequires */
};

struct goal {
	uint32_t ranks;
	uint32_t nop, op_room;
	struct goal_op *op;
	uint32_t ndep, dep_room; /* dep[0] is not used */
	struct goal_dep *dep;
};

/* Writes one barrier of these plans, with messages of one byte: L and o contain the whole time of a
 * token. */
void goal_write(const struct sim_plans *plans, FILE *to);

/* Reads a schedule. 0, or a negative errno; `why` then names the line and the fault. */
int goal_read(FILE *from, struct goal *g, char *why, size_t room);
void goal_free(struct goal *g);

/* Runs a schedule on a flat network: out->mean_ns is the time at which the last rank ends. */
void goal_run(const struct goal *g, const struct sim_net_options *net, struct sim_report *out);

#endif
