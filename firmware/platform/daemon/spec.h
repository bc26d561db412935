/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spec.h - what describes a NIC: name=n0,wire=udp,bind=192.0.2.1:7000.
 *
 * Read for --nic of the daemon, and for "host:" of an in-process NIC. What is wrong is named,
 * with what would be right. Knows no DPDK.
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
		uint16_t key, value; /* where they begin in text */
	} pair[SPEC_KEYS_MAX];
	char text[SPEC_TEXT_MAX];
};

/* In all that follows, `what` is what messages begin with: "--nic", for example. Each returns 0, or
 * negative errno after log_error(). */

/* Splits a text, which may be empty, into keys and values. */
int spec_parse(const char *what, const char *text, struct spec *out);

/* Every key is one of these lists, which end with NULL; has a value; and comes once. */
int spec_check(const char *what, const struct spec *s, const struct wire *wire,
	       const char *const *others);

/* Whether the wire, or the list, knows every key. */
bool spec_fits(const struct spec *s, const struct wire *wire, const char *const *others);

/* A name that a NIC may have. */
int spec_name(const char *what, const char *name);

/* A whole number in [low, high]; *out stays as it is where the key is not given. */
int spec_number(const char *what, const struct spec *s, const char *key, uint64_t low,
		uint64_t high, uint64_t *out);

/* Value of a key, or NULL. What a wire calls for its options; args is a struct spec. */
const char *spec_value(void *args, const char *key);

#endif
