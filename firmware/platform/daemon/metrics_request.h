/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_request.h - what metrics.c understands of HTTP: the head of a GET request.
 */
#ifndef NBAR_DAEMON_METRICS_REQUEST_H
#define NBAR_DAEMON_METRICS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/* Reads n bytes that may be anything. 0: the request is not complete; else the status of the
 * answer. *open_metrics: the client accepts OpenMetrics. */
int metrics_request_read(const char *text, size_t n, bool *open_metrics);

/* The words for a status. */
const char *metrics_request_reason(int status);

#endif
