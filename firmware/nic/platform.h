/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * platform.h - what a NIC needs of the machine that it runs on. A wire (wire.h) is all else.
 *
 * A platform fills in one struct nbnic_platform, and calls nbnic_device_* (device.h). The daemon,
 * the in-process NIC, the bare-metal image and the tests are platforms.
 *
 * Two sides call into a NIC: the *poll pass* (one thread at a time: frames, doorbells, timers) and
 * the *requests* (one thread at a time: open, connect, close, statistics). They may be the same
 * thread. Where they are two, exclusive() keeps them apart; all that is slow stays on the side of
 * requests.
 */
#ifndef NBNIC_PLATFORM_H
#define NBNIC_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nbar_abi.h"

typedef void nbnic_fn(void *arg, uint64_t now);

struct nbnic_platform {
	/* Requests: memory, aligned for uint64_t, or NULL. */
	void *(*alloc)(void *ctx, size_t size);
	void (*free)(void *ctx, void *block);

	/* Requests: 64 bits that nobody can guess. False: there are none. */
	bool (*random)(void *ctx, uint64_t *out);

	/* Requests: runs fn(arg, now) while no pass of the NIC is under way, and returns after it.
	 */
	void (*exclusive)(void *ctx, nbnic_fn *fn, void *arg);

	/* Requests: makes the page of a port: zero bytes that NIC and host share. 0, or an error of
	 * nbar_abi.h, negative. */
	int (*page_make)(void *ctx, uint32_t port, struct nbar_page **out);
	void (*page_drop)(void *ctx, uint32_t port, struct nbar_page *page);

	/* Turn: wakes all that sleep on the word of this cell; the NIC has just changed it. */
	void (*wake)(void *ctx, uint32_t port, uint32_t cell, uint32_t *word);

	/* Requests: the algorithm that "auto" is for groups of this size, or NULL: the NIC's own
	 * choice. May be NULL itself. */
	const char *(*algorithm)(void *ctx, uint32_t size);
};

#endif
