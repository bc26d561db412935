/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_world.h - a whole NIC on a platform made by the test: one thread, counted memory, and a
 * wire that the test fills and empties. For tests only; there is one world at a time.
 */
#ifndef TESTBED_DEVICE_WORLD_H
#define TESTBED_DEVICE_WORLD_H

#include "unit/unit.h"

#include "device.h"

#define MS UINT64_C(1000000)

/* One wire: every frame goes back to the NIC itself. */
struct loop {
	struct wire_base base;
	struct nbfw_token queue[65536];
	uint32_t head, tail;
	uint32_t room;   /* frames for which the wire still has room */
	uint32_t junk;   /* waiting frames of strangers */
	uint64_t sent;   /* frames that the wire has taken from the NIC */
	unsigned budget; /* of the last poll */
};

extern struct device_world {
	struct loop wire;
	struct nbnic_device device;
	uint64_t bytes, bytes_max; /* of memory that the NIC has */
	uint32_t wakes;
	uint32_t grown; /* greatest growth of a reply while the pass waited, in bytes */
	uint64_t now;
	uint64_t in[NBAR_MESSAGE_MAX / 8];
	union {
		struct nbar_reply head;
		uint8_t byte[NBAR_MESSAGE_MAX];
	} out;
} w;

/* The functions of this wire. */
unsigned loop_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget);
bool loop_transmit(struct wire_base *base, const struct nbnic_addr *to, const struct nbfw_token *t);

/* world_begin makes the NIC: its groups have memory_bytes, and one user may have user_percent of
 * the NIC (0: no limit). world_end ends the NIC after its clients have ended. */
void world_begin(uint64_t memory_bytes, uint32_t user_percent);
extern const struct wire_ops *world_ops; /* of its wire; NULL: those of the loop */
void world_end(void);

void passes(uint32_t n);

/* Sends a request; returns the status of the reply, which is in w.out. */
int request(struct nbnic_client *c, enum nbar_op op, const void *body, size_t length);
const void *reply_body(void);

/* A client of this user begins, and opens a port. Returns the status. */
int port_open_as(struct nbnic_client *c, uint32_t uid);

/* A client of user 1 begins, and opens a port, which succeeds. */
void port_open(struct nbnic_client *c);

int group_open(struct nbnic_client *c, const char *alg, uint32_t rank, uint32_t size);
void group_close(struct nbnic_client *c, uint32_t cell);

/* The last completed epoch of a cell. */
uint32_t completed(const struct nbnic_client *c, uint32_t cell);

#endif
