/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algs.h - algorithms as options of the tools name them, from the table of alg.h.
 *
 * Reading a command line and --help call it. It must contain no name of an algorithm that makes
 * plans: all names come from the table.
 */
#ifndef NBAR_TOOLS_ALGS_H
#define NBAR_TOOLS_ALGS_H

#include <stdio.h>

#include "alg.h"

/* Default of --alg: of nbar bench, of nbar bench --value, whose plan must count each value once,
 * and of the sweeps. The experiments that the sweeps repeat used ALGS_SWEEP. */
#define ALGS_BENCH "dissemination:1"
#define ALGS_VALUE "pairwise"
#define ALGS_SWEEP "pairwise"

/* Reads the name of an algorithm that makes plans. False: no such name, or the text is too long. */
bool algs_read(const char *text, struct nbfw_alg *out);

/* A usage error: the reason why algs_read refuses this text of the option. */
int algs_refuse(const char *option, const char *text);

/* Calls each(arg, name) for every algorithm; for an algorithm with a parameter, once for each of
 * its usual values. Stops when a call does not return 0, and returns the result of this call. */
int algs_all(int (*each)(void *arg, const char *name), void *arg);

/* Prints the names of all algorithms that make plans, for --help, in lines after `margin`. */
void algs_names(FILE *to, const char *margin);

#endif
