/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_profile_sample.c - `nbar-lab profile --sample`: the cost of messages between clusters of
 * hosts.
 *
 * It measures each host with the first host of each cluster, one pair after the other. All
 * processes of a run compute the same clusters from the same times.
 */
#include <math.h>
#include <stdlib.h>

#include "tool_profile.h"

#define APART 2.0 /* all hosts are one cluster if furthest / nearest host is at most this */

/* A round trip between two nodes, without the cost of the calls. */
static double time_of(uint32_t i, uint32_t j)
{
	const struct measure *m = tool_measure;
	double t = m->round[(size_t)i * m->nodes + j] - m->alone[i];

	return t > 1 ? t : 1;
}

static int measure_times(struct tool_profile_pairs *pairs, uint32_t centre, uint32_t i)
{
	return tool_profile_pair(pairs, centre, i, 1, false, tool_measure->round);
}

/* Measures the cost of a further message in both directions. */
static int measure_further(struct tool_profile_pairs *pairs, uint32_t i, uint32_t j)
{
	double *more = tool_measure->more;
	int r = tool_profile_pair(pairs, i, j, MEASURE_MORE, false, more);

	return r ? r : tool_profile_pair(pairs, i, j, MEASURE_MORE, true, more);
}

/* Sets the time above which two hosts are in different clusters: the geometric mean of the times
 * from node 0 to its nearest and its furthest host; infinite if all hosts are one cluster. */
static int find_threshold(struct tool_profile_pairs *pairs, double *out)
{
	double nearest = INFINITY, furthest = 0;

	for (uint32_t i = 1; i < tool_measure->nodes; i++) {
		int r = measure_times(pairs, 0, i);

		if (r)
			return r;
		nearest = fmin(nearest, time_of(0, i));
		furthest = fmax(furthest, time_of(0, i));
	}
	*out = furthest > APART * nearest ? sqrt(nearest * furthest) : INFINITY;
	return 0;
}

/* Puts a node into the nearest cluster, or into a new one. */
static int sample_place(struct tool_profile_pairs *pairs, struct tool_profile_classes *c,
			uint32_t i, double threshold)
{
	double nearest = INFINITY;

	for (uint32_t z = 0; z < c->n; z++) {
		/* find_threshold has measured node 0, the centre of cluster 0. */
		int r = z ? measure_times(pairs, c->centre[z], i) : 0;

		if (r)
			return r;
		if (time_of(c->centre[z], i) < nearest) {
			nearest = time_of(c->centre[z], i);
			c->of[i] = z;
		}
	}
	if (nearest > threshold) {
		c->of[i] = c->n;
		c->second[c->n] = c->centre[c->n] = i;
		c->n++;
	} else if (c->second[c->of[i]] == c->centre[c->of[i]]) {
		c->second[c->of[i]] = i;
	}
	return 0;
}

int tool_profile_sample(struct tool_profile_pairs *pairs, struct tool_profile_classes *c)
{
	double threshold;
	int r = find_threshold(pairs, &threshold);

	c->n = 1;
	c->of[0] = c->centre[0] = c->second[0] = 0;
	for (uint32_t i = 1; i < tool_measure->nodes && !r; i++)
		r = sample_place(pairs, c, i, threshold);
	for (uint32_t z = 0; z < c->n && !r; z++) {
		if (c->second[z] != c->centre[z])
			r = measure_further(pairs, c->centre[z], c->second[z]);
		for (uint32_t y = z + 1; y < c->n && !r; y++)
			r = measure_further(pairs, c->centre[z], c->centre[y]);
	}
	return r;
}
