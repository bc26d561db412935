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

/* Doubles the room for groups. */
static bool take_grow(struct stat_nic *s)
{
	uint32_t room = s->room ? 2 * s->room : 64;
	struct nbar_group_info *group = realloc(s->group, room * sizeof(*group));
	struct nbar_group_stat *last;

	if (!group)
		return false;
	s->group = group;
	last = realloc(s->last, room * sizeof(*last));
	if (!last)
		return false;
	s->last = last;
	s->room = room;
	return true;
}

static int keep_group(void *arg, const struct nbar_group_info *info,
		      const struct nbar_group_stat *last)
{
	struct stat_nic *s = arg;

	if (s->ngroup == s->room && !take_grow(s))
		return -ENOMEM;
	s->last[s->ngroup] = last ? *last : (struct nbar_group_stat){ 0 };
	s->group[s->ngroup++] = *info;
	return 0;
}

static int keep_group_only(void *arg, const struct nbar_group_info *info)
{
	return keep_group(arg, info, NULL);
}

static int take_nic(const struct stat_targets *t, const char *nic, struct stat_nic *s)
{
	int r = nbar_nic_stat(nic, &s->nic);

	s->ngroup = 0;
	s->at = nbar_now_ns();
	if (!r)
		r = nbar_nic_latency(nic, &s->latency);
	if (r == -EOPNOTSUPP) {
		memset(&s->latency, 0, sizeof(s->latency));
		r = 0;
	}
	if (!r && !t->counters_only)
		r = t->last ? nbar_nic_group_stats(nic, keep_group, s)
			    : nbar_nic_groups(nic, keep_group_only, s);
	if (!r)
		return 0;
	tool_error("%s", r == -ENOMEM ? "no memory for the groups of a NIC" : nbar_error());
	return TOOL_FAILED;
}

int stat_take(struct stat_targets *t)
{
	int r = 0;

	for (uint32_t i = 0; i < t->n && !r; i++)
		r = take_nic(t, t->name[i], &t->now[i]);
	return r;
}

int stat_flush(void)
{
	int failed = fflush(stdout) ? errno : 0;

	if (!failed && !ferror(stdout))
		return 0;
	tool_error("cannot write to stdout: %s",
		   failed ? strerror(failed) : "an earlier write failed");
	return TOOL_FAILED;
}
