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
#define ETHERTYPE 0x86dd
#define AT_FRAME KERNEL_UDP6
#define AT_IP_SIZE 18
#define ADDRESS_SIZE KERNEL_IP6
#else
#define ETHERTYPE 0x0800
#define AT_FRAME KERNEL_UDP4
#define AT_IP_SIZE 16
#define AT_IP_SUM 24
#define ADDRESS_SIZE KERNEL_IP4
#endif
#define UDP_SIZE(length) ((length)-AT_FROM_PORT) /* with its header */
#define VALUE_UNIT KERNEL_VALUE_UNIT
enum {
	AT_FROM = KERNEL_AT_IP(AT_FRAME, ADDRESS_SIZE),
	AT_TO = AT_FROM + ADDRESS_SIZE,
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

/* The packet, of `length` bytes, is one datagram: without an option, and no fragment. */
static __always_inline bool ip_fits(const void *p, uint32_t length)
{
	if (AT(p, AT_UDP_SIZE, uint16_t) != bpf_htons((uint16_t)UDP_SIZE(length)))
		return false;
#if PROGRAMS_IP == 6
	return AT(p, AT_PROTOCOL, uint16_t) == bpf_htons(ETHERTYPE) &&
	       (AT(p, 14, uint8_t) & 0xf0) == 0x60 &&
	       AT(p, AT_IP_SIZE, uint16_t) == AT(p, AT_UDP_SIZE, uint16_t) &&
	       AT(p, 20, uint8_t) == 17;
#else
	return AT(p, AT_PROTOCOL, uint16_t) == bpf_htons(ETHERTYPE) &&
	       AT(p, AT_IP_BEGIN, uint8_t) == 0x45 &&
	       AT(p, AT_IP_SIZE, uint16_t) == bpf_htons((uint16_t)(length - KERNEL_ETHER)) &&
	       (AT(p, 20, uint16_t) & bpf_htons(0x3fff)) == 0 &&
	       AT(p, AT_IP_PROTOCOL, uint8_t) == 17;
#endif
}

/* At these places of the packet are the port and IP of the NIC `name`. */
static __always_inline bool name_fits(const void *p, uint32_t port, uint32_t ip,
				      const volatile struct kernel_address *name)
{
	if (AT(p, port, uint16_t) != name->port)
		return false;
	for (uint32_t i = 0; i < ADDRESS_SIZE / 4; i++)
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
	uint32_t sum = bpf_htons(17) + AT(p, AT_UDP_SIZE, uint16_t);

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

/* The sum of a value, of whole words. */
static __always_inline uint32_t value_sum(const void *value, uint32_t length)
{
	return fold((uint32_t)bpf_csum_diff(NULL, 0, (void *)value, VALUE_LENGTH(length) & ~3u, 0));
}

/* value: its sum. A sum of 0 says that the packet has none, as IPv4 permits. */
static __always_inline bool sum_is_right(const void *p, uint32_t value)
{
	if (AT(p, AT_SUM, uint16_t) == 0)
		return PROGRAMS_IP == 4;
	return fold((uint32_t)bpf_csum_diff(NULL, 0, (void *)(p + AT_FROM_PORT), UDP_SIZE(FRAME),
					    sum_begin(p) + value)) == 0xffff;
}

/* The sum is right, or open. If it is both, nobody knows what the interface would do to our sends.
 */
static __always_inline bool sum_fits(const void *p, uint32_t value)
{
	return sum_is_open(p) != sum_is_right(p, value);
}

/* The packet, of `length` bytes, has headers of a frame for this NIC. */
static __always_inline bool headers_fit(const void *p, uint32_t length)
{
	return ip_fits(p, length) && name_fits(p, AT_TO_PORT, AT_TO, &self.at);
}

/* It comes from the NIC that fills this slot. */
static __always_inline bool source_fits(const void *p, const struct kernel_group *g, uint32_t slot)
{
	return name_fits(p, AT_FROM_PORT, AT_FROM, (const void *)g->source[slot]);
}

/* sum: that of the frame, all but its epoch. */
static __always_inline void sum_write(void *p, uint32_t sum, bool open)
{
	uint32_t epoch = AT(p, AT_EPOCH, uint32_t);
	uint16_t all = (uint16_t)~fold(sum + (epoch & 0xffff) + (epoch >> 16));

	AT(p, AT_SUM, uint16_t) = open ? sum_begin(p) : all ? all : 0xffff;
}

/* Makes the lengths in the headers those of a packet of `length` bytes. */
static __always_inline void lengths_write(void *p, uint32_t length)
{
#ifdef AT_IP_SUM
	const uint16_t before = AT(p, AT_IP_SIZE, uint16_t);

	AT(p, AT_IP_SIZE, uint16_t) = bpf_htons((uint16_t)(length - KERNEL_ETHER));
	AT(p, AT_IP_SUM, uint16_t) = ~fold((uint16_t)~AT(p, AT_IP_SUM, uint16_t) +
					   (uint16_t)~before + AT(p, AT_IP_SIZE, uint16_t));
#else
	AT(p, AT_IP_SIZE, uint16_t) = bpf_htons((uint16_t)UDP_SIZE(length));
#endif
	AT(p, AT_UDP_SIZE, uint16_t) = bpf_htons((uint16_t)UDP_SIZE(length));
}

/* Makes the headers those of a frame with a value. Returns what its length, in the header and the
 * pseudo-header, its version and the value add to the sum. */
static __always_inline uint32_t value_fit(void *p, const void *value, uint32_t length)
{
	lengths_write(p, FRAME + length);
	return 2u * bpf_htons((uint16_t)length) + (NBFW_FRAME_VERSION_VALUE - NBFW_FRAME_VERSION) +
	       value_sum(value, length);
}

/* Turns the packet of a post into one of the length of a frame. */
static __always_inline bool post_grow(struct __sk_buff *skb, uint32_t length)
{
	return bpf_skb_change_tail(skb, length, 0) == 0;
}

/* Notes the headers of a packet that leaves the host, if it is a frame of the daemon. */
static __always_inline void route_learn(struct __sk_buff *skb)
{
	const void *p = (void *)(long)skb->data;
	struct kernel_address to = { .version = self.at.version };
	struct kernel_route route = { 0 };

	if (skb->vlan_present || p + FRAME > (void *)(long)skb->data_end || !ip_fits(p, skb->len) ||
	    !name_fits(p, AT_FROM_PORT, AT_FROM, &self.at) ||
	    bpf_get_socket_cookie(skb) != self.cookie)
		return;
	route.time = bpf_ktime_get_ns();
	to.port = AT(p, AT_TO_PORT, uint16_t);
	for (uint32_t i = 0; i < ADDRESS_SIZE / 4; i++)
		to.ip[i] = AT(p, AT_TO + 4 * i, uint32_t);
	for (uint32_t at = 0; at < AT_FRAME; at += 2)
		AT(route.header, at, uint16_t) = AT(p, at, uint16_t);
	lengths_write(route.header, FRAME);
	bpf_map_update_elem(&routes, &to, &route, BPF_ANY);
}
#else
#define ETHERTYPE NBFW_ETHER_TYPE
#define VALUE_UNIT 1u
#define AT_FRAME KERNEL_ETHER
enum { AT_SOURCE = 6 };

/* The packet, of `length` bytes, has headers of a frame for this NIC. */
static __always_inline bool headers_fit(const void *p, uint32_t length)
{
	(void)length;
	return AT(p, AT_PROTOCOL, uint16_t) == bpf_htons(NBFW_ETHER_TYPE);
}

/* It comes from the NIC that fills this slot. */
static __always_inline bool source_fits(const void *p, const struct kernel_group *g, uint32_t slot)
{
	for (int i = 0; i < 6; i += 2)
		if (AT(p, AT_SOURCE + i, uint16_t) != *(uint16_t *)(g->source[slot] + i))
			return false;
	return true;
}

/* There is no sum. */
static __always_inline bool sum_is_open(const void *p)
{
	(void)p;
	return false;
}

static __always_inline uint32_t value_sum(const void *value, uint32_t length)
{
	(void)value, (void)length;
	return 0;
}

static __always_inline bool sum_fits(const void *p, uint32_t value)
{
	(void)p, (void)value;
	return true;
}

static __always_inline uint32_t value_fit(void *p, const void *value, uint32_t length)
{
	(void)p, (void)value, (void)length;
	return 0;
}

static __always_inline void sum_write(void *p, uint32_t sum, bool open)
{
	(void)p, (void)sum, (void)open;
}

/* Turns the packet of a post into one of the length of a frame. */
static __always_inline bool post_grow(struct __sk_buff *skb, uint32_t length)
{
	(void)skb, (void)length;
	return true;
}

/* Looks at a packet that leaves the host. */
static __always_inline void route_learn(struct __sk_buff *skb)
{
	(void)skb;
}
#endif
