/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h - what the files of `nbar bench` share.
 *
 * bench.c       the command: options in, runs in random order, results out
 * bench_opt.c   options
 * bench_nicd.c  the daemon it starts, and the folder for it
 * bench_run.c   one run: starts the hosts, watches them, gathers what they measured
 * bench_host.c  what a host does in a run
 * bench_out.c   table, JSON, CSV
 */
#ifndef NBAR_TOOLS_BENCH_H
#define NBAR_TOOLS_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "hist.h"
#include "machine.h"
#include "nbar.h"
#include "tool.h"

#define BENCH_NODES_MAX 1024u
#define BENCH_LIST_MAX 16u /* node counts, algorithms */
#define BENCH_LAUNCHES_MAX 1000u
#define BENCH_ITERS_MAX 100000000u
#define BENCH_SKEW_MAX 16384u /* barriers of a run whose exits are kept, for the skew */
#define BENCH_PATH_MAX 256u

enum bench_where { BENCH_NIC, BENCH_HOST, BENCH_WHERE_END };
extern const char *const bench_where_name[BENCH_WHERE_END];

struct bench_options {
	uint32_t iters, warmup, launches;
	uint32_t nodes[BENCH_LIST_MAX], nnodes;
	enum bench_where where[BENCH_WHERE_END];
	uint32_t nwhere;
	char alg[BENCH_LIST_MAX][NBAR_NAME_MAX];
	uint32_t nalg;
	char wire[NBAR_NAME_MAX];
	const char *nic[NBAR_NICS_MAX]; /* attach to these instead of starting a daemon */
	uint32_t nnic;
	const char *json, *csv; /* path, "-", or NULL */
	const char *idle;       /* policy of the daemon; NULL: by the number of cores */
	const char *nicd;       /* path; NULL: beside this program, then $PATH */
	int cpu;                /* of the daemon; -1: the first allowed */
	uint64_t seed;
	bool one_driver, full, check;
	bool sorted; /* node i has rank i */
};

/* 0, or the exit code to end with; *help is set if that is what was wanted. */
int bench_options_parse(int argc, char **argv, struct bench_options *opt, bool *help);
void bench_usage(FILE *to);

/* The machine, and what of it this bench uses. */
struct bench_machine {
	struct tool_machine machine;
	uint32_t ncpu;
	int daemon_cpu; /* -1: not known */
	int host_cpu[64];
	uint32_t nhost_cpu; /* cores of the hosts, at most 64 of them used */
	char idle[16];
};

/* One line of the output: what was run ... */
struct bench_config {
	uint32_t nodes;
	enum bench_where where;
	const char *alg;
	const uint32_t *rank; /* of each node, in this launch */
};

/* ... and what came of it, in microseconds. */
struct bench_figures {
	double mean_us; /* greatest over the hosts, of their mean over all barriers */
	double mean_min_us, mean_avg_us; /* least and mean over the hosts, of the same */
	double p50_us, p99_us, max_us;   /* over all barriers of all hosts */
	double skew_us;                  /* median over the barriers of last exit - first exit */
};
#define BENCH_NFIGURES (sizeof(struct bench_figures) / sizeof(double))

struct bench_result {
	struct bench_config config;
	struct bench_figures median;  /* over the launches, figure by figure */
	struct bench_figures *launch; /* one a launch */
	double factor;                /* host mean / NIC mean; 0: not both were run */
};

/* NICs of a bench: our own daemon's, or those named by --nic. */
struct bench_nics {
	const char *name[NBAR_NICS_MAX];
	uint32_t n;
	pid_t pid;                /* of our daemon; 0: none */
	char dir[BENCH_PATH_MAX]; /* its run directory; empty: none */
	char text[NBAR_NICS_MAX][BENCH_PATH_MAX + 24];
};

/* Starts a daemon with n NICs and waits until it answers. 0 or an exit code, the message is out. */
int bench_nicd_start(struct bench_nics *nics, const struct bench_options *opt,
		     const struct bench_machine *machine, uint32_t n);

/* Ends it and removes its folder. Does nothing if none was started. */
void bench_nicd_stop(struct bench_nics *nics);

/* Says how our daemon ended, if status is that of its end, and shows the end of its log. */
void bench_nicd_died(struct bench_nics *nics, int status);

/* One run. 0 or an exit code, the message is out. */
int bench_run(const struct bench_options *opt, const struct bench_config *config,
	      const struct bench_machine *machine, struct bench_nics *nics,
	      struct bench_figures *out);

/* Signals that end the bench are blocked from begin on; children undo it by unblock. */
void bench_signals_begin(void);
void bench_signals_unblock(void);

/* True if a signal that ends the bench has come. */
bool bench_interrupted(void);

/* In a child: dies with its parent, whose process id is given. */
void bench_die_with(pid_t parent);

void bench_machine_read(struct bench_machine *m, const struct bench_options *opt);

struct bench_report {
	const struct bench_options *opt;
	const struct bench_machine *machine;
	const struct bench_result *result;
	uint32_t nresult;
	char command[1024];
};

void bench_table(const struct bench_report *r, FILE *to);
void bench_json(const struct bench_report *r, FILE *to);
void bench_csv(const struct bench_report *r, FILE *to);

#endif
