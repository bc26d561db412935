/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the command line of nbar-nicd, read and checked.
 */
#ifndef NBAR_DAEMON_OPTIONS_H
#define NBAR_DAEMON_OPTIONS_H

#include <sched.h>

#include "nicd.h"
#include "settings.h"
#include "spec.h"

struct option_nic {
	char name[NBAR_NAME_MAX];
	const struct wire *wire;
	struct spec spec;
};

struct options {
	struct settings set;
	cpu_set_t allowed; /* processors that the process may use */
	int nallowed;
	char attach[64];       /* empty: no remote hosts */
	struct wire_auth auth; /* auth.hash is NULL: no key was given */
	uint32_t nnic;
	struct option_nic nic[NBAR_NICS_MAX];
	uint32_t eal_argc; /* arguments of configuration files, then those after "--" */
	char *eal_argv[WIRE_ARGS_MAX];
};

/* Reads the command line. 0: run the NICs; 1: what the user asked for is printed; or negative errno
 * after log_error(). */
int options_parse(int argc, char **argv, struct options *o);

/* options_list.c: prints help, version or a list. */
void options_help(void);
void options_version(void);
void options_list_algs(void);
void options_list_wires(void);

#endif
