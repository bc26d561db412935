/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread_run.h - one run of a thread barrier, ours or a peer's, in a process of its own.
 */
#ifndef NBAR_TOOLS_THREAD_RUN_H
#define NBAR_TOOLS_THREAD_RUN_H

#include <stdbool.h>

#include "thread_loop.h"

#define THREAD_TRANSFER "transfer" /* no barrier: a cache line from core to core, one way */

/* True if this kind is a barrier of nbar_team. */
bool thread_kind_own(const char *kind);

/* True if this kind is known: ours, pthread, omp-gcc, omp-llvm, ck-... */
bool thread_kind_known(const char *kind);

/* True if it can be run: the program for it has been built. */
bool thread_kind_built(const char *kind);

/*
 * Runs it: loop has threads, warmup, iterations and limit_ns, and gets measured and mean_ns of each
 * thread. 0, or an exit code after a message.
 */
int thread_run(const char *kind, struct thread_loop *loop);

#endif
