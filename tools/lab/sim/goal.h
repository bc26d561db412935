/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * goal.h - writes plans in GOAL, the language of LogGOPSim (Hoefler, Schneider, Lumsdaine 2010).
 */
#ifndef NBAR_TOOLS_SIM_GOAL_H
#define NBAR_TOOLS_SIM_GOAL_H

#include <stdio.h>

#include "plans.h"

/* One barrier: each token is a message of one byte. */
void goal_write(const struct sim_plans *plans, FILE *to);

#endif
