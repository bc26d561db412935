/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostbar.h - the host-based barrier: the NIC of firmware/nic, run by the host.
 *
 * The host runs the same plans, the same engine and the same recovery as a NIC. Messages go through
 * the signal service of the real NIC, one at a time. So in every step a message goes from the NIC
 * to the host, and the host's answer goes back to the NIC. This is the baseline of `nbar bench`: a
 * barrier allocates no memory, and it reads the clock only when no message arrives.
 *
 * A barrier may carry a sum of a double of each member: the room that a message has left.
 *
 * A port has one member, which takes all messages of the port. One thread at a time may call it.
 */
#ifndef NBAR_TOOLS_HOSTBAR_H
#define NBAR_TOOLS_HOSTBAR_H

#include <stdint.h>

#include "nbar_extra.h"

struct hostbar;
struct nbnic_config;

#define HOSTBAR_PULL_NS UINT64_C(1000000)
#define HOSTBAR_BUDGET_NS UINT64_C(60000000000)
#define HOSTBAR_VALUE 8u /* bytes that a barrier carries */

/* As nbar_group_open; attr->value_max is 0 or HOSTBAR_VALUE, else -EINVAL. config NULL: the values
 * above. This retry budget is longer than the budget of a NIC, because a host that waits for a
 * processor does not answer. */
int hostbar_open(struct nbar_port *port, const struct nbar_group_attr *attr,
		 const struct nbnic_config *config, struct hostbar **out,
		 struct nbar_endpoint *endpoint);

/* As nbar_group_connect. */
int hostbar_connect(struct hostbar *hb, const struct nbar_endpoint *endpoints);

/* Leaves the group. After this, nobody answers for this member. So first call hostbar_test until
 * all members have completed. */
void hostbar_close(struct hostbar *hb);

/* As nbar_post. Sends at most the messages of one poll pass; hostbar_test sends the rest. */
int hostbar_post(struct hostbar *hb, uint32_t *ticket);

/* The same in a group with values: this member adds `own`. One barrier may be under way. */
int hostbar_post_sum(struct hostbar *hb, double own, uint32_t *ticket);

/* The sum of the last barrier, which is complete. */
double hostbar_sum(const struct hostbar *hb);

/* As nbar_test. It also runs the protocol: a host that does not call it delays the other hosts. */
int hostbar_test(struct hostbar *hb, uint32_t ticket);

/* Text of the last error of this member. */
const char *hostbar_error(const struct hostbar *hb);

#endif
