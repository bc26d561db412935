/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.h - the limits of a NIC. The build of a platform may set those with #ifndef by -D.
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

#ifndef NBNIC_ATTACHED_MAX /* clients attached to ports of other clients */
#define NBNIC_ATTACHED_MAX NBAR_ATTACHED_MAX
#endif

/* Users with open ports or lingering groups. The NIC counts and limits the ports and groups of each
 * user. */
#ifndef NBNIC_USERS_MAX
#define NBNIC_USERS_MAX 64u
#endif

/* Memory of the groups of a NIC, in bytes. A quarter of it is for groups that linger, the rest for
 * groups that are open; one port may have a quarter. nbnic_config.memory_bytes can replace it. */
#ifndef NBNIC_MEMORY_BYTES
#define NBNIC_MEMORY_BYTES (UINT64_C(32) << 20)
#endif

#ifndef NBNIC_HANDLES /* open and lingering groups together */
#define NBNIC_HANDLES 4096u
#endif

#ifndef NBNIC_HEARD_MAX /* entries in the table of live peer NICs; a power of two */
#define NBNIC_HEARD_MAX 1024u
#endif

/*
 * The budget of a pass, in frames. All of it follows from one number, the quota of the wire. In a
 * pass, the queues send at most `quota` frames together, and each port sends at most `quota` frames
 * (nbnic_share_left in send.c). So a barrier waits for a few frames of others, and not for their
 * backlog. A wire states its quota from the cost of a frame (struct wire_ops); NBNIC_QUOTA is for a
 * wire that states none. PROTOCOL.md, "The bound of a poll pass", derives the figures.
 */
#ifndef NBNIC_QUOTA
#define NBNIC_QUOTA 8u
#endif
#define NBNIC_QUOTA_MIN 1u

/* The most frames of all types that a pass receives, and the most that it sends. The two limits are
 * equal: so a NIC never sends more than it can receive, even if all its frames come back. */
#define NBNIC_PASS_FRAMES(quota) (8 * (quota))
/* The most tokens and aborts, of the frames sent, that a pass sends within the event that causes
 * them. A port may send `quota` of them. */
#define NBNIC_PASS_INLINE(quota) (4 * (quota))
/* Sends within events, signals, answers to PULLs and visits to fresh ports (rota.h) leave `quota`
 * frames of the pass to the queues. */

#ifndef NBNIC_PASS_STARTS /* barriers that start within the events of a pass */
#define NBNIC_PASS_STARTS 64u
#endif

#ifndef NBNIC_PASS_WAKES /* cells whose sleepers one scan of the doorbells wakes */
#define NBNIC_PASS_WAKES 64u
#endif

#ifndef NBNIC_PASS_VISITS /* visits of a pass to groups whose sends or starts wait */
#define NBNIC_PASS_VISITS 64u
#endif

#ifndef NBNIC_QUANTUM /* frames, and starts, of one group before the next group has its turn */
#define NBNIC_QUANTUM 8u
#endif

#ifndef NBNIC_PULLS_A_TICK /* PULLs of all groups in each half of pull_ns */
#define NBNIC_PULLS_A_TICK 64u
#endif

#ifndef NBNIC_TRACE /* 1: events can be traced (struct nbnic_platform), 0: no code for that */
#define NBNIC_TRACE 1
#endif

#ifndef NBNIC_LATENCY /* 1: keeps latencies, and the ranks that came last; 0: no code for that */
#define NBNIC_LATENCY 1
#endif

#ifndef NBNIC_ADAPT /* 1: after a loss, early PULLs (rtt.c); 0: no code for that */
#define NBNIC_ADAPT 1
#endif

#ifndef NBNIC_LEND /* 1: a wire can step groups by itself (lend.c); 0: no code for that */
#define NBNIC_LEND 0
#endif

#ifndef NBNIC_REMOTE /* 1: hosts may have a copy of the page (mirror.c); 0: no code for that */
#define NBNIC_REMOTE 0
#endif

/* On the path of a token, each caller has its own copy of a function. Without optimisation there is
 * one, so that coverage counts each branch once. */
#ifdef __OPTIMIZE__
#define NBNIC_INLINE __attribute__((always_inline)) static inline
#else
#define NBNIC_INLINE static inline
#endif

#ifndef NBNIC_VALUES /* 1: barriers can carry values; 0: no code for that */
#define NBNIC_VALUES (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) /* as values in a page */
#endif

#ifndef NBNIC_PULL_NS_LEAST /* the shortest interval of early PULLs, in ns */
#define NBNIC_PULL_NS_LEAST 20000u
#endif

#ifndef NBNIC_SCAN_CELLS /* cells of a port that a pass looks at */
#define NBNIC_SCAN_CELLS 64u
#endif

_Static_assert(NBNIC_GROUPS_MAX <= NBAR_GROUPS_MAX, "a page has no more cells");
_Static_assert(NBNIC_PORTS_MAX <= NBAR_PORTS_MAX, "the ABI has no more ports");
_Static_assert(NBNIC_GROUPS_MAX <= NBNIC_HANDLES, "an open group has a handle");
_Static_assert(NBNIC_USERS_MAX >= 1 && NBNIC_USERS_MAX <= 255, "a group holds a user in 8 bits");
_Static_assert(NBNIC_HANDLES <= 65536, "a handle holds the index in 16 bits");
_Static_assert(NBNIC_QUOTA >= NBNIC_QUOTA_MIN, "queues have a frame at least");

#endif
