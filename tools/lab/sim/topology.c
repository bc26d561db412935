/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.c - links and routes of the named topologies. Members are on hosts in the order of their
 * ranks; the two directions of a link are two links here. Routes are minimal and fixed.
 *
 * A fat tree of switches with k ports has three levels and k^3 / 4 hosts (Al-Fares, Loukissas,
 * Vahdat 2008); the destination picks the way up. A dragonfly (Kim, Dally, Scott, Abts 2008) is
 * balanced: h hosts and h global links per router, 2h routers per group, 2h^2 + 1 groups.
 */
#include "net.h"

#define FAT_TREE_LEVELS 6u /* hosts, edge and aggregation, core: up and down each */

static uint64_t fat_tree_hosts(uint64_t k)
{
	return k * k * k / 4;
}

static uint64_t dragonfly_groups(uint64_t h)
{
	return 2 * h * h + 1;
}

void sim_topology_size(struct sim_net *net)
{
	uint64_t n = net->opt.members, d = 1;

	switch (net->opt.topology) {
	case SIM_FLAT:
		return;
	case SIM_FAT_TREE:
		for (d = 2; fat_tree_hosts(d) < n;)
			d += 2;
		net->hosts = fat_tree_hosts(d);
		net->nlink = FAT_TREE_LEVELS * net->hosts;
		break;
	case SIM_DRAGONFLY:
		while (2 * d * d * dragonfly_groups(d) < n)
			d++;
		net->hosts = 2 * d * d * dragonfly_groups(d);
		net->nlink = 2 * net->hosts + dragonfly_groups(d) * (4 * d * d + 2 * d * d);
		break;
	}
	net->degree = (uint32_t)d;
}

static uint32_t fat_tree_route(const struct sim_net *net, uint32_t from, uint32_t to,
			       uint64_t link[SIM_LINKS_MAX])
{
	const uint64_t half = net->degree / 2, level = net->hosts;
	uint64_t edge_from = from / half, edge_to = to / half;
	uint64_t pod_from = edge_from / half, pod_to = edge_to / half;
	uint64_t up = to % half, core = edge_to % half;
	uint32_t n = 0;

	link[n++] = from;
	if (edge_from != edge_to)
		link[n++] = 2 * level + edge_from * half + up;
	if (pod_from != pod_to) {
		link[n++] = 4 * level + (pod_from * half + up) * half + core;
		link[n++] = 5 * level + (pod_to * half + up) * half + core;
	}
	if (edge_from != edge_to)
		link[n++] = 3 * level + edge_to * half + up;
	link[n++] = level + to;
	return n;
}

/* The index of the global link between two groups, among the global links of group `from`. Each
 * router has h global links. */
static uint64_t global_link(uint64_t groups, uint64_t from, uint64_t to)
{
	return to > from ? to - from - 1 : to + groups - from - 1;
}

static uint32_t dragonfly_route(const struct sim_net *net, uint32_t from, uint32_t to,
				uint64_t link[SIM_LINKS_MAX])
{
	const uint64_t h = net->degree, routers = 2 * h, groups = dragonfly_groups(h);
	const uint64_t local = 2 * net->hosts, global = local + groups * routers * routers;
	uint64_t group = from / (h * routers), group_to = to / (h * routers);
	uint64_t router = from / h % routers, router_to = to / h % routers;
	uint32_t n = 0;

	link[n++] = from;
	if (group != group_to) {
		uint64_t out = global_link(groups, group, group_to);
		uint64_t in = global_link(groups, group_to, group);

		if (router != out / h)
			link[n++] = local + (group * routers + router) * routers + out / h;
		link[n++] = global + group * routers * h + out;
		group = group_to;
		router = in / h;
	}
	if (router != router_to)
		link[n++] = local + (group * routers + router) * routers + router_to;
	link[n++] = net->hosts + to;
	return n;
}

uint32_t sim_topology_route(const struct sim_net *net, uint32_t from, uint32_t to,
			    uint64_t link[SIM_LINKS_MAX])
{
	return net->opt.topology == SIM_FAT_TREE ? fat_tree_route(net, from, to, link)
						 : dragonfly_route(net, from, to, link);
}
