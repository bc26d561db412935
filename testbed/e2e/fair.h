/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair.h - what the files of the program `fair` share.
 *
 * A world is one daemon with two NICs, or two daemons with one NIC each, and a bystander: a group
 * of two members, one on each NIC. Other clients of the same daemons attack. One thread drives
 * bystander and attack: between two polls for the bystander's barrier, it runs a part of the
 * attack. So the NICs alone decide whom they serve first, and no scheduler does.
 */
#ifndef NBAR_TEST_FAIR_H
#define NBAR_TEST_FAIR_H

#include <stdbool.h>

#include "raw.h"

#define FAIR_CLIENTS_MAX 64u /* clients of an attack: the number of ports of a NIC */
#define FAIR_GROUPS_MAX 1024u

enum fair_wire {
	FAIR_RING, /* one daemon, its two NICs on the wire ring */
	FAIR_UDP,  /* one daemon, its two NICs on the wire udp */
	/* With the receive buffers of an untuned machine: */
	FAIR_SMALL, /* one daemon, its two NICs on the wire udp */
	FAIR_PAIR   /* two daemons with one NIC each on the wire udp: a busy daemon may seem silent
		     * to the other */
};

/* A group of two that belongs to an attack: member i is in cell[i] of client[i]. */
struct fair_pair {
	struct raw *client[2];
	uint32_t cell[2];
	uint32_t posted[2];
};

struct fair {
	char dir[2][32]; /* run directory of the daemon of each NIC */
	pid_t daemon[2]; /* 0: both NICs belong to the first daemon */
	struct raw by[2];
	uint32_t epoch;       /* barriers of the bystander */
	bool spin;            /* the daemon and this thread each have their own processor */
	uint64_t patience_ns; /* limit of one barrier: longer is a hang, not a slow machine */
	uint64_t off_ns;      /* time in the last barrier when other threads had our processor */

	/* The running attack. */
	uint32_t nclient, npair, next;
	struct raw client[FAIR_CLIENTS_MAX];
	struct fair_pair pair[FAIR_GROUPS_MAX];
	bool request_pending[FAIR_CLIENTS_MAX]; /* a request of the client has no reply yet */
	uint32_t given[FAIR_CLIENTS_MAX];       /* entries put into its send ring */
	uint32_t at[FAIR_CLIENTS_MAX];          /* the client's next item */
	uint64_t replies;                       /* replies to requests of pass() */
	char said[sizeof(((struct nbar_reply *)0)->text)]; /* the daemon's refusal, if the attack
							      could not begin */
};

struct fair_attack {
	const char *name;
	const char *text;               /* what the clients of the attack do */
	enum fair_wire wire, test_wire; /* in the benchmark, and in the test */
	uint32_t n, test_n; /* its groups, ports or clients: in the benchmark, and in the test */
	/* Opens the attack's ports and groups. False: the daemon refused one; f->said has its
	 * answer. */
	bool (*begin)(struct fair *f, uint32_t n);
	void (*pass)(struct fair *f); /* a part of the attack; never blocks. NULL: none */
	/* The attack is under way when the counter `sign` of both NICs (NBAR_COUNTER_END: the
	 * number of replies) has risen by `least`. */
	uint64_t least;
	enum nbar_counter sign;
};

extern const struct fair_attack fair_attacks[];
extern const uint32_t fair_nattack;

/* fair_neighbour.c: for the benchmark only. Call fair_neighbour_end after each of its phases. */
extern const struct fair_attack fair_neighbour;
void fair_neighbour_end(void);

/* fair_world.c: */

/* Starts the daemons and the bystander. spin: the daemon gets the first processor, and this thread
 * the second. False: it failed, and has printed the reason. */
bool fair_begin(struct fair *f, enum fair_wire wire, const char *budget_ms, bool spin);

/* Ends both daemons by SIGTERM. True: each ended by itself with status 0. */
bool fair_end(struct fair *f);

/* Connects to NIC 0 or 1. Ends the program on failure. */
void fair_dial(struct fair *f, struct raw *r, int nic);

/* Adds a client to the attack, with a port of a NIC. NULL: the NIC refuses a port. */
struct raw *fair_client(struct fair *f, int nic);

/* Closes all clients of the attack and waits until the NICs have none of their ports and groups. */
void fair_quiet(struct fair *f);

/* Runs one barrier of the bystander, and calls pass (may be NULL) while it is under way. Returns
 * its time in ns. 0: a member failed, or did not complete it in 20 s; the reason is on standard
 * output. */
uint64_t fair_barrier(struct fair *f, void (*pass)(struct fair *f));

/* A counter, of both NICs together. */
uint64_t fair_counter(struct fair *f, enum nbar_counter which);

uint64_t fair_now(void);

/* Returns how many frames of the attack the NICs have sent: signals, and the frames of completed
 * barriers. Read from the pages of the clients. */
uint64_t fair_sent(const struct fair *f);

/* fair_cases.c: cases outside the table of attacks; each prints TAP lines. */
void fair_case_late_linear(void);
void fair_case_late_pairs(void);
void fair_case_killed(void);
void fair_case_stopped(void);
void fair_case_memory(void);
void fair_case_reuse(void);

/* Runs n barriers of the bystander. True if all complete. */
bool fair_barriers(struct fair *f, uint32_t n, void (*pass)(struct fair *f));

/* fair_attacks.c: opens a group of two. Rank 0, on `receiver`, sends one token and waits for 4,096
 * tokens; rank 1, on `sender`, sends 4,096 tokens and waits for one. */
bool fair_wide(struct fair *f, struct raw *receiver, struct raw *sender);

/* Posts on all groups of two, as far ahead as a host may. */
void fair_pass_pairs(struct fair *f);

#endif
