/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h - a small HTTP server for Prometheus: GET /metrics gives the text of metrics_text.h.
 *
 * Called by main() and, for each event of metrics_fd, by the control thread; never by the polling
 * thread. No client can delay the caller or another client: a connection has one short request, a
 * deadline, and nothing here waits for it.
 */
#ifndef NBAR_DAEMON_METRICS_H
#define NBAR_DAEMON_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#define METRICS_CONNECTIONS_MAX 8u  /* above this, a new connection replaces the oldest */
#define METRICS_REQUEST_BYTES 4096u /* of a request; a longer request is refused */
#define METRICS_TIMEOUT_MS 5000u    /* for a whole connection */
#define METRICS_FRESH_MS 100u       /* a younger text is sent again: clients cannot load the NICs */

struct metrics;

struct metrics_address {
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_storage room;
	} name;
	socklen_t length; /* 0: no metrics */
};

struct metrics_config {
	const struct metrics_address *address;
	mode_t mode; /* of a socket file */
	gid_t group; /* of a socket file; (gid_t)-1: the group of the process */
	uint32_t timeout_ms, fresh_ms;
	/* Writes the metrics. dropped: number of connections that this server gave up so far. */
	void (*write)(void *arg, bool open_metrics, uint64_t dropped, FILE *to);
	void *arg;
};

/* Reads "unix:PATH" or "ADDRESS:PORT", an IPv6 address in brackets. 0, or -EINVAL after
 * log_error(). */
int metrics_address_parse(const char *text, struct metrics_address *out);

/* The name of a socket file, or NULL. */
const char *metrics_address_path(const struct metrics_address *a);

/* Listens. The configuration and its address must outlive the server. 0, or negative errno after
 * log_error(). */
int metrics_open(const struct metrics_config *config, struct metrics **out);

/* Readable when metrics_serve has something to do. */
int metrics_fd(const struct metrics *m);

/* Handles one event, or returns at once without an event. arg is a struct metrics. */
void metrics_serve(void *arg);

/* Returns the port of a TCP address (the chosen port, for port 0); else 0. */
uint16_t metrics_port(const struct metrics *m);

/* Ends all connections and removes the socket file. m may be NULL. */
void metrics_close(struct metrics *m);

#endif
