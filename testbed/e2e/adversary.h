/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adversary.h - what the files of the test program `adversary` share.
 */
#ifndef NBAR_TEST_ADVERSARY_H
#define NBAR_TEST_ADVERSARY_H

#include <stdbool.h>

#include "raw.h"

extern char adversary_run_dir[108];

/* The limits of the NICs. */
struct adversary_limits {
	uint32_t ports, groups, clients;
	uint32_t noise; /* number of random requests */
	bool daemon;    /* this program has started the daemon */
};
extern struct adversary_limits adversary_limits;

/* The two good members, ranks 0 and 1 of a group, on NICs n0 and n1; each has cell 0 of its port.
 */
extern struct raw adversary_good[2];
extern struct nbar_endpoint adversary_endpoint[2];

uint32_t adversary_random(void);

/* True if the reply was this error, with `word` in its text. */
bool refused(struct raw *r, int rc, int error, const char *word);

/* True if the two good members complete a barrier. */
bool others_work(void);

/* Connects to a NIC; ends the program on failure. */
bool dial(struct raw *r, const char *nic);

/* Opens a port on each of two connections, and a group of two on them. The group gets cell 0 of
 * both ports. */
bool pair(struct raw *a, struct raw *b, uint32_t tag, struct nbar_endpoint endpoint[2]);

/* The cases: */
void adversary_requests(void); /* invalid messages, and requests at the wrong time */
void adversary_groups(void);   /* invalid groups and plans */
void adversary_frames(void);   /* forged frames on the wire */
void adversary_hosts(void);    /* garbage in pages, and hosts that die */

#endif
