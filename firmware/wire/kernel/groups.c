/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * groups.c - lends groups to the programs: their plan, the frames that they send, state and values;
 * and takes them back.
 */
#include <arpa/inet.h>

#include "kernel.h"

#define ROUTE_NS UINT64_C(10000000000) /* for which the headers of a datagram hold */

/* Writes the headers of datagrams to a NIC. False: none has left by this interface of late. */
static bool route_find(const struct kernel_wire *w, const struct nbnic_addr *to, uint8_t *header)
{
	const uint32_t ip = kernel_ip_size(w);
	struct kernel_address at;
	struct kernel_route route;

	memcpy(&at, to->byte, sizeof(at));
	/* The map may give its memory to another NIC while the kernel copies it. */
	if (bpf_map_lookup_elem(w->routes, &at, &route) < 0 ||
	    nbar_now_ns() - route.time > ROUTE_NS ||
	    memcmp(route.header + KERNEL_AT_IP(w->headers, ip) + ip, at.ip, ip) != 0 ||
	    memcmp(route.header + KERNEL_AT_PORT(w->headers) + 2, &at.port, 2) != 0)
		return false;
	memcpy(header, route.header, w->headers);
	return true;
}

/* Adds up a datagram without its epoch, which is 0, and its pseudo-header. */
static uint32_t datagram_sum(const struct kernel_wire *w, uint8_t *frame)
{
	const uint32_t headers = w->headers, ip = kernel_ip_size(w);
	const uint32_t size = headers + NBFW_FRAME_SIZE;
	uint32_t sum = htons(IPPROTO_UDP) + htons((uint16_t)(size - KERNEL_AT_PORT(headers)));
	uint16_t word;

	memset(frame + KERNEL_AT_SUM(headers), 0, sizeof(word));
	for (uint32_t at = KERNEL_AT_IP(headers, ip); at < size; at += sizeof(word)) {
		memcpy(&word, frame + at, sizeof(word));
		sum += word;
	}
	return sum;
}

/* Writes the frame of send i. False: the programs cannot send it. */
static bool send_describe(const struct kernel_wire *w, const struct nbnic_group *g, uint32_t i,
			  struct kernel_send *out)
{
	const struct nbnic_peer *to = &g->peer[g->send_peer[i]];
	const struct nbfw_token t = {
		.type = NBFW_TOKEN,
		.handle = to->handle,
		.cookie = to->cookie,
		.src = g->rank,
		.slot = nbfw_plan_send(g->plan, i)->slot,
		.arg = NBAR_RANK_NONE,
		.sender = g->handle,
	};

	/* The programs have no frames to this NIC itself. */
	if (memcmp(to->addr.byte, w->base.addr.byte, sizeof(to->addr.byte)) == 0)
		return false;
	if (!kernel_is_udp(w))
		kernel_ether_header(w, &to->addr, out->frame);
	else if (!route_find(w, &to->addr, out->frame))
		return false;
	nbfw_token_pack(&t, out->frame + w->headers);
	if (kernel_is_udp(w))
		out->sum = datagram_sum(w, out->frame);
	return true;
}

/* Writes all that the programs need of a group, but its state. */
static bool group_describe(struct kernel_wire *w, const struct nbnic_group *g, uint32_t index,
			   uint32_t values)
{
	const struct nbar_plan *p = g->plan;
	uint64_t cell = (uint64_t)g->port << 32 | g->cell;
	struct kernel_group k = {
		.cookie = g->cookie,
		.handle = g->handle,
		.port = g->port,
		.cell = g->cell,
		.values = values,
	};
	uint32_t before, step = 0;

	k.plan.p = *p;
	memcpy(k.plan.step, nbfw_plan_steps(p), p->nstep * sizeof(struct nbar_step));
	memcpy(k.plan.send, nbfw_plan_sends(p), p->nsend * sizeof(struct nbar_send));
	memcpy(k.plan.recv, nbfw_plan_recvs(p), p->nrecv * sizeof(struct nbar_recv));
	for (uint32_t i = 0; i < p->nrecv; i++) {
		memcpy(k.source[i], g->peer[g->recv_peer[i]].addr.byte, sizeof(k.source[i]));
		k.sender[i] = g->peer[g->recv_peer[i]].handle;
	}
	for (uint32_t i = 0; i < p->nsend; i++) {
		if (!send_describe(w, g, i, &k.send[i]))
			return false;
		while (i >= k.plan.step[step].first_send + k.plan.step[step].nsend)
			step++;
		k.send[i].step = (uint8_t)step;
	}
	/* The group that had this index before, if its cell has no other group by now. */
	if (w->handle[index] && w->cell[index] != cell &&
	    bpf_map_lookup_elem(w->cells, &w->cell[index], &before) == 0 && before == index)
		bpf_map_delete_elem(w->cells, &w->cell[index]);
	w->handle[index] = 0;
	w->cell[index] = cell;
	if (bpf_map_update_elem(w->groups, &index, &k, 0) < 0 ||
	    bpf_map_update_elem(w->cells, &cell, &index, 0) < 0)
		return false;
	w->handle[index] = g->handle;
	return true;
}

/* --- values ---------------------------------------------------------------------------------- */

static struct nbfw_values *values_there(const struct kernel_wire *w, uint32_t index)
{
	return (void *)w->values[index];
}

/* True if the programs have places for what the group keeps of its values. */
static bool values_fit(const struct kernel_wire *w, const struct nbnic_group *g, uint32_t index)
{
	const struct nbar_plan *p = g->plan;

	if (!w->values || index >= KERNEL_VALUES || p->nstep + 1u + p->nrecv > NBFW_FIXED_PLACES)
		return false;
	for (uint32_t epoch = 0; epoch < 2; epoch++)
		if (g->values->length[epoch] > NBFW_FIXED_PLACE ||
		    (kernel_is_udp(w) && g->values->length[epoch] % KERNEL_VALUE_UNIT != 0) ||
		    (g->values->length[epoch] &&
		     NBAR_IS_PAIR(nbfw_values_place(g->values, epoch, 0)->type)))
			return false;
	for (uint32_t i = 0; i < p->nstep; i++)
		if (nbfw_plan_step(p, i)->nslot > NBFW_FIXED_STEP_SLOTS)
			return false;
	return true;
}

/* Copies values and their state between a group and the kernel, whose places have another size. */
static void values_move(const struct nbnic_group *g, struct nbfw_values *theirs, bool lend)
{
	struct nbfw_values *x = g->values;
	size_t size = x->size < NBFW_FIXED_PLACE ? x->size : NBFW_FIXED_PLACE;

	for (uint32_t epoch = 0; epoch < 2; epoch++)
		for (uint32_t i = 0; i <= (uint32_t)g->plan->nstep + g->plan->nrecv; i++) {
			void *its = theirs->memory + NBFW_FIXED_STEPS +
				    (i + epoch * NBFW_FIXED_PLACES) * NBFW_FIXED_PLACE;
			void *own = nbfw_values_place(x, epoch, i);
			void *to = lend ? its : own, *from = lend ? own : its;

			memcpy(to, from, size);
		}
	nbfw_values_heads(lend ? theirs : x, lend ? x : theirs);
}

static void values_lend(struct nbfw_values *theirs, const struct nbnic_group *g)
{
	theirs->size = g->values->size < NBFW_FIXED_PLACE ? g->values->size : NBFW_FIXED_PLACE;
	memcpy(theirs->memory, g->values->memory, g->plan->nstep);
	values_move(g, theirs, true);
	/* It is step + 1 if a token was folded that the engine then refused. */
	if (theirs->folded > g->state->step)
		theirs->folded = g->state->step;
}

/* Runs the program that changes hands. */
static bool hand(const struct kernel_wire *w, struct kernel_hand *h)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = h, .data_size_in = sizeof(*h), .data_out = h,
		    .data_size_out = sizeof(*h), .repeat = 1);

	return bpf_prog_test_run_opts(w->hand, &run) == 0 && run.retval == 0;
}

bool kernel_lend(struct wire_base *base, const struct nbnic_group *g, const struct wire_lend *how)
{
	struct kernel_wire *w = (struct kernel_wire *)base;
	uint32_t index = g->handle & 0xffff;
	struct kernel_hand h = {
		.index = index,
		.lend = 1,
		.first_ns = how->first_ns,
		.left_ns = how->left_ns,
		.sleeper = how->sleeper,
	};
	const uint64_t now = (uint64_t)g->handle << 32 | g->state->epoch;
	bool is_new;

	if (index >= KERNEL_GROUPS || !w->port[g->port].results || base->auth ||
	    g->plan->nstep > NBFW_FIXED_STEPS || g->plan->nsend > NBFW_FIXED_SENDS ||
	    g->plan->nrecv > NBFW_FIXED_SLOTS || g->plan->nrecv == 0)
		return false;
	if (g->values && !values_fit(w, g, index))
		return false;
	is_new = w->handle[index] != g->handle;
	/* Since then, the daemon has sent nothing for this group. */
	if (kernel_is_udp(w) && w->tried[index] == now)
		return false;
	/* Its frames are to go as those of the daemon go now. */
	if ((is_new || kernel_is_udp(w)) && !group_describe(w, g, index, how->values)) {
		w->tried[index] = now;
		return false;
	}
	/* No value of another group stays. Those of this group may be on their way. */
	if (g->values && is_new)
		memset(values_there(w, index), 0, KERNEL_VALUES_SIZE);
	memcpy(h.state, g->state, nbfw_state_size(g->plan));
	if (g->values)
		values_lend(values_there(w, index), g);
	return hand(w, &h);
}
_Static_assert(sizeof(struct nbfw_state) + 3 * sizeof(uint32_t) <= KERNEL_STATE_SIZE,
	       "a state of one word a set fits");

bool kernel_take(struct wire_base *base, struct nbnic_group *g, struct wire_counts *out)
{
	static const struct kernel_group none;
	struct kernel_wire *w = (struct kernel_wire *)base;
	struct kernel_hand h = { .index = g->handle & 0xffff };

	if (!hand(w, &h)) {
		log_error("%s: group %u fails, because the kernel keeps its state: %s; the daemon "
			  "needs CAP_BPF and memory",
			  base->text, h.index, strerror(errno));
		w->handle[h.index] = 0;
		if (bpf_map_update_elem(w->groups, &h.index, &none, BPF_F_LOCK) < 0)
			log_error("%s: group %u stays in the kernel: %s; restart the daemon",
				  base->text, h.index, strerror(errno));
		return false;
	}
	memcpy(g->state, h.state, nbfw_state_size(g->plan));
	if (g->values)
		values_move(g, values_there(w, h.index), false);
	memcpy(out, &h.counts, sizeof(*out));
	return true;
}
_Static_assert(sizeof(struct kernel_counts) == sizeof(struct wire_counts), "the same counts");
