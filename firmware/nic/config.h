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

#ifndef NBNIC_HANDLES /* open and lingering groups together */
#define NBNIC_HANDLES 4096u
#endif

#ifndef NBNIC_HEARD_MAX /* NICs of peers in the table of those alive; a power of two */
#define NBNIC_HEARD_MAX 1024u
#endif

/*
 * The budget of a pass, in frames. It bounds the time that one port can take from another. A pass
 * never sends more than it may receive on the same wire: so a NIC never produces more than it
 * drains, even if all its frames come back to it. PROTOCOL.md, "The bound of a poll pass", derives
 * the figures.
 */
#ifndef NBNIC_PASS_RECEIVES /* frames that a pass takes from the wire */
#define NBNIC_PASS_RECEIVES 128u
#endif

#ifndef NBNIC_PASS_FRAMES /* that a pass sends, of all types */
#define NBNIC_PASS_FRAMES 64u
#endif

#ifndef NBNIC_PASS_INLINE /* of these, tokens and aborts sent within their event ... */
#define NBNIC_PASS_INLINE 32u
#endif

#ifndef NBNIC_PORT_INLINE /* ... for the groups of one port */
#define NBNIC_PORT_INLINE 16u
#endif

#ifndef NBNIC_PASS_QUEUED /* that answers to PULLs, and signals, leave to the queues */
#define NBNIC_PASS_QUEUED 16u
#endif

#ifndef NBNIC_PASS_STARTS /* barriers that start within the events of a pass */
#define NBNIC_PASS_STARTS 64u
#endif

#ifndef NBNIC_PASS_WAKES /* sleepers' cells that a look at the doorbells wakes */
#define NBNIC_PASS_WAKES 64u
#endif

#ifndef NBNIC_QUANTUM /* frames or starts of one group before the next group has its turn */
#define NBNIC_QUANTUM 8u
#endif

#ifndef NBNIC_STRANGERS /* PULLs for groups that are not known, answered in a pass */
#define NBNIC_STRANGERS 8u
#endif

#ifndef NBNIC_PULLS_A_TICK /* PULLs of all groups in each half of pull_ns */
#define NBNIC_PULLS_A_TICK 64u
#endif

#ifndef NBNIC_SCAN_CELLS /* cells of a port that a pass looks at */
#define NBNIC_SCAN_CELLS 64u
#endif

#ifndef NBNIC_PORT_SIGNALS /* entries that a pass takes from the send ring of a port ... */
#define NBNIC_PORT_SIGNALS 8u
#endif

#ifndef NBNIC_PASS_SIGNALS /* ... and of all ports */
#define NBNIC_PASS_SIGNALS 32u
#endif

_Static_assert(NBNIC_GROUPS_MAX <= NBAR_GROUPS_MAX, "a page has no more cells");
_Static_assert(NBNIC_PORTS_MAX <= NBAR_PORTS_MAX, "the ABI has no more ports");
_Static_assert(NBNIC_GROUPS_MAX <= NBNIC_HANDLES, "an open group has a handle");
_Static_assert(NBNIC_HANDLES <= 65536, "a handle holds the index in 16 bits");
_Static_assert(NBNIC_PASS_FRAMES <= NBNIC_PASS_RECEIVES, "a pass drains what it produces");
_Static_assert(NBNIC_PASS_INLINE + NBNIC_PASS_QUEUED < NBNIC_PASS_FRAMES, "answers have a share");

#endif
