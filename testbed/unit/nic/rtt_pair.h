/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtt_pair.h - a group of two NICs that loses chosen frames. Time is simulated: nic_net.h.
 */
#ifndef TESTBED_RTT_PAIR_H
#define TESTBED_RTT_PAIR_H

#include "unit/nic/nic_net.h"

#define DELAY UINT64_C(50000)
#define RTT (2 * DELAY)

/* The tokens to NIC 0 and the PULLs of NIC 0 that the next barrier loses; a test sets both. */
extern uint32_t rtt_lose_tokens, rtt_lose_pulls;

/* A net with a group of two, in port 0 and cell 0 of NIC 0 and NIC 1. *g: the group of NIC 0. */
struct net *rtt_begin(struct nbnic_group **g);

/* A counter of both NICs; all frames that they have sent; the PULLs of NIC 0. */
uint64_t rtt_counted(const struct net *w, enum nbar_counter c);
uint64_t rtt_frames(const struct net *w);
uint64_t rtt_pulls(const struct net *w);

/* One barrier, to which the host of NIC 1 comes later by `late`. Returns the time until NIC 0
 * completes the barrier. Both NICs complete it; with the usual delay, no frame is in flight then.
 */
uint64_t rtt_barrier(struct net *w, uint64_t late);

/* Loses one token in each of n barriers, so that the timer of NIC 0 follows the round trip: the
 * larger of 2 round trips, and 1 round trip and 4 deviations. */
void rtt_teach(struct net *w, uint32_t n);

#endif
