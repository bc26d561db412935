/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * token.h - messages between NICs: one frame of 48 bytes, little-endian (WIRE.md).
 *
 * Wires that stay in one address space pass struct nbfw_token itself; all others pack it.
 */
#ifndef NBFW_TOKEN_H
#define NBFW_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nbar_abi.h"

#define NBFW_FRAME_SIZE 48u
#define NBFW_FRAME_VERSION 2u
#define NBFW_FRAME_VERSION_VALUE 3u /* a TOKEN, then its value */
#define NBFW_ETHER_TYPE 0x88B5u     /* of frames on Ethernet; IEEE 802: for local experiments */
#define NBFW_FRAME_MAX (NBFW_FRAME_SIZE + 8u + NBAR_VALUE_MAX)

struct nbfw_value; /* value.h */

enum nbfw_type {
	NBFW_TOKEN = 1, /* the signal of one slot */
	NBFW_PULL = 2,  /* send the token of this slot again: it has not come */
	NBFW_LATER = 3, /* answer to PULL: alive, but this send has not left yet; arg = straggler */
	NBFW_ABORT = 4, /* this barrier cannot complete; arg = failed rank, info = nbar_status */
	NBFW_SIGNAL = 5, /* raw message of the signal service */
	NBFW_PROBE = 6,  /* answer this frame: do the NICs hear each other? */
	NBFW_ECHO = 7,   /* answer to PROBE */
	NBFW_TYPE_END
};

struct nbfw_token {
	uint8_t type;
	uint16_t value_length; /* of the value with its head; 0: it has none */
	uint32_t handle;       /* of the receiving member, at its NIC */
	uint64_t cookie;       /* of the receiving member */
	uint32_t src;          /* rank of the sender */
	union {
		struct {
			uint32_t epoch;
			/* in the plan of the member that waits for the token; PROBE: any number,
			 * and ECHO repeats it */
			uint32_t slot;
			uint32_t arg; /* a rank, or NBAR_RANK_NONE */
			/* PULL: its time, never 0. TOKEN: info of the PULL that it answers, or 0.
			 * LATER: step of its sender, and why << 16 (nbar_why, with
			 * the age). ABORT: nbar_status. */
			uint32_t info;
			uint32_t sender; /* handle of the sending member, at its NIC */
		};
		uint32_t word[NBAR_SIGNAL_WORDS]; /* SIGNAL */
	};
	uint64_t reply_cookie; /* PULL, PROBE: of the sender. SIGNAL: handle of the sender */
	const struct nbfw_value *value; /* if value_length is not 0: valid as long as the call */
};

/* Writes the frame of t; returns its length: NBFW_FRAME_SIZE, or with a value at most
 * NBFW_FRAME_MAX. */
uint32_t nbfw_token_pack(const struct nbfw_token *t, uint8_t *frame);

/* Length of the frame with this version that begins here, of which `length` bytes are there; 0: it
 * is not whole, or no frame. */
uint32_t nbfw_frame_length(const uint8_t *frame, size_t length, uint8_t version);

/*
 * Reads a frame; t->value lies in it. False, with *t unspecified, if it is shorter than its version
 * says, of another version, of an unknown type, has a reserved bit set, or a value that
 * nbfw_value_length refuses. Bytes after the frame are padding.
 */
bool nbfw_token_unpack(const uint8_t *frame, size_t length, struct nbfw_token *t);

#endif
