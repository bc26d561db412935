/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signals.h - the signals that end a subcommand, and SIGCHLD. They stay blocked, and functions wait
 * for them: so there are no handlers and no races. For subcommands that start processes.
 */
#ifndef NBAR_TOOLS_SIGNALS_H
#define NBAR_TOOLS_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Blocks these signals; a child calls signals_unblock. */
void signals_begin(void);
void signals_unblock(void);

/* Waits for one of these signals. */
void signals_wait(void);

/* Waits until this time of nbar_now_ns; SIGCHLD does not end the wait. True: a signal that ends the
 * subcommand has come. */
bool signals_wait_until(uint64_t time);

/* True if a signal that ends the subcommand has come. */
bool signals_interrupted(void);

/* In a child: the kernel will send `sig` to the child when the process `parent` dies. */
void signals_die_with(pid_t parent, int sig);

#endif
