/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - messages of the daemon for the person who started it. Never used on the path from token
 * to completion, and never for a fault of a client or a peer: the NIC answers or counts these
 * faults.
 */
#ifndef NBAR_WIRE_LOG_H
#define NBAR_WIRE_LOG_H

/* Writes one line to stderr: what went wrong, where, and what to do. */
__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);

#endif
