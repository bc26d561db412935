/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_net.h - NICs that run passes, over wires with queues of a limited length.
 *
 * For tests of the scheduler only. A pass of a NIC takes at most NET_BURST frames from its queue,
 * then calls nbnic_work. Time moves by a fixed step a round, or to the next timer if no NIC has
 * work. A queue that is full drops frames as UDP does, or refuses them as a ring does.
 */
#ifndef TESTBED_NIC_NET_H
#define TESTBED_NIC_NET_H

#include "nic.h"

#define NET_NICS 3u
#define NET_QUEUE 4096u /* the longest queue */
#define NET_BURST 64u   /* frames that a pass takes from the wire */
#define NET_STEP UINT64_C(10000)
#define NET_CELLS 1024u
#define NET_PORTS 40u
#define NET_MS UINT64_C(1000000)
#define NET_SECOND (1000 * NET_MS)
#define NET_BUDGET (4 * NET_SECOND) /* the retry budget */

struct net_frame {
	uint32_t from;
	uint64_t at; /* time of its arrival */
	struct nbfw_token token;
	struct nbfw_value value; /* of the token, if it has one */
};

/* What the NIC has told the host of a group. */
struct net_host {
	struct nbnic_group *group; /* NULL once its block was released */
	uint32_t completions, status, failed_rank;
};

struct net_nic {
	struct nbnic nic;
	uint32_t index;
	uint32_t head, tail;
	uint32_t limit;   /* frames that the queue of this NIC holds */
	bool refuses;     /* a full queue: true: refuses frames, and senders notice; false: drops */
	bool dead;        /* takes no frames, and sends none */
	bool sink;        /* counts frames, and drops them */
	uint64_t dropped; /* by its queue */
	uint64_t refused; /* by the queues of others */
	uint64_t sent_pass; /* frames that the NIC has sent in this pass */
	uint64_t most_pass; /* the most that the NIC has sent in a pass */
	uint64_t sent_last; /* frames that the NIC has sent in the pass before */
	struct net_frame queue[NET_QUEUE];
	struct net_host host[NET_PORTS][NET_CELLS]; /* by port and cell */
};

struct net {
	struct net_nic n[NET_NICS];
	uint64_t now;
	uint64_t round;
	/* Called for each frame that a wire has taken, or NULL. */
	void (*seen)(struct net *net, uint32_t from, uint32_t to, const struct nbfw_token *t);
	/* True: this frame is lost. NULL: no frame is lost. */
	bool (*lost)(struct net *net, uint32_t from, uint32_t to, const struct nbfw_token *t);
	/* The host's value of a barrier, and its result: see struct nbnic_ops. */
	int (*operand)(struct net *net, uint32_t nic, uint32_t cell, uint32_t epoch,
		       struct nbfw_value *out);
	void (*result)(struct net *net, uint32_t nic, uint32_t cell, uint32_t epoch,
		       const struct nbfw_value *v);
	uint32_t value_max; /* of groups that are opened */
	uint64_t cookie;
	uint64_t delay; /* of each frame */
	uint32_t quota; /* of a pass; see nic.h */
};

/* NICs without groups; there is one net at a time. */
struct net *net_new(void);
struct net *net_new_quota(uint32_t quota);
void net_free(struct net *net);

/* Empties a NIC, as a restart does. The blocks of its groups are freed. */
void net_restart(struct net *net, uint32_t nic);

/* Opens a group. plan NULL: the plan of the algorithm. */
struct nbnic_group *net_open(struct net *net, uint32_t nic, uint32_t port, uint32_t cell,
			     const char *alg, uint32_t size, uint32_t rank,
			     const struct nbar_plan *plan);

/* Makes the endpoint address of another member of g's group, with this handle and cookie. */
struct nbar_endpoint net_endpoint(struct net *net, const struct nbnic_group *g, uint32_t nic,
				  uint32_t rank, uint32_t handle, uint64_t cookie);

/* Connects a group whose peers all have addresses of NIC peer_nic, which has no such members: the
 * test plays them. */
void net_connect_phantoms(struct net *net, uint32_t nic, struct nbnic_group *g, uint32_t peer_nic);

/* Connects a group: endpoint[] by rank. */
void net_connect(struct net *net, uint32_t nic, struct nbnic_group *g,
		 const struct nbar_endpoint *endpoint);

/* Makes a group of two, by dissemination, in the same cell of two NICs. */
void net_pair(struct net *net, uint32_t a, uint32_t port_a, uint32_t b, uint32_t port_b,
	      uint32_t cell);

/* One pass of each NIC, and a step of time. True: a NIC had work. */
bool net_round(struct net *net);

/* Lets time pass, from event to event. */
void net_pass(struct net *net, uint64_t ns);

void net_post(struct net *net, uint32_t nic, uint32_t port, uint32_t cell, uint32_t epoch);

/* Runs rounds until the host of a cell has completed `epoch`, and returns their number. Fails after
 * `most` rounds. */
uint32_t net_rounds_until(struct net *net, uint32_t nic, uint32_t port, uint32_t cell,
			  uint32_t epoch, uint32_t most);

/* A plan of one step: first `nsend` sends, to slot 0 of the ranks from `rank` + 1 on, then `nrecv`
 * slots, for tokens of the same ranks. Valid until the next call. */
const struct nbar_plan *net_plan(uint32_t size, uint32_t rank, uint32_t nsend, uint32_t nrecv);

#endif
