/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_host.h - the hosts of a run, and the memory that they share with the bench.
 */
#ifndef NBAR_TOOLS_BENCH_HOST_H
#define NBAR_TOOLS_BENCH_HOST_H

#include "bench.h"

/* Stages that all hosts pass together; each counter has its own cache line. */
enum bench_stage { STAGE_OPENED, STAGE_CONNECTED, STAGE_FINISHED, STAGE_END };

struct bench_counter {
	uint32_t value;
	uint32_t reserved[31];
};

/* The figures of a node. */
struct bench_node {
	uint64_t failed_at; /* time of the node's failure, by tool_now_ns; 0: no failure */
	char error[320];
	uint64_t total_ns;          /* of the barriers measured */
	uint64_t late_ns;           /* sum of the delays at the end of computations */
	struct hist hist;           /* of each barrier measured, ns; computing included */
	double extra[BENCH_EXTRAS]; /* of a run without barriers */
};

struct bench_shared {
	uint32_t nodes, threads, nskew;
	struct bench_counter *stage;   /* nodes that have passed each stage */
	struct bench_counter *entered; /* barriers entered: [rank * threads + thread] */
	struct nbar_endpoint *endpoint;
	struct bench_node *node;
	uint64_t *exit; /* nskew a rank */
	void *memory;
	size_t length;
};

/* threads: of a node. 0 or negative errno. */
int bench_shared_create(struct bench_shared *s, uint32_t nodes, uint32_t threads, uint32_t nskew);
void bench_shared_destroy(struct bench_shared *s);

struct bench_host {
	const struct bench_options *opt;
	const struct bench_config *config;
	const struct bench_nics *nics;
	const struct bench_tuned *tuned; /* the barrier, if it is composed; else NULL */
	struct bench_shared *shared;
	uint32_t first, count; /* nodes that this process drives */
	int cpu;               /* -1: any */
	const struct bench_machine *machine;
	/* Drives the nodes. NULL: each node has one thread, and enters barrier after barrier. */
	int (*drive)(const struct bench_host *h, struct bench_member *member);
	bool yield; /* this process may share its core, so it yields when it is idle */
};

/* True if a host process has reached the end of its run. */
bool bench_host_finished(const struct bench_host *h);

/* The life of a host process; returns its exit code. */
int bench_host_run(const struct bench_host *h);

/* A node and its state. */
struct bench_member {
	uint32_t node, rank;
	struct nbar_port *port;
	struct nbar_group *group; /* one of these two is not NULL */
	struct hostbar *hostbar;
	uint32_t ticket;
	struct nbar_value value; /* that its barrier carries, and then brings */
	uint32_t left;           /* barriers to go, warm-up included */
	uint64_t started;        /* end of the warm-up */
	uint64_t last;           /* time of the last exit from a barrier */
	uint64_t until;          /* when the computation of the node ends; 0: it does not compute */
	struct bench_node *out;
	uint64_t *exit;
};

/* bench_host.c and bench_threads.c use these functions. A function that fails returns an exit code,
 * after bench_host_fail has put the message into the node's figures. */
__attribute__((format(printf, 2, 3))) int bench_host_fail(const struct bench_member *m,
							  const char *format, ...);
const char *bench_host_error(const struct bench_member *m);

/* The oracle of --check, for one thread of a rank. bench_host_enter notes that the thread enters a
 * barrier (the first has number 1). After the barrier, bench_host_check looks at all threads. */
void bench_host_enter(const struct bench_host *h, const struct bench_member *m, uint32_t thread,
		      uint32_t barrier);
int bench_host_check(const struct bench_host *h, const struct bench_member *m, uint32_t barrier);

/* Notes the time of the barrier that ended at `now`. left: barriers that the node still has. */
void bench_host_note(const struct bench_host *h, struct bench_member *m, uint32_t left,
		     uint64_t now);

/* Yields or pauses the processor: for a host that has nothing to do. */
void bench_host_idle(const struct bench_host *h);

/* Runs all barriers of a node that has several threads. */
int bench_threads_drive(const struct bench_host *h, struct bench_member *m);

#endif
