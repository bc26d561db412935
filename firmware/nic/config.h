/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.h - the limits of a NIC. Whoever builds a NIC for a platform may set each by -D.
 *
 * The ABI sets the upper bounds (nbar_abi.h); a small NIC lowers them. A request beyond a limit is
 * refused with a message that names the limit.
 */
#ifndef NBNIC_CONFIG_H
#define NBNIC_CONFIG_H

#include "nbar_abi.h"

#ifndef NBNIC_GROUPS_MAX /* open groups, and cells of a port */
#define NBNIC_GROUPS_MAX NBAR_GROUPS_MAX
#endif

#ifndef NBNIC_PORTS_MAX
#define NBNIC_PORTS_MAX NBAR_PORTS_MAX
#endif

#ifndef NBNIC_ATTACHED_MAX /* clients that are attached to the port of another */
#define NBNIC_ATTACHED_MAX NBAR_ATTACHED_MAX
#endif

/* Memory of the groups of a NIC, in bytes. A quarter of it is for groups that linger, the rest for
 * groups that are open; one port may have a quarter. struct nbnic_config can name another sum. */
#ifndef NBNIC_MEMORY_BYTES
#define NBNIC_MEMORY_BYTES (UINT64_C(32) << 20)
#endif

/* Budgets of a turn. Each bounds the time that one port can take from another: see PROTOCOL.md,
 * "The turn". */
#ifndef NBNIC_TURN_FRAMES /* frames that a turn takes from the wire */
#define NBNIC_TURN_FRAMES 128u
#endif

#ifndef NBNIC_SCAN_CELLS /* cells of a port that a turn looks at */
#define NBNIC_SCAN_CELLS 64u
#endif

#ifndef NBNIC_PORT_SIGNALS /* entries that a turn takes from the send ring of a port ... */
#define NBNIC_PORT_SIGNALS 8u
#endif

#ifndef NBNIC_TURN_SIGNALS /* ... and of all ports */
#define NBNIC_TURN_SIGNALS 32u
#endif

_Static_assert(NBNIC_GROUPS_MAX <= NBAR_GROUPS_MAX, "a page has no more cells");
_Static_assert(NBNIC_PORTS_MAX <= NBAR_PORTS_MAX, "the ABI has no more ports");

#endif
