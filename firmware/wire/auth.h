/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth.h - frames with a tag: 8 bytes of SipHash-2-4 under a key that all NICs of a cluster share.
 *
 * The wires that lead to other machines pack and unpack their frames here. The program that opens a
 * NIC loads the key. Without a key, a frame costs one predictable branch at each end. WIRE.md,
 * "Tags", has the format. auth.c must never allocate, block or log: it is on the path of a token.
 */
#ifndef NBAR_WIRE_AUTH_H
#define NBAR_WIRE_AUTH_H

#include "wire.h"

#define WIRE_TAG_SIZE 8u
#define WIRE_FRAME_MAX (NBFW_FRAME_MAX + WIRE_TAG_SIZE)
#define WIRE_TAGGED 0x40u /* in the version of a frame with a tag */
#define WIRE_AUTH_KEY_SIZE 16u
/* The id of the key is at the end of a NIC's address, in bytes that no wire uses. */
#define WIRE_AUTH_ID_SIZE 8u
#define WIRE_AUTH_ID_AT (NBNIC_ADDR_SIZE - WIRE_AUTH_ID_SIZE)

struct wire_auth {
	/* SipHash-2-4 of libsodium; NULL: no key. */
	int (*hash)(unsigned char *out, const unsigned char *in, unsigned long long length,
		    const unsigned char *key);
	uint8_t key[WIRE_AUTH_KEY_SIZE];
	uint8_t id[WIRE_AUTH_ID_SIZE]; /* a hash under the key; it does not reveal the key */
};

/* auth_key.c: reads a key from a file that only its owner, or root and a group, may read. 0, or a
 * negative errno after a message (log_error) that begins with `what`. */
int wire_auth_load(const char *what, const char *path, struct wire_auth *out);

/* Makes the proof that this side ("nbar host" or "nbar nic") knows the key; nonce: those of NIC and
 * host. See nbar_req_link_open. */
void wire_auth_prove(const struct wire_auth *auth, const char *side,
		     const uint8_t nonce[2 * NBAR_NONCE_SIZE], uint8_t proof[NBAR_PROOF_SIZE]);

/* From here on, all frames of this NIC have tags. Call it before nicd_add. The key must outlive the
 * wire. */
void wire_auth_use(struct wire_base *w, const struct wire_auth *auth);

/* Adds a tag to a frame of this size for this address. Returns the size with the tag. */
uint32_t wire_auth_seal(const struct wire_base *w, const struct nbnic_addr *to, uint8_t *frame,
			uint32_t size);

/* Checks a datagram that has a tag, or that came to a NIC with a key. True: the tag is right, *t is
 * the frame, and `from` contains the id of the key. False: the datagram is counted by cause. */
bool wire_auth_check(struct wire_base *w, struct nbnic *nic, struct nbnic_addr *from,
		     const uint8_t *frame, size_t length, struct nbfw_token *t);

/* peer_begin and peer_end of a wire with tags: refuses a NIC that has another key. */
int wire_auth_peer_begin(struct wire_base *w, const struct nbnic_addr *a, const char **why);
void wire_auth_peer_end(struct wire_base *w, const struct nbnic_addr *a);

/* Length of the frame that this NIC sends for t. */
static inline uint32_t wire_frame_size(const struct wire_base *w, const struct nbfw_token *t)
{
	return NBFW_FRAME_SIZE + t->value_length + (w->auth ? WIRE_TAG_SIZE : 0);
}

/* Writes a frame for this address, at most WIRE_FRAME_MAX bytes, with a tag if the NIC has a key.
 * Returns the length. */
static inline uint32_t wire_frame_pack(const struct wire_base *w, const struct nbnic_addr *to,
				       const struct nbfw_token *t, uint8_t *frame)
{
	uint32_t size = nbfw_token_pack(t, frame);

	return w->auth ? wire_auth_seal(w, to, frame, size) : size;
}

/* Reads a frame that came from this address. False: the frame is counted; do not use it. */
static inline bool wire_frame_unpack(struct wire_base *w, struct nbnic *nic,
				     struct nbnic_addr *from, const uint8_t *frame, size_t length,
				     struct nbfw_token *t)
{
	return (!w->auth && nbfw_token_unpack(frame, length, t)) ||
	       wire_auth_check(w, nic, from, frame, length, t);
}

#endif
