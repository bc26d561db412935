/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the command line of nbar-bared, read and checked. */
#ifndef BARED_OPTIONS_H
#define BARED_OPTIONS_H

#include "bared.h"
#include "settings.h"

struct options {
	struct settings set;
	char netdev[512]; /* the value of QEMU's -netdev */
	char mac[18];
	char qemu[4096];
	char image[4096];
};

/* Reads the command line. 0: run the NIC; 1: what the user asked for is printed; or negative errno
 * after log_error(). */
int options_parse(int argc, char **argv, struct options *o);

#endif
