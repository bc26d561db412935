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
#include "value.c"
#pragma clang attribute pop

#include "lent.h"

#define NEXT (-1) /* TCX_NEXT, which older headers lack: other programs of the interface see it */
#define AT(p, offset, type) (*(type *)((uint8_t *)(p) + (offset)))
#define FRAME (AT_FRAME + NBFW_FRAME_SIZE)
/* In a packet of a start socket. */
enum {
	AT_PROTOCOL = 12,
	AT_IP_BEGIN = 14,
	AT_IP_PROTOCOL = 23,
	AT_IP_TO = 30,
	AT_UDP_TO = 36,
	AT_UDP_SUM = 40,
	AT_POST = 42
};
#define POST (AT_POST + sizeof(struct nbar_start))
/* In WIRE.md's frame, behind its headers. */
#define AT_VERSION AT_FRAME
#define AT_RESERVED (AT_FRAME + 2)
#define AT_HANDLE (AT_FRAME + 4)
#define AT_COOKIE (AT_FRAME + 8)
#define AT_SRC (AT_FRAME + 16)
#define AT_EPOCH (AT_FRAME + 20)
#define AT_SLOT (AT_FRAME + 24)
#define AT_SENDER (AT_FRAME + 36)

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

/* The results of a port, which its host maps. */
struct results {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct nbar_results));
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, NBAR_PORTS_MAX);
	__type(key, uint32_t);
	__array(values, struct results);
} pages SEC(".maps");

/* A length that the verifier knows to be one of a value. */
#define VALUE_LENGTH(n) (1 + NBFW_AT_MOST((n)-1, NBFW_FIXED_PLACE - 1))

/* Three objects, with programs of the same names: the daemon loads one. */
#include "frame.bpf.h"

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

/* Where the host of a port looks; no lookup is allowed with the lock. */
static __always_inline struct nbar_results *results_of(uint32_t port)
{
	const uint32_t zero = 0;
	void *page = bpf_map_lookup_elem(&pages, &port);

	return page ? bpf_map_lookup_elem(page, &zero) : NULL;
}

/*
 * With the lock: after a step. The host learns first, as the engine wants it; and with the lock, as
 * the daemon that takes the group completes later barriers: this word must not follow theirs, nor
 * the wake of a sleeper.
 */
static __always_inline void step_note(struct kernel_group *g, const struct nbfw_action *a,
				      struct nbar_results *r, struct todo *t)
{
	struct nbfw_state *s = group_state(g);
	struct nbar_completion *c = &r->completion[g->cell % NBAR_GROUPS_MAX];

	t->first = a->send_first;
	t->end = a->send_end;
	t->epoch = s->epoch;
	if (a->complete) {
		c->nstragglers = 0;
		/* Pairs with the acquire in order_completion_read: the lock was taken, which orders
		 * what came before; result_write orders the result. */
		*(volatile uint64_t *)&c->word = s->epoch;
		/* The daemon starts a barrier that was posted ahead; or it wakes. */
		t->want = g->posted != s->epoch ? KERNEL_TAKE : g->sleeper ? KERNEL_WAKE : 0;
		g->sleeper = 0;
	}
	g->counts.completed += a->complete;
	if (a->send_end > a->send_first)
		g->counts.sent += a->send_end - a->send_first;
}

static __always_inline void token_write(void *p, const struct kernel_group *g, uint32_t i,
					uint32_t epoch, const void *value, uint32_t length,
					bool open)
{
	const struct kernel_send *to = &g->send[i % NBFW_FIXED_SENDS];
	uint32_t sum = to->sum;

	AT(p, 0, uint16_t) = AT(to->frame, 0, uint16_t);
	for (uint32_t at = 2; at < FRAME; at += 4)
		AT(p, at, uint32_t) = AT(to->frame, at, uint32_t);
	AT(p, AT_EPOCH, uint32_t) = epoch;
	if (length) {
		AT(p, AT_VERSION, uint8_t) = NBFW_FRAME_VERSION_VALUE;
		sum += value_fit(p, value, length);
	}
	sum_write(p, sum, open);
}

/* Sends [first, end): clones, and the packet in hand as the last. */
static __always_inline int send_all(struct __sk_buff *skb, const struct kernel_group *g,
				    const struct todo *t, bool in)
{
	uint32_t i = t->first;
	bool open = false;

	for (uint32_t n = 0; n < NBFW_FIXED_SENDS && i < t->end; n++, i++) {
		void *p = (void *)(long)skb->data;

		if (p + FRAME > (void *)(long)skb->data_end)
			return TC_ACT_SHOT;
		if (in && n == 0)
			open = sum_is_open(p);
		token_write(p, g, i, t->epoch, NULL, 0, open);
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

/* A TOKEN of `length` bytes, which may be for a group here. */
static __always_inline struct kernel_group *token_read(struct __sk_buff *skb, uint32_t length,
						       uint16_t version, struct nbfw_token *token)
{
	void *p = (void *)(long)skb->data;
	struct kernel_group *g;
	uint32_t index, slot;

	/* A tag of a VLAN: no frame for this interface, unless the daemon says so. */
	if (skb->vlan_present || skb->len != length || p + FRAME > (void *)(long)skb->data_end ||
	    !headers_fit(p, length) || skb->pkt_type != 0 ||
	    AT(p, AT_VERSION, uint16_t) != (version | NBFW_TOKEN << 8) ||
	    AT(p, AT_RESERVED, uint16_t) != 0)
		return NULL;
	token->handle = AT(p, AT_HANDLE, uint32_t);
	index = token->handle & 0xffff;
	g = bpf_map_lookup_elem(&groups, &index);
	if (!g || g->handle != token->handle || g->cookie != AT(p, AT_COOKIE, uint64_t))
		return NULL;
	token->src = AT(p, AT_SRC, uint32_t);
	token->epoch = AT(p, AT_EPOCH, uint32_t);
	token->slot = slot = AT(p, AT_SLOT, uint32_t);
	slot &= NBFW_FIXED_SLOTS - 1;
	/* Not from the member that fills the slot, or not from its NIC: the daemon counts it. */
	if (AT(p, AT_SENDER, uint32_t) != g->sender[slot] || !source_fits(p, g, slot))
		return NULL;
	return g;
}

/* With the lock: after a token. */
static __always_inline void token_note(struct kernel_group *g, const struct nbfw_action *a,
				       struct nbar_results *r, struct todo *t)
{
	step_note(g, a, r, t);
	if (a->verdict == NBFW_USED)
		g->counts.received++;
	else if (a->verdict == NBFW_DUPLICATE)
		g->counts.duplicate++;
	else if (a->verdict == NBFW_STALE)
		g->counts.stale++;
	else
		g->counts.bad++;
}

SEC("tc") int kernel_in(struct __sk_buff *skb)
{
	struct nbfw_token token = { .type = NBFW_TOKEN };
	struct kernel_group *g = token_read(skb, FRAME, NBFW_FRAME_VERSION, &token);
	const void *p = (void *)(long)skb->data;
	struct nbar_results *r;
	struct nbfw_action a;
	struct todo t = { 0 };
	bool lent;

	/* The packet has FRAME bytes, as token_read has seen. */
	if (!g || g->values || p + FRAME > (void *)(long)skb->data_end || !sum_fits(p, 0))
		return NEXT;
	r = results_of(g->port);
	if (!r)
		return NEXT;
	bpf_spin_lock(&g->lock);
	/* By now the index may be that of another group. */
	lent = g->lent && g->handle == token.handle && !g->values;
	if (lent) {
		nbfw_step_token(group_state(g), &g->plan.p, &token, &a);
		token_note(g, &a, r, &t);
	}
	bpf_spin_unlock(&g->lock);
	if (!lent)
		return NEXT;
	if (t.want)
		want(token.handle & 0xffff, t.want);
	return send_all(skb, g, &t, true);
}

/* What start sockets send. */
static __always_inline bool is_start(struct __sk_buff *skb)
{
	void *p = (void *)(long)skb->data;

	return skb->mark == KERNEL_MARK || (p + AT_IP_TO + 4 <= (void *)(long)skb->data_end &&
					    AT(p, AT_PROTOCOL, uint16_t) == bpf_htons(0x0800) &&
					    AT(p, AT_IP_TO, uint32_t) == bpf_htonl(KERNEL_UDP_TO));
}

/* Nothing else of a start socket, nor to its address, leaves the host: fragments, packets with
 * options, packets to others. It is a post, or it is dropped. A post has no sum: the interface
 * would write it into the token. */
static __always_inline struct kernel_group *post_read(struct __sk_buff *skb,
						      struct nbar_start *post, uint32_t *index)
{
	void *p = (void *)(long)skb->data;
	uint64_t key = bpf_get_socket_cookie(skb);
	uint32_t *port = bpf_map_lookup_elem(&ports, &key), *at;

	if (!port || skb->len < POST || p + POST > (void *)(long)skb->data_end ||
	    AT(p, AT_PROTOCOL, uint16_t) != bpf_htons(0x0800) ||
	    AT(p, AT_IP_BEGIN, uint8_t) != 0x45 || AT(p, AT_IP_PROTOCOL, uint8_t) != 17 ||
	    AT(p, AT_IP_TO, uint32_t) != bpf_htonl(KERNEL_UDP_TO) ||
	    AT(p, AT_UDP_TO, uint16_t) != bpf_htons(KERNEL_UDP_PORT) ||
	    AT(p, AT_UDP_SUM, uint16_t) != 0)
		return NULL;
	__builtin_memcpy(post, p + AT_POST, sizeof(*post));
	key = (uint64_t)*port << 32 | post->cell;
	at = bpf_map_lookup_elem(&cells, &key);
	if (!at) {
		ring();
		return NULL;
	}
	*index = *at;
	post->reserved = *port; /* from here on: the port */
	return bpf_map_lookup_elem(&groups, index);
}

/* With the lock. */
static __always_inline bool post_is_lent(const struct kernel_group *g,
					 const struct nbar_start *post)
{
	return g->lent && g->port == post->reserved && g->cell == post->cell;
}

/* With the lock: what the host posts or asks. True: the barrier starts now. */
static __always_inline bool post_note(struct kernel_group *g, const struct nbar_start *post,
				      struct todo *t)
{
	struct nbfw_state *s = group_state(g);

	if (post->sleeps) {
		/* The thread looks at the word once more. If the barrier is complete by now, it
		 * finds it: the word was stored with the lock. */
		g->sleeper = 1;
	} else if (post->posted - s->epoch - 1 < NBAR_POSTED_MAX) {
		g->posted = post->posted;
		if (post->posted == s->epoch + 1)
			return !s->running;
		t->want = s->running ? 0 : KERNEL_TAKE;
	}
	return false;
}

/* With the lock: a barrier has started. */
static __always_inline void start_note(struct kernel_group *g, const struct nbfw_action *a,
				       struct nbar_results *r, struct todo *t)
{
	const struct nbfw_state *s = group_state(g);

	step_note(g, a, r, t);
	t->tick = !g->ticking;
	g->ticking = 1;
	if (t->tick) {
		g->tick_epoch = s->epoch;
		g->tick_step = s->step;
	}
}

/* Without the lock: after a post. */
static __always_inline void post_end(struct __sk_buff *skb, struct kernel_group *g, uint32_t index,
				     const struct todo *t)
{
	if (t->want)
		want(index, t->want);
	skb->mark = 0; /* clones come here again */
	if (t->tick)
		bpf_timer_start(&g->timer, g->first_ns, 0);
}

SEC("tc") int kernel_out(struct __sk_buff *skb)
{
	const struct nbfw_event start = { .type = NBFW_EV_START };
	struct nbar_results *r;
	struct nbar_start post;
	struct kernel_group *g;
	struct nbfw_action a;
	struct todo t = { 0 };
	uint32_t index;
	bool lent;

	if (!is_start(skb)) {
		route_learn(skb);
		return NEXT;
	}
	g = post_read(skb, &post, &index);
	if (!g)
		return TC_ACT_SHOT;
	r = results_of(post.reserved);
	if (!r)
		return TC_ACT_SHOT;
	bpf_spin_lock(&g->lock);
	lent = post_is_lent(g, &post) && !g->values && skb->len == POST;
	if (lent && post_note(g, &post, &t)) {
		nbfw_step(group_state(g), &g->plan.p, &start, &a);
		start_note(g, &a, r, &t);
	}
	bpf_spin_unlock(&g->lock);
	if (!lent) {
		ring();
		return TC_ACT_SHOT;
	}
	post_end(skb, g, index, &t);
	if (t.first == t.end || !post_grow(skb, FRAME))
		return TC_ACT_SHOT;
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
	long made;

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
	/* Busy: it is there, since the daemon has not described the group again. */
	made = bpf_timer_init(&g->timer, &groups, 1 /* CLOCK_MONOTONIC */);
	if (made != 0 && made != -16 /* EBUSY */)
		return TC_ACT_SHOT;
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

#include "values.bpf.h"

char kernel_license[] SEC("license") = "Dual BSD/GPL";
