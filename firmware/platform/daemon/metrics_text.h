/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_text.h - the state of a daemon's NICs as text for Prometheus.
 *
 * It has two formats, which differ only in names: OpenMetrics 1.0, and the older text format 0.0.4
 * for clients that do not ask for OpenMetrics. Called by the control thread.
 */
#ifndef NBAR_DAEMON_METRICS_TEXT_H
#define NBAR_DAEMON_METRICS_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "nbar_abi.h"

/* Reads the counters of all NICs of a daemon (arg, a struct nicd), and writes them. dropped: see
 * metrics.h. Without memory it writes nothing. */
void metrics_text_write(void *arg, bool open_metrics, uint64_t dropped, FILE *to);

/* The answers of a NIC. */
struct metrics_nic {
	struct nbar_rep_nic_stat stat;
	struct nbar_rep_nic_latency latency;
};

/* Writes n answers that the caller has already. */
void metrics_text_print(const struct metrics_nic *nic, uint32_t n, bool open_metrics,
			uint64_t dropped, FILE *to);

#endif
