/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_udp.c - the wire "udp": each frame that its receive queue drops is counted once, and a
 * poll takes no more frames than its budget.
 *
 * A NIC without groups counts each received frame as a stranger.
 */
#include "udp.c"

#include "unit/unit.h"

#define FRAMES 200000u /* more frames than fit into any receive buffer that the kernel gives us */

static const char *loopback(void *args, const char *key)
{
	(void)args;
	return strcmp(key, "bind") == 0 ? "127.0.0.1:0" : NULL;
}

static struct wire_base *a, *b;
static struct nbnic nic;

static int setup(void **state)
{
	static const struct nbnic_ops none;
	const struct nbnic_config config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					     .budget_ns = NBNIC_BUDGET_NS_DEFAULT };

	(void)state;
	assert_int_equal(udp_open("a", loopback, NULL, &a), 0);
	assert_int_equal(udp_open("b", loopback, NULL, &b), 0);
	assert_int_equal(nbnic_init(&nic, &none, NULL, 3, &b->addr, &config), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
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
	(void)state;
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

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(budget, setup, teardown),
		cmocka_unit_test_setup_teardown(drops, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
