/* SPDX-License-Identifier: BSD-3-Clause */
/* bounce.h - the frame of bounce.c and bounce.bpf.c, as long as a token. */
#ifndef BOUNCE_H
#define BOUNCE_H

#include <stdint.h>

#define BOUNCE_TYPE 0x88B6
#define BOUNCE_MARK 0x2b3d1174 /* of a packet that becomes a frame, whose start is its payload */
#define BOUNCE_DROP UINT32_MAX /* `left`: the first program drops the frame */

struct bounce_frame {
	uint16_t to[3], from[3], type;
	uint32_t left; /* how often it still returns */
	uint64_t first, last;
	uint8_t rest[28];
} __attribute__((packed, aligned(2)));
_Static_assert(sizeof(struct bounce_frame) == 62, "as a token");

#endif
