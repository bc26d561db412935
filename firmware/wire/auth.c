/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth.c - makes and checks the tags of frames, and counts wrong tags by cause. See auth.h.
 *
 * Called by the polling thread through the wires; wire_auth_peer_begin by the control thread. Never
 * uses a frame whose tag is wrong.
 */
#include <string.h>

#include "auth.h"

/* A tag covers the frame and both addresses. It covers the receiver's address because a NIC also
 * answers PULLs of strangers: a frame that was sent to another NIC must fail here. */
static uint64_t tag_of(const struct wire_auth *auth, const struct nbnic_addr *from,
		       const struct nbnic_addr *to, const uint8_t *frame, uint32_t size)
{
	uint8_t text[2 * WIRE_AUTH_ID_AT + NBFW_FRAME_MAX], out[WIRE_TAG_SIZE];
	uint64_t tag;

	memcpy(text, from->byte, WIRE_AUTH_ID_AT);
	memcpy(text + WIRE_AUTH_ID_AT, to->byte, WIRE_AUTH_ID_AT);
	memcpy(text + 2 * WIRE_AUTH_ID_AT, frame, size);
	auth->hash(out, text, 2 * WIRE_AUTH_ID_AT + size, auth->key);
	memcpy(&tag, out, sizeof(tag));
	return tag;
}
_Static_assert(sizeof(uint64_t) == WIRE_TAG_SIZE, "a tag is compared at once");

void wire_auth_use(struct wire_base *w, const struct wire_auth *auth)
{
	w->auth = auth;
	memcpy(w->addr.byte + WIRE_AUTH_ID_AT, auth->id, WIRE_AUTH_ID_SIZE);
}

uint32_t wire_auth_seal(const struct wire_base *w, const struct nbnic_addr *to, uint8_t *frame,
			uint32_t size)
{
	uint64_t tag;

	frame[0] |= WIRE_TAGGED;
	tag = tag_of(w->auth, &w->addr, to, frame, size);
	memcpy(frame + size, &tag, sizeof(tag));
	return size + WIRE_TAG_SIZE;
}

/* Counts a datagram that is no frame with a tag. */
static void count_untagged(struct wire_base *w, struct nbnic *nic, const uint8_t *frame,
			   size_t length)
{
	struct nbfw_token t;

	if (w->auth && nbfw_token_unpack(frame, length, &t))
		nbnic_count(nic, NBAR_COUNTER_frames_untagged);
	else
		w->malformed++;
}

bool wire_auth_check(struct wire_base *w, struct nbnic *nic, struct nbnic_addr *from,
		     const uint8_t *frame, size_t length, struct nbfw_token *t)
{
	uint8_t plain[NBFW_FRAME_MAX], version = length ? (uint8_t)(frame[0] & ~WIRE_TAGGED) : 0;
	uint32_t size =
		length && version != frame[0] ? nbfw_frame_length(frame, length, version) : 0;
	uint64_t tag;

	if (size == 0 || length < size + WIRE_TAG_SIZE) {
		count_untagged(w, nic, frame, length);
		return false;
	}
	if (!w->auth) {
		nbnic_count(nic, NBAR_COUNTER_frames_tagged);
		return false;
	}
	memcpy(&tag, frame + size, sizeof(tag));
	if (tag != tag_of(w->auth, from, &w->addr, frame, size)) {
		nbnic_count(nic, NBAR_COUNTER_frames_forged);
		return false;
	}
	/* Answers go to this address, and the NIC compares it with the addresses of peers. */
	memcpy(from->byte + WIRE_AUTH_ID_AT, w->auth->id, WIRE_AUTH_ID_SIZE);
	memcpy(plain, frame, size);
	plain[0] = version;
	if (nbfw_token_unpack(plain, size, t)) {
		if (t->value_length)
			t->value = (const void *)(frame + NBFW_FRAME_SIZE);
		return true;
	}
	w->malformed++;
	return false;
}

int wire_auth_peer_begin(struct wire_base *w, const struct nbnic_addr *a, const char **why)
{
	static const uint8_t none[WIRE_AUTH_ID_SIZE];
	const uint8_t *mine = w->addr.byte + WIRE_AUTH_ID_AT, *its = a->byte + WIRE_AUTH_ID_AT;

	if (memcmp(mine, its, WIRE_AUTH_ID_SIZE) == 0)
		return 0;
	if (memcmp(its, none, sizeof(none)) == 0)
		*why = "it has no key, and the NIC here has one; give all NICs the same key file";
	else if (memcmp(mine, none, sizeof(none)) == 0)
		*why = "it has a key, and the NIC here has none; give all NICs the same key file";
	else
		*why = "it has another key than the NIC here; give all NICs the same key file";
	return -NBAR_EPROTO;
}

void wire_auth_peer_end(struct wire_base *w, const struct nbnic_addr *a)
{
	(void)w, (void)a;
}
