/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the command line of nbar-nicd, read and checked.
 */
#ifndef NBAR_DAEMON_OPTIONS_H
#define NBAR_DAEMON_OPTIONS_H

#include <sched.h>
#include <sys/types.h>

#include "nicd.h"
#include "spec.h"
#include "tune.h"

struct option_nic {
	char name[NBAR_NAME_MAX];
	const struct wire *wire;
	struct spec spec;
};

struct options {
	char run_dir[108]; /* the path of a socket must still fit */
	unsigned cpu;
	cpu_set_t allowed; /* processors that the process may use */
	int nallowed;
	enum nicd_idle idle;
	struct nbnic_config config;
	mode_t mode;
	gid_t group;
	bool has_user; /* --user is given: uid and gid of the process after its start */
	uid_t uid;
	gid_t gid;
	const char *huge;      /* "auto", "yes" or "no" */
	struct tune tune;      /* empty: no tune file was given */
	struct wire_auth auth; /* auth.hash is NULL: no key was given */
	uint32_t trace;        /* events to keep, by NIC; 0: none */
	uint32_t nnic;
	struct option_nic nic[NBAR_NICS_MAX];
	uint32_t eal_argc; /* arguments of configuration files, then those after "--" */
	char *eal_argv[WIRE_ARGS_MAX];
};

/* Reads the command line. -1: continue; else the exit status. Reports wrong use. */
int options_parse(int argc, char **argv, struct options *o);

/* options_list.c: prints help, version or a list; returns the exit status. */
int options_help(void);
int options_version(void);
int options_list_algs(void);
void options_list_wires(void);

#endif
