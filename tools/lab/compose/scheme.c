/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scheme.c - the tree of clusters of a barrier, and its signals. See scheme.h.
 *
 * Every function is deterministic. Memory grows with the members.
 */
#include "scheme.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct scheme *scheme_new(uint32_t size)
{
	struct scheme *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->size = size;
	c->room = size + 1;
	c->group = calloc(c->room, sizeof(*c->group));
	c->owner = calloc(size + c->room, sizeof(*c->owner));
	c->order = calloc(size + c->room, sizeof(*c->order));
	c->child = calloc(size + c->room, sizeof(*c->child));
	if (!c->group || !c->owner || !c->order || !c->child) {
		scheme_free(c);
		return NULL;
	}
	c->ngroup = 1;
	c->owner[size] = SCHEME_NONE;
	for (uint32_t i = 0; i < size; i++)
		c->order[i] = i;
	scheme_regroup(c);
	return c;
}

void scheme_free(struct scheme *c)
{
	if (!c)
		return;
	free(c->group);
	free(c->owner);
	free(c->order);
	free(c->child);
	free(c);
}

static uint32_t children_of_all(const struct scheme *c)
{
	return c->size + c->ngroup - 1;
}

void scheme_copy(struct scheme *to, const struct scheme *from)
{
	uint32_t n = children_of_all(from);

	to->ngroup = from->ngroup;
	to->exchange = from->exchange;
	memcpy(to->group, from->group, from->ngroup * sizeof(*to->group));
	memcpy(to->owner, from->owner, (n + 1) * sizeof(*to->owner));
	memcpy(to->order, from->order, n * sizeof(*to->order));
	memcpy(to->child, from->child, n * sizeof(*to->child));
}

/* Sorts the children by owner; a stable sort. */
void scheme_regroup(struct scheme *c)
{
	uint32_t n = children_of_all(c), at = 0;

	for (uint32_t g = 0; g < c->ngroup; g++)
		c->group[g].n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (c->owner[c->order[i]] != SCHEME_NONE)
			c->group[c->owner[c->order[i]]].n++;
	for (uint32_t g = 0; g < c->ngroup; g++) {
		c->group[g].first = at;
		at += c->group[g].n;
		c->group[g].n = 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t owner = c->owner[c->order[i]];

		if (owner != SCHEME_NONE) {
			struct scheme_group *g = &c->group[owner];

			c->child[g->first + g->n++] = c->order[i];
		}
	}
}

uint32_t scheme_leader(const struct scheme *c, uint32_t child)
{
	while (scheme_is_group(c, child))
		child = c->child[c->group[child - c->size].first];
	return child;
}

uint32_t scheme_add_group(struct scheme *c, uint32_t owner)
{
	uint32_t g = c->ngroup;

	if (g == c->room || c->group[owner].depth + 1 >= SCHEME_DEPTH_MAX)
		return SCHEME_NONE;
	c->group[g] = c->group[owner];
	c->group[g].depth++;
	c->group[g].n = 0;
	c->owner[c->size + g] = owner;
	c->order[children_of_all(c)] = c->size + g;
	c->ngroup++;
	return g;
}

/* Returns the index of a child in order[]. */
static uint32_t place_of(const struct scheme *c, uint32_t child)
{
	uint32_t i = 0;

	while (c->order[i] != child)
		i++;
	return i;
}

void scheme_merge(struct scheme *c, uint32_t group)
{
	uint32_t owner = c->owner[c->size + group];

	for (uint32_t i = 0; i < c->group[group].n; i++)
		c->owner[c->child[c->group[group].first + i]] = owner;
	c->owner[c->size + group] = SCHEME_NONE;
	scheme_regroup(c);
}

void scheme_lead(struct scheme *c, uint32_t group, uint32_t i)
{
	const uint32_t *child = c->child + c->group[group].first;
	uint32_t a = place_of(c, child[0]), b = place_of(c, child[i]), was = c->order[a];

	c->order[a] = c->order[b];
	c->order[b] = was;
	scheme_regroup(c);
}

/* Writes the leaders of a cluster's children, in the order of the children. */
static void leaders(const struct scheme *c, const struct scheme_group *g, uint32_t *out)
{
	for (uint32_t i = 0; i < g->n; i++)
		out[i] = scheme_leader(c, c->child[g->first + i]);
}

struct writer {
	const struct scheme *c;
	struct pattern *out;
	uint32_t *member; /* leaders of the current cluster */
};

static int write_arrival(const struct writer *w, uint32_t group)
{
	const struct scheme_group *g = &w->c->group[group];
	int rc = 0;

	for (uint32_t i = 0; i < g->n && !rc; i++) {
		uint32_t child = w->c->child[g->first + i];

		if (scheme_is_group(w->c, child))
			rc = write_arrival(w, child - w->c->size);
	}
	if (rc)
		return rc;
	leaders(w->c, g, w->member);
	return pattern_add(w->out, g->up, w->member, g->n,
			   group == 0 && w->c->exchange ? PATTERN_ALL : PATTERN_ARRIVE);
}

static int write_release(const struct writer *w, uint32_t group)
{
	const struct scheme_group *g = &w->c->group[group];
	int rc = 0;

	if (group || !w->c->exchange) {
		leaders(w->c, g, w->member);
		rc = pattern_add(w->out, g->down, w->member, g->n, PATTERN_LEAVE);
	}
	for (uint32_t i = 0; i < g->n && !rc; i++) {
		uint32_t child = w->c->child[g->first + i];

		if (scheme_is_group(w->c, child))
			rc = write_release(w, child - w->c->size);
	}
	return rc;
}

int scheme_signals(const struct scheme *c, struct pattern *out)
{
	struct writer w = { c, out, malloc((c->size + 1) * sizeof(uint32_t)) };
	int rc = w.member ? 0 : -ENOMEM;

	pattern_clear(out);
	if (!rc)
		rc = write_arrival(&w, 0);
	if (!rc)
		rc = write_release(&w, 0);
	free(w.member);
	return rc;
}
