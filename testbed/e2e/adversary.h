/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adversary.h - what the files of the test program `adversary` share.
 */
#ifndef NBAR_TEST_ADVERSARY_H
#define NBAR_TEST_ADVERSARY_H

#include <stdbool.h>

#include "raw.h"

extern char adversary_run_dir[108];

/* How much the NICs can have: of a daemon, or of NICs that run already. */
struct adversary_limits {
	uint32_t ports, groups, clients;
	uint32_t noise; /* requests that are sent to see them refused */
	bool daemon;    /* the NICs are of a daemon that was started here */
};
extern struct adversary_limits adversary_limits;

/* The two good members, ranks 0 and 1 of a group, on NICs n0 and n1; each has cell 0 of its port.
 */
extern struct raw adversary_good[2];
extern struct nbar_endpoint adversary_endpoint[2];

uint32_t adversary_random(void);

/* One line of TAP. */
__attribute__((format(printf, 2, 3))) bool ok(bool pass, const char *format, ...);

/* The last answer was this error, and its text contains word. */
bool refused(struct raw *r, int rc, int error, const char *word);

/* Others lose nothing: a barrier of the two good members. */
bool others_work(void);

/* Connects to a NIC; the test ends if that fails. */
bool dial(struct raw *r, const char *nic);

/* Opens a port each and a group of two on two connections; it gets cell 0 of both. */
bool pair(struct raw *a, struct raw *b, uint32_t tag, struct nbar_endpoint endpoint[2]);

/* The cases: */
void adversary_requests(void); /* messages that are no requests, or not at their time */
void adversary_groups(void);   /* groups and plans that cannot be */
void adversary_frames(void);   /* forged frames on the wire */
void adversary_hosts(void);    /* garbage in pages, and hosts that die */

#endif
