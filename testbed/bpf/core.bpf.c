// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * core.bpf.c - the whole engine as a program of the kernel. load.c asks the verifier whether it is
 * safe for any plan, state and event: to the verifier all three are unknown data.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

/* Kernels before 6.9 take no calls while a lock is held. */
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "engine.c"
#pragma clang attribute pop

struct member {
	struct bpf_spin_lock lock;
	uint32_t pad;
	struct nbfw_fixed_plan plan;
	struct nbfw_state state;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct member);
} members SEC(".maps");

/* The packet is an event; it becomes the action. */
SEC("tc") int core_step(struct __sk_buff *skb)
{
	const uint32_t zero = 0;
	struct member *m = bpf_map_lookup_elem(&members, &zero);
	struct nbfw_event ev;
	struct nbfw_action a;

	if (!m || bpf_skb_load_bytes(skb, 0, &ev, sizeof(ev)) != 0)
		return TC_ACT_SHOT;
	bpf_spin_lock(&m->lock);
	nbfw_step(&m->state, &m->plan.p, &ev, &a);
	bpf_spin_unlock(&m->lock);
	return bpf_skb_store_bytes(skb, 0, &a, sizeof(a), 0) ? TC_ACT_SHOT : TC_ACT_OK;
}

char core_license[] SEC("license") = "Dual BSD/GPL";
