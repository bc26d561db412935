/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.c - the order in which memory is read that a peer's RDMA writes go to.
 *
 * Called by the polling thread. With page.c and mailbox.c the only files of the firmware with
 * atomics.
 */
#include "verbs.h"

uint32_t verbs_place_turn(const struct verbs_place *p)
{
	/* Pairs with the card's write of the place: cards write upwards, and turn lies behind the
	 * frame. They promise no order, so the sum tells whether all of it is there. */
	return __atomic_load_n(&p->turn, __ATOMIC_ACQUIRE);
}
