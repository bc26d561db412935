/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * frame.bpf.h - what programs.bpf.c, which includes this, needs to know of the packets that carry
 * frames: of Ethernet (kind 2), or with PROGRAMS_IP of UDP over that version of IP (kind 3).
 *
 * The headers of a frame in a datagram are those that the kernel has written for the daemon's own
 * frames to the same NIC: so route, neighbour and address are its choice.
 */
#ifdef PROGRAMS_IP
#if PROGRAMS_IP == 6
#define AT_FRAME KERNEL_UDP6
#define IP_SIZE KERNEL_IP6
#else
#define AT_FRAME KERNEL_UDP4
#define IP_SIZE KERNEL_IP4
#endif
#define UDP_SIZE (FRAME - KERNEL_AT_PORT(AT_FRAME)) /* with its header */
enum {
	AT_FROM = KERNEL_AT_IP(AT_FRAME, IP_SIZE),
	AT_TO = AT_FROM + IP_SIZE,
	AT_FROM_PORT = KERNEL_AT_PORT(AT_FRAME),
	AT_TO_PORT = AT_FROM_PORT + 2,
	AT_UDP_SIZE = AT_FROM_PORT + 4,
	AT_SUM = KERNEL_AT_SUM(AT_FRAME)
};

/* The address of this NIC, and the cookie of its socket: set before the programs are loaded. */
const volatile struct kernel_self self SEC(".rodata.self");

/* The headers of frames to a NIC, by its address. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct kernel_address);
	__type(value, struct kernel_route);
} routes SEC(".maps");

/* The packet is a datagram with the length of a frame: without an option, and no fragment. */
static __always_inline bool ip_fits(const void *p)
{
	if (AT(p, AT_UDP_SIZE, uint16_t) != bpf_htons(UDP_SIZE))
		return false;
#if PROGRAMS_IP == 6
	return AT(p, AT_PROTOCOL, uint16_t) == bpf_htons(0x86dd) &&
	       (AT(p, 14, uint8_t) & 0xf0) == 0x60 && AT(p, 18, uint16_t) == bpf_htons(UDP_SIZE) &&
	       AT(p, 20, uint8_t) == 17;
#else
	return AT(p, AT_PROTOCOL, uint16_t) == bpf_htons(0x0800) &&
	       AT(p, AT_IP_LENGTH, uint8_t) == 0x45 &&
	       AT(p, 16, uint16_t) == bpf_htons(FRAME - KERNEL_ETHER) &&
	       (AT(p, 20, uint16_t) & bpf_htons(0x3fff)) == 0 &&
	       AT(p, AT_IP_PROTOCOL, uint8_t) == 17;
#endif
}

/* At these places of the packet are the port and IP of this NIC. */
static __always_inline bool name_fits(const void *p, uint32_t port, uint32_t ip,
				      const volatile struct kernel_address *name)
{
	if (AT(p, port, uint16_t) != name->port)
		return false;
	for (uint32_t i = 0; i < IP_SIZE / 4; i++)
		if (AT(p, ip + 4 * i, uint32_t) != name->ip[i])
			return false;
	return true;
}

static __always_inline uint32_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* The sum of the pseudo-header: of addresses, protocol and length. */
static __always_inline uint32_t sum_begin(const void *p)
{
	uint32_t sum = bpf_htons(17) + bpf_htons(UDP_SIZE);

	for (uint32_t at = AT_FROM; at < AT_FROM_PORT; at += 2)
		sum += AT(p, at, uint16_t);
	return fold(sum);
}

/* The packet has this sum if an interface shall write the checksum: it knows no addresses. Any
 * packet may have it by chance. */
static __always_inline bool sum_is_open(const void *p)
{
	return AT(p, AT_SUM, uint16_t) == sum_begin(p);
}

/* 0: the packet has none, as IPv4 permits. */
static __always_inline bool sum_is_right(const void *p)
{
	if (AT(p, AT_SUM, uint16_t) == 0)
		return PROGRAMS_IP == 4;
	return fold((uint32_t)bpf_csum_diff(NULL, 0, (void *)(p + AT_FROM_PORT), UDP_SIZE,
					    sum_begin(p))) == 0xffff;
}

/* The packet, of FRAME bytes, has headers of a frame for this NIC. */
static __always_inline bool headers_fit(const void *p)
{
	return ip_fits(p) && name_fits(p, AT_TO_PORT, AT_TO, &self.at);
}

/* It comes from the NIC that fills this slot; and its sum is right, or open: if it is both, nobody
 * knows what the interface would do to our sends. */
static __always_inline bool source_fits(const void *p, const struct kernel_group *g, uint32_t slot)
{
	return name_fits(p, AT_FROM_PORT, AT_FROM, (const void *)g->source[slot]) &&
	       sum_is_open(p) != sum_is_right(p);
}

/* sum: that of the frame, all but its epoch. */
static __always_inline void sum_write(void *p, uint32_t sum, bool open)
{
	uint32_t epoch = AT(p, AT_EPOCH, uint32_t);
	uint16_t all = (uint16_t)~fold(sum + (epoch & 0xffff) + (epoch >> 16));

	AT(p, AT_SUM, uint16_t) = open ? sum_begin(p) : all ? all : 0xffff;
}

/* Turns the packet of a post into one of the length of a frame. */
static __always_inline bool post_grow(struct __sk_buff *skb)
{
	return bpf_skb_change_tail(skb, FRAME, 0) == 0;
}

/* Notes the headers of a packet that leaves the host, if it is a frame of the daemon. */
static __always_inline void route_learn(struct __sk_buff *skb)
{
	const void *p = (void *)(long)skb->data;
	struct kernel_address to = { .version = self.at.version };
	struct kernel_route route = { 0 };

	if (skb->len != FRAME || skb->vlan_present || p + FRAME > (void *)(long)skb->data_end ||
	    !ip_fits(p) || !name_fits(p, AT_FROM_PORT, AT_FROM, &self.at) ||
	    bpf_get_socket_cookie(skb) != self.cookie)
		return;
	route.time = bpf_ktime_get_ns();
	to.port = AT(p, AT_TO_PORT, uint16_t);
	for (uint32_t i = 0; i < IP_SIZE / 4; i++)
		to.ip[i] = AT(p, AT_TO + 4 * i, uint32_t);
	for (uint32_t at = 0; at < AT_FRAME; at += 2)
		AT(route.header, at, uint16_t) = AT(p, at, uint16_t);
	bpf_map_update_elem(&routes, &to, &route, BPF_ANY);
}
#else
#define AT_FRAME KERNEL_ETHER
enum { AT_SOURCE = 6 };

/* The packet, of FRAME bytes at least, has headers of a frame for this NIC. */
static __always_inline bool headers_fit(const void *p)
{
	return AT(p, AT_PROTOCOL, uint16_t) == bpf_htons(KERNEL_TYPE);
}

/* It comes from the NIC that fills this slot. */
static __always_inline bool source_fits(const void *p, const struct kernel_group *g, uint32_t slot)
{
	for (int i = 0; i < 6; i += 2)
		if (AT(p, AT_SOURCE + i, uint16_t) != *(uint16_t *)(g->source[slot] + i))
			return false;
	return true;
}

/* True if an interface shall write the checksum of a packet. */
static __always_inline bool sum_is_open(const void *p)
{
	(void)p;
	return false;
}

static __always_inline void sum_write(void *p, uint32_t sum, bool open)
{
	(void)p, (void)sum, (void)open;
}

/* Turns the packet of a post into one of the length of a frame. */
static __always_inline bool post_grow(struct __sk_buff *skb)
{
	(void)skb;
	return true;
}

/* Looks at a packet that leaves the host. */
static __always_inline void route_learn(struct __sk_buff *skb)
{
	(void)skb;
}
#endif
