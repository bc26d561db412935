/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.h - the network of a simulation: cost, waits and faults of a message.
 *
 * Costs come from the LogGP model or from a measured profile. A fat tree or a dragonfly has links
 * with a latency and a rate; a link carries one message after the other. All randomness comes from
 * the seed, in the order of the calls.
 */
#ifndef NBAR_TOOLS_SIM_NET_H
#define NBAR_TOOLS_SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "queue.h"

enum sim_topology { SIM_FLAT, SIM_FAT_TREE, SIM_DRAGONFLY };

#define SIM_LINKS_MAX 7u     /* links on the way of a message */
#define SIM_MILLION 1000000u /* a probability is a number per million */

struct sim_net_options {
	enum sim_topology topology;
	uint32_t members;
	sim_time latency, overhead, gap; /* L, o, g */
	sim_time byte;                   /* G */
	uint32_t bytes;                  /* of a frame on the wire */
	sim_time hop;                    /* fat tree, dragonfly: latency of a link and its switch */
	sim_time link_byte;              /* fat tree, dragonfly: time of a byte on a link */
	/* NULL, or measured costs in seconds by [from * members + to]: o, the cost of one message;
	 * l, what each further message adds. The caller owns them. */
	const double *o, *l;
	sim_time step;        /* work of a core for a member's step, a part of o */
	uint32_t cores;       /* cores that the members share; 0: each member has its own core */
	const uint32_t *core; /* NULL, or each member's core, below `cores`. The caller owns it */
	uint32_t loss, repeat, reorder; /* per million messages */
	sim_time reorder_by;            /* greatest delay of a reordered message */
	sim_time noise_period, noise;   /* a core stops for `noise` once in each period; 0: never */
	uint64_t seed;
};

struct sim_net {
	struct sim_net_options opt;
	uint32_t degree; /* fat tree: ports of a switch; dragonfly: hosts of a router */
	uint64_t hosts;  /* number of hosts of the topology */
	sim_time *link;  /* time when each link becomes free */
	uint64_t nlink;
	uint64_t random;
	uint64_t sent, lost, repeated, reordered, link_waits;
};

/* The cost of one message. */
struct sim_cost {
	sim_time send;     /* of the sender's core */
	sim_time send_gap; /* from the begin of a send to the begin of the next */
	sim_time wire;     /* flat: from the end of the send to the arrival */
	sim_time recv;     /* of the receiver's core */
	sim_time recv_gap;
};

/* Begins a network. 0 or -NBAR_ENOMEM. */
int sim_net_begin(struct sim_net *net, const struct sim_net_options *opt);
void sim_net_end(struct sim_net *net);

struct sim_cost sim_net_cost(const struct sim_net *net, uint32_t from, uint32_t to);

/* Arrival time of a message that leaves at `depart`; reserves the links. *waited: time spent
 * waiting for links. */
sim_time sim_net_carry(struct sim_net *net, const struct sim_cost *cost, uint32_t from, uint32_t to,
		       sim_time depart, sim_time *waited);

/* Number of copies of a message that arrive: 0 if it is lost. late[]: extra delay of each copy. */
uint32_t sim_net_fate(struct sim_net *net, sim_time late[2]);

/* Extra time that noise adds to work of this length on a core. */
sim_time sim_net_noise(const struct sim_net *net, uint32_t core, sim_time begin, sim_time length);

/* The core of a member. */
static inline uint32_t sim_net_core(const struct sim_net *net, uint32_t member)
{
	if (net->opt.core)
		return net->opt.core[member];
	return net->opt.cores ? member % net->opt.cores : member;
}

/* A number below n. */
uint64_t sim_net_random(struct sim_net *net, uint64_t n);

/* topology.c: numbers of hosts and links of the smallest topology for this many members. */
void sim_topology_size(struct sim_net *net);

/* Writes the links between two members, in order; returns their number. */
uint32_t sim_topology_route(const struct sim_net *net, uint32_t from, uint32_t to,
			    uint64_t link[SIM_LINKS_MAX]);

#endif
