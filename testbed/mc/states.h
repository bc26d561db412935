/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * states.h - the states that an explorer has seen, as fingerprints of 64 bits.
 *
 * Used by all explorers of this folder. The table doubles when it is three quarters full, up to a
 * bound. Two states with one fingerprint count as one: with n states, the probability that any
 * state is missed is about n * n / 2^65, that is 3e-6 for 10^7 states.
 */
#ifndef TESTBED_MC_STATES_H
#define TESTBED_MC_STATES_H

#include <stddef.h>
#include <stdint.h>

struct mc_states {
	uint64_t *slot; /* 0: empty */
	uint64_t nslot, n, most;
};

enum mc_seen { MC_NEW, MC_KNOWN, MC_FULL };

/* Never 0. */
uint64_t mc_fingerprint(const void *data, size_t length);

/* Makes an empty table for at most `most` states. The caller frees it by mc_states_end. */
void mc_states_begin(struct mc_states *s, uint64_t most);
void mc_states_end(struct mc_states *s);

/* MC_FULL: the state is new, but the table has `most` states, or the machine has no memory. */
enum mc_seen mc_states_add(struct mc_states *s, uint64_t fingerprint);

#endif
