/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_internal.h - what nic.c and admin.c share; nobody else includes it. */
#ifndef NBNIC_INTERNAL_H
#define NBNIC_INTERNAL_H

#include "nic.h"

/* Feeds one event to the engine of a group and carries out what it answers. `from` is where the
 * event came from, for the reply to a PULL; NULL for all others. */
void nbnic_feed(struct nbnic *nic, struct nbnic_group *g, const struct nbfw_event *ev,
		const struct nbnic_addr *from, uint64_t now);

/* Starts what the host has posted, as far as it can be started. */
void nbnic_start_posted(struct nbnic *nic, struct nbnic_group *g, uint64_t now);

/* Index of the peer with this rank (groups with a plan), or npeer. */
uint32_t nbnic_peer_find(const struct nbnic_group *g, uint32_t rank);

/* Gives the block of a group back to the port and frees its handle. */
void nbnic_group_release(struct nbnic *nic, uint32_t index);

static inline uint32_t nbnic_index(uint32_t handle)
{
	return handle & 0xffff;
}

#endif
