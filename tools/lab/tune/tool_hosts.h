/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_hosts.h - shared by `nbar-lab tune` and `nbar-lab predict`: a profile, and the hosts of a
 * barrier as numbers in this profile.
 */
#ifndef NBAR_TUNE_TOOL_HOSTS_H
#define NBAR_TUNE_TOOL_HOSTS_H

#include "profile.h"

struct tool_hosts {
	struct profile *profile;
	uint32_t *host; /* of each rank */
	uint32_t size;
};

/* list: the host of each rank, by name, separated by commas; NULL: all hosts of the profile, in its
 * order. 0, or an exit code after a message. */
int tool_hosts_read(struct tool_hosts *h, const char *path, const char *list);
void tool_hosts_free(struct tool_hosts *h);

/* The clusters of a composed barrier as text: a line per cluster, indented by depth. The caller
 * frees the text. NULL: no memory. */
struct scheme;
char *tool_hosts_tree(const struct tool_hosts *h, const struct scheme *c);

#endif
