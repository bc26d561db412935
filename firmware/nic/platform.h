/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * platform.h - what a NIC needs of the machine that it runs on, besides a wire (wire.h).
 *
 * A platform fills in one struct nbnic_platform, and calls nbnic_device_* (device.h). The daemon,
 * the in-process NIC, the bare-metal image and the tests are platforms.
 *
 * Two sides call into a NIC: the *poll pass* (one thread at a time: frames, doorbells, timers) and
 * the *requests* (one thread at a time: open, connect, close, statistics). They may be the same
 * thread. If they are two threads, exclusive() keeps them apart. All slow work is on the side of
 * requests.
 */
#ifndef NBNIC_PLATFORM_H
#define NBNIC_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nbar_abi.h"
#include "nbar_trace.h"

typedef void nbnic_fn(void *arg, uint64_t now);

struct nbnic_platform {
	/* Requests: memory, aligned for uint64_t, or NULL. */
	void *(*alloc)(void *ctx, size_t size);
	void (*free)(void *ctx, void *block);

	/* Requests: 64 unpredictable bits. False: there are none. */
	bool (*random)(void *ctx, uint64_t *out);

	/* Requests: runs fn(arg, now) while no pass of the NIC is under way, and returns after it.
	 */
	void (*exclusive)(void *ctx, nbnic_fn *fn, void *arg);

	/* Requests: makes the page of a port: zero bytes that NIC and host share. 0, or an error of
	 * nbar_abi.h, negative. */
	int (*page_make)(void *ctx, uint32_t port, struct nbar_page **out);
	void (*page_drop)(void *ctx, uint32_t port, struct nbar_page *page);

	/* Requests: makes the two ends of a socket by which wake() reaches a poller. The current
	 * reply carries one end (see gives_events); the platform keeps the other until events_drop
	 * or page_drop. 0, or a negative error of nbar_abi.h. Both may be NULL: no host can poll.
	 */
	int (*events_make)(void *ctx, uint32_t port, uint32_t cell);
	void (*events_drop)(void *ctx, uint32_t port, uint32_t cell);

	/* Pass: wakes all threads that sleep on the word of this cell, and the poller of
	 * events_make; the NIC has just changed the word. */
	void (*wake)(void *ctx, uint32_t port, uint32_t cell, uint32_t *word);

	/* Pass: writes n bytes of a page into the copy of a remote host; if cell is not UINT32_MAX,
	 * also wakes all threads that sleep on the word of this cell. False: it cannot do so now.
	 * NULL: there are no remote hosts. */
	bool (*push)(void *ctx, uint32_t port, const void *at, size_t n, uint32_t cell);

	/* Pass, now and then: other members wait for hosts of this NIC; `asked` is set in the ports
	 * of these hosts. The platform may set `host` and `host_at` of these ports, within
	 * exclusive(). NULL: a host that has not arrived is late. */
	void (*look)(void *ctx);

	/* Pass: keeps an event, with its time; only while nic.tracing of the device. The function
	 * may be NULL. */
	void (*trace)(void *ctx, const struct nbar_trace_event *e);
};

#endif
