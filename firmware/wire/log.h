/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - what the daemon has to say to the person who started it. Never used on the path from
 * token to completion, nor for what a client or a peer does: that is answered or counted.
 */
#ifndef NBAR_WIRE_LOG_H
#define NBAR_WIRE_LOG_H

/* One line on stderr: what went wrong, where, and what to do. */
__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);

#endif
