/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.h - the NIC's side of a port's page: doorbells in, completions out.
 *
 * page.c is the only file of the firmware with atomics. Knows no DPDK. Called by the polling
 * thread alone, except page_create and page_destroy. Trusts nothing it reads: each word is read
 * once, then checked.
 */
#ifndef NBAR_PORT_PAGE_H
#define NBAR_PORT_PAGE_H

#include "nbar_abi.h"
#include "nic.h"

/* A port of a soft NIC. */
struct port {
	struct nbar_page *page;
	int fd;          /* of the page's memory; sealed, so that no client can shrink it */
	uint32_t number; /* at its NIC */
	uint32_t pid, uid;
	uint32_t ncell;   /* one beyond the highest cell in use */
	uint32_t nsignal; /* "signal" groups: without one, the send ring is not read */
	uint32_t sends_taken;
	uint32_t recvs_given, recvs_taken;
	struct nbnic_group *group[NBAR_GROUPS_MAX];
	struct nbar_doorbell seen[NBAR_GROUPS_MAX]; /* doorbells as last read */
	bool asked[NBAR_GROUPS_MAX];                /* wake at the next completion */
	bool unwoken[NBAR_GROUPS_MAX];              /* completed since the last wake */
	uint16_t held[NBAR_GROUPS_MAX]; /* attached processes that still look at the cell */
};

/* Makes the memory of a port. 0 or negative errno. */
int page_create(struct port *p, uint32_t number);

/* Gives the memory back; the client's own mapping stays valid until it ends. */
void page_destroy(struct port *p);

/* Puts a new group into a cell: completion and doorbell words start at 0. */
void page_cell_begin(struct port *p, uint32_t cell, struct nbnic_group *g);

/* Takes it out again. */
void page_cell_end(struct port *p, uint32_t cell);

/* Looks at all doorbells and at the send ring once. True if anything was there. */
bool page_scan(struct port *p, struct nbnic *nic, uint64_t now);

/* What nbnic_ops asks for; see nic.h. */
void page_complete(struct port *p, struct nbnic *nic, uint32_t cell, uint32_t epoch,
		   uint32_t status, uint32_t culprit);
void page_late(struct port *p, uint32_t cell, const struct nbnic_late *late, uint32_t n);
bool page_deliver(struct port *p, uint32_t cell, uint32_t src,
		  const uint32_t word[NBAR_SIGNAL_WORDS]);

#endif
