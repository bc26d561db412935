/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_hosts.h - shared by `nbar tune` and `nbar predict`: the profile, and the hosts of the
 * barrier in it. Each function returns 0, or an exit code after a message.
 */
#ifndef NBAR_TUNE_TOOL_HOSTS_H
#define NBAR_TUNE_TOOL_HOSTS_H

#include "profile.h"

struct tool_hosts {
	struct profile *profile;
	uint32_t *host; /* of each rank */
	uint32_t size;
};

/* list: names of hosts, one a rank, separated by commas; NULL: all of the profile, in its order. */
int tool_hosts_read(struct tool_hosts *h, const char *path, const char *list);
void tool_hosts_free(struct tool_hosts *h);

/* The clusters of a composed barrier, a line each, indented by depth. NULL: no memory; free() it.
 */
struct scheme;
char *tool_hosts_tree(const struct tool_hosts *h, const struct scheme *c);

#endif
