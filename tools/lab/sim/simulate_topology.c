/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate_topology.c - `nbar-lab simulate --net NET --alg tuned`: the costs of a simulated
 * network, as a profile from which a barrier is composed.
 *
 * Messages between random hosts cross the idle network: SAMPLES messages for each level of the
 * topology, from one switch to the whole network. The profile has the mean of each level.
 */
#include <stdlib.h>

#include "profile.h"
#include "simulate.h"
#include "tool.h"

#define SAMPLES 1000u
#define APART SIM_SECOND /* time between two samples, so that links are idle */
#define TRIES 64u        /* to draw a pair of hosts */

/* Sets the number of hosts in a unit of each level. Returns the number of levels. */
static uint32_t find_levels(const struct sim_net *net, struct profile_level level[3])
{
	uint32_t d = net->degree, n = 0;

	switch (net->opt.topology) {
	case SIM_FLAT:
		break;
	case SIM_FAT_TREE: /* edge switch, pod */
		level[n++].hosts = d / 2;
		level[n++].hosts = d / 2 * (d / 2);
		break;
	case SIM_DRAGONFLY: /* router, group */
		level[n++].hosts = d;
		level[n++].hosts = 2 * d * d;
		break;
	}
	level[n++].hosts = net->opt.members;
	return n;
}

/* Draws two different hosts that share a unit of this level, but no unit of a lower level. False:
 * no such pair in TRIES tries. */
static bool topology_draw(struct sim_net *net, const struct profile_level *level, uint32_t at,
			  uint32_t *from, uint32_t *to)
{
	uint32_t members = net->opt.members, most = level[at].hosts;

	for (uint32_t tries = 0; tries < TRIES; tries++) {
		*from = (uint32_t)sim_net_random(net, members);
		uint64_t other = (uint64_t)(*from / most) * most + sim_net_random(net, most);

		*to = (uint32_t)other;
		if (other < members && *from != *to &&
		    (at == 0 || *from / level[at - 1].hosts != *to / level[at - 1].hosts))
			return true;
	}
	return false;
}

static double larger(sim_time a, sim_time b)
{
	return (double)(a > b ? a : b);
}

static void topology_sample(struct sim_net *net, struct profile_level *level, uint32_t at,
			    sim_time *now)
{
	double o = 0, l = 0;
	uint32_t from, to, n = 0;

	for (; n < SAMPLES && topology_draw(net, level, at, &from, &to); n++) {
		struct sim_cost c = sim_net_cost(net, from, to);
		double further = larger(c.send, c.send_gap), after = larger(c.recv, c.recv_gap);
		sim_time waited;
		sim_time way = sim_net_carry(net, &c, from, to, *now, &waited) - *now;

		further = after > further ? after : further;
		*now += APART;
		l += further;
		o += (double)(c.send + way + c.recv) - further;
	}
	level[at].o = n && o > 0 ? o / n / (double)SIM_SECOND : 0;
	level[at].l = n ? l / n / (double)SIM_SECOND : 0;
}

int simulate_topology_profile(const struct sim_net_options *options, uint32_t members,
			      struct profile **out)
{
	struct sim_net_options opt = *options;
	struct profile *p = profile_new(members, 1);
	struct sim_net net = { 0 };
	sim_time now = 0;
	uint32_t n;

	opt.members = members;
	if (p)
		p->level = calloc(3, sizeof(*p->level));
	if (!p || !p->level || sim_net_begin(&net, &opt)) {
		profile_free(p);
		tool_error("no memory for the costs of %u hosts: free some, and try again",
			   members);
		return TOOL_FAILED;
	}
	n = find_levels(&net, p->level);
	for (uint32_t i = 0; i < n; i++)
		topology_sample(&net, p->level, i, &now);
	sim_net_end(&net);
	*out = p;
	return 0;
}
