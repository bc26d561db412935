/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search.h - visits every state of a world that can be saved and loaded, the nearest ones first.
 *
 * Called by group.c and nics.c. A world is a set of callbacks around real object code: in each
 * state it numbers the events that can happen, from 0. Breadth first: the path to a bad state is
 * as short as any.
 */
#ifndef TESTBED_MC_SEARCH_H
#define TESTBED_MC_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MC_DEPTH_MAX 512u

struct mc_world {
	void *ctx;
	size_t most_bytes; /* of a saved state */
	/* The first state. */
	void (*begin)(void *ctx);
	size_t (*save)(void *ctx, void *out);
	void (*load)(void *ctx, const void *in);
	/* Of the state that is loaded; states that differ in nothing that matters have the same. */
	uint64_t (*fingerprint)(void *ctx);
	uint32_t (*events)(void *ctx);
	/* NULL, or the property that the event breaks. */
	const char *(*apply)(void *ctx, uint32_t event);
	/* The same, for a state that is new. May change the state that is loaded. */
	const char *(*judge)(void *ctx);
};

struct mc_found {
	uint64_t states, events; /* visited; tried */
	uint32_t depth;          /* of the last state */
	bool full;               /* more states than were permitted, or than fit into memory */
	const char *why;         /* the property that is broken, or NULL */
	uint32_t npath;          /* the events that lead there */
	uint32_t path[MC_DEPTH_MAX];
};

/* Visits all states, `most` at most, or until a property is broken. */
void mc_search(const struct mc_world *w, uint64_t most, struct mc_found *out);

#endif
