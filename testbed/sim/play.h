/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * play.h - runs one scenario on whole NICs, and judges it by causes, not by clocks:
 *
 *   nobody completes a barrier that another member has not started;
 *   where nothing fatal happens, all complete all barriers;
 *   where something does, every member completes or fails, and names a rank that it happened to;
 *   a status is final, the engine's invariants hold, a pass keeps to its budget of frames;
 *   without faults not one frame is sent too many; afterwards the NICs hold nothing.
 */
#ifndef TESTBED_SIM_PLAY_H
#define TESTBED_SIM_PLAY_H

#include "scenario.h"

struct tallies {
	uint64_t fault[FAULT_END];
	uint64_t completed; /* barriers of members */
	uint64_t events, quiet;
};

/* True if all rules hold; else why has the text. Adds to the tallies. */
bool play(uint64_t seed, struct tallies *t, char *why, size_t room);

#endif
