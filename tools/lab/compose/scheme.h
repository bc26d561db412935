/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scheme.h - a barrier as a tree of clusters, with an algorithm for each of them.
 *
 * A child of a cluster is a member or another cluster. The leader of a cluster is its first child,
 * or the leader of this child. Clusters arrive bottom up, each among the leaders of its children.
 * The top cluster runs a complete barrier, or an arrival and a release. Then clusters release top
 * down.
 */
#ifndef NBAR_TUNE_SCHEME_H
#define NBAR_TUNE_SCHEME_H

#include "profile.h"
#include "schedule.h"

#define SCHEME_DEPTH_MAX 8u
#define SCHEME_NONE UINT32_MAX
#define SCHEME_DIAMETER 0.35 /* least distance of centres, as part of the cluster's diameter */

struct scheme_group {
	uint32_t first, n; /* of child[] */
	uint32_t depth;
	struct nbfw_alg up, down;
};

struct scheme {
	uint32_t size, ngroup, room; /* room: the limit of ngroup */
	struct scheme_group *group;  /* group[0]: the top; a group without children is unused */
	uint32_t *owner; /* by child (members, then groups): its group; SCHEME_NONE: the top */
	uint32_t *order; /* all children except the top group, in the order that they have in
			  * their groups */
	uint32_t *child; /* the children of each group, made by scheme_regroup */
	bool exchange;   /* the top group has no release: `up` is its whole barrier */
};

/* A scheme of one cluster. NULL: no memory. */
struct scheme *scheme_new(uint32_t size);
void scheme_free(struct scheme *c);
void scheme_copy(struct scheme *to, const struct scheme *from); /* of the same size */

/* Call it after changes of owner[] and order[]. */
void scheme_regroup(struct scheme *c);

/* The member that represents a child. */
uint32_t scheme_leader(const struct scheme *c, uint32_t child);

/* Adds a cluster without children below another cluster, and returns its number. SCHEME_NONE: no
 * room, or the tree would be too deep. */
uint32_t scheme_add_group(struct scheme *c, uint32_t owner);

/* Removes a cluster: its children take its place in its owner. */
void scheme_merge(struct scheme *c, uint32_t group);

/* Makes child number i of a cluster the first child. */
void scheme_lead(struct scheme *c, uint32_t group, uint32_t i);

static inline bool scheme_is_group(const struct scheme *c, uint32_t child)
{
	return child >= c->size;
}

/*
 * Clusters the members by sparse spatial centres, recursively. A member is a new centre if its
 * distance from all centres is more than SCHEME_DIAMETER of the diameter (the greatest distance
 * between two members). Every other member goes to the nearest centre. 0 or -ENOMEM.
 */
int scheme_cluster(struct scheme *c, const struct profile *p, const uint32_t *host);

/* Writes the signals of a scheme into an empty pattern. 0 or a negative errno. */
int scheme_signals(const struct scheme *c, struct pattern *out);

#endif
