/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostbar.h - the host-based barrier: the NIC of firmware/nic, run by the host.
 *
 * Same plans, same engine, same recovery, same code; only the place differs. Messages go through
 * the signal service of the real NIC, one at a time, so every step costs the way up to the host and
 * down again. It is the baseline that `nbar bench` compares with: nothing is allocated on the path
 * and the clock is read only when nothing comes in.
 *
 * One member a port: it takes all that the port receives. One thread at a time.
 */
#ifndef NBAR_TOOLS_HOSTBAR_H
#define NBAR_TOOLS_HOSTBAR_H

#include <stdint.h>

#include "nbar.h"

struct hostbar;
struct nbnic_config;

#define HOSTBAR_PULL_NS UINT64_C(1000000)
#define HOSTBAR_BUDGET_NS UINT64_C(60000000000)

/* As nbar_group_open. config NULL: the values above. The silence is longer than a NIC's, because a
 * host that has no processor cannot answer. */
int hostbar_open(struct nbar_port *port, const struct nbar_group_attr *attr,
		 const struct nbnic_config *config, struct hostbar **out,
		 struct nbar_endpoint *endpoint);

/* As nbar_group_connect. */
int hostbar_connect(struct hostbar *hb, const struct nbar_endpoint *endpoints);

/* Leaves. Nobody answers for this member from here on, so go on with hostbar_test until all
 * members are through. */
void hostbar_close(struct hostbar *hb);

/* As nbar_post. Its sends leave before it returns, up to the budget of a pass; hostbar_test sends
 * the others. */
int hostbar_post(struct hostbar *hb, uint32_t *ticket);

/* As nbar_test, and makes the protocol go on: a host that does not call it holds up the others. */
int hostbar_test(struct hostbar *hb, uint32_t ticket);

/* Text of the last error of this member. */
const char *hostbar_error(const struct hostbar *hb);

#endif
