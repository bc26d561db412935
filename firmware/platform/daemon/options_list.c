/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options_list.c - what nbar-nicd prints about itself: help, version, wires, algorithms.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

static const char help[] =
	"usage: nbar-nicd [options] --nic name=NAME,wire=WIRE[,KEY=VALUE...] [--nic ...] [-- EAL...]\n"
	"Runs soft NICs that carry out barriers. Stays in the foreground; SIGTERM or SIGINT ends it.\n"
	"  --nic ...          a NIC; wires and their keys are below\n"
	"  --nics N           short for N NICs n0, n1, ... on the default wire\n"
	"  --run-dir DIR      control sockets are DIR/NAME.sock (default: $NBAR_RUN_DIR, or else\n"
	"                     /run/nbar for root, $XDG_RUNTIME_DIR/nbar, /tmp/nbar-UID)\n"
	"  --cpu N            the one processor that polls (default: the first allowed)\n"
	"  --idle POLICY      spin: for a processor of its own; yield: let others run in between;\n"
	"                     sleep: yield, then sleep until there is work (default: spin if --cpu\n"
	"                     is given and four processors are allowed, else sleep)\n"
	"  --pull-us N        wait for a token before it is asked for again (default 1000)\n"
	"  --budget-ms N      silence after which a peer is given up (default 8000)\n"
	"  --memory-mb N      memory for the groups of a NIC; one port may have a quarter (default 32)\n"
	"  --user-percent N   of ports, groups, memory and descriptors of a NIC, for one user\n"
	"                     (default: 50 if --mode lets other users in, else 100)\n"
	"  --user USER        whom the daemon becomes after its start, where root starts it\n"
	"  --mode MODE        permissions of the sockets (default 0600);  --group GROUP: their group\n"
	"  --huge auto|yes|no hugepages of DPDK (auto: where enough are free)\n"
	"  --config FILE      options, one per line, without dashes;  --check-config: only check them\n"
	"  --tune FILE        what the algorithm auto is by the size of a group (see the man page)\n"
	"  --key-file FILE    frames that leave the machine have tags by this key (man page)\n"
	"  --trace N          keep the last N events of each NIC, for nbar trace\n"
	"  --list-algs        the algorithms;  --list-wires, --version, --help: lists and texts alone\n"
	"EAL arguments are DPDK's, for example: -- --vdev=net_af_packet0,iface=eth1\n"
	"A client finds the NICs by itself: try `nbar stat n0`. More: man nbar-nicd\n";

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

int options_help(void)
{
	fputs(help, stdout);
	printf("Wires, how far they reach, and their keys:\n");
	options_list_wires();
	return EXIT_SUCCESS;
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

int options_list_algs(void)
{
	struct nbfw_alg best;
	char name[NBAR_NAME_MAX];

	nbfw_alg_parse(NBFW_ALG_AUTO, &best);
	nbfw_alg_name(best, name);
	printf("%-16s %s, or what a tune file says\n", NBFW_ALG_AUTO, name);
#define LIST(kind, name, param, low, high, usual, usual_end, limit, plan, help, source) \
	list_alg(name param, low, high, limit, help, source);
	NBFW_ALGS(LIST)
#undef LIST
	printf("%-16s a plan of the host's own\n%-16s no barrier: raw messages\n",
	       NBFW_ALG_CUSTOM_NAME, NBFW_ALG_SIGNAL_NAME);
	return EXIT_SUCCESS;
}

int options_version(void)
{
	printf("nbar-nicd " NBAR_VERSION_TEXT "\nwires:");
	for (const struct wire *w = wires_next(NULL, WIRE_IN_DAEMON); w;
	     w = wires_next(w, WIRE_IN_DAEMON))
		printf(" %s", w->name);
	printf("\n");
	return EXIT_SUCCESS;
}
