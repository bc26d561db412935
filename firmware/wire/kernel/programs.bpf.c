// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * programs.bpf.c - the engine in the kernel's network path: START as a packet leaves the host,
 * TOKEN as a frame comes in.
 *
 * Only groups that the daemon has lent (lent.h) are stepped here. All other frames pass on to the
 * daemon, whose socket gets what the ingress program lets through. Helpers are called outside the
 * lock: state and event in, actions out.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Kernels before 6.9 take no calls while a lock is held. */
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "engine.c"
#pragma clang attribute pop

#include "lent.h"

#define NEXT (-1) /* TCX_NEXT, which older headers lack: other programs of the interface see it */
#define FRAME (KERNEL_ETHER + NBFW_FRAME_SIZE)
#define AT(p, offset, type) (*(type *)((uint8_t *)(p) + (offset)))
/* In the frame: the header of Ethernet, and WIRE.md's frame behind it. */
enum {
	AT_SOURCE = 6,
	AT_PROTOCOL = 12,
	AT_VERSION = 14,
	AT_TYPE = 15,
	AT_RESERVED = 16,
	AT_HANDLE = 18,
	AT_COOKIE = 22,
	AT_SRC = 30,
	AT_EPOCH = 34,
	AT_SLOT = 38,
	AT_ARG = 42,
	AT_INFO = 46,
	AT_SENDER = 50,
	AT_REPLY_COOKIE = 54
};
/* In a packet of a start socket. */
enum { AT_IP_LENGTH = 14, AT_IP_PROTOCOL = 23, AT_IP_TO = 30, AT_UDP_TO = 36, AT_POST = 42 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_GROUPS);
	__type(key, uint32_t);
	__type(value, struct kernel_group);
} groups SEC(".maps");

/* Groups that the daemon shall take back; it maps this. Elements of a map lie 8 bytes apart. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, KERNEL_GROUPS);
	__type(key, uint32_t);
	__type(value, uint64_t);
} wanted SEC(".maps");

/* Wakes the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} bell SEC(".maps");

/* The port of a start socket, by cookie; and the group of a cell of a port. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NBAR_PORTS_MAX);
	__type(key, uint64_t);
	__type(value, uint32_t);
} ports SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * KERNEL_GROUPS);
	__type(key, uint64_t);
	__type(value, uint32_t);
} cells SEC(".maps");

/* The completions of a port, which its host maps. */
struct completions {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, NBAR_GROUPS_MAX);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct nbar_completion));
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, NBAR_PORTS_MAX);
	__type(key, uint32_t);
	__array(values, struct completions);
} pages SEC(".maps");

/* What is left to do when the lock is given back. */
struct todo {
	uint32_t first, end, epoch;
	uint8_t want; /* KERNEL_WAKE ...; 0: nothing */
	bool tick;
};

static __always_inline struct nbfw_state *group_state(struct kernel_group *g)
{
	return (struct nbfw_state *)g->state;
}

static __always_inline void ring(void)
{
	uint32_t one = 1;

	/* Full: the daemon has not read what came before, and will be awake. The lock of the first
	 * try orders the second look behind the caller's word. */
	if (bpf_ringbuf_output(&bell, &one, sizeof(one), BPF_RB_FORCE_WAKEUP) != 0)
		bpf_ringbuf_output(&bell, &one, sizeof(one), BPF_RB_FORCE_WAKEUP);
}

static __always_inline void want(uint32_t index, uint64_t why)
{
	uint64_t *w = bpf_map_lookup_elem(&wanted, &index);

	if (w)
		*(volatile uint64_t *)w = why;
	ring();
}

/* Where a group's host looks; no lookup is allowed with the lock. */
static __always_inline struct nbar_completion *completion_of(uint32_t port, uint32_t cell)
{
	void *page = bpf_map_lookup_elem(&pages, &port);

	return page ? bpf_map_lookup_elem(page, &cell) : NULL;
}

/*
 * With the lock: after a step. The host learns first, as the engine wants it; and with the lock, as
 * the daemon that takes the group completes later barriers: this word must not follow theirs, nor
 * the wake of a sleeper.
 */
static __always_inline void step_note(struct kernel_group *g, const struct nbfw_action *a,
				      struct nbar_completion *c, struct todo *t)
{
	struct nbfw_state *s = group_state(g);

	t->first = a->send_first;
	t->end = a->send_end;
	t->epoch = s->epoch;
	if (a->complete && c) {
		c->nstragglers = 0;
		/* Pairs with the acquire in order_completion_read: the lock was taken, which orders
		 * what came before. */
		*(volatile uint64_t *)&c->word = s->epoch;
	}
	if (a->complete) {
		/* The daemon starts a barrier that was posted ahead; or it wakes. */
		t->want = g->posted != s->epoch ? KERNEL_TAKE : g->sleeper ? KERNEL_WAKE : 0;
		g->sleeper = 0;
	}
	g->counts.completed += a->complete;
	if (a->send_end > a->send_first)
		g->counts.sent += a->send_end - a->send_first;
}

static __always_inline void token_write(void *p, const struct kernel_group *g, uint32_t i,
					uint32_t epoch)
{
	const struct kernel_send *to = &g->send[i % NBFW_FIXED_SENDS];

	AT(p, 0, uint32_t) = *(const uint32_t *)to->mac;
	AT(p, 4, uint16_t) = *(const uint16_t *)(to->mac + 4);
	AT(p, AT_SOURCE, uint16_t) = *(const uint16_t *)g->mac;
	AT(p, AT_SOURCE + 2, uint16_t) = *(const uint16_t *)(g->mac + 2);
	AT(p, AT_SOURCE + 4, uint16_t) = *(const uint16_t *)(g->mac + 4);
	AT(p, AT_PROTOCOL, uint16_t) = bpf_htons(KERNEL_TYPE);
	AT(p, AT_VERSION, uint16_t) = NBFW_FRAME_VERSION | NBFW_TOKEN << 8;
	AT(p, AT_RESERVED, uint16_t) = 0;
	AT(p, AT_HANDLE, uint32_t) = to->handle;
	AT(p, AT_COOKIE, uint64_t) = to->cookie;
	AT(p, AT_SRC, uint32_t) = g->plan.p.rank;
	AT(p, AT_EPOCH, uint32_t) = epoch;
	AT(p, AT_SLOT, uint32_t) = g->plan.send[i % NBFW_FIXED_SENDS].slot;
	AT(p, AT_ARG, uint32_t) = NBAR_RANK_NONE;
	AT(p, AT_INFO, uint32_t) = 0;
	AT(p, AT_SENDER, uint32_t) = g->handle;
	AT(p, AT_REPLY_COOKIE, uint64_t) = 0;
}

/* Sends [first, end): clones, and the packet in hand as the last. */
static __always_inline int send_all(struct __sk_buff *skb, const struct kernel_group *g,
				    const struct todo *t, bool in)
{
	uint32_t i = t->first;

	for (uint32_t n = 0; n < NBFW_FIXED_SENDS && i < t->end; n++, i++) {
		void *p = (void *)(long)skb->data;

		if (p + FRAME > (void *)(long)skb->data_end)
			return TC_ACT_SHOT;
		token_write(p, g, i, t->epoch);
		if (i + 1 == t->end)
			return in ? (int)bpf_redirect(skb->ifindex, 0) : TC_ACT_OK;
		bpf_clone_redirect(skb, skb->ifindex, 0);
	}
	return TC_ACT_SHOT;
}

/* The timer of a group: no progress since it last looked. */
static int timer_tick(void *map, uint32_t *index, struct kernel_group *g)
{
	struct nbfw_state *s = group_state(g);
	bool same, again;

	(void)map;
	bpf_spin_lock(&g->lock);
	again = g->lent && s->running;
	same = g->tick_epoch == s->epoch && g->tick_step == s->step;
	g->tick_epoch = s->epoch;
	g->tick_step = s->step;
	g->ticking = again && !same;
	bpf_spin_unlock(&g->lock);
	if (again && same)
		want(*index, KERNEL_TIMEOUT);
	else if (again)
		bpf_timer_start(&g->timer, g->first_ns, 0);
	return 0;
}

SEC("tc") int kernel_in(struct __sk_buff *skb)
{
	void *p = (void *)(long)skb->data;
	struct nbfw_token token = { .type = NBFW_TOKEN };
	struct nbfw_action a;
	struct todo t = { 0 };
	struct nbar_completion *c;
	struct kernel_group *g;
	uint32_t index, slot;
	bool lent;

	/* A tag of a VLAN: no frame for this interface, unless the daemon says so. */
	if (skb->vlan_present || skb->len != FRAME || p + FRAME > (void *)(long)skb->data_end ||
	    AT(p, AT_PROTOCOL, uint16_t) != bpf_htons(KERNEL_TYPE) || skb->pkt_type != 0 ||
	    AT(p, AT_VERSION, uint16_t) != (NBFW_FRAME_VERSION | NBFW_TOKEN << 8) ||
	    AT(p, AT_RESERVED, uint16_t) != 0)
		return NEXT;
	token.handle = AT(p, AT_HANDLE, uint32_t);
	index = token.handle & 0xffff;
	g = bpf_map_lookup_elem(&groups, &index);
	if (!g || g->handle != token.handle || g->cookie != AT(p, AT_COOKIE, uint64_t))
		return NEXT;
	token.src = AT(p, AT_SRC, uint32_t);
	token.epoch = AT(p, AT_EPOCH, uint32_t);
	token.slot = slot = AT(p, AT_SLOT, uint32_t);
	slot &= NBFW_FIXED_SLOTS - 1;
	/* Not from the member that fills the slot, or not from its NIC: the daemon counts it. */
	if (AT(p, AT_SENDER, uint32_t) != g->sender[slot])
		return NEXT;
	for (int i = 0; i < 6; i += 2)
		if (AT(p, AT_SOURCE + i, uint16_t) != *(uint16_t *)(g->source[slot] + i))
			return NEXT;
	c = completion_of(g->port, g->cell);
	bpf_spin_lock(&g->lock);
	/* By now the index may be that of another group. */
	lent = g->lent && g->handle == token.handle;
	if (lent) {
		nbfw_step_token(group_state(g), &g->plan.p, &token, &a);
		step_note(g, &a, c, &t);
		if (a.verdict == NBFW_USED)
			g->counts.received++;
		else if (a.verdict == NBFW_DUPLICATE)
			g->counts.duplicate++;
		else if (a.verdict == NBFW_STALE)
			g->counts.stale++;
		else
			g->counts.bad++;
	}
	bpf_spin_unlock(&g->lock);
	if (!lent)
		return NEXT;
	if (t.want)
		want(index, t.want);
	return send_all(skb, g, &t, true);
}

SEC("tc") int kernel_out(struct __sk_buff *skb)
{
	void *p = (void *)(long)skb->data;
	const struct nbfw_event start = { .type = NBFW_EV_START };
	struct nbar_start post;
	struct nbar_completion *c;
	struct kernel_group *g;
	struct nbfw_action a;
	struct todo t = { 0 };
	uint64_t key;
	uint32_t *port, *index, at;
	bool lent;

	if (skb->mark != KERNEL_MARK && (p + AT_IP_TO + 4 > (void *)(long)skb->data_end ||
					 AT(p, AT_PROTOCOL, uint16_t) != bpf_htons(0x0800) ||
					 AT(p, AT_IP_TO, uint32_t) != bpf_htonl(KERNEL_UDP_TO)))
		return NEXT;
	/* Nothing else of a start socket, nor to its address, leaves the host: fragments, packets
	 * with options, packets to others. It is a post, or it is dropped. */
	key = bpf_get_socket_cookie(skb);
	port = bpf_map_lookup_elem(&ports, &key);
	if (!port || skb->len != FRAME || p + FRAME > (void *)(long)skb->data_end ||
	    AT(p, AT_PROTOCOL, uint16_t) != bpf_htons(0x0800) ||
	    AT(p, AT_IP_LENGTH, uint8_t) != 0x45 || AT(p, AT_IP_PROTOCOL, uint8_t) != 17 ||
	    AT(p, AT_IP_TO, uint32_t) != bpf_htonl(KERNEL_UDP_TO) ||
	    AT(p, AT_UDP_TO, uint16_t) != bpf_htons(KERNEL_UDP_PORT))
		return TC_ACT_SHOT;
	__builtin_memcpy(&post, p + AT_POST, sizeof(post));
	key = (uint64_t)*port << 32 | post.cell;
	index = bpf_map_lookup_elem(&cells, &key);
	if (!index) {
		ring();
		return TC_ACT_SHOT;
	}
	at = *index;
	g = bpf_map_lookup_elem(&groups, &at);
	if (!g)
		return TC_ACT_SHOT;
	c = completion_of(*port, post.cell);
	bpf_spin_lock(&g->lock);
	struct nbfw_state *s = group_state(g);
	lent = g->lent && g->port == (uint32_t)(key >> 32) && g->cell == post.cell;
	if (lent && post.sleeps) {
		/* The thread looks at the word once more. If the barrier is complete by now, it
		 * finds it: the word was stored with the lock. */
		g->sleeper = 1;
	} else if (lent && post.posted - s->epoch - 1 < NBAR_POSTED_MAX) {
		g->posted = post.posted;
		if (post.posted != s->epoch + 1) {
			t.want = s->running ? 0 : KERNEL_TAKE;
		} else if (!s->running) {
			nbfw_step(s, &g->plan.p, &start, &a);
			step_note(g, &a, c, &t);
			t.tick = !g->ticking;
			g->ticking = 1;
			if (t.tick) {
				g->tick_epoch = s->epoch;
				g->tick_step = s->step;
			}
		}
	}
	bpf_spin_unlock(&g->lock);
	if (!lent) {
		ring();
		return TC_ACT_SHOT;
	}
	if (t.want)
		want(at, t.want);
	skb->mark = 0; /* clones come here again */
	if (t.tick)
		bpf_timer_start(&g->timer, g->first_ns, 0);
	return send_all(skb, g, &t, false);
}

/* The daemon lends a group or takes it back, through BPF_PROG_TEST_RUN. */
SEC("tc") int kernel_hand(struct __sk_buff *skb)
{
	struct kernel_hand *h = (void *)(long)skb->data;
	struct kernel_group *g;
	struct nbfw_state *s;
	uint32_t index;
	bool runs;

	if ((void *)(h + 1) > (void *)(long)skb->data_end)
		return TC_ACT_SHOT;
	index = h->index;
	g = bpf_map_lookup_elem(&groups, &index);
	if (!g)
		return TC_ACT_SHOT;
	s = group_state(g);
	if (!h->lend) {
		bpf_spin_lock(&g->lock);
		g->lent = 0;
		__builtin_memcpy(h->state, g->state, sizeof(h->state));
		h->counts = g->counts;
		g->counts = (struct kernel_counts){ 0 };
		bpf_spin_unlock(&g->lock);
		return TC_ACT_OK;
	}
	/* Busy: it was made when the group of this index was lent for the first time. */
	bpf_timer_init(&g->timer, &groups, 1 /* CLOCK_MONOTONIC */);
	bpf_timer_set_callback(&g->timer, timer_tick);
	bpf_spin_lock(&g->lock);
	__builtin_memcpy(g->state, h->state, sizeof(g->state));
	g->lent = 1;
	g->first_ns = h->first_ns;
	g->sleeper = h->sleeper;
	g->posted = s->epoch;
	g->ticking = runs = s->running;
	g->tick_epoch = s->epoch;
	g->tick_step = s->step;
	bpf_spin_unlock(&g->lock);
	if (runs)
		bpf_timer_start(&g->timer, h->left_ns, 0);
	return TC_ACT_OK;
}

char kernel_license[] SEC("license") = "Dual BSD/GPL";
