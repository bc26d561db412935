/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_trace.h - one NIC with one group, whose peers the test plays: a trace of all that it sends
 * and tells its host, as text.
 *
 * For tests only. Each entry of the trace ends with "; ". The text omits what all frames have in
 * common: the peer's handle, cookie and address, and the rank of the sender; these are checked in
 * each frame.
 */
#ifndef TESTBED_NIC_TRACE_H
#define TESTBED_NIC_TRACE_H

#include "nic.h"
#include "unit/unit.h"

#define TRACE_MS UINT64_C(1000000)
#define TRACE_BUDGET (1000 * TRACE_MS)
#define TRACE_PORT 3u
#define TRACE_CELL 5u
#define TRACE_WIRE 0x0102u
#define TRACE_COOKIE UINT64_C(0x1122334455667788)

struct trace {
	struct nbnic nic;
	struct nbnic_group *group; /* NULL: released */
	uint64_t now;
	uint32_t room; /* frames for which the wire still has room */
	bool ring_full;
	char text[8192];
};
extern struct trace trace;

/* Makes a NIC with an open group, which is not connected. */
void trace_open(const char *alg, uint32_t size, uint32_t rank);

/* Makes a NIC with a group that is connected to its peers; a "signal" group, to all other ranks. */
void trace_connected(const char *alg, uint32_t size, uint32_t rank);

/* Opens a further group at this NIC. */
struct nbnic_group *trace_group(const char *alg, uint32_t size, uint32_t rank, uint32_t tag,
				uint64_t cookie);
void trace_end(void);

/* The endpoint address of a peer of the group, and the handle and cookie in it. */
struct nbar_endpoint trace_endpoint(uint32_t rank);
uint32_t trace_handle(uint32_t rank);
uint64_t trace_cookie(uint32_t rank);

void trace_post(uint32_t epoch);

/* The NIC receives a frame of a peer. arg and info have the meaning that the type gives them. */
void trace_hear(uint8_t type, uint32_t rank, uint32_t epoch, uint32_t slot, uint32_t arg,
		uint32_t info);

/* Time passes, then a pass ends (nbnic_work). */
void trace_work(uint64_t ns);

/* Returns the trace since the last call. */
const char *trace_take(void);

#define trace_expect(expected) assert_string_equal(trace_take(), expected)

static inline uint64_t trace_counter(enum nbar_counter c)
{
	return trace.nic.counter[c];
}

#endif
