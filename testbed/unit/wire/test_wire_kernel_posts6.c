/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_kernel_posts6.c - test_wire_kernel_posts.c over IPv6.
 */
#define WORLD_IP 6
#include "test_wire_kernel_posts.c"
