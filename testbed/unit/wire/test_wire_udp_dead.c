/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_udp_dead.c - the wire "udp" beside neighbours that do not answer ARP, one or many: the
 * frames to them wait in the kernel, and stop no frame to others.
 *
 * Runs in a network namespace of its own, and skips where it may not make one.
 */
#include <sched.h>
#include <stdlib.h>

#include "udp.c"

#include "unit/said.h"

static bool has_network;

/* A pair of interfaces whose other end has no address: it answers no ARP. */
static bool network_make(void)
{
	return (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
	       system("exec 2>/dev/null; ip link set lo up && "
		      "ip link add v0 type veth peer name v1 && ip addr add 10.9.0.1/16 dev v0 && "
		      "ip link set v1 up && ip link set v0 up") == 0;
}

static const char *option_of(void *args, const char *key)
{
	return strcmp(key, "bind") == 0 ? args : NULL;
}

static struct wire_base *a, *b;
static struct nbnic nic[2];

static int setup(void **state)
{
	static const struct nbnic_ops none;
	const struct nbnic_config config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					     .budget_ns = NBNIC_BUDGET_NS_DEFAULT };
	char bind_to[] = "10.9.0.1:0";

	a = b = NULL;
	if (!has_network)
		return 0;
	assert_int_equal(udp_open("a", option_of, bind_to, &a), 0);
	assert_int_equal(udp_open("b", option_of, bind_to, &b), 0);
	assert_int_equal(nbnic_init(&nic[0], &none, NULL, 3, &a->addr, &config), 0);
	assert_int_equal(nbnic_init(&nic[1], &none, NULL, 3, &b->addr, &config), 0);
	return 0;
}

static int teardown(void **state)
{
	if (a)
		udp_close(a);
	if (b)
		udp_close(b);
	return 0;
}

static const struct nbfw_token token = { .type = NBFW_TOKEN, .handle = 7, .cookie = 9, .epoch = 1 };

static bool reaches(struct wire_base *from, struct wire_base *to, struct nbnic *at, uint64_t now)
{
	assert_true(udp_transmit(from, &to->addr, &token));
	return udp_poll(to, at, now, 8) == 1;
}

/* Sends 2,000 frames to NICs that nobody has, on n addresses; no frame is refused. */
static void send_to_dead(uint32_t n)
{
	struct nbnic_addr dead = a->addr;

	for (uint32_t i = 0; i < 2000; i++) {
		dead.byte[6] = (uint8_t)(1 + i % n / 200);
		dead.byte[7] = (uint8_t)(1 + i % n % 200);
		assert_true(udp_transmit(a, &dead, &token));
	}
}

/* A datagram that is no frame. */
static void send_nonsense(struct wire_base *from, const struct wire_base *to)
{
	const struct udp_wire *w = (const struct udp_wire *)from;
	union udp_name name;
	socklen_t length = addr_unpack(w, &to->addr, &name);

	assert_int_equal(sendto(w->fd, "?", 1, 0, &name.any, length), 1);
}

static void dead_neighbours(uint32_t n)
{
	const uint64_t now = HEARD_NS + 1;

	if (!has_network)
		skip();
	assert_true(reaches(b, a, &nic[0], now)); /* a hears b */
	send_to_dead(n);
	assert_true(a->errors > 0);
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(reaches(a, b, &nic[1], now));
	assert_int_equal(a->refused, 0);
	/* b falls silent, and is like the dead ones; then a hears it again. */
	(void)udp_poll(a, &nic[0], now + HEARD_NS, 8);
	assert_true(reaches(a, b, &nic[1], now + HEARD_NS));
	send_nonsense(b, a); /* which does not count */
	assert_int_equal(udp_poll(a, &nic[0], now + HEARD_NS + 1, 8), 1);
	send_to_dead(n);
	/* Some frames find room even so, if the dead ones are few: b may never have been heard. */
	for (uint32_t i = 0; i < QUIET_FRAMES; i++)
		assert_int_equal(reaches(a, b, &nic[1], now + HEARD_NS + 1), n < 1000);
	(void)udp_poll(a, &nic[0], now + HEARD_NS + 1 + QUIET_NS, 8);
	assert_false(reaches(a, b, &nic[1], now));
	(void)udp_poll(a, &nic[0], now + HEARD_NS + 2 + QUIET_NS, 8);
	assert_int_equal(reaches(a, b, &nic[1], now), n < 1000);
	assert_true(reaches(b, a, &nic[0], now + HEARD_NS + 2 + QUIET_NS));
	assert_true(reaches(a, b, &nic[1], now));
	assert_int_equal(a->refused, 0);
}

static void one(void **state)
{
	dead_neighbours(1);
}

static void ten(void **state)
{
	dead_neighbours(10);
}

static void thousand(void **state)
{
	dead_neighbours(1000);
}

/* Without dead neighbours, a NIC that was never heard gets every frame. */
static void strangers_get_frames(void **state)
{
	if (!has_network)
		skip();
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(reaches(a, b, &nic[1], 1));
	assert_int_equal(a->errors, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_IN(one, setup, teardown),
		UNIT_IN(ten, setup, teardown),
		UNIT_IN(thousand, setup, teardown),
		UNIT_IN(strangers_get_frames, setup, teardown),
	};

	has_network = network_make();
	if (!has_network)
		printf("# no network namespace with a pair of interfaces: needs root, and ip\n");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
