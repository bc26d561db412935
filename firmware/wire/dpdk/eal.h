/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal.h - starts and ends the EAL, which is DPDK's start-up.
 */
#ifndef NBAR_WIRE_DPDK_EAL_H
#define NBAR_WIRE_DPDK_EAL_H

#include "object.h"

/* See wire_object.start and wire_object.end. */
int eal_start(const struct wire_start *s);
void eal_end(void);

#endif
