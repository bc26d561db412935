/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon.h - what nbar-nicd and nbar-bared share: signals, replies.
 */
#ifndef NBAR_DAEMON_DAEMON_H
#define NBAR_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { EXIT_USAGE = 2 }; /* for main() alone */

/* SIGTERM and SIGINT come through the descriptor, so no code runs in a signal handler. All threads
 * inherit the mask. SIGPIPE, SIGHUP and SIGXFSZ are ignored. */
int daemon_signals(void);

/* Makes a control socket listen. Where the kernel can (Linux 6.16), no client can send descriptors
 * over its connections: sendmsg fails. 0 or -1. */
int daemon_listen(int fd);

/* Sends a message to a client, with nfd descriptors. Never blocks. False: the client is gone, or
 * does not read. */
#define DAEMON_FDS_MAX 3u
bool daemon_send(int to, const void *message, size_t length, const int *fd, size_t nfd);

#endif
