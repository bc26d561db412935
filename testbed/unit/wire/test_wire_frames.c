/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_frames.c - the bytes of each type of frame, as a plain socket sees them on the wire
 * "udp", and as it sends them; with and without the tag of a key. The bytes are written by hand
 * from WIRE.md, and the tag is made by a SipHash-2-4 of this file: so a mistake that packing and
 * unpacking share shows, too.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "nic.h"

static void take_received(struct nbnic *nic, const struct nbnic_addr *from,
			  const struct nbfw_token *t, uint64_t now);
#define nbnic_receive take_received
#include "udp.c"
#undef nbnic_receive

#include "unit/said.h"

static struct nbfw_token received;
static struct nbnic_addr received_from;
static uint32_t nreceived;

static void take_received(struct nbnic *nic, const struct nbnic_addr *from,
			  const struct nbfw_token *t, uint64_t now)
{
	assert_true(now == 5);
	received = *t;
	received_from = *from;
	nreceived++;
}

/* --- SipHash-2-4, from its paper ----------------------------------------------------------------
 */

static uint64_t rotate(uint64_t v, unsigned by)
{
	return v << by | v >> (64 - by);
}

static void sip_rounds(uint64_t v[4], unsigned n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static uint64_t little(const uint8_t *at, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)at[i] << (8 * i);
	return v;
}

static void siphash(const uint8_t key[16], const uint8_t *in, size_t n, uint8_t out[8])
{
	uint64_t k0 = little(key, 8), k1 = little(key + 8, 8), m;
	uint64_t v[4] = { k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
			  k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573) };

	for (size_t at = 0; at <= n; at += 8) {
		m = n - at >= 8 ? little(in + at, 8) : little(in + at, n - at) | (uint64_t)n << 56;
		v[3] ^= m;
		sip_rounds(v, 2);
		v[0] ^= m;
	}
	v[2] ^= 0xff;
	sip_rounds(v, 4);
	m = v[0] ^ v[1] ^ v[2] ^ v[3];
	for (unsigned i = 0; i < 8; i++)
		out[i] = (uint8_t)(m >> (8 * i));
}

/* The example of the paper. */
static void the_hash(void **state)
{
	static const uint8_t expected[] = { 0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1 };
	uint8_t key[16], in[15], out[8];

	for (uint8_t i = 0; i < 16; i++)
		key[i] = i;
	memcpy(in, key, sizeof(in));
	siphash(key, in, sizeof(in), out);
	assert_memory_equal(out, expected, sizeof(out));
}

/* --- frames --------------------------------------------------------------------------------------
 */

/* Each field has bytes of its own, so that no two can change places unseen. */
static const struct {
	struct nbfw_token token;
	uint8_t frame[48];
} frames[] = {
	{ { .type = NBFW_TOKEN,
	    .handle = 0x04030201,
	    .cookie = UINT64_C(0x1817161514131211),
	    .src = 0x24232221,
	    .epoch = 0x34333231,
	    .slot = 0x44434241,
	    .arg = 0xffffffff,
	    .info = 0x64636261,
	    .sender = 0x74737271 },
	  { 2,    1,    0,    0,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14,
	    0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
	    0x41, 0x42, 0x43, 0x44, 0xff, 0xff, 0xff, 0xff, 0x61, 0x62, 0x63, 0x64,
	    0x71, 0x72, 0x73, 0x74, 0,    0,    0,    0,    0,    0,    0,    0 } },
	{ { .type = NBFW_PULL,
	    .handle = 0x04030201,
	    .cookie = UINT64_C(0x1817161514131211),
	    .src = 0x24232221,
	    .epoch = 0x34333231,
	    .slot = 0x44434241,
	    .arg = 0x54535251,
	    .info = 0x64636261,
	    .sender = 0x74737271,
	    .reply_cookie = UINT64_C(0x8887868584838281) },
	  { 2,    2,    0,    0,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14,
	    0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
	    0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53, 0x54, 0x61, 0x62, 0x63, 0x64,
	    0x71, 0x72, 0x73, 0x74, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88 } },
	{ { .type = NBFW_LATER,
	    .handle = 0x04030201,
	    .cookie = UINT64_C(0x1817161514131211),
	    .src = 0x24232221,
	    .epoch = 0x34333231,
	    .slot = 0x44434241,
	    .arg = 0x54535251,
	    .info = 0x20050002, /* kind 1, age 5, step 2 */
	    .sender = 0x74737271 },
	  { 2,    3,    0,    0,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14,
	    0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
	    0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53, 0x54, 0x02, 0x00, 0x05, 0x20,
	    0x71, 0x72, 0x73, 0x74, 0,    0,    0,    0,    0,    0,    0,    0 } },
	{ { .type = NBFW_ABORT,
	    .handle = 0x04030201,
	    .cookie = UINT64_C(0x1817161514131211),
	    .src = 0x24232221,
	    .epoch = 0x34333231,
	    .slot = 0x44434241,
	    .arg = 0x54535251,
	    .info = NBAR_STATUS_NIC_DOWN,
	    .sender = 0x74737271 },
	  { 2,    4,    0,    0,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14,
	    0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
	    0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53, 0x54, 4,    0,    0,    0,
	    0x71, 0x72, 0x73, 0x74, 0,    0,    0,    0,    0,    0,    0,    0 } },
	{ { .type = NBFW_SIGNAL,
	    .handle = 0x04030201,
	    .cookie = UINT64_C(0x1817161514131211),
	    .src = 0x24232221,
	    .word = { 0x34333231, 0x44434241, 0x54535251, 0x64636261, 0x74737271 },
	    .reply_cookie = 0x84838281 },
	  { 2,    5,    0,    0,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14,
	    0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
	    0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53, 0x54, 0x61, 0x62, 0x63, 0x64,
	    0x71, 0x72, 0x73, 0x74, 0x81, 0x82, 0x83, 0x84, 0,    0,    0,    0 } },
	{ { .type = NBFW_PROBE,
	    .handle = 0x04030201,
	    .cookie = UINT64_C(0x1817161514131211),
	    .src = 0x24232221,
	    .slot = 0x44434241,
	    .arg = 0x54535251,
	    .sender = 0x74737271,
	    .reply_cookie = UINT64_C(0x8887868584838281) },
	  { 2,    6,    0,    0,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14,
	    0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0,    0,    0,    0,
	    0x41, 0x42, 0x43, 0x44, 0x51, 0x52, 0x53, 0x54, 0,    0,    0,    0,
	    0x71, 0x72, 0x73, 0x74, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88 } },
	{ { .type = NBFW_ECHO,
	    .handle = 0x04030201,
	    .cookie = UINT64_C(0x1817161514131211),
	    .src = 0x24232221,
	    .slot = 0x44434241,
	    .arg = 0xffffffff,
	    .sender = 0x74737271 },
	  { 2,    7,    0,    0,    0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14,
	    0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0,    0,    0,    0,
	    0x41, 0x42, 0x43, 0x44, 0xff, 0xff, 0xff, 0xff, 0,    0,    0,    0,
	    0x71, 0x72, 0x73, 0x74, 0,    0,    0,    0,    0,    0,    0,    0 } },
};
#define FRAMES (sizeof(frames) / sizeof(frames[0]))
_Static_assert(FRAMES == NBFW_TYPE_END - 1, "each type has a row");

static struct wire_base *a;
static struct wire_auth auth;
static struct nbnic nic;
static int peer = -1;
static struct sockaddr_in peer_name, a_name;
static const uint8_t key[16] = "a key of 16 byte";
static bool tagged;

static const char *option_of(void *args, const char *name)
{
	return strcmp(name, "bind") == 0 ? args : NULL;
}

/* The address of a NIC at 127.0.0.1, by hand. */
static void address_of(const struct sockaddr_in *n, uint8_t out[NBNIC_ADDR_SIZE])
{
	const uint8_t *port = (const uint8_t *)&n->sin_port; /* network order */

	memset(out, 0, NBNIC_ADDR_SIZE);
	out[0] = 4;
	out[2] = port[0];
	out[3] = port[1];
	out[4] = 127;
	out[7] = 1;
	if (tagged)
		siphash(key, (const uint8_t *)"nbar key", 8, out + 40);
}

static int begin(bool with_key)
{
	char bind_to[] = "127.0.0.1:0", path[] = "/tmp/nbar-frames-XXXXXX";
	socklen_t length = sizeof(peer_name);
	int fd;

	tagged = with_key;
	nreceived = 0;
	assert_int_equal(udp_open("a", option_of, bind_to, &a), 0);
	assert_int_equal(getsockname(((struct udp_wire *)a)->fd, (void *)&a_name, &length), 0);
	if (with_key) {
		fd = mkstemp(path);
		assert_true(fd >= 0 && write(fd, key, sizeof(key)) == sizeof(key));
		close(fd);
		assert_int_equal(wire_auth_load("key", path, &auth), 0);
		unlink(path);
		wire_auth_use(a, &auth);
	}
	peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	peer_name = (struct sockaddr_in){ .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(peer, (void *)&peer_name, sizeof(peer_name)), 0);
	length = sizeof(peer_name);
	return getsockname(peer, (void *)&peer_name, &length);
}

static int plain(void **state)
{
	return begin(false);
}

static int with_key(void **state)
{
#ifdef WIRES_SODIUM
	return begin(true);
#else
	return 0;
#endif
}

static int end(void **state)
{
	if (a)
		udp_close(a);
	close(peer);
	a = NULL;
	return 0;
}

/* The bytes of a frame between these two, in this direction. Returns their number. */
static size_t by_hand(const uint8_t frame[48], const struct sockaddr_in *from,
		      const struct sockaddr_in *to, uint8_t out[56])
{
	uint8_t address[NBNIC_ADDR_SIZE], text[128];

	memcpy(out, frame, 48);
	if (!tagged)
		return 48;
	out[0] = 0x42;
	address_of(from, address);
	memcpy(text, address, 40);
	address_of(to, address);
	memcpy(text + 40, address, 40);
	memcpy(text + 80, out, 48);
	siphash(key, text, sizeof(text), out + 48);
	return 56;
}

static void each_frame(void **state)
{
	struct nbnic_addr to;
	uint8_t got[100], expected[56];

	if (!a)
		skip();
	address_of(&peer_name, to.byte);
	for (size_t i = 0; i < FRAMES; i++) {
		size_t n = by_hand(frames[i].frame, &a_name, &peer_name, expected);

		assert_true(udp_transmit(a, &to, &frames[i].token));
		assert_int_equal(recv(peer, got, sizeof(got), 0), n);
		assert_memory_equal(got, expected, n);
		n = by_hand(frames[i].frame, &peer_name, &a_name, expected);
		assert_int_equal(
			sendto(peer, expected, n, 0, (const void *)&a_name, sizeof(a_name)), n);
		assert_int_equal(udp_poll(a, &nic, 5, 8), 1);
		assert_int_equal(nreceived, i + 1);
		assert_memory_equal(&received_from, &to, sizeof(to));
		assert_int_equal(received.type, frames[i].token.type);
		assert_int_equal(received.handle, frames[i].token.handle);
		assert_true(received.cookie == frames[i].token.cookie);
		assert_int_equal(received.src, frames[i].token.src);
		assert_memory_equal(received.word, frames[i].token.word, sizeof(received.word));
		assert_true(received.reply_cookie == frames[i].token.reply_cookie);
	}
	assert_int_equal(a->malformed + a->errors + a->refused, 0);
}

/* The address that a NIC gives to others. */
static void own_address(void **state)
{
	uint8_t expected[NBNIC_ADDR_SIZE];

	if (!a)
		skip();
	address_of(&a_name, expected);
	assert_memory_equal(a->addr.byte, expected, sizeof(expected));
}

UNIT_MAIN(NULL, NULL, UNIT(the_hash), { "each_frame", each_frame, plain, end, NULL },
	  { "each_frame_with_a_tag", each_frame, with_key, end, NULL },
	  { "own_address", own_address, plain, end, NULL },
	  { "own_address_with_a_key", own_address, with_key, end, NULL })
