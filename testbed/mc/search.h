/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * search.h - visits every state of a world that can be saved and loaded, breadth first.
 *
 * Called by group.c and nics.c. A world is a set of callbacks around real object code. In each
 * state the world numbers the possible events from 0. Breadth first gives the shortest path to a
 * bad state.
 */
#ifndef TESTBED_MC_SEARCH_H
#define TESTBED_MC_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MC_DEPTH_MAX 512u

struct mc_world {
	void *ctx;
	size_t most_bytes; /* largest size of a saved state */
	/* Loads the first state. */
	void (*begin)(void *ctx);
	size_t (*save)(void *ctx, void *out);
	void (*load)(void *ctx, const void *in);
	/* The fingerprint of the loaded state. Equivalent states have the same fingerprint. */
	uint64_t (*fingerprint)(void *ctx);
	uint32_t (*events)(void *ctx);
	/* Returns NULL, or the property that the event breaks. */
	const char *(*apply)(void *ctx, uint32_t event);
	/* Called for each new state. Returns NULL, or the property that the state breaks. May
	 * change the loaded state. */
	const char *(*judge)(void *ctx);
};

struct mc_found {
	uint64_t states, events; /* visited; tried */
	uint32_t depth;          /* events from the first state to the last */
	bool full;               /* more states than were permitted, or than fit into memory */
	const char *why;         /* the property that is broken, or NULL */
	uint32_t npath;          /* the events that lead there */
	uint32_t path[MC_DEPTH_MAX];
};

/* Visits all states. Stops when a property is broken, or after `most` states. */
void mc_search(const struct mc_world *w, uint64_t most, struct mc_found *out);

#endif
