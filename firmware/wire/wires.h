/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wires.h - the registry of wires: one row a wire.
 *
 * Whoever reads keys, lists wires, or writes help and error texts asks here; nobody else spells the
 * name of a wire. Used when a NIC is opened, never on the path from token to completion.
 */
#ifndef NBAR_WIRES_H
#define NBAR_WIRES_H

#include "auth.h"

#define WIRE_KEYS_MAX 8u

/* Where a NIC may have the wire; bits. */
#define WIRE_IN_DAEMON 1u
#define WIRE_IN_PROCESS 2u

/* How far apart the NICs of a group may be. */
enum wire_reach { WIRE_REACH_DAEMON, WIRE_REACH_MACHINE, WIRE_REACH_NETWORK };

struct wire_key {
	const char *name; /* NULL: the row has no more keys */
	const char *help; /* one line */
};

struct wire {
	const char *name;
	uint16_t kind; /* stands in endpoint addresses: never reuse a number */
	enum wire_reach reach;
	unsigned platforms; /* WIRE_IN_* */
	bool dpdk;          /* needs DPDK's EAL */
	bool tags;          /* frames may have tags: a wire to other machines */
	bool of_user;       /* its files belong to --user: opened with the rights of that user */
	unsigned dpdk_mb;   /* memory of DPDK that a NIC takes beyond what the EAL has anyway */
	const char *sdk;    /* library the wire needs; named in the error when it is not built in */
	const char *help;   /* one line */
	struct wire_key key[WIRE_KEYS_MAX];
	const struct wire_ops *ops; /* NULL: not in this build */
};

/* The rows whose wires are in this build and may be had on this platform. Start with NULL; NULL
 * after the last. */
const struct wire *wires_next(const struct wire *row, unsigned platform);

/* The wire of a NIC of a daemon for which none is named. */
const struct wire *wires_default(void);

/* The wire of this name. `what` is what the message begins with, "--nic" for example. 0, or -EINVAL
 * after log_error(). */
int wires_find(const char *what, const char *name, unsigned platform, const struct wire **out);

bool wires_has_key(const struct wire *row, const char *key);

/* Opens a NIC's end of the wire; see wire_ops.open. */
int wires_open(const struct wire *row, const char *nic, wire_option *option, void *args,
	       struct wire_base **out);

/* Whether a NIC with this key may have the wire: wires inside a machine need no tags. 0, or -EINVAL
 * after log_error(). */
int wires_auth_check(const struct wire *row, const char *nic, const struct wire_auth *auth);

/* Gives the open wire the key, if there is one and frames on it have tags. Before nicd_add. */
void wires_auth(const struct wire *row, const struct wire_auth *auth, struct wire_base *w);

/* "daemon", "machine" or "network". */
const char *wires_reach_name(enum wire_reach reach);

#endif
