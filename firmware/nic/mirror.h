/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mirror.h - the port of a remote host, which has its own copy of the page: what the NIC writes
 * into its copy, it also pushes into the host's copy.
 *
 * Called by page.c, after the NIC has written its own copy. A push that the platform does not take
 * is done again later, in nbnic_mirror_look: it carries the words that the copy has then.
 */
#ifndef NBNIC_MIRROR_H
#define NBNIC_MIRROR_H

#include <stdbool.h>

#include "config.h"
#include "nbar_abi.h"

struct nbnic;
struct nbnic_port;

struct nbnic_mirror {
	uint64_t life_at; /* when the sign of life is pushed again */
	uint32_t recvs_pushed;
	bool kick;                         /* the host's copy of `kick` is 1 */
	bool taken;                        /* sends_taken is to be pushed */
	bool settle;                       /* the number of a request is to be pushed */
	uint32_t settled;                  /* the number of the last request */
	uint32_t pushed[NBNIC_GROUPS_MAX]; /* by cell: the last barrier that the host knows */
	uint64_t due[(NBNIC_GROUPS_MAX + 63) / 64]; /* cells whose completion is to be pushed */
};

/* Between two signs of life: hosts doubt a NIC that shows none for a second. */
#define NBNIC_MIRROR_LIFE_NS UINT64_C(200000000)

/* True if the host has its own copy of the page. */
#define nbnic_mirrors(p) (NBNIC_REMOTE && (p)->mirror)

/* A cell begins. */
void nbnic_mirror_cell(struct nbnic_port *p, uint32_t cell);

/* Barriers of the cell have completed, or it has failed: pushes the completion, and wakes those who
 * have asked for it. */
void nbnic_mirror_wake(struct nbnic_port *p, struct nbnic *nic, uint32_t cell);

void nbnic_mirror_stragglers(struct nbnic_port *p, uint32_t cell);

/* Entries of the rings: the NIC has taken some, or delivered some. */
void nbnic_mirror_taken(struct nbnic_port *p);
void nbnic_mirror_delivered(struct nbnic_port *p);

/* The NIC will sleep. A host that kicks clears its own copy of the word: call nbnic_mirror_kicked
 * then. */
void nbnic_mirror_ask_kick(struct nbnic_port *p);
void nbnic_mirror_kicked(struct nbnic_port *p);

/* The NIC has done the request `seq` of the host: pushes this number after all else. */
void nbnic_mirror_settle(struct nbnic_port *p, uint32_t seq);

/* Now and then: the sign of life, and pushes that were not taken. */
void nbnic_mirror_look(struct nbnic_port *p, uint64_t now);

#endif
