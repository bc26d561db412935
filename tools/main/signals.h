/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signals.h - signals that end a subcommand, and those of its children. They are blocked and
 * fetched: no handlers, no races. Called by the subcommands that start processes.
 */
#ifndef NBAR_TOOLS_SIGNALS_H
#define NBAR_TOOLS_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* They are blocked from here on; children undo it by signals_unblock. */
void signals_begin(void);
void signals_unblock(void);

/* Waits for one of them. */
void signals_wait(void);

/* Waits until this time of nbar_now_ns, and ignores children. True: a signal that ends the
 * subcommand has come. */
bool signals_wait_until(uint64_t time);

/* True if a signal that ends the subcommand has come. */
bool signals_interrupted(void);

/* In a child: gets a signal when its parent, whose process id is given, dies. */
void signals_die_with(pid_t parent, int sig);

#endif
