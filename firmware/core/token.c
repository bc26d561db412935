/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * token.c - a frame as bytes. Called by wires whose frames leave the process.
 *
 * Copies byte by byte, because a frame may lie at any address and come from a machine of any byte
 * order. Must never read a byte beyond the frame.
 */
#include "token.h"
#include "value.h"

enum {
	AT_VERSION = 0,
	AT_TYPE = 1,
	AT_RESERVED = 2, /* 16 bits */
	AT_HANDLE = 4,
	AT_COOKIE = 8,
	AT_SRC = 16,
	AT_WORD = 20, /* five words; in all types except SIGNAL: epoch, slot, arg, info,
			 sender */
	AT_REPLY_COOKIE = 40
};

static void put32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void put64(uint8_t *at, uint64_t v)
{
	put32(at, (uint32_t)v);
	put32(at + 4, (uint32_t)(v >> 32));
}

static uint64_t get64(const uint8_t *at)
{
	return get32(at) | (uint64_t)get32(at + 4) << 32;
}

uint32_t nbfw_token_pack(const struct nbfw_token *t, uint8_t *frame)
{
	frame[AT_VERSION] = NBFW_FRAME_VERSION;
	frame[AT_TYPE] = t->type;
	frame[AT_RESERVED] = 0;
	frame[AT_RESERVED + 1] = 0;
	put32(frame + AT_HANDLE, t->handle);
	put64(frame + AT_COOKIE, t->cookie);
	put32(frame + AT_SRC, t->src);
	for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
		put32(frame + AT_WORD + 4 * i, t->word[i]);
	put64(frame + AT_REPLY_COOKIE, t->reply_cookie);
	if (t->value_length) {
		frame[AT_VERSION] = NBFW_FRAME_VERSION_VALUE;
		__builtin_memcpy(frame + NBFW_FRAME_SIZE, t->value, t->value_length);
	}
	return NBFW_FRAME_SIZE + t->value_length;
}

static const struct nbfw_value *value_in(const uint8_t *frame)
{
	return (const void *)(frame + NBFW_FRAME_SIZE);
}

uint32_t nbfw_frame_length(const uint8_t *frame, size_t length, uint8_t version)
{
	uint32_t n;

	if (length < NBFW_FRAME_SIZE || version == NBFW_FRAME_VERSION)
		return length < NBFW_FRAME_SIZE ? 0 : NBFW_FRAME_SIZE;
	if (version != NBFW_FRAME_VERSION_VALUE || frame[AT_TYPE] != NBFW_TOKEN ||
	    length < NBFW_FRAME_SIZE + NBFW_VALUE_HEAD)
		return 0;
	n = nbfw_value_length(value_in(frame));
	return n && length - NBFW_FRAME_SIZE - NBFW_VALUE_HEAD >= n
		       ? NBFW_FRAME_SIZE + NBFW_VALUE_HEAD + n
		       : 0;
}

bool nbfw_token_unpack(const uint8_t *frame, size_t length, struct nbfw_token *t)
{
	uint32_t size = length ? nbfw_frame_length(frame, length, frame[AT_VERSION]) : 0;

	if (size == 0 || frame[AT_TYPE] == 0 || frame[AT_TYPE] >= NBFW_TYPE_END ||
	    (frame[AT_RESERVED] | frame[AT_RESERVED + 1]) != 0)
		return false;
	t->value_length = (uint16_t)(size - NBFW_FRAME_SIZE);
	t->value = t->value_length ? value_in(frame) : NULL;
	t->type = frame[AT_TYPE];
	t->handle = get32(frame + AT_HANDLE);
	t->cookie = get64(frame + AT_COOKIE);
	t->src = get32(frame + AT_SRC);
	for (uint32_t i = 0; i < NBAR_SIGNAL_WORDS; i++)
		t->word[i] = get32(frame + AT_WORD + 4 * i);
	t->reply_cookie = get64(frame + AT_REPLY_COOKIE);
	return true;
}
