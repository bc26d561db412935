/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast.h - the fast path of a simulated NIC: it runs lent groups as the programs of wire "kernel"
 * do (firmware/wire/kernel/programs.bpf.c), beside the poll passes.
 *
 * Frames and posts come to the fast path first. Some wait: then they are handled later, in another
 * order, and between two steps of the pass. What the fast path does not take goes on to the receive
 * queue, or only rings the bell of the NIC.
 */
#ifndef TESTBED_SIM_FAST_H
#define TESTBED_SIM_FAST_H

#include "world.h"

/* False: no memory. A NIC without a fast path may end it. */
bool sim_fast_begin(struct sim_nic *n);
void sim_fast_end(struct sim_nic *n);

/* A frame comes; the host posts; the time of a group's timer has come. */
void sim_fast_frame(struct sim_nic *n, uint32_t frame);
void sim_fast_post(struct sim_nic *n, struct sim_host *h, uint32_t epoch);
void sim_fast_tick(struct sim_nic *n, uint32_t index);

/* Handles at most this many of the frames and posts that wait. */
void sim_fast_some(struct sim_nic *n, uint32_t most);

/* Begin of wire_ops.poll: tells the NIC which groups to take back. Returns 1 if the bell has rung.
 */
unsigned sim_fast_hear(struct sim_nic *n, uint64_t now);

/* A host sleeps: true if it has been woken. A host has seen this word: it may sleep again. */
bool sim_fast_wakes(struct sim_host *h);
void sim_fast_looked(struct sim_nic *n, struct sim_host *h, uint64_t word);

/* Functions of wire_ops. */
bool sim_fast_lend(struct wire_base *base, const struct nbnic_group *g,
		   const struct wire_lend *how);
bool sim_fast_take(struct wire_base *base, struct nbnic_group *g, struct wire_counts *out);

#endif
