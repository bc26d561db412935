/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_token.c - packs and unpacks frames: the bytes must be those of WIRE.md, and bad frames are
 * refused.
 */
#include "token.h"
#include "value.h"
#include "unit/unit.h"

/* Every field has different bytes, so swapped fields are found. */
static const struct nbfw_token known = {
	.type = NBFW_PULL,
	.handle = 0x13121110,
	.cookie = UINT64_C(0x2726252423222120),
	.src = 0x33323130,
	.epoch = 0x43424140,
	.slot = 0x53525150,
	.arg = 0x63626160,
	.info = 0x73727170,
	.sender = 0x83828180,
	.reply_cookie = UINT64_C(0x9796959493929190),
};
static const uint8_t known_frame[NBFW_FRAME_SIZE] = {
	0x02, 0x02, 0x00, 0x00, 0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23,
	0x24, 0x25, 0x26, 0x27, 0x30, 0x31, 0x32, 0x33, 0x40, 0x41, 0x42, 0x43,
	0x50, 0x51, 0x52, 0x53, 0x60, 0x61, 0x62, 0x63, 0x70, 0x71, 0x72, 0x73,
	0x80, 0x81, 0x82, 0x83, 0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97,
};

static void require_same(const struct nbfw_token *a, const struct nbfw_token *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->handle, b->handle);
	assert_true(a->cookie == b->cookie);
	assert_int_equal(a->src, b->src);
	assert_memory_equal(a->word, b->word, sizeof(a->word));
	assert_true(a->reply_cookie == b->reply_cookie);
}

static void test_known_bytes(void **state)
{
	uint8_t frame[NBFW_FRAME_SIZE + 2];
	struct nbfw_token t;

	memset(frame, 0xee, sizeof(frame));
	nbfw_token_pack(&known, frame + 1); /* a frame may lie at any address */
	assert_memory_equal(frame + 1, known_frame, NBFW_FRAME_SIZE);
	assert_int_equal(frame[0], 0xee);
	assert_int_equal(frame[NBFW_FRAME_SIZE + 1], 0xee);
	assert_true(nbfw_token_unpack(known_frame, NBFW_FRAME_SIZE, &t));
	require_same(&t, &known);
}

/* The five words of a raw message are the same bytes as epoch .. sender. */
static void test_signal_words(void **state)
{
	struct nbfw_token t = known;
	uint8_t frame[NBFW_FRAME_SIZE];

	t.type = NBFW_SIGNAL;
	for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
		t.word[i] = 0x43424140 + 0x10101010 * i;
	nbfw_token_pack(&t, frame);
	assert_int_equal(frame[1], 5);
	assert_memory_equal(frame + 2, known_frame + 2, NBFW_FRAME_SIZE - 2);
}

static void test_there_and_back(void **state)
{
	struct rng rng = { unit_seed() };

	for (uint32_t i = 0; i < 100000; i++) {
		uint8_t frame[NBFW_FRAME_SIZE], again[NBFW_FRAME_SIZE];
		struct nbfw_token t;

		for (uint32_t j = 4; j < NBFW_FRAME_SIZE; j++)
			frame[j] = (uint8_t)rng_next(&rng);
		frame[0] = NBFW_FRAME_VERSION;
		frame[1] = (uint8_t)(1 + rng_below(&rng, 5));
		frame[2] = frame[3] = 0;
		assert_true(nbfw_token_unpack(frame, sizeof(frame), &t));
		nbfw_token_pack(&t, again);
		assert_memory_equal(frame, again, sizeof(frame));
	}
}

/* Uses a block of exactly this length, so that a sanitizer finds a read beyond it. */
static bool unpacks(const uint8_t *frame, size_t length)
{
	uint8_t *block = malloc(length ? length : 1);
	struct nbfw_token t;

	memcpy(block, frame, length);
	bool ok = nbfw_token_unpack(block, length, &t);

	free(block);
	return ok;
}

static void test_refused(void **state)
{
	uint8_t frame[64] = { 0 };

	memcpy(frame, known_frame, NBFW_FRAME_SIZE);
	for (size_t length = 0; length < NBFW_FRAME_SIZE; length++)
		assert_false(unpacks(frame, length));
	for (size_t length = NBFW_FRAME_SIZE; length <= sizeof(frame); length++)
		assert_true(unpacks(frame, length)); /* Ethernet pads short frames */
	for (uint32_t v = 0; v < 256; v++) {
		frame[0] = (uint8_t)v;
		assert_int_equal(unpacks(frame, NBFW_FRAME_SIZE), v == 2);
	}
	frame[0] = NBFW_FRAME_VERSION;
	for (uint32_t v = 0; v < 256; v++) {
		frame[1] = (uint8_t)v;
		assert_int_equal(unpacks(frame, NBFW_FRAME_SIZE), v >= 1 && v <= 7);
	}
	frame[1] = 1;
	for (uint32_t bit = 0; bit < 16; bit++) {
		frame[2 + bit / 8] = (uint8_t)(1 << bit % 8);
		assert_false(unpacks(frame, NBFW_FRAME_SIZE));
		frame[2 + bit / 8] = 0;
	}
	assert_true(unpacks(frame, NBFW_FRAME_SIZE));
}

/* A value follows the 48 bytes, which then have version 3. */
static void test_values(void **state)
{
	static const uint8_t tail[] = { 1, 10, 2, 0, 0, 0, 0, 0, 0x11, 0x12, 0x13 };
	struct nbfw_value v = {
		.op = NBAR_SUM, .type = NBAR_DOUBLE, .count = { 2 }, .byte = { 0x11, 0x12, 0x13 }
	};
	struct nbfw_token t = known, got;
	uint8_t frame[NBFW_FRAME_MAX] = { 0 };
	const uint32_t size = NBFW_FRAME_SIZE + 8 + 16;

	(void)state;
	t.type = NBFW_TOKEN;
	t.value = &v;
	t.value_length = 8 + 16;
	assert_int_equal(nbfw_token_pack(&t, frame), size);
	assert_int_equal(frame[0], 3);
	assert_int_equal(frame[1], 1);
	assert_memory_equal(frame + 2, known_frame + 2, NBFW_FRAME_SIZE - 2);
	assert_memory_equal(frame + NBFW_FRAME_SIZE, tail, sizeof(tail));
	assert_true(nbfw_token_unpack(frame, size, &got));
	require_same(&got, &t);
	assert_int_equal(got.value_length, 8 + 16);
	assert_ptr_equal(got.value, frame + NBFW_FRAME_SIZE);
	for (size_t length = 0; length <= sizeof(frame); length++)
		assert_int_equal(unpacks(frame, length), length >= size);
	for (uint32_t v1 = 0; v1 < 256; v1++) {
		frame[0] = (uint8_t)v1; /* version 2: without the value */
		assert_int_equal(unpacks(frame, size), v1 == 2 || v1 == 3);
	}
	frame[0] = 3;
	for (uint32_t type = 0; type < 256; type++) {
		frame[1] = (uint8_t)type;
		assert_int_equal(unpacks(frame, size), type == NBFW_TOKEN);
	}
	frame[1] = NBFW_TOKEN;
	for (uint32_t at = NBFW_FRAME_SIZE; at < NBFW_FRAME_SIZE + 8; at++) {
		uint8_t was = frame[at];

		frame[at] = 0xff; /* a wrong op, type, count or reserved byte */
		assert_false(unpacks(frame, size));
		frame[at] = was;
	}
	assert_int_equal(nbfw_token_pack(&known, frame), NBFW_FRAME_SIZE);
}

UNIT_MAIN(NULL, NULL, UNIT(test_known_bytes), UNIT(test_signal_words), UNIT(test_there_and_back),
	  UNIT(test_refused), UNIT(test_values))
