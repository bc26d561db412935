/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wires.h - the registry of wires: one row per wire.
 *
 * The code that reads keys, lists wires, or writes help and error texts uses this registry; no
 * other code contains the name of a wire. Used when a NIC is opened, never on the path from token
 * to completion.
 */
#ifndef NBAR_WIRES_H
#define NBAR_WIRES_H

#include "auth.h"
#include "object.h"

#define WIRE_KEYS_MAX 8u

/* The kinds of NIC that may have the wire; bits. */
#define WIRE_IN_DAEMON 1u
#define WIRE_IN_PROCESS 2u

/* The greatest distance between the NICs of a group. */
enum wire_reach { WIRE_REACH_DAEMON, WIRE_REACH_MACHINE, WIRE_REACH_NETWORK };

struct wire_key {
	const char *name; /* NULL: the row has no more keys */
	const char *help; /* one line */
};

struct wire {
	const char *name;
	uint16_t kind; /* endpoint addresses contain it: never reuse a number */
	enum wire_reach reach;
	unsigned platforms; /* WIRE_IN_* */
	bool tags;          /* the wire leads to other machines: frames may have tags */
	bool of_user;       /* its files belong to --user: opened with the rights of that user */
	const char
		*sdk; /* library that the wire needs; named in the error if the file is missing */
	const char *file;    /* shared object that has the wire; NULL: the wire is in the program */
	const char *package; /* Debian package of the file */
	const char *help;    /* one line */
	struct wire_key key[WIRE_KEYS_MAX];
	const struct wire_object *object; /* of the file; NULL: not loaded */
	const struct wire_ops *ops;       /* NULL: not loaded */
};

/* Returns the row after `row` (NULL: the first row) whose wire is here and fits this platform;
 * NULL: no more rows. Loads the files of wires, as wires_find does. */
const struct wire *wires_next(const struct wire *row, unsigned platform);

/* Returns the wire of a daemon's NIC without wire=. */
const struct wire *wires_default(void);

/* Finds the wire of this name. 0, or -EINVAL after a message (log_error) that begins with `what`,
 * such as "--nic". */
int wires_find(const char *what, const char *name, unsigned platform, const struct wire **out);

bool wires_has_key(const struct wire *row, const char *key);

/* Opens the NIC's end of the wire; see wire_ops.open. */
int wires_open(const struct wire *row, const char *nic, wire_option *option, void *args,
	       struct wire_base **out);

/* Checks that a NIC with this key may have the wire: wires inside a machine have no tags. 0, or
 * -EINVAL after log_error(). */
int wires_auth_check(const struct wire *row, const char *nic, const struct wire_auth *auth);

/* Gives the key to the open wire, if there is a key and the wire has tags. Call it before
 * nicd_add. */
void wires_auth(const struct wire *row, const struct wire_auth *auth, struct wire_base *w);

/* "daemon", "machine" or "network". */
const char *wires_reach_name(enum wire_reach reach);

#endif
