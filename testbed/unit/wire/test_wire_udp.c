/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_udp.c - the wire "udp": its options, IPv4 and IPv6; each frame that its receive queue
 * drops is counted once; a poll takes no more frames than its budget; a frame that the kernel
 * refuses is sent again, or is an error.
 *
 * A NIC without groups counts each received frame as a stranger.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>

static int send_error; /* errno of the next calls; 0: they send */

static ssize_t sendto_or_fail(int fd, const void *data, size_t size, int flags,
			      const struct sockaddr *to, socklen_t length);
static int unsent; /* bytes in the send buffer, as the kernel says */

#define sendto sendto_or_fail
#define ioctl(fd, what, bytes) (*(bytes) = unsent, 0)
#include "udp.c"
#undef ioctl
#undef sendto

#include "unit/said.h"

#define FRAMES 200000u /* more frames than fit into any receive buffer that the kernel gives us */

static ssize_t sendto_or_fail(int fd, const void *data, size_t size, int flags,
			      const struct sockaddr *to, socklen_t length)
{
	if (send_error == 0)
		return sendto(fd, data, size, flags, to, length);
	errno = send_error;
	return -1;
}

struct options {
	const char *bind, *address; /* NULL: not given */
};

static const char *option_of(void *args, const char *key)
{
	const struct options *o = args;

	return strcmp(key, "bind") == 0 ? o->bind : strcmp(key, "address") == 0 ? o->address : NULL;
}

static struct wire_base *a, *b;
static struct nbnic nic;

static int setup_on(const char *bind_to)
{
	static const struct nbnic_ops none;
	const struct nbnic_config config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					     .budget_ns = NBNIC_BUDGET_NS_DEFAULT };
	struct options options = { .bind = bind_to };

	a = b = NULL;
	send_error = unsent = 0;
	if (udp_open("a", option_of, &options, &a) < 0)
		return -1;
	assert_int_equal(udp_open("b", option_of, &options, &b), 0);
	assert_int_equal(nbnic_init(&nic, &none, NULL, 3, &b->addr, &config), 0);
	return 0;
}

static int setup(void **state)
{
	return setup_on("127.0.0.1:0");
}

static int teardown(void **state)
{
	udp_close(a);
	udp_close(b);
	return 0;
}

static void transmit(uint32_t frames)
{
	const struct nbfw_token t = { .type = NBFW_TOKEN, .handle = 7, .cookie = 9, .epoch = 1 };

	for (uint32_t i = 0; i < frames; i++)
		assert_true(udp_transmit(a, &b->addr, &t));
}

static void budget(void **state)
{
	transmit(100);
	assert_int_equal(udp_poll(b, &nic, 0, 70), 70);
	assert_int_equal(udp_poll(b, &nic, 0, 70), 30);
	assert_int_equal(udp_poll(b, &nic, 0, 70), 0);
	assert_int_equal(nic.counter[NBAR_COUNTER_frames_stranger], 100);
	assert_int_equal(b->drops, 0);
}

/* The number comes with a datagram, so the test sends one more when there is room again. */
static void drops(void **state)
{
	uint64_t taken;

	transmit(FRAMES);
	for (uint32_t i = 0; i < FRAMES && udp_poll(b, &nic, 0, 1000) > 0; i++)
		;
	transmit(1);
	assert_int_equal(udp_poll(b, &nic, 0, 1000), 1);
	taken = nic.counter[NBAR_COUNTER_frames_stranger];
	assert_true(b->drops > 0);
	assert_int_equal(taken + b->drops, FRAMES + 1);
	transmit(1);
	assert_int_equal(udp_poll(b, &nic, 0, 1000), 1);
	assert_int_equal(taken + b->drops, FRAMES + 1);
}

static bool has_ipv6(void)
{
	const struct sockaddr_in6 self = { .sin6_family = AF_INET6,
					   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	bool has = fd >= 0 && bind(fd, (const void *)&self, sizeof(self)) == 0;

	if (fd >= 0)
		close(fd);
	return has;
}

/* The receiver sees the address that the sender calls its own. */
static void sees_sender(void)
{
	struct nbnic_addr from;

	transmit(1);
	assert_int_equal(udp_poll(b, &nic, 0, 1), 1);
	assert_int_equal(nic.counter[NBAR_COUNTER_frames_stranger], 1);
	addr_pack(&((struct udp_wire *)b)->from[0], &from);
	assert_memory_equal(&from, &a->addr, sizeof(from));
}

static void ipv4(void **state)
{
	sees_sender();
}

static void ipv6(void **state)
{
	if (!has_ipv6())
		skip();
	assert_int_equal(setup_on("[::1]:0"), 0);
	sees_sender();
	teardown(state);
}

/* An address of the other family is an error, not a frame to send again. */
static void other_family(void **state)
{
	struct nbnic_addr six = { { 6, 0, 1, 2 } }, none = { { 0 } };
	const struct nbfw_token t = { .type = NBFW_TOKEN };

	assert_true(udp_transmit(a, &six, &t));
	assert_true(udp_transmit(a, &none, &t));
	assert_int_equal(a->errors, 2);
	assert_int_equal(a->refused, 0);
	for (uint32_t version = 0; version < 256; version++)
		for (uint32_t i = 0; i < 2; i++) {
			const struct udp_wire w = { .family = i ? AF_INET6 : AF_INET };
			union udp_name name;

			six.byte[0] = (uint8_t)version;
			assert_int_equal(addr_unpack(&w, &six, &name),
					 version == 4 && !i  ? sizeof(name.in)
					 : version == 6 && i ? sizeof(name.in6)
							     : 0);
		}
}

/* Peers do not send the number of an interface: it is that of our own link-local address. */
static void link_local(void **state)
{
	struct udp_wire w = { .family = AF_INET6, .scope = 5 };
	struct nbnic_addr near = { { 6, 0, 1, 2, 0xfe, 0x80 } }, far = { { 6, 0, 1, 2, 0x20, 1 } };
	union udp_name name;

	assert_int_equal(addr_unpack(&w, &near, &name), sizeof(name.in6));
	assert_int_equal(name.in6.sin6_scope_id, 5);
	assert_int_equal(addr_unpack(&w, &far, &name), sizeof(name.in6));
	assert_int_equal(name.in6.sin6_scope_id, 0);
	assert_int_equal(ntohs(name.in6.sin6_port), 0x102);
}

static void refused(void **state)
{
	static const int full[] = { EAGAIN, ENOBUFS };
	const struct nbfw_token t = { .type = NBFW_TOKEN };

	for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
		send_error = full[i];
		assert_false(udp_transmit(a, &b->addr, &t));
		assert_int_equal(a->refused, i + 1);
	}
	assert_int_equal(a->errors, 0);
	send_error = EPERM;
	assert_true(udp_transmit(a, &b->addr, &t));
	assert_int_equal(a->errors, 1);
}

#define SECOND UINT64_C(1000000000)

/* Frames that a NIC gets at this time, of ten. */
static uint32_t frames_at(struct udp_wire *w, const struct nbnic_addr *to, uint64_t now)
{
	uint32_t n = 0;

	w->now = now;
	for (uint32_t i = 0; i < 10; i++)
		n += has_room(w, to);
	return n;
}

/* A NIC that was not heard for 2 s gets all frames while half of the send buffer is empty, and up
 * to seven eighths of it 4 frames in 4 s. */
static void room_for_silent_nics(void **state)
{
	struct udp_wire *w = (struct udp_wire *)a;
	const struct nbnic_addr one = { { 4, 0, 0, 7, 10, 0, 0, 1 } }, two = { { 4, 0, 0, 7, 9 } };
	const uint64_t now = 100 * SECOND;
	int buffer;
	socklen_t size = sizeof(buffer);

	assert_int_equal(getsockopt(w->fd, SOL_SOCKET, SO_SNDBUF, &buffer, &size), 0);
	assert_int_equal(w->silent_max, buffer / 2);
	w->silent_max = 1000;
	unsent = 999;
	assert_int_equal(frames_at(w, &one, now), 10);
	unsent = 1000;
	assert_int_equal(frames_at(w, &one, now), 4);
	assert_int_equal(frames_at(w, &one, now + 4 * SECOND), 0);
	unsent = 1749;
	assert_int_equal(frames_at(w, &one, now + 4 * SECOND + 1), 4);
	assert_int_equal(frames_at(w, &one, now + 8 * SECOND + 1), 0);
	unsent = 1750;
	assert_int_equal(frames_at(w, &two, now + 9 * SECOND), 0);
	note_heard(w, &two);
	assert_int_equal(frames_at(w, &two, now + 11 * SECOND), 10);
	assert_int_equal(frames_at(w, &two, now + 11 * SECOND + 1), 0);
}

/* A child does not keep the socket of its parent. */
static void forked(void **state)
{
	struct options options = { .bind = "127.0.0.1:0" };
	struct wire_base *w;

	assert_int_equal(udp_open("parent", option_of, &options, &w), 0);
	udp_forked(w);
	assert_int_equal(fcntl(((struct udp_wire *)w)->fd, F_GETFD), -1);
	((struct udp_wire *)w)->fd = -1;
	udp_close(w);
}

/* Another wire has the port. */
static void taken(void **state)
{
	struct options options = { .bind = a->text };
	struct wire_base *w;
	const char *text;
	int rc;

	said_begin();
	rc = udp_open("second", option_of, &options, &w);
	text = said_end();
	assert_int_equal(rc, -EADDRINUSE);
	assert_non_null(strstr(text, a->text));
}

/* A wire without options takes an address of this machine, and says why this one. */
static void by_default(void **state)
{
	struct options options = { NULL, NULL };
	struct wire_base *w;

	assert_int_equal(udp_open("n", option_of, &options, &w), 0);
	assert_true(w->addr.byte[0] == 4 || w->addr.byte[0] == 6);
	assert_memory_not_equal(w->addr.byte + 4, "\0\0\0\0", 4);
	assert_string_not_equal(w->why, "");
	udp_close(w);
}

/* A wire on a wildcard sends from the address that it tells peers, though another address of this
 * machine is nearer to the peer. */
static void sends_from_address(void **state)
{
	struct options options = { .bind = "0.0.0.0:0", .address = "127.0.0.2" };
	struct nbnic_addr from;

	udp_close(a);
	assert_int_equal(udp_open("a", option_of, &options, &a), 0);
	assert_string_equal(a->why, "as address= says");
	transmit(1);
	assert_int_equal(udp_poll(b, &nic, 0, 1), 1);
	addr_pack(&((struct udp_wire *)b)->from[0], &from);
	assert_memory_equal(&from, &a->addr, sizeof(from));
}

/* An address that a translator gives: the wire receives at all addresses of this machine. */
static void address_of_translator(void **state)
{
	struct options options = { .bind = "0.0.0.0:0", .address = "192.0.2.77" };
	union udp_name self;
	socklen_t length = sizeof(self);
	struct wire_base *w;

	assert_int_equal(udp_open("n", option_of, &options, &w), 0);
	assert_ptr_equal(strstr(w->text, "192.0.2.77:"), w->text);
	assert_int_equal(getsockname(((struct udp_wire *)w)->fd, &self.any, &length), 0);
	assert_true(is_wildcard(&self));
	assert_memory_equal(w->addr.byte + 2, &self.in.sin_port, 2);
	udp_close(w);
}

/* People see the zone of a link-local address: without it, they cannot use the address. */
static void zone_shown(void **state)
{
	const union udp_name name = { .in6 = { .sin6_family = AF_INET6,
					       .sin6_port = htons(7000),
					       .sin6_addr.s6_addr = { 0xfe, 0x80, [15] = 1 },
					       .sin6_scope_id = 1 } };
	char text[64];

	name_show(&name, text, sizeof(text));
	assert_string_equal(text, "[fe80::1%lo]:7000");
}

#define LONG "1111111111111111111111111111111111111111111111111111111111111111"

struct opened {
	struct options options;
	const char *said; /* the error, or how the address begins */
	int error;
};

static const struct opened opened[] = {
	{ { "127.0.0.1:0", NULL }, "127.0.0.1:", 0 },
	{ { "[127.0.0.1]:0", NULL }, "127.0.0.1:", 0 },
	{ { "0.0.0.0:0", "127.0.0.1" }, "127.0.0.1:", 0 },
	{ { NULL, "127.0.0.1" }, "127.0.0.1:", 0 },
	{ { "127.0.0.1", NULL }, "bind=127.0.0.1 is not ADDRESS:PORT", -EINVAL },
	{ { "127.0.0.1:65536", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { "127.0.0.1:", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { "127.0.0.1:7x", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { "127.0.0.1:/1", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { "127.0.0.1:-1", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { ":0", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { "[]:0", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { LONG ":0", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { "localhost:0", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { "0.0.0.0:0", NULL }, "is every address of this machine", -EINVAL },
	{ { "0.0.0.0:0", "0.0.0.0" }, "address=0.0.0.0 is not the address", -EINVAL },
	{ { "0.0.0.0:0", "::1" }, "one of address=::1 and bind=0.0.0.0:0 is of IPv4", -EINVAL },
	{ { "0.0.0.0:0", "127.0.0.1:7" }, "is not the address", -EINVAL },
};

static const struct opened opened_ipv6[] = {
	{ { "[::1]:0", NULL }, "[::1]:", 0 },
	{ { "::1:0", NULL }, "[::1]:", 0 },
	{ { "[::]:0", "::1" }, "[::1]:", 0 },
	{ { "[::]:0", "[::1]" }, "[::1]:", 0 },
	{ { "[::1:0", NULL }, "is not ADDRESS:PORT", -EINVAL },
	{ { "[::]:0", NULL }, "is every address of this machine", -EINVAL },
	{ { "[::]:0", "::" }, "address=:: is not the address", -EINVAL },
	{ { "[::]:0", "127.0.0.1" }, "one of address=127.0.0.1 and bind=[::]:0 is of", -EINVAL },
	{ { NULL, "::1" }, "[::1]:", 0 },
};

static void opens(const struct opened *o)
{
	struct options options = o->options;
	struct wire_base *w = NULL;
	const char *text;
	int rc;

	said_begin();
	rc = udp_open("n", option_of, &options, &w);
	text = said_end();
	if (rc == 0)
		text = w->text;
	if (rc != o->error || !strstr(text, o->said) || (rc == 0 && strstr(text, o->said) != text))
		fail_msg("bind=%s address=%s: %d, %s", options.bind ? options.bind : "-",
			 options.address ? options.address : "-", rc, text);
	if (rc == 0)
		udp_close(w);
}

static void options(void **state)
{
	for (size_t i = 0; i < sizeof(opened) / sizeof(opened[0]); i++)
		opens(&opened[i]);
}

static void options_ipv6(void **state)
{
	if (!has_ipv6())
		skip();
	for (size_t i = 0; i < sizeof(opened_ipv6) / sizeof(opened_ipv6[0]); i++)
		opens(&opened_ipv6[i]);
}

UNIT_MAIN(NULL, NULL, UNIT_IN(budget, setup, teardown), UNIT_IN(drops, setup, teardown),
	  UNIT_IN(ipv4, setup, teardown), UNIT(ipv6), UNIT_IN(other_family, setup, teardown),
	  UNIT_IN(refused, setup, teardown), UNIT_IN(room_for_silent_nics, setup, teardown),
	  UNIT(link_local), UNIT(forked), UNIT_IN(taken, setup, teardown), UNIT(by_default),
	  UNIT_IN(sends_from_address, setup, teardown), UNIT(address_of_translator),
	  UNIT(zone_shown), UNIT(options), UNIT(options_ipv6))
