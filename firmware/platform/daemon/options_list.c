/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options_list.c - what nbar-nicd prints about itself: help, version, wires, algorithms.
 */
#include <stdio.h>
#include <string.h>

#include "options.h"

/* Prints a line per wire, and a line per key, which begins with blanks: programs may read it. */
void options_list_wires(void)
{
	for (const struct wire *w = wires_next(NULL, WIRE_IN_DAEMON); w;
	     w = wires_next(w, WIRE_IN_DAEMON)) {
		printf("%-6s %-8s %s%s\n", w->name, wires_reach_name(w->reach), w->help,
		       w == wires_default() ? " (the default)" : "");
		for (uint32_t i = 0; i < WIRE_KEYS_MAX && w->key[i].name; i++)
			printf("    %s=%*s %s\n", w->key[i].name, (int)(8 - strlen(w->key[i].name)),
			       "", w->key[i].help);
	}
}

void options_help(void)
{
	printf("usage: nbar-nicd [options] --nic name=NAME,wire=WIRE[,KEY=VALUE...] [--nic ...] "
	       "[-- EAL...]\n"
	       "Runs soft NICs that carry out barriers. Stays in the foreground; SIGTERM or SIGINT "
	       "ends it.\n");
	settings_help(SETTING_NICD);
	printf("EAL arguments are DPDK's, for example: -- --vdev=net_af_packet0,iface=eth1\n"
	       "A client finds the NICs by itself: try `nbar stat n0`. More: man nbar-nicd\n"
	       "Wires, how far they reach, and their keys:\n");
	options_list_wires();
}

static void list_alg(const char *name, unsigned low, unsigned high, unsigned limit,
		     const char *help, const char *source)
{
	printf("%-16s %s", name, help);
	if (high)
		printf("; %s: %u to %u", strchr(name, ':') + 1, low, high);
	if (limit < NBAR_SIZE_MAX)
		printf("; at most %u ranks", limit);
	printf("\n%-16s (%s)\n", "", source);
}

void options_list_algs(void)
{
	struct nbfw_alg best;
	char name[NBAR_NAME_MAX];

	nbfw_alg_parse(NBFW_ALG_AUTO, &best);
	nbfw_alg_name(best, name);
	printf("%-16s %s\n", NBFW_ALG_AUTO, name);
#define LIST(kind, name, param, low, high, usual, usual_end, limit, plan, help, source) \
	list_alg(name param, low, high, limit, help, source);
	NBFW_ALGS(LIST)
#undef LIST
	printf("%-16s a plan of the host's own\n%-16s no barrier: raw messages\n",
	       NBFW_ALG_CUSTOM_NAME, NBFW_ALG_SIGNAL_NAME);
}

void options_version(void)
{
	printf("nbar-nicd " NBAR_VERSION_TEXT "\nwires:");
	for (const struct wire *w = wires_next(NULL, WIRE_IN_DAEMON); w;
	     w = wires_next(w, WIRE_IN_DAEMON))
		printf(" %s", w->name);
	printf("\n");
}
