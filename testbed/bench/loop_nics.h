/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_nics.h - all that loop.c knows of the soft NICs: a set of them in this process, on the wire
 * ring or on network interfaces, that the caller polls by hand.
 *
 * Small, so that the same loop.c measures an older tree too (see compare).
 */
#ifndef NBAR_BENCH_LOOP_NICS_H
#define NBAR_BENCH_LOOP_NICS_H

#include <stdbool.h>
#include <stdint.h>

/* Starts nnic NICs n0, n1, ..., with control sockets in run_dir; once a process. NIC i is on the
 * network interface iface[i], by net_af_packet; with iface == NULL all are on the wire ring. They
 * answer only while somebody polls them. The program ends if it cannot. */
void loop_nics_start(uint32_t nnic, const char *run_dir, char *const iface[]);

/* One pass of all NICs, with the look at the clock that belongs to it. True if there was work. */
bool loop_nics_pass(void);

/* Sends n frames from NIC 0 to NIC 1, to a group that does not exist; takes up to n there. The wire
 * alone, and one look-up a frame. */
void loop_nics_send(uint32_t n);
uint32_t loop_nics_take(uint32_t n);

#endif
