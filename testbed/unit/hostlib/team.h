/* SPDX-License-Identifier: BSD-3-Clause */
/* team.h - a team of the usual kind, in one struct. */
#ifndef TESTBED_TEAM_H
#define TESTBED_TEAM_H

#include "nbar_extra.h"

static inline int team_init(struct nbar_team *team, uint32_t size, struct nbar_group *group)
{
	const struct nbar_team_attr attr = { .size = size, .group = group };

	return nbar_team_init(team, sizeof(*team), &attr);
}
#endif
