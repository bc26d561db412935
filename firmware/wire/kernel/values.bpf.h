/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * values.bpf.h - the programs of groups with values: START and TOKEN, as in programs.bpf.c, which
 * includes this.
 *
 * They take values of numbers of up to NBFW_FIXED_VALUE bytes. With other values, and where one
 * does not fit the others, the daemon goes on. open.c says which Linux takes them.
 */
#define VALUE_LEAST (NBFW_VALUE_HEAD + 1)

/* What the programs keep of the values of a lent group. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, KERNEL_VALUES);
	__type(key, uint32_t);
	__type(value, struct nbfw_values);
} values SEC(".maps");

/* The value behind the first FRAME bytes of a packet; no memory lies beyond its length. */
struct carried {
	uint32_t length; /* with its head; 0: none */
	_Alignas(8) uint8_t byte[NBFW_FIXED_PLACE];
	struct nbfw_action a;
	struct todo t;
};

/* Of each processor: memory of which the verifier knows nothing has fewer states than a stack. Used
 * up to the first send, which may run these programs again. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct carried);
} carried SEC(".maps");

/* False: it is none that the programs take. */
static __always_inline bool carried_read(struct __sk_buff *skb, uint32_t at, struct carried *v)
{
	const struct nbfw_value *value = (void *)v->byte;
	uint32_t length = skb->len - at;

	for (uint32_t i = 0; i < sizeof(v->byte); i += 8)
		NBFW_WORD(v->byte + i, 64) = 0; /* no value of another user */
	v->length = length;
	v->t = (struct todo){ 0 };
	if (length == 0)
		return true;
	if (length < VALUE_LEAST || length % VALUE_UNIT != 0 || length > sizeof(v->byte) ||
	    bpf_skb_load_bytes(skb, at, v->byte, VALUE_LENGTH(length)) != 0)
		return false;
	return !NBAR_IS_PAIR(value->type) && nbfw_value_length(value) == length - NBFW_VALUE_HEAD;
}

/* Stores a word behind all that was stored before, and before what follows: an exchange, written as
 * bytes because the version of the instruction set that has it needs more of the verifier. */
static __always_inline void word_exchange(uint64_t *at, uint64_t v)
{
	register uint64_t *to __asm__("r1") = at;
	register uint64_t word __asm__("r2") = v;

	__asm__ volatile(".byte 0xdb, 0x21, 0, 0, 0xe1, 0, 0, 0" : "+r"(word) : "r"(to) : "memory");
}

/* With the lock: the result of a complete barrier, before its word. */
static __always_inline void result_write(const struct kernel_group *g, const struct nbfw_values *x,
					 struct nbar_results *r)
{
	const struct nbfw_state *s = group_state((struct kernel_group *)g);
	const struct nbfw_value *from = nbfw_values_place(x, s->epoch, s->step);
	struct nbar_value *to =
		&r->value[(g->values - 1) % NBAR_VALUE_GROUPS][s->epoch % NBAR_VALUES_AHEAD].value;
	uint64_t head = (uint64_t)s->epoch << 32 | x->head[s->epoch & 1] | NBAR_VALUE_RESULT;

	for (uint32_t i = 0; i < NBFW_FIXED_VALUE; i += 8)
		NBFW_WORD(to->of.byte + i, 64) = NBFW_WORD(from->byte + i, 64);
	word_exchange((uint64_t *)to, head);
}

/* Sends [first, end), each with the value at the entry of its step. */
static __always_inline int send_values(struct __sk_buff *skb, const struct kernel_group *g,
				       const struct nbfw_values *x, const struct todo *t,
				       uint32_t length, bool in)
{
	uint32_t i = t->first;
	bool open = false;

	for (uint32_t n = 0; n < NBFW_FIXED_SENDS && i < t->end; n++, i++) {
		const void *value =
			nbfw_values_place(x, t->epoch, g->send[i % NBFW_FIXED_SENDS].step);
		void *p;

		/* No step may overwrite this value before the start of epoch + 2; by then nobody
		 * waits for the token. */
		if (length && bpf_skb_store_bytes(skb, FRAME, value, VALUE_LENGTH(length), 0) != 0)
			return TC_ACT_SHOT;
		p = (void *)(long)skb->data;
		if (p + FRAME > (void *)(long)skb->data_end)
			return TC_ACT_SHOT;
		if (in && n == 0)
			open = sum_is_open(p);
		token_write(p, g, i, t->epoch, value, length, open);
		if (i + 1 == t->end)
			return in ? (int)bpf_redirect(skb->ifindex, 0) : TC_ACT_OK;
		bpf_clone_redirect(skb, skb->ifindex, 0);
	}
	return TC_ACT_SHOT;
}

/* With the lock, after a step of the engine. */
static __always_inline void values_note(struct kernel_group *g, struct nbfw_values *x,
					const struct nbfw_action *a, struct nbar_results *r)
{
	const struct nbfw_state *s = group_state(g);

	NBFW_FORGET_ALL();
	nbfw_values_advance(x, s, &g->plan.p);
	NBFW_FORGET_ALL();
	if (a->complete && x->length[s->epoch & 1])
		result_write(g, x, r);
}

static __always_inline struct nbfw_values *values_of(const struct kernel_group *g, uint32_t index)
{
	return g->values ? bpf_map_lookup_elem(&values, &index) : NULL;
}

SEC("tc") int kernel_in_value(struct __sk_buff *skb)
{
	const uint32_t zero = 0;
	struct nbfw_token token = { .type = NBFW_TOKEN };
	struct kernel_group *g;
	struct nbfw_values *x;
	struct nbar_results *r;
	struct todo t;
	struct carried *v = bpf_map_lookup_elem(&carried, &zero);
	uint32_t index, length;
	const void *p;
	bool lent;

	if (skb->len < FRAME || skb->protocol != bpf_htons(ETHERTYPE))
		return NEXT;
	g = token_read(skb, skb->len,
		       skb->len == FRAME ? NBFW_FRAME_VERSION : NBFW_FRAME_VERSION_VALUE, &token);
	index = token.handle & 0xffff;
	x = g ? values_of(g, index) : NULL;
	if (!x || !v || !carried_read(skb, FRAME, v))
		return NEXT;
	p = (void *)(long)skb->data;
	if (p + FRAME > (void *)(long)skb->data_end ||
	    !sum_fits(p, v->length ? value_sum(v->byte, v->length) : 0))
		return NEXT;
	r = results_of(g->port);
	if (!r)
		return NEXT;
	token.value_length = length = v->length;
	token.value = (void *)v->byte;
	bpf_spin_lock(&g->lock);
	lent = g->lent && g->handle == token.handle && g->values &&
	       nbfw_values_take(x, group_state(g), &g->plan.p, &token) == NBFW_VALUE_FITS;
	if (lent) {
		nbfw_step_token(group_state(g), &g->plan.p, &token, &v->a);
		NBFW_FORGET_ALL();
		if (v->a.timer != NBFW_KEEP)
			values_note(g, x, &v->a, r);
		token_note(g, &v->a, r, &v->t);
	}
	bpf_spin_unlock(&g->lock);
	if (!lent)
		return NEXT;
	NBFW_FORGET_ALL();
	t = v->t;
	if (t.want)
		want(index, t.want);
	return send_values(skb, g, x, &t, length, true);
}

SEC("tc") int kernel_out_value(struct __sk_buff *skb)
{
	const uint32_t zero = 0;
	const struct nbfw_event start = { .type = NBFW_EV_START };
	struct nbar_start post = { 0 };
	struct nbar_results *r;
	struct kernel_group *g;
	struct nbfw_values *x;
	struct todo t;
	struct carried *v = bpf_map_lookup_elem(&carried, &zero);
	uint32_t index, length;
	bool lent, fits, starts;

	/* Other posts: kernel_out. What counts is read again, by post_read. */
	if (skb->mark != KERNEL_MARK ||
	    bpf_skb_load_bytes(skb, AT_POST, &post, sizeof(post)) != 0 || !post.values)
		return NEXT;
	g = post_read(skb, &post, &index);
	x = g ? values_of(g, index) : NULL;
	if (!x || !v)
		return NEXT;
	r = results_of(post.reserved);
	if (!r)
		return TC_ACT_SHOT;
	fits = carried_read(skb, POST, v);
	length = v->length;
	bpf_spin_lock(&g->lock);
	lent = post_is_lent(g, &post) && g->values;
	starts = lent && post_note(g, &post, &v->t);
	if (starts && !(fits && length <= x->size)) {
		v->t.want = KERNEL_TAKE; /* the daemon has the value, too */
	} else if (starts) {
		struct nbfw_state *s = group_state(g);

		if (length)
			nbfw_value_copy(nbfw_values_place(x, s->epoch + 1, 0), (void *)v->byte,
					length);
		if (nbfw_values_start(x, s, &g->plan.p, length ? length - NBFW_VALUE_HEAD : 0) !=
		    NBAR_RANK_NONE) {
			v->t.want = KERNEL_TAKE; /* the daemon fails the group */
		} else {
			nbfw_step(s, &g->plan.p, &start, &v->a);
			values_note(g, x, &v->a, r);
			start_note(g, &v->a, r, &v->t);
		}
	}
	bpf_spin_unlock(&g->lock);
	if (!lent) {
		ring();
		return TC_ACT_SHOT;
	}
	NBFW_FORGET_ALL();
	t = v->t;
	post_end(skb, g, index, &t);
	if (t.first == t.end || !post_grow(skb, FRAME + length))
		return TC_ACT_SHOT;
	return send_values(skb, g, x, &t, length, false);
}
