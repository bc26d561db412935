/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.h - what the files of `nbar stat` share: stat_take.c asks, stat_out.c prints.
 */
#ifndef NBAR_TOOLS_STAT_H
#define NBAR_TOOLS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "nbar_extra.h"

struct stat_options {
	const char *nic; /* NULL: all of the run directory */
	bool json, all;
	bool asks_why; /* only of the groups with this index */
	uint32_t why;
	uint32_t watch; /* seconds; 0: once */
	uint32_t count; /* of looks; 0: until a signal */
};

/* The reply of one NIC. */
struct stat_nic {
	struct nbar_rep_nic_stat nic;
	struct nbar_group_info *group;
	uint32_t ngroup, room;
	uint64_t at; /* time of the reply, nanoseconds */
};

/* The NICs to show. */
struct stat_targets {
	char *name[NBAR_NICS_MAX];
	struct stat_nic now[NBAR_NICS_MAX], before[NBAR_NICS_MAX];
	uint32_t n;
};

/* Asks all NICs: t->now. 0, or the exit status, reported. */
int stat_take(struct stat_targets *t);

/* Flushes stdout. Returns likewise. */
int stat_flush(void);

/* Prints the replies of all NICs. */
void stat_print(const struct stat_targets *t, const struct stat_options *opt);

/* What a group is doing, in words: "waits for 3; late: 5, 6". */
void stat_print_state(FILE *to, const struct nbar_group_info *g);

/* Prints why the barriers of the groups with this index are not complete. False: there are none. */
bool stat_print_why(const struct stat_targets *t, uint32_t index);

#endif
