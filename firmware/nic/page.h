/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.h - the NIC's side of a port's page: doorbells in, completions out.
 *
 * Called by the pass, and by requests. Trusts nothing that it reads: each word is read once, then
 * checked. It never reads back from the page what the NIC itself wrote there, except for what only
 * goes to a remote host (mirror.c).
 */
#ifndef NBNIC_PAGE_H
#define NBNIC_PAGE_H

#include "config.h"
#include "nbar_abi.h"
#include "nic.h"
#include "platform.h"

/* What the NIC keeps of a cell of a page. */
struct nbnic_cell {
	struct nbnic_group *group;
	uint32_t posted;     /* doorbell as last read */
	uint32_t wake_seq;   /* as last read */
	uint32_t looked;     /* doorbell at the last look, if the host waited: lend.c */
	uint16_t live_index; /* of this cell in live[], while it has a group */
	uint16_t held;       /* attached processes that still look at the cell */
	bool wake_pending;   /* wake sleepers at the next completion */
	bool wake_missed;    /* completed since the last wake */
	bool lent;           /* the wire hears of its posts: lend.c */
	bool sleeper;        /* of a remote host: it has asked for a wake since the last one */
	uint8_t values;      /* 1 + index in value[] of the port; 0: the barriers carry none */
};

struct nbnic_port {
	struct nbar_page *page;
	/* Of the page; or where the wire wants them. */
	struct nbar_completion *completion;
	struct nbar_value_place (*value)[NBAR_VALUES_AHEAD];
	const struct nbnic_platform *platform;
	void *ctx;
	uint32_t number, pid, uid;
	uint32_t open_index; /* in open[] of the device */
	uint32_t nlive;      /* cells that have a group: live[0 .. nlive) */
	uint32_t scan_at;    /* index in live[] where the next scan begins, ... */
	uint32_t look_at;    /* ... and the next look at lent groups */
	uint32_t nsignal;    /* "signal" groups: without one, the send ring is not read */
	uint32_t sends_taken;
	uint32_t recvs_given, recvs_taken;
	uint32_t life;    /* as last written to the page */
	uint8_t host;     /* what its processes did at host_at: enum nbar_why; 0: not known */
	bool asked;       /* others have waited for the host since the last look at its processes */
	uint64_t host_at; /* the time of that look */
	uint16_t live[NBNIC_GROUPS_MAX];
	struct nbnic_cell cell[NBNIC_GROUPS_MAX];
	struct nbnic_mirror *mirror; /* of a remote host; else NULL: the host maps the page */
};

/* Writes the head of a new page. */
void nbnic_page_begin(struct nbnic_port *p);

/* Shows the host that the NIC runs. */
void nbnic_page_live(struct nbnic_port *p);

/* Asks the host for kicks, or no more. Scans that follow see what was posted without a kick. */
void nbnic_page_ask_kicks(struct nbnic_port *p, bool wanted);

/* Index of a cell that has no group and that no attached process holds, or NBNIC_GROUPS_MAX. */
uint32_t nbnic_page_free_cell(const struct nbnic_port *p);

/* Index in value[] of the page that no cell has, or NBAR_VALUE_GROUPS. */
uint32_t nbnic_page_free_values(const struct nbnic_port *p);

/* Puts a new group into a cell: completion and doorbell words start at 0. A group with values gets
 * a free index in value[]. */
void nbnic_cell_begin(struct nbnic_port *p, uint32_t cell, struct nbnic_group *g);

/* Takes the group out of its cell. */
void nbnic_cell_end(struct nbnic_port *p, uint32_t cell);

/* The group in a cell, or NULL. */
static inline struct nbnic_group *nbnic_cell_group(const struct nbnic_port *p, uint32_t cell)
{
	return cell < NBNIC_GROUPS_MAX ? p->cell[cell].group : NULL;
}

/* Looks at the doorbells of n ports: at most NBNIC_SCAN_CELLS live cells of each, in turn. True if
 * any doorbell had rung. */
bool nbnic_page_scan(struct nbnic_port *const *port, uint32_t n, struct nbnic *nic, uint64_t now);

/* Sends at most `budget` entries of the send ring; returns how many. An entry that the wire has no
 * room for stays. */
uint32_t nbnic_page_signals(struct nbnic_port *p, struct nbnic *nic, uint32_t budget);

/* Wakes those who sleep until a barrier of this cell completes. */
__attribute__((cold, noinline)) void nbnic_page_wake(struct nbnic_port *p, struct nbnic *nic,
						     uint32_t cell);

/* The wire has completed barriers of this cell: wakes those who have asked for it. */
void nbnic_page_completed(struct nbnic_port *p, struct nbnic *nic, uint32_t cell);

/* True if the NIC has read all that the host has written to the doorbell of this cell. */
bool nbnic_page_is_seen(const struct nbnic_port *p, uint32_t cell);

/* True if the host has requested a wake that the NIC has not read. */
bool nbnic_page_has_asked(const struct nbnic_port *p, uint32_t cell);

/* The last barrier of this cell that the wire has completed; or what the host wrote there. */
uint32_t nbnic_page_completed_epoch(const struct nbnic_port *p, uint32_t cell);

/* True if the host waits for a barrier that it has posted in this cell; *posted: its doorbell. */
bool nbnic_page_is_waiting(const struct nbnic_port *p, uint32_t cell, uint32_t *posted);

/* Functions of nbnic_ops: see nic.h. */
void nbnic_page_complete(struct nbnic_port *p, struct nbnic *nic, uint32_t cell, uint32_t epoch,
			 uint32_t status, uint32_t failed_rank);
int nbnic_page_operand(const struct nbnic_port *p, uint32_t cell, uint32_t epoch,
		       struct nbfw_value *out, uint32_t most);
void nbnic_page_result(struct nbnic_port *p, uint32_t cell, uint32_t epoch,
		       const struct nbfw_value *v, uint32_t length);
void nbnic_page_stragglers(struct nbnic_port *p, uint32_t cell,
			   const struct nbnic_straggler *straggler, uint32_t n);
bool nbnic_page_deliver(struct nbnic_port *p, uint32_t cell, uint32_t src,
			const uint32_t word[NBAR_SIGNAL_WORDS]);

#endif
