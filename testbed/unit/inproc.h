/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inproc.h - a whole NIC daemon inside a test program: the real control and polling threads, real
 * sockets and pages, and a wire in memory. No DPDK, no second process, so a sanitizer sees the
 * whole daemon.
 *
 * The NIC and the host library map a page at two addresses. ThreadSanitizer therefore does not see
 * that a completion orders one thread's writes before another's reads. So tests that run under it
 * use atomics for the data that a barrier protects, or are linked with single_mapping.c.
 */
#ifndef NBAR_TEST_INPROC_H
#define NBAR_TEST_INPROC_H

#include <stdint.h>

#include "nic.h"

struct inproc;

/*
 * Starts nnic NICs "n0", "n1", ... with a new run directory in /tmp, and sets $NBAR_RUN_DIR to it.
 * config NULL: the defaults of the daemon. Ends the program if a NIC cannot start.
 */
struct inproc *inproc_start(uint32_t nnic, const struct nbnic_config *config);

/* Path of the run directory, which has the sockets NAME.sock. */
const char *inproc_run_dir(const struct inproc *p);

/* Sets the percentage of frames that the wire loses at random; 0 at the start. */
void inproc_set_loss(struct inproc *p, uint32_t percent);

/* Stops the NICs as SIGTERM stops the daemon, and removes the run directory. */
void inproc_stop(struct inproc *p);

#endif
