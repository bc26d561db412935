/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h - the models that wait.c explores. "twice": two barriers, one after the other.
 */
#ifndef TESTBED_MC_WAIT_H
#define TESTBED_MC_WAIT_H

#include "weak.h"

void wait_procs_large(struct mc_model *m);
void wait_procs_large_twice(struct mc_model *m);
void wait_procs_small(struct mc_model *m);
void wait_procs_small_twice(struct mc_model *m);
void wait_team_far(struct mc_model *m);
void wait_team_far_twice(struct mc_model *m);
void wait_team_near(struct mc_model *m);
void wait_team_near_twice(struct mc_model *m);
void wait_nic_two(struct mc_model *m);
void wait_nic_twice(struct mc_model *m);
void wait_mailbox(struct mc_model *m);
void wait_kick(struct mc_model *m);
void wait_lent(struct mc_model *m);
void wait_signals_sent(struct mc_model *m);
void wait_signals_received(struct mc_model *m);

/* litmus.c: the name of a test that the explorer fails, or NULL. */
const char *litmus_fails(enum mc_memory memory);

#endif
