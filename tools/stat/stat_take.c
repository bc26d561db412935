/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_take.c - asks NICs for their counters and groups.
 */
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nbar_host.h"
#include "stat.h"

static int keep_group(void *arg, const struct nbar_group_info *info)
{
	struct stat_nic *s = arg;

	if (s->ngroup == s->room) {
		uint32_t room = s->room ? 2 * s->room : 64;
		struct nbar_group_info *more = realloc(s->group, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->group = more;
		s->room = room;
	}
	s->group[s->ngroup++] = *info;
	return 0;
}

static int take(const char *nic, struct stat_nic *s)
{
	int r = nbar_nic_stat(nic, &s->nic);

	s->ngroup = 0;
	s->at = nbar_now_ns();
	if (!r)
		r = nbar_nic_groups(nic, keep_group, s);
	if (!r)
		return 0;
	tool_error("%s", r == -ENOMEM ? "no memory for its groups" : nbar_error());
	return TOOL_FAILED;
}

int stat_take(struct stat_targets *t)
{
	int r = 0;

	for (uint32_t i = 0; i < t->n && !r; i++)
		r = take(t->name[i], &t->now[i]);
	return r;
}

int stat_flush(void)
{
	if (!fflush(stdout))
		return 0;
	tool_error("cannot write to stdout: %s", strerror(errno));
	return TOOL_FAILED;
}
