/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_kernel_value4.c - test_wire_kernel_value.c with frames in UDP datagrams.
 */
#define WORLD_IP 4
#include "test_wire_kernel_value.c"
