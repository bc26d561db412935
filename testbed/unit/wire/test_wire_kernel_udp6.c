/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_kernel_udp6.c - test_wire_kernel_udp4.c over IPv6.
 */
#define WORLD_IP 6
#include "test_wire_kernel_udp4.c"
