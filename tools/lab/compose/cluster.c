/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster.c - clusters members by the cost of messages between them: selects sparse spatial
 * centres, recursively. See scheme.h.
 *
 * Every member of a group computes the same tree, because the tree depends only on the profile and
 * the order of the ranks. Time grows with members times centres, memory with the members.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "scheme.h"

#define EXACT_MAX 512u /* up to this many members, compare every pair */
#define LOOK_MIN 256u  /* from this many on: if 90 % of the members are centres, no clusters */

struct clustering {
	struct scheme *c;
	const struct profile *p;
	const uint32_t *host;
	uint32_t *member;  /* sorted into clusters in place */
	uint32_t *centre;  /* by rank: the number of its centre */
	uint32_t *centres; /* ranks */
	uint32_t *scratch;
};

static double distance(const struct clustering *x, uint32_t a, uint32_t b)
{
	uint32_t i = x->host[a], j = x->host[b];

	return i == j ? 0 : (profile_o(x->p, i, j) + profile_o(x->p, j, i)) / 2;
}

static uint32_t cluster_furthest(const struct clustering *x, const uint32_t *m, uint32_t k,
				 uint32_t from, double *far)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < k; i++) {
		double d = distance(x, m[from], m[i]);

		if (d > *far) {
			*far = d;
			at = i;
		}
	}
	return at;
}

/* Computes the diameter, the greatest distance between two members. With many members, estimates
 * it: takes the member furthest from the first, and the greatest distance from this member. */
static double cluster_diameter(const struct clustering *x, const uint32_t *m, uint32_t k)
{
	double far = 0;

	if (k > EXACT_MAX) {
		uint32_t end = cluster_furthest(x, m, k, 0, &far);

		cluster_furthest(x, m, k, end, &far);
		return far;
	}
	for (uint32_t i = 0; i < k; i++)
		cluster_furthest(x, m, k, i, &far);
	return far;
}

/* Finds the centres of k members, and the nearest centre of each member. Returns the number of
 * centres; k or 1: there are no clusters. */
static uint32_t find_centres(struct clustering *x, const uint32_t *m, uint32_t k)
{
	double apart = SCHEME_DIAMETER * cluster_diameter(x, m, k);
	uint32_t n = 0;

	for (uint32_t i = 0; i < k; i++) {
		double nearest = 0;

		if (i >= LOOK_MIN && n >= i / 10 * 9)
			return k;
		for (uint32_t z = 0; z < n; z++) {
			double d = distance(x, m[i], x->centres[z]);

			if (z == 0 || d < nearest) {
				nearest = d;
				x->centre[m[i]] = z;
			}
		}
		if (n == 0 || nearest > apart) {
			x->centre[m[i]] = n;
			x->centres[n++] = m[i];
		}
	}
	/* A centre found later may be nearer. */
	for (uint32_t i = 0; i < k && n < k; i++) {
		double nearest = distance(x, m[i], x->centres[x->centre[m[i]]]);

		for (uint32_t z = x->centre[m[i]] + 1; z < n; z++) {
			double d = distance(x, m[i], x->centres[z]);

			if (d < nearest) {
				nearest = d;
				x->centre[m[i]] = z;
			}
		}
	}
	return n;
}

/* Sorts k members by their n centres; first[z]: where the members of centre z begin. */
static void sort_by_centre(struct clustering *x, uint32_t *m, uint32_t k, uint32_t n,
			   uint32_t *first)
{
	memset(first, 0, (n + 1) * sizeof(*first));
	for (uint32_t i = 0; i < k; i++)
		first[x->centre[m[i]] + 1]++;
	for (uint32_t z = 0; z < n; z++)
		first[z + 1] += first[z];
	for (uint32_t i = 0; i < k; i++)
		x->scratch[first[x->centre[m[i]]]++] = m[i];
	memcpy(m, x->scratch, k * sizeof(*m));
	memmove(first + 1, first, n * sizeof(*first));
	first[0] = 0;
}

static int cluster_divide(struct clustering *x, uint32_t begin, uint32_t k, uint32_t group)
{
	uint32_t *m = x->member + begin;
	uint32_t n = k > 2 && x->c->group[group].depth + 1 < SCHEME_DEPTH_MAX
			     ? find_centres(x, m, k)
			     : 1;
	uint32_t *first;
	int rc = 0;

	for (uint32_t i = 0; i < k; i++)
		x->c->owner[m[i]] = group;
	if (n == 1 || n == k)
		return 0;
	first = malloc((n + 1) * sizeof(*first));
	if (!first)
		return -ENOMEM;
	sort_by_centre(x, m, k, n, first);
	for (uint32_t z = 0; z < n && !rc; z++) {
		uint32_t many = first[z + 1] - first[z];
		uint32_t below = many > 1 ? scheme_add_group(x->c, group) : SCHEME_NONE;

		if (below != SCHEME_NONE)
			rc = cluster_divide(x, begin + first[z], many, below);
	}
	free(first);
	return rc;
}

int scheme_cluster(struct scheme *c, const struct profile *p, const uint32_t *host)
{
	size_t bytes = (c->size + 1) * sizeof(uint32_t);
	struct clustering x = {
		c, p, host, malloc(bytes), malloc(bytes), malloc(bytes), malloc(bytes)
	};
	int rc = x.member && x.centre && x.centres && x.scratch ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < c->size && !rc; i++)
		x.member[i] = i;
	if (!rc)
		rc = cluster_divide(&x, 0, c->size, 0);
	if (!rc)
		scheme_regroup(c);
	free(x.member);
	free(x.centre);
	free(x.centres);
	free(x.scratch);
	return rc;
}
