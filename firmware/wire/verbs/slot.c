/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot.c - the order in which receive slots are read that a peer's RDMA writes go to.
 *
 * Called by the polling thread. With page.c and mailbox.c the only files of the firmware with
 * atomics.
 */
#include "verbs.h"

uint32_t verbs_slot_sequence(const struct verbs_slot *p)
{
	/* Pairs with the card's write of the slot: cards write upwards, and the sequence number
	 * lies behind the frame. They promise no order, so the sum tells whether all of it is
	 * there. */
	return __atomic_load_n(&p->sequence, __ATOMIC_ACQUIRE);
}
