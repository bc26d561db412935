/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.c - see net.h. Each message of a simulation uses it: no allocation after sim_net_begin.
 */
#include "net.h"

#include <stdlib.h>

#include "nbar_abi.h"
#include "stats.h"

int sim_net_begin(struct sim_net *net, const struct sim_net_options *opt)
{
	*net = (struct sim_net){ .opt = *opt, .random = opt->seed, .hosts = opt->members };
	if (opt->topology == SIM_FLAT)
		return 0;
	sim_topology_size(net);
	net->link = calloc(net->nlink, sizeof(*net->link));
	return net->link ? 0 : -NBAR_ENOMEM;
}

void sim_net_end(struct sim_net *net)
{
	free(net->link);
	net->link = NULL;
}

static sim_time net_seconds(double s)
{
	return s > 0 ? (sim_time)(s * 1e12 + 0.5) : 0;
}

/*
 * In a profile, one message takes o + l, and a further message adds l. If both ends share a core, l
 * contains the work of both ends on this core.
 */
static struct sim_cost profile_cost(const struct sim_net *net, uint32_t from, uint32_t to)
{
	const struct sim_net_options *opt = &net->opt;
	size_t at = (size_t)from * opt->members + to;
	sim_time more = net_seconds(opt->l[at]), one = net_seconds(opt->o[at]) + more;
	bool shared = sim_net_core(net, from) == sim_net_core(net, to);
	struct sim_cost c = { .send = shared ? more / 2 : more };

	c.recv = c.send < one - c.send ? c.send : one - c.send;
	c.wire = one - c.send - c.recv;
	c.wire = c.wire > opt->step ? c.wire - opt->step : 0;
	return c;
}

struct sim_cost sim_net_cost(const struct sim_net *net, uint32_t from, uint32_t to)
{
	const struct sim_net_options *opt = &net->opt;
	sim_time rest = (opt->bytes - 1) * opt->byte; /* the first byte is in L */

	if (opt->o)
		return profile_cost(net, from, to);
	return (struct sim_cost){
		.send = opt->overhead,
		.send_gap = opt->gap + rest,
		.wire = opt->latency,
		.recv = opt->overhead + rest,
		.recv_gap = opt->gap + rest,
	};
}

sim_time sim_net_carry(struct sim_net *net, const struct sim_cost *cost, uint32_t from, uint32_t to,
		       sim_time depart, sim_time *waited)
{
	const sim_time busy = net->opt.bytes * net->opt.link_byte;
	uint64_t link[SIM_LINKS_MAX];
	sim_time at = depart;

	*waited = 0;
	if (net->opt.topology == SIM_FLAT)
		return depart + cost->wire;
	uint32_t n = sim_topology_route(net, from, to, link);

	for (uint32_t i = 0; i < n; i++) {
		sim_time *free_at = &net->link[link[i]];

		if (*free_at > at) {
			*waited += *free_at - at;
			at = *free_at;
		}
		*free_at = at + busy;
		at += net->opt.hop;
	}
	net->link_waits += *waited > 0;
	return at + busy;
}

uint64_t sim_net_random(struct sim_net *net, uint64_t n)
{
	return n ? stats_random(&net->random) % n : 0;
}

static bool happens(struct sim_net *net, uint32_t per_million)
{
	return per_million && sim_net_random(net, SIM_MILLION) < per_million;
}

uint32_t sim_net_fate(struct sim_net *net, sim_time late[2])
{
	uint32_t copies = 1;

	net->sent++;
	late[0] = late[1] = 0;
	if (happens(net, net->opt.loss)) {
		net->lost++;
		return 0;
	}
	if (happens(net, net->opt.repeat)) {
		net->repeated++;
		copies = 2;
	}
	for (uint32_t i = 0; i < copies; i++) {
		if (!happens(net, net->opt.reorder))
			continue;
		net->reordered++;
		late[i] = 1 + sim_net_random(net, net->opt.reorder_by);
	}
	return copies;
}

/* In each period a core stops once. The moment depends only on the seed, the core and the period,
 * so noise needs no memory. */
sim_time sim_net_noise(const struct sim_net *net, uint32_t core, sim_time begin, sim_time length)
{
	const sim_time period = net->opt.noise_period, stop = net->opt.noise;
	sim_time more = 0;

	if (!period || !stop)
		return 0;
	for (uint64_t i = begin > period ? begin / period - 1 : 0; i <= begin / period + 1; i++) {
		uint64_t state = net->opt.seed ^ (uint64_t)core << 40 ^ i;
		sim_time at = i * period + stats_random(&state) % period;

		if (at < begin + length + more && at + stop > begin + more)
			more += at + stop - (at > begin + more ? at : begin + more);
	}
	return more;
}
