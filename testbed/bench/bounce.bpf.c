// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * bounce.bpf.c - returns a frame to the host that it came from, as often as the frame says, and
 * writes into it when the first and the last program have seen it. Does nothing else: see bounce.c.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bounce.h"

SEC("tc") int bounce(struct __sk_buff *skb)
{
	struct bounce_frame *f = (void *)(long)skb->data;
	uint16_t mac;

	if ((void *)(f + 1) > (void *)(long)skb->data_end || f->type != bpf_htons(BOUNCE_TYPE))
		return TC_ACT_OK;
	if (f->left == BOUNCE_DROP)
		return TC_ACT_SHOT;
	f->last = bpf_ktime_get_ns();
	if (f->first == 0)
		f->first = f->last;
	if (f->left-- == 0)
		return TC_ACT_OK;
	for (int i = 0; i < 3; i++) {
		mac = f->to[i];
		f->to[i] = f->from[i];
		f->from[i] = mac;
	}
	return (int)bpf_redirect(skb->ifindex, 0);
}

/* A packet of a UDP socket becomes a frame, as a post does. */
SEC("tc") int post(struct __sk_buff *skb)
{
	struct bounce_frame *f = (void *)(long)skb->data;

	if (skb->mark != BOUNCE_MARK || (void *)(f + 1) > (void *)(long)skb->data_end)
		return TC_ACT_OK;
	__builtin_memcpy(f, (uint8_t *)f + 42, 20);
	return TC_ACT_OK;
}

char bounce_license[] SEC("license") = "Dual BSD/GPL";
