/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object.h - what the shared object of a wire and the program that loads it share. A daemon, or
 * an in-process NIC, loads it when it lists its wires or a NIC names the wire: so only users of the
 * wire need its SDK.
 *
 * The object has its own copy of the code of core and nic, which have no state of their own. Both
 * copies use the same structures, so object and program must be of the same build.
 */
#ifndef NBAR_WIRE_OBJECT_H
#define NBAR_WIRE_OBJECT_H

#include "wire.h"

#define WIRE_ARGS_MAX 240u

/* Hugepages of the SDK: if enough are free, always, or never. */
enum wire_huge { WIRE_HUGE_AUTO, WIRE_HUGE_YES, WIRE_HUGE_NO };

struct wire_start {
	unsigned cpu; /* of the polling thread, which calls start */
	enum wire_huge huge;
	uint32_t nnic; /* NICs that have the wire */
	uint32_t argc; /* arguments of the user for the SDK, at most WIRE_ARGS_MAX */
	char *const *argv;
};

struct wire_object {
	const char *build; /* WIRE_BUILD: version, and sum of the headers */
	size_t nic_size;   /* of struct nbnic */
	const struct wire_ops *ops;
	/* Where the object's log_error writes: the program sets it to its own. */
	void (**log)(const char *format, ...);
	/* Starts the SDK of a daemon, before NICs are opened and rights are dropped. 0, or negative
	 * errno after a message: -EINVAL if an argument is wrong. NULL: there is nothing to start.
	 */
	int (*start)(const struct wire_start *s);
	/* Ends the SDK, after all NICs are closed. */
	void (*end)(void);
};

/* The one symbol of the object. */
#define WIRE_OBJECT_SYMBOL "nbar_wire"
extern const struct wire_object nbar_wire;

/* See wire_object.log. */
extern void (*wire_object_log)(const char *format, ...);

#endif
