/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_prove.c - proofs that a remote host, and its NIC, know the key.
 *
 * Called when a host connects, never on the path of a token. Links with programs that have no key.
 */
#include <string.h>

#include "auth.h"

void wire_auth_prove(const struct wire_auth *auth, const char *side,
		     const uint8_t nonce[2 * NBAR_NONCE_SIZE], uint8_t proof[NBAR_PROOF_SIZE])
{
	uint8_t text[NBAR_NONCE_SIZE + 2 * NBAR_NONCE_SIZE] = { 0 };

	strncpy((char *)text, side, NBAR_NONCE_SIZE);
	memcpy(text + NBAR_NONCE_SIZE, nonce, 2 * NBAR_NONCE_SIZE);
	auth->hash(proof, text, sizeof(text), auth->key);
}
