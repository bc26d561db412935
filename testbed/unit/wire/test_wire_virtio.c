/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_virtio.c - the wire of the bare-metal NIC without a machine: how a poll shares its
 * budget, and frames that find no room.
 *
 * Registers and rings are memory of the test, which acts as the device. A NIC without groups counts
 * each received frame as a stranger.
 */
#include "virtio_net.c"

#include "unit/unit.h"

static uint32_t registers[MMIO_STEP / 4];
static struct nbnic nic;

static const struct nbfw_token token = { .type = NBFW_TOKEN, .handle = 7, .cookie = 9, .epoch = 1 };

static int setup(void **state)
{
	static const struct nbnic_ops none;
	const struct nbnic_config config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					     .budget_ns = NBNIC_BUDGET_NS_DEFAULT };

	memset(&net, 0, sizeof(net));
	net.mmio = (uintptr_t)registers;
	net.mac[0] = 2;
	copy_mac(net.base.addr.byte, net.mac);
	assert_int_equal(nbnic_init(&nic, &none, NULL, KIND_ETHERNET, &net.base.addr, &config), 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		uint8_t *eth = net.rx.buffer[i] + NET_HEADER;

		copy_mac(eth, net.mac);
		eth[2 * MAC_SIZE - 1] = 9; /* of the sender */
		eth[2 * MAC_SIZE] = ETHER_TYPE_HIGH;
		eth[2 * MAC_SIZE + 1] = ETHER_TYPE_LOW;
		nbfw_token_pack(&token, eth + ETHER_HEADER);
		net.rx.used.entry[i].id = i;
		net.rx.used.entry[i].length = FRAME_AT + NBFW_FRAME_SIZE;
	}
	return 0;
}

static bool send_to(uint8_t last)
{
	struct nbnic_addr to = net.base.addr;

	to.byte[MAC_SIZE - 1] = last;
	return net_transmit(&net.base, &to, &token);
}

static unsigned poll_all(unsigned budget)
{
	uint64_t before = nic.counter[NBAR_COUNTER_frames_stranger];
	unsigned n = net_poll(&net.base, &nic, 1, budget);

	assert_int_equal(nic.counter[NBAR_COUNTER_frames_stranger] - before, n);
	return n;
}

/* Frames to itself and frames from outside come faster than polls take them: both get their
 * share. */
static void budget_is_shared(void **state)
{
	for (unsigned budget = 2; budget <= SLOTS; budget++) {
		uint32_t own = net.loop_head;
		uint16_t taken = net.rx.taken;

		while (net.loop_tail - net.loop_head < LOOP)
			assert_true(send_to(0));
		net.rx.used.idx = (uint16_t)(taken + SLOTS);
		assert_int_equal(poll_all(budget), budget);
		assert_int_equal(net.loop_head - own, (budget + 1) / 2);
		assert_int_equal((uint16_t)(net.rx.taken - taken), budget / 2);
		net.rx.taken = net.rx.used.idx;
	}
}

/* A token whose value fills a frame, and is not there any more when the frame arrives. */
static void send_value(uint8_t last, uint8_t fill)
{
	struct nbfw_value v = { .op = NBAR_BOR, .type = NBAR_UINT8, .count = { 0, 1 } };
	struct nbfw_token t = token;
	struct nbnic_addr to = net.base.addr;

	memset(v.byte, fill, NBAR_VALUE_MAX);
	t.value = &v;
	t.value_length = sizeof(v);
	to.byte[MAC_SIZE - 1] = last;
	assert_true(net_transmit(&net.base, &to, &t));
}

static void values_are_frames_of_their_length(void **state)
{
	struct nbfw_token t;

	send_value(9, 0x5a);
	assert_true(send_to(9));
	assert_int_equal(net.tx.desc[0].length, FRAME_AT + NBFW_FRAME_MAX);
	assert_int_equal(net.tx.desc[1].length, FRAME_AT + NBFW_FRAME_SIZE);
	assert_true(FRAME_AT + NBFW_FRAME_MAX <= BUFFER_BYTES);
	assert_true(nbfw_token_unpack(net.tx.buffer[0] + FRAME_AT, NBFW_FRAME_MAX, &t));
	assert_int_equal(t.value_length, NBFW_VALUE_HEAD + NBAR_VALUE_MAX);
	assert_int_equal(t.value->byte[NBAR_VALUE_MAX - 1], 0x5a);
	/* The device sends the buffer again, with a shorter frame. */
	net.tx.fresh = SLOTS;
	net.tx.used.idx = 1;
	assert_true(send_to(9));
	assert_int_equal(net.tx.desc[0].length, FRAME_AT + NBFW_FRAME_SIZE);
}

static void own_frames_keep_their_values(void **state)
{
	for (uint32_t i = 0; i < LOOP; i++)
		send_value(0, (uint8_t)i);
	for (uint32_t i = 0; i < LOOP; i++) {
		const struct nbfw_token *t = &net.loop[i];

		assert_int_equal(t->value_length, NBFW_VALUE_HEAD + NBAR_VALUE_MAX);
		assert_int_equal(t->value->byte[NBAR_VALUE_MAX - 1], i);
	}
	assert_int_equal(poll_all(2 * LOOP), LOOP);
}

/* The NIC returns free buffers to the device, but does not notify it of frames to itself. */
static void notifies(void **state)
{
	registers[REG_NOTIFY / 4] = 99;
	assert_true(send_to(0));
	assert_int_equal(poll_all(SLOTS), 1);
	assert_int_equal(registers[REG_NOTIFY / 4], 99);
	net.rx.used.idx = 1;
	assert_int_equal(poll_all(SLOTS), 1);
	assert_int_equal(registers[REG_NOTIFY / 4], 0);
}

static void refused_is_counted(void **state)
{
	for (uint32_t i = 0; i < LOOP; i++)
		assert_true(send_to(0));
	assert_false(send_to(0));
	assert_int_equal(net.base.refused, 1);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(send_to(9));
	assert_false(send_to(9));
	assert_int_equal(net.base.refused, 2);
	net.tx.used.idx++; /* the device has sent one */
	assert_true(send_to(9));
	assert_int_equal(net.base.refused, 2);
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(budget_is_shared, setup),
	  cmocka_unit_test_setup(values_are_frames_of_their_length, setup),
	  cmocka_unit_test_setup(own_frames_keep_their_values, setup),
	  cmocka_unit_test_setup(notifies, setup),
	  cmocka_unit_test_setup(refused_is_counted, setup))
