/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spec.h - the description of a NIC: name=n0,wire=udp,bind=192.0.2.1:7000.
 *
 * Read for --nic of the daemon, and for "host:" of an in-process NIC. Messages name each wrong key
 * and the right form.
 */
#ifndef NBAR_DAEMON_SPEC_H
#define NBAR_DAEMON_SPEC_H

#include "wires.h"

#define SPEC_TEXT_MAX 512u
#define SPEC_KEYS_MAX 16u

/* Plain data: it can be copied. */
struct spec {
	uint32_t n;
	struct {
		uint16_t key, value; /* where key and value begin in text */
	} pair[SPEC_KEYS_MAX];
	char text[SPEC_TEXT_MAX];
};

/* All messages below begin with `what`, for example "--nic". Each returns 0, or
 * negative errno after log_error(). */

/* Splits a text, which may be empty, into keys and values. */
int spec_parse(const char *what, const char *text, struct spec *out);

/* Checks that each key is known to the wire or in this place (SETTING_...), has a value, and comes
 * once. */
int spec_check(const char *what, const struct spec *s, const struct wire *wire, unsigned where);

/* True if the wire or the place knows every key. */
bool spec_fits(const struct spec *s, const struct wire *wire, unsigned where);

/* Value of a key, or NULL. Wires call it for their options; args is a struct spec. */
const char *spec_value(void *args, const char *key);

#endif
