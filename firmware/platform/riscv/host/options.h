/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the command line of nbar-bared, read and checked. */
#ifndef BARED_OPTIONS_H
#define BARED_OPTIONS_H

#include <sys/types.h>

#include "bared.h"

struct options {
	char run_dir[108];
	char name[NBAR_NAME_MAX];
	char netdev[512]; /* the value of QEMU's -netdev */
	char mac[18];
	char qemu[4096];
	char image[4096];
	uint32_t nport;
	uint64_t pull_ns, budget_ns;
	mode_t mode;
	gid_t group; /* (gid_t)-1: that of the process */
};

/* Reads the command line. -1: go on; else this is the exit status. Wrong use is reported. */
int options_parse(int argc, char **argv, struct options *o);

#endif
