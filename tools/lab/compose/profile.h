/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile.h - the profile of a cluster (the cost of a message between any two hosts), and its file.
 *
 * Tools that predict, compose or simulate barriers read the file; `nbar-lab profile` writes it. A
 * file is untrusted input: the reader checks every value, and keeps nothing of a bad file.
 *
 * The file is JSON:
 *
 *   { "nbar_profile": 1, "hosts": ["h0", "h1"], "O_ns": [[0, 9], [9, 0]],
 *     "L_ns": [[0, 1], [1, 0]], "how": "text", "when": "text" }
 *
 * O_ns is the cost of one message, and L_ns the cost of each message more, in row i and column j
 * from host i to host j. O_ii is the cost of a call that sends nothing. In a profile of a large
 * cluster, hosts may have classes: "class": [0, 0, 1] gives the class of each host. The matrices
 * then have a row and a column per class; their diagonal is for two hosts of one class; "self_ns":
 * [0, 0] gives the O_ii of the hosts of each class.
 *
 * More keys are optional. "processor": [0, 0, 1]: NICs of hosts with the same number share a
 * processor; "step_ns": 40: work of a processor for each step of a NIC, beside its messages.
 * "flat_ns": {"pairwise": 1830}: measured barriers of all hosts, in their order.
 */
#ifndef NBAR_TUNE_PROFILE_H
#define NBAR_TUNE_PROFILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "alg.h"

#define PROFILE_VERSION 1
#define PROFILE_HOSTS_MAX 65536u  /* hosts per profile */
#define PROFILE_CLASSES_MAX 4096u /* rows of a matrix */
#define PROFILE_NAME_MAX 256u     /* bytes of a host's name, with its final zero */
#define PROFILE_COST_MAX_NS 1e12
#define PROFILE_FLAT_MAX 64u               /* measured barriers */
#define PROFILE_FILE_MAX ((size_t)1 << 30) /* bytes */

/* A measured barrier of all hosts. */
struct profile_flat {
	struct nbfw_alg alg;
	double time;
};

/* Hosts i and j are together at a level if i / hosts equals j / hosts. */
struct profile_level {
	uint32_t hosts;
	double o, l; /* of a message between hosts that are together at no lower level */
};

/* Times are in seconds. Read costs by profile_o, profile_l and profile_self, which handle
 * classes. */
struct profile {
	uint32_t hosts;
	char **name;
	uint32_t classes;    /* rows of the matrices; `hosts` if each host has its own row */
	uint32_t *class_of;  /* by host; NULL: host i has row i */
	double *o, *l;       /* row-major, classes x classes */
	double *self;        /* by class: O_ii, the cost of a call that sends nothing */
	uint32_t *processor; /* by host; same number: the hosts share a processor; NULL: none do */
	double step;         /* work of a shared processor for a step; O includes it */
	struct profile_flat *flat; /* measured barriers of all hosts: nflat */
	uint32_t nflat;
	/* NULL, or costs that take the place of both matrices, from the lowest level up; all hosts
	 * are together at the last one. Never in a file. */
	struct profile_level *level;
	char *how, *when; /* how and when the profile was measured; texts for people */
};

static inline uint32_t profile_row(const struct profile *p, uint32_t host)
{
	return p->class_of ? p->class_of[host] : host;
}

/* Returns the level at which two hosts are together. */
static inline const struct profile_level *profile_level(const struct profile *p, uint32_t i,
							uint32_t j)
{
	const struct profile_level *at = p->level;

	while (i / at->hosts != j / at->hosts)
		at++;
	return at;
}

/* Cost of one message from host i to another host j. */
static inline double profile_o(const struct profile *p, uint32_t i, uint32_t j)
{
	if (p->level)
		return profile_level(p, i, j)->o;
	return p->o[(size_t)profile_row(p, i) * p->classes + profile_row(p, j)];
}

/* Cost of adding one message from host i to another host j. */
static inline double profile_l(const struct profile *p, uint32_t i, uint32_t j)
{
	if (p->level)
		return profile_level(p, i, j)->l;
	return p->l[(size_t)profile_row(p, i) * p->classes + profile_row(p, j)];
}

/* Cost of a call that sends nothing, on host i. */
static inline double profile_self(const struct profile *p, uint32_t i)
{
	return p->self[profile_row(p, i)];
}

/* Makes a profile of this size: all costs 0, names NULL, class_of NULL if there are as many classes
 * as hosts, no shared processors, and no measured barriers. NULL: no memory. */
struct profile *profile_new(uint32_t hosts, uint32_t classes);
void profile_free(struct profile *p);

/* Reads a file. 0, or a negative errno and a text that names the file and the fault. */
int profile_read(const char *path, struct profile **out, char *why, size_t size);

/* Reads a profile from a text in memory; `path` is for the error text. */
int profile_parse(const char *text, size_t length, const char *path, struct profile **out,
		  char *why, size_t size);

/* Writes the file, in whole picoseconds. 0 or a negative errno. */
int profile_write(const struct profile *p, FILE *to);

/* Returns a number that depends on all hosts and costs, and on nothing else. */
uint64_t profile_digest(const struct profile *p);

/* Returns the number of the host with this name, or -1. Slow: compares all names. */
int64_t profile_find(const struct profile *p, const char *name);

#endif
