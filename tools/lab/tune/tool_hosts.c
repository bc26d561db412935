/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_hosts.c - see tool_hosts.h.
 */
#include "tool_hosts.h"

#include <stdlib.h>

#include "scheme.h"
#include "tool.h"

static int hosts_add_host(void *arg, const char *name)
{
	struct tool_hosts *h = arg;
	int64_t at = profile_find(h->profile, name);

	if (at < 0)
		return tool_usage("--hosts: the profile has no host '%s'", name);
	h->host[h->size++] = (uint32_t)at;
	return 0;
}

/* The number of ranks: the number of names in the list; without a list, the number of hosts. A host
 * may be in the list several times. */
static size_t count_ranks(const struct tool_hosts *h, const char *list)
{
	size_t n = 1;

	if (!list)
		return h->profile->hosts;
	for (; *list; list++)
		n += *list == ',';
	return n;
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
	size_t ranks = count_ranks(h, list);

	if (ranks <= NBAR_SIZE_MAX)
		h->host = tool_alloc(ranks, sizeof(*h->host));
	if (ranks > NBAR_SIZE_MAX) {
		r = tool_usage("--hosts: %zu names; a group has at most %u ranks", ranks,
			       (unsigned int)NBAR_SIZE_MAX);
	} else if (list) {
		r = tool_list(list, hosts_add_host, h);
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

static void write_group(FILE *to, const struct tool_hosts *h, const struct scheme *c,
			uint32_t group, uint32_t indent)
{
	const struct scheme_group *g = &c->group[group];
	char up[NBAR_NAME_MAX], down[NBAR_NAME_MAX];

	nbfw_alg_name(g->up, up);
	nbfw_alg_name(g->down, down);
	if (group == 0 && c->exchange)
		fprintf(to, "%*s%s among", (int)indent, "", up);
	else
		fprintf(to, "%*sarrive %s, release %s:", (int)indent, "", up, down);
	for (uint32_t i = 0; i < g->n; i++)
		fprintf(to, " %s",
			h->profile->name[h->host[scheme_leader(c, c->child[g->first + i])]]);
	putc('\n', to);
	for (uint32_t i = 0; i < g->n; i++)
		if (scheme_is_group(c, c->child[g->first + i]))
			write_group(to, h, c, c->child[g->first + i] - c->size, indent + 2);
}

char *tool_hosts_tree(const struct tool_hosts *h, const struct scheme *c)
{
	char *text = NULL;
	size_t length;
	FILE *to = open_memstream(&text, &length);

	if (!to)
		return NULL;
	write_group(to, h, c, 0, 0);
	return fclose(to) ? NULL : text;
}
