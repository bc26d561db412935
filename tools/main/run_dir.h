/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_dir.h - where a daemon's control sockets are: the rule of libnbar and nbar-nicd
 * (nbar-nicd(8)).
 */
#ifndef NBAR_TOOLS_RUN_DIR_H
#define NBAR_TOOLS_RUN_DIR_H

#include <stddef.h>

/* Writes the path; one that is too long for out is cut. */
void run_dir_find(char *out, size_t size);

#endif
