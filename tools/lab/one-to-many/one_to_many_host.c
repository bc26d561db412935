/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_to_many_host.c - the 1:P ping-pong: node 0 sends a message to each of the nodes 1 to P, one
 * after the other, and waits for all answers. Runs in a host process, over a "signal" group.
 */
#include "one_to_many.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define AGAIN_NS UINT64_C(10000000)     /* time without an answer until node 0 sends again */
#define GIVE_UP_NS UINT64_C(5000000000) /* time without an answer until node 0 fails */

/* The ping-pong as node 0 sees it. */
struct ping {
	struct bench_member *m;
	uint32_t peers, missing;
	uint32_t seq;       /* number of the running ping-pong, from 1 */
	uint32_t *answered; /* by rank: the last number that this rank has answered */
	uint64_t begun, sent, requested;
	double *rtt_us, *sent_us;
};

/* Sends a message; waits while the ring is full. A NIC that lives empties the ring. */
static int send(struct bench_member *m, uint32_t rank, uint32_t seq)
{
	const uint32_t word[NBAR_SIGNAL_WORDS] = { seq };
	uint32_t peer = rank < m->rank ? rank : rank - 1;
	int r;

	while ((r = nbar_signal_send(m->group, peer, word)) == -EAGAIN)
		sched_yield();
	return r ? bench_host_fail(m, "%s", nbar_error()) : 0;
}

static int send_to_missing(struct ping *p)
{
	int r = 0;

	for (uint32_t rank = 1; rank <= p->peers && !r; rank++)
		if (p->answered[rank] != p->seq)
			r = send(p->m, rank, p->seq);
	return r;
}

static int begin_ping(struct ping *p)
{
	int r;

	p->seq++;
	p->missing = p->peers;
	p->begun = p->requested = tool_now_ns();
	r = send_to_missing(p);
	p->sent = tool_now_ns();
	return r;
}

/* Notes the times of a ping-pong: all answers have arrived. */
static void note(struct ping *p, const struct bench_config *c)
{
	uint64_t now = tool_now_ns();

	if (p->seq <= c->warmup)
		return;
	p->rtt_us[p->seq - c->warmup - 1] = (double)(now - p->begun) / 1e3;
	p->sent_us[p->seq - c->warmup - 1] = (double)(p->sent - p->begun) / 1e3;
	p->m->out->total_ns += now - p->begun;
}

/* Sends messages again that a wire may have lost. */
static int look_for_lost(struct ping *p)
{
	uint64_t now = tool_now_ns();

	if (now - p->requested < AGAIN_NS)
		return 0;
	if (now - p->begun > GIVE_UP_NS)
		return bench_host_fail(p->m, "%u of %u peers do not answer", p->missing, p->peers);
	p->requested = now;
	return send_to_missing(p);
}

/* Node 0 takes messages once. True if something has happened. */
static bool look_as_root(struct ping *p, const struct bench_config *c, int *r)
{
	struct nbar_signal_in in;
	bool busy = false;

	while (p->missing && nbar_signal_recv(p->m->port, &in) == 1) {
		busy = true;
		if (in.word[0] != p->seq || in.src > p->peers || p->answered[in.src] == p->seq)
			continue;
		p->answered[in.src] = p->seq;
		p->missing--;
	}
	if (!p->missing) {
		if (p->seq)
			note(p, c);
		if (p->seq < c->warmup + c->iters)
			*r = begin_ping(p);
		return true;
	}
	if (!busy)
		*r = look_for_lost(p);
	return busy;
}

/* Another node takes messages once, and answers them. */
static bool look_as_peer(struct bench_member *m, int *r)
{
	struct nbar_signal_in in;
	bool busy = false;

	while (!*r && nbar_signal_recv(m->port, &in) == 1) {
		busy = true;
		*r = send(m, in.src, in.word[0]);
	}
	return busy;
}

static int many_host_drive(const struct bench_host *h, struct bench_member *member, struct ping *p)
{
	const struct bench_config *c = h->config;
	int r = 0;

	while (!r &&
	       (p->m ? p->seq < c->warmup + c->iters || p->missing : !bench_host_finished(h))) {
		bool busy = false;

		for (uint32_t i = 0; i < h->count && !r; i++)
			busy |= &member[i] == p->m ? look_as_root(p, c, &r)
						   : look_as_peer(&member[i], &r);
		if (!busy)
			bench_host_idle(h);
	}
	return r;
}

int one_to_many_drive(const struct bench_host *h, struct bench_member *member)
{
	uint32_t n = h->config->iters;
	struct ping p = { .peers = h->config->nodes - 1 };
	int r = 0;

	for (uint32_t i = 0; i < h->count; i++)
		if (member[i].rank == 0)
			p.m = &member[i];
	if (p.m) {
		p.answered = calloc(h->config->nodes, sizeof(*p.answered));
		p.rtt_us = calloc(2 * (size_t)n, sizeof(*p.rtt_us));
		p.sent_us = p.rtt_us ? p.rtt_us + n : NULL;
		if (!p.answered || !p.rtt_us)
			r = bench_host_fail(p.m, "no memory for %u ping-pongs", n);
	}
	if (!r)
		r = many_host_drive(h, member, &p);
	if (!r && p.m) {
		double *extra = p.m->out->extra;

		extra[PING_RTT_MEDIAN] = stats_median(p.rtt_us, n); /* sorts them */
		extra[PING_RTT_MIN] = p.rtt_us[0];
		extra[PING_SENT_MEDIAN] = stats_median(p.sent_us, n);
	}
	free(p.answered);
	free(p.rtt_us);
	return r;
}
