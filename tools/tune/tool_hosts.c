/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_hosts.c - see tool_hosts.h.
 */
#include "tool_hosts.h"

#include <stdlib.h>

#include "tool.h"

static int add_host(void *arg, const char *name)
{
	struct tool_hosts *h = arg;
	int64_t at = profile_find(h->profile, name);

	if (at < 0)
		return tool_usage("--hosts: the profile has no host '%s'", name);
	if (h->size == h->profile->hosts)
		return tool_usage("--hosts: more names than the profile has hosts");
	h->host[h->size++] = (uint32_t)at;
	return 0;
}

int tool_hosts_read(struct tool_hosts *h, const char *path, const char *list)
{
	char why[512];
	int r = 0;

	*h = (struct tool_hosts){ 0 };
	if (profile_read(path, &h->profile, why, sizeof(why))) {
		tool_error("%s", why);
		return TOOL_FAILED;
	}
	h->host = calloc(h->profile->hosts, sizeof(*h->host));
	if (!h->host) {
		tool_error("no memory for %u hosts", h->profile->hosts);
		r = TOOL_FAILED;
	} else if (list) {
		r = tool_list(list, add_host, h);
	} else {
		for (; h->size < h->profile->hosts; h->size++)
			h->host[h->size] = h->size;
	}
	if (r)
		tool_hosts_free(h);
	return r;
}

void tool_hosts_free(struct tool_hosts *h)
{
	profile_free(h->profile);
	free(h->host);
	*h = (struct tool_hosts){ 0 };
}
