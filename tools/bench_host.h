/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_host.h - the hosts of a run, and the memory that they share with the bench.
 */
#ifndef NBAR_TOOLS_BENCH_HOST_H
#define NBAR_TOOLS_BENCH_HOST_H

#include "bench.h"

/* Points that all hosts pass together; each counter has a cache line of its own. */
enum bench_stage { STAGE_OPENED, STAGE_CONNECTED, STAGE_FINISHED, STAGE_END };

struct bench_counter {
	uint32_t value;
	uint32_t reserved[31];
};

/* What a node leaves behind. */
struct bench_node {
	uint64_t failed_at; /* 0: it has not; clock of tool_now_ns */
	char error[320];
	uint64_t total_ns; /* of the barriers measured */
	uint64_t late_ns;  /* how much longer than wanted it computed, in all */
	struct hist hist;  /* of each barrier measured, ns; computing included */
};

struct bench_shared {
	uint32_t nodes, nskew;         /* arrays below are by rank */
	struct bench_counter *stage;   /* hosts that have passed: STAGE_END counters */
	struct bench_counter *entered; /* barriers entered */
	struct nbar_blob *blob;
	struct bench_node *node;
	uint64_t *exit; /* nskew a rank */
	void *memory;
	size_t length;
};

/* 0 or negative errno. */
int bench_shared_create(struct bench_shared *s, uint32_t nodes, uint32_t nskew);
void bench_shared_destroy(struct bench_shared *s);

struct bench_host {
	const struct bench_options *opt;
	const struct bench_config *config;
	const struct bench_nics *nics;
	struct bench_shared *shared;
	uint32_t first, count; /* nodes that this process drives */
	int cpu;               /* -1: any */
	bool yield;            /* its core is shared: give it up whenever there is nothing to do */
};

/* The life of a host process; returns its exit code. */
int bench_host_run(const struct bench_host *h);

#endif
