/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.h - what the files of `nbar stat` share: stat_take.c asks, stat_out.c and stat_latency.c
 * print.
 */
#ifndef NBAR_TOOLS_STAT_H
#define NBAR_TOOLS_STAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "nbar_extra.h"

struct stat_options {
	const char *nic; /* NULL: all NICs of the run directory */
	bool json, all, openmetrics;
	bool last;     /* asks for the last tokens of groups */
	bool asks_why; /* prints why the barriers of the groups with index `why` are not complete */
	uint32_t why;
	uint32_t watch; /* seconds between two displays; 0: a single display */
	uint32_t count; /* number of displays; 0: until a signal */
};

/* The reply of one NIC. */
struct stat_nic {
	struct nbar_rep_nic_stat nic;
	struct nbar_rep_nic_latency latency; /* all 0: the NIC does not keep it */
	struct nbar_group_info *group;
	struct nbar_group_stat *last; /* last tokens of each group; all 0: none, or not asked for */
	uint32_t ngroup, room;
	uint64_t at; /* time of the reply, nanoseconds */
};

/* The NICs to show. */
struct stat_targets {
	char *name[NBAR_NICS_MAX];
	struct stat_nic now[NBAR_NICS_MAX], before[NBAR_NICS_MAX];
	uint32_t n;
	bool last;          /* the user wants the last tokens of groups */
	bool counters_only; /* the user wants no groups */
};

/* Asks all NICs, and stores the replies in t->now. 0, or the exit status after a message. */
int stat_take(struct stat_targets *t);

/* Flushes stdout. 0, or the exit status after a message. */
int stat_flush(void);

/* Prints the replies of all NICs; as OpenMetrics, without groups. */
void stat_print(const struct stat_targets *t, const struct stat_options *opt);
void stat_print_openmetrics(const struct stat_targets *t);

/* stat_latency.c: prints the latency of a NIC's barriers, and the last tokens of its groups. Prints
 * nothing if the NIC has had no barriers. */
void stat_print_latency(const struct stat_nic *s);
void stat_print_last(const struct stat_nic *s);

/* The latency of a NIC's barriers as JSON. */
json_t *stat_latency_json(const struct nbar_rep_nic_latency *latency);
json_t *stat_last_json(const struct nbar_group_stat *last);

/* The least bound of a bucket, in ns, with at least `percent` of the barriers below it. UINT64_MAX:
 * no bucket has such a bound. */
uint64_t stat_latency_below(const struct nbar_rep_nic_latency *latency, uint32_t percent);

/* What a group is doing, in words: "waits for 3; late: 5, 6". */
void stat_print_state(FILE *to, const struct nbar_group_info *g);

/* Prints why the barriers of the groups with this index are not complete. False: no group has this
 * index. */
bool stat_print_why(const struct stat_targets *t, uint32_t index);

#endif
