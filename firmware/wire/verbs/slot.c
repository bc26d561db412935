/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot.c - the memory order in which this NIC reads the receive slots that peers write by RDMA.
 *
 * Called by the polling thread, in connection.c, which writes slots and takes their tokens.
 */
#include "verbs.h"

uint32_t verbs_slot_sequence(const struct verbs_slot *p)
{
	/* Pairs with the card's write of the slot: cards write upwards, and the sequence number is
	 * behind value and frame. But cards guarantee no order, so the sum shows whether both are
	 * complete. */
	return __atomic_load_n(&p->line.sequence, __ATOMIC_ACQUIRE);
}
