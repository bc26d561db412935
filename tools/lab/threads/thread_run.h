/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread_run.h - one run of a thread barrier, of nbar_team or of a peer, in its own process.
 */
#ifndef NBAR_TOOLS_THREAD_RUN_H
#define NBAR_TOOLS_THREAD_RUN_H

#include <stdbool.h>

#include "thread_loop.h"

#define THREAD_TRANSFER "transfer" /* no barrier: a cache line from core to core, one way */

/* True if this kind is a barrier of nbar_team. */
bool thread_kind_own(const char *kind);

/* True if this kind is known: of nbar_team, pthread, omp-gcc, omp-llvm, ck-... */
bool thread_kind_known(const char *kind);

/* True if this kind can run: its program has been built. */
bool thread_kind_built(const char *kind);

/*
 * Runs a kind. The caller sets threads, warmup, iterations and limit_ns of the loop; the function
 * sets `measured`, and mean_ns of each thread. 0, or an exit code after a message.
 */
int thread_run(const char *kind, struct thread_loop *loop);

#endif
