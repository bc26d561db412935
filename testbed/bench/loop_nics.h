/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_nics.h - a set of soft NICs in this process, for loop.c, on the wire ring. The
 * caller polls them.
 *
 * This interface is small, so that the same loop.c can measure an older tree, too (see build-loop).
 */
#ifndef NBAR_BENCH_LOOP_NICS_H
#define NBAR_BENCH_LOOP_NICS_H

#include <stdbool.h>
#include <stdint.h>

/* Starts nnic NICs n0, n1, ..., with control sockets in run_dir. Only once per process.
 * They answer only while a thread polls them. Ends the program on failure. */
void loop_nics_start(uint32_t nnic, const char *run_dir);

/* One pass of all NICs, and one look at the clock. True if there was work. */
bool loop_nics_pass(void);

/* Stops the clock of the NICs: no timer fires, and counts of instructions repeat. */
void loop_nics_stop_clock(void);

/* Send n frames from NIC 0 to NIC 1, for a group that does not exist; receive up to n frames at
 * NIC 1, and return how many. Measures the wire and one look-up of a group per frame. */
void loop_nics_send(uint32_t n);
uint32_t loop_nics_take(uint32_t n);

#endif
