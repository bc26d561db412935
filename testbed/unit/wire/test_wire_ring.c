/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_ring.c - the wire "ring": frames in order, to the right NIC and from the right sender;
 * a full queue, its wrap, foreign addresses, and NICs that are gone.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "unit/said.h"
#include "wire.h"

#define RING_SIZE 65536u /* as in ring.c */

extern const struct wire_ops wire_ring_ops;

/* The call that fails, and what the wire holds. */
static enum { NOTHING, WIRE, RANDOM, FRAMES } fails;
static int blocks;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	blocks += fails != WIRE;
	return fails == WIRE ? NULL : __real_calloc(n, size);
}

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size)
{
	blocks += fails != FRAMES;
	return fails == FRAMES ? NULL : __real_aligned_alloc(align, size);
}

void __real_free(void *p);
void __wrap_free(void *p)
{
	blocks -= p != NULL;
	__real_free(p);
}

ssize_t __real_getrandom(void *p, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *p, size_t size, unsigned flags)
{
	errno = EAGAIN;
	return fails == RANDOM ? -1 : __real_getrandom(p, size, flags);
}

static struct end {
	struct wire_base *wire;
	struct nbnic nic;
} end[3];

static int setup(void **state)
{
	static const struct nbnic_ops none;
	const struct nbnic_config config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					     .budget_ns = NBNIC_BUDGET_NS_DEFAULT };

	for (uint16_t i = 0; i < 3; i++) {
		assert_int_equal(wire_ring_ops.open("test", NULL, NULL, &end[i].wire), 0);
		assert_int_equal(
			nbnic_init(&end[i].nic, &none, NULL, i, &end[i].wire->addr, &config), 0);
		assert_int_equal(wire_ring_ops.poll(end[i].wire, &end[i].nic, 1, 8), 0);
	}
	return 0;
}

static int teardown(void **state)
{
	for (uint32_t i = 0; i < 3; i++)
		if (end[i].wire)
			wire_ring_ops.close(end[i].wire);
	return 0;
}

static bool send_to(uint32_t from, uint32_t to)
{
	const struct nbfw_token t = { .type = NBFW_TOKEN, .handle = 7, .cookie = 9, .epoch = 1 };

	return wire_ring_ops.transmit(end[from].wire, &end[to].wire->addr, &t);
}

/* A NIC without groups counts each received frame as a stranger. */
static uint64_t taken(uint32_t i)
{
	return end[i].nic.counter[NBAR_COUNTER_frames_stranger];
}

static unsigned poll_end(uint32_t i, unsigned budget)
{
	return wire_ring_ops.poll(end[i].wire, &end[i].nic, 2, budget);
}

static void each_frame_has_its_nic(void **state)
{
	assert_true(send_to(0, 1) && send_to(0, 2) && send_to(1, 2) && send_to(2, 2));
	/* The NIC that is polled serves the others, too, within its budget. */
	assert_int_equal(poll_end(0, 3), 3);
	assert_int_equal(taken(1), 1);
	assert_int_equal(taken(2), 2);
	assert_int_equal(poll_end(1, 3), 1);
	assert_int_equal(taken(2), 3);
	assert_int_equal(poll_end(1, 3), 0);
	assert_int_equal(taken(0), 0);
}

static void full_queue(void **state)
{
	for (uint32_t i = 0; i < RING_SIZE; i++)
		assert_true(send_to(0, 1));
	assert_false(send_to(0, 1));
	assert_int_equal(end[0].wire->refused, 1);
	assert_int_equal(end[0].wire->errors, 0);
	assert_int_equal(poll_end(1, 1), 1);
	assert_true(send_to(0, 1));
	assert_false(send_to(0, 1));
	/* Round and round, never empty. */
	for (uint32_t i = 0; i < 3 * RING_SIZE; i++) {
		assert_int_equal(poll_end(1, 1), 1);
		assert_true(send_to(0, i % 2 ? 1 : 2));
	}
	assert_int_equal(poll_end(1, RING_SIZE + 1), RING_SIZE);
	assert_int_equal(poll_end(1, 1), 0);
	assert_int_equal(taken(1) + taken(2), 4 * RING_SIZE + 1);
	assert_int_equal(taken(2), 3 * RING_SIZE / 2);
}

/* Such frames are lost, and nobody has to wait. */
static void frames_to_nobody(void **state)
{
	const struct nbfw_token t = { .type = NBFW_TOKEN };
	struct nbnic_addr addr = end[1].wire->addr;

	addr.byte[0] ^= 1; /* of another daemon */
	assert_true(wire_ring_ops.transmit(end[0].wire, &addr, &t));
	addr.byte[0] ^= 1;
	addr.byte[8] = 200; /* a NIC that was never there */
	assert_true(wire_ring_ops.transmit(end[0].wire, &addr, &t));
	assert_int_equal(end[0].wire->errors, 2);
	assert_int_equal(poll_end(1, 1), 0);
	/* The receiver, or the sender, has closed its wire meanwhile. */
	assert_true(send_to(0, 1) && send_to(2, 0) && send_to(0, 2));
	wire_ring_ops.close(end[1].wire);
	wire_ring_ops.close(end[2].wire);
	end[1].wire = end[2].wire = NULL;
	assert_int_equal(poll_end(0, 8), 3);
	assert_int_equal(taken(0) + taken(1) + taken(2), 0);
}

static void addresses(void **state)
{
	char text[16];

	wire_ring_ops.show(end[2].wire, &end[1].wire->addr, text, sizeof(text));
	assert_string_equal(text, end[1].wire->text);
	assert_string_not_equal(text, end[2].wire->text);
	assert_memory_equal(text, "ring:", 5);
	assert_int_equal(wire_ring_ops.wakes(end[0].wire), -1);
	/* The random id of the daemon, which no index changes. */
	assert_memory_equal(end[0].wire->addr.byte, end[1].wire->addr.byte, 8);
	assert_memory_not_equal(end[0].wire->addr.byte, end[0].wire->addr.byte + 12, 8);
	for (uint32_t at = 12; at < NBNIC_ADDR_SIZE; at++)
		assert_int_equal(end[1].wire->addr.byte[at], 0);
}

/* Frames that were under way when the last NIC ended reach no later NIC. */
static void starts_anew(void **state)
{
	assert_true(send_to(0, 1) && send_to(0, 2));
	assert_int_equal(poll_end(0, 1), 1);
	teardown(state);
	setup(state); /* polls each NIC, and expects nothing */
	assert_true(send_to(0, 1));
	assert_int_equal(poll_end(0, 8), 1);
}

/* The first test: only the first wire of a daemon needs all of this. */
static void opens_that_fail(void **state)
{
	static const char *const says[] = {
		[WIRE] = "nic test: no memory for a wire",
		[RANDOM] = "nic test: the system gives no random numbers: "
			   "Resource temporarily unavailable",
		[FRAMES] = "nic test: no memory for a ring of 4096 KiB",
	};
	static const int rc[] = { [WIRE] = -ENOMEM, [RANDOM] = -EIO, [FRAMES] = -ENOMEM };
	struct wire_base *wire = NULL;

	for (fails = WIRE; fails <= FRAMES; fails++) {
		said_begin();
		assert_int_equal(wire_ring_ops.open("test", NULL, NULL, &wire), rc[fails]);
		assert_non_null(strstr(said_end(), says[fails]));
		assert_null(wire);
		assert_int_equal(blocks, 0);
	}
	fails = NOTHING;
}

/* The last test. */
static void nothing_is_left(void **state)
{
	assert_int_equal(blocks, 0);
}

#define TEST(name) UNIT_IN(name, setup, teardown)

UNIT_MAIN(NULL, NULL, UNIT(opens_that_fail), TEST(each_frame_has_its_nic), TEST(full_queue),
	  TEST(frames_to_nobody), TEST(addresses), TEST(starts_anew), UNIT(nothing_is_left))
