/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h - what the files of `nbar bench` share.
 *
 * bench.c       the command: options in, runs in random order, results out
 * bench_opt.c   options, also those of the sweeps
 * bench_session.c  what all experiments with nodes share: daemon, runs, results
 * bench_nicd.c  starts the daemon in its own folder
 * bench_run.c   one run: starts the hosts, watches them, collects their measurements
 * bench_host.c  the host processes of a run
 * bench_threads.c  drives a host with several threads
 * bench_tuned.c  the barrier of --alg tuned:FILE
 */
#ifndef NBAR_TOOLS_BENCH_H
#define NBAR_TOOLS_BENCH_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "algs.h"
#include "experiment.h"
#include "hist.h"
#include "machine.h"
#include "metric.h"
#include "nbar_extra.h"
#include "tool.h"
#include "work.h"

#define BENCH_NODES_MAX 1024u
#define BENCH_LIST_MAX 64u /* node counts, algorithms */
#define BENCH_EXTRAS 3u    /* figures of runs without barriers */
#define BENCH_REPETITIONS_MAX 1000u
#define BENCH_ITERS_MAX 100000000u
#define BENCH_SKEW_MAX 16384u /* barriers of a run whose exits are kept, for the skew */
#define BENCH_PATH_MAX 256u
#define BENCH_IN_PROCESS_MAX 4u /* wires of in-process NICs */
#define BENCH_KEYS_MAX 190u

/* Where the barrier runs. NIC_RELEASE, for nodes with several threads: the NIC runs the barrier,
 * but only one thread polls the completion word, and then releases the other threads. IN_PROCESS
 * and higher values: an in-process NIC; each wire in --where has its own value. */
enum bench_where {
	BENCH_NIC,
	BENCH_HOST,
	BENCH_NIC_RELEASE,
	BENCH_IN_PROCESS,
	BENCH_WHERE_END = BENCH_IN_PROCESS + BENCH_IN_PROCESS_MAX
};
/* Names in --where, such as "nic". A name "host-WIRE" is added when the option is read. */
extern char bench_where_name[BENCH_WHERE_END][NBAR_NAME_MAX];

static inline bool bench_in_process(enum bench_where where)
{
	return where >= BENCH_IN_PROCESS;
}

/* Processes that drive the nodes. NODES: a process per node. ONE: one process for all nodes. AUTO:
 * NODES if each node has its own core, else ONE. */
enum bench_drivers { BENCH_DRIVERS_NODES, BENCH_DRIVERS_ONE, BENCH_DRIVERS_AUTO };

struct bench_options {
	uint32_t iters, warmup, repetitions;
	uint32_t nodes[BENCH_LIST_MAX], nnodes;
	uint32_t most; /* nodes of the greatest run, if it has more than each nodes[]; or 0 */
	enum bench_where where[BENCH_WHERE_END];
	uint32_t nwhere;
	char alg[BENCH_LIST_MAX][NBAR_NAME_MAX];
	uint32_t nalg;
	char tuned[TOOL_ITEM_MAX]; /* the profile of the algorithm NBAR_TUNE_NAME */
	const char *hosts; /* names of the NICs' hosts in `tuned`; NULL: the names of the NICs */
	char wire[48];     /* with keys */
	const char *nic[NBAR_NICS_MAX]; /* running NICs to attach to, instead of a daemon's */
	uint32_t nnic;
	struct experiment_options out;
	const char *idle; /* policy of the daemon; NULL: by the number of cores */
	const char *nicd; /* path; NULL: beside this program, then $PATH */
	int cpu;          /* of the daemon; -1: the first allowed */
	uint64_t seed;
	enum bench_drivers drivers;
	bool full, check;
	uint32_t value;   /* bytes that the barriers of `nbar bench` carry, as doubles; or 0 */
	const char *keys; /* of the in-process NICs, at most BENCH_KEYS_MAX characters; or NULL */
	bool teams;       /* each node has several threads */
	bool in_process;  /* in-process NICs may be measured, too */
	bool sorted;      /* node i has rank i */
};

/* The options of a bench by default. */
struct bench_options bench_options_default(void);

/* Further options of one experiment. read() gets the result of getopt_long, and the value. */
struct bench_extra_options {
	const struct option *option; /* ends with { 0 }; values from BENCH_OPT_MORE */
	int (*read)(void *arg, int c, const char *value);
	void *arg;
};
#define BENCH_OPT_MORE 512

/* Returns 0, or the exit code to end with; sets *help if the user asked for help. *opt has the
 * defaults before the call, and the options of the user after the call. `more` may be NULL. */
int bench_options_parse(int argc, char **argv, struct bench_options *opt,
			const struct bench_extra_options *more, bool *help);
void bench_usage(FILE *to);

/* True if --where names `where`. */
bool bench_wants(const struct bench_options *opt, enum bench_where where);

/* The options that all experiments with nodes have, for their --help. */
void bench_usage_common(FILE *to);

/* The machine, and the cores that this bench uses. */
struct bench_machine {
	struct tool_machine machine;
	uint32_t ncpu;
	int daemon_cpu; /* -1: not known */
	int host_cpu[64];
	uint32_t nhost_cpu;       /* first entries of host_cpu: for hosts beside a daemon */
	uint32_t nin_process_cpu; /* for hosts without a daemon: the daemon's core is the last */
	char idle[16];
};

struct bench_host;
struct bench_member;

/* The configuration of a run. */
struct bench_config {
	uint32_t nodes;
	enum bench_where where;
	const char *alg;
	uint32_t iters, warmup;        /* barriers; with work, full rounds of its steps */
	const struct bench_work *work; /* NULL: none */
	/* What a host runs instead of barriers, on "signal" groups or teams. NULL: barriers. */
	int (*drive)(const struct bench_host *h, struct bench_member *member);
	uint32_t threads;     /* of a node, as a team; 0: no team */
	const char *kind;     /* of the team */
	const uint32_t *rank; /* of each node; set by bench_session_run */
	uint32_t repetition;
};

/* The results of a run, in microseconds. */
struct bench_figures {
	double metric[METRIC_END];
	double extra[BENCH_EXTRAS]; /* of a run without barriers, at rank 0 */
	double late_us; /* mean over hosts and barriers: delay at the end of a computation */
};
#define BENCH_NFIGURES (sizeof(struct bench_figures) / sizeof(double))

/* NICs of a bench: of the daemon that bench starts, or the NICs that --nic names. */
struct bench_nics {
	const char *name[NBAR_NICS_MAX];
	uint32_t n;
	pid_t pid;                /* of our daemon; 0: none */
	char dir[BENCH_PATH_MAX]; /* its run directory; empty: none */
	int dir_fd;               /* while there is one: holds its lock */
	char text[NBAR_NICS_MAX][BENCH_PATH_MAX + 24];
};

/* Starts a daemon with n NICs and waits until all answer. 0, or an exit code after a message. */
int bench_nicd_start(struct bench_nics *nics, const struct bench_options *opt,
		     const struct bench_machine *machine, uint32_t n);

/* Ends the daemon and removes its folder. Does nothing if no daemon was started. */
void bench_nicd_stop(struct bench_nics *nics);

/* Pauses the daemon of this bench while hosts use its core, or lets the daemon continue. Does
 * nothing if this bench started no daemon. */
void bench_nicd_pause(const struct bench_nics *nics, bool pause);

/* Prints how the daemon of this bench ended (status is from waitpid), and the end of its log. */
void bench_nicd_died(struct bench_nics *nics, int status);

/* The output file for the samples of a run, and the name of the run in it. */
struct bench_raw {
	FILE *to; /* NULL: nowhere */
	const char *point;
};

/* One run. 0, or an exit code after a message. */
int bench_run(const struct bench_options *opt, const struct bench_config *config,
	      const struct bench_machine *machine, struct bench_nics *nics,
	      const struct bench_raw *raw, struct bench_figures *out);

/* *out: the barrier of --alg tuned:FILE for a run; NULL if the run has another algorithm. 0, or an
 * exit code after a message. In both cases, the caller must free it. */
struct bench_tuned;
int bench_tuned_make(const struct bench_options *opt, const struct bench_config *config,
		     const struct bench_nics *nics, struct bench_tuned **out);
void bench_tuned_free(struct bench_tuned *t);

/* The name of NIC i in a profile: name i of --hosts; without --hosts, the name of the socket. */
void bench_nic_name(const struct bench_options *opt, const struct bench_nics *nics, uint32_t i,
		    char *out, size_t size);

/* Sets algorithm and plan of the group to the plan of attr->rank. The caller frees attr->plan. 0,
 * or a negative errno and a text with the reason. */
int bench_tuned_plan(const struct bench_tuned *t, struct nbar_group_attr *attr, char *why,
		     size_t size);

void bench_machine_read(struct bench_machine *m, const struct bench_options *opt);

/* The state of an experiment with nodes. */
struct bench_session {
	struct bench_options *opt;
	struct bench_machine machine;
	struct bench_nics nics;
	struct experiment e;
	bool started; /* there are NICs */
	uint64_t random;
};

/*
 * Begins an experiment: checks NICs and machine, adds the settings that all such experiments share
 * to the result, and opens the outputs. The caller has put the experiment's own settings into the
 * result; this function takes ownership of the result. amount: approximate time of all runs, in
 * seconds. 0, or an exit code after a message: then do not call bench_session_end.
 */
int bench_session_begin(struct bench_session *s, struct bench_options *opt, struct result *result,
			double amount);

/* Approximate time of a run, in seconds. */
double bench_session_cost(const struct bench_config *c);

/*
 * Does one run. In --raw, its point is name, nodes, where, algorithm and repetition. Seed, number
 * of nodes and repetition determine the ranks of the nodes, so nic and host have the same ranks. 0,
 * or an exit code after a message.
 */
int bench_session_run(struct bench_session *s, const struct bench_config *config, const char *name,
		      struct bench_figures *out);

/* Writes the results and stops what was started. Returns the exit code. */
int bench_session_end(struct bench_session *s, int status);

/* A configuration: one row of the results for each `where`, and room for figures: per `where`, one
 * set for each repetition. */
struct bench_point {
	struct bench_config config; /* all but where, rank and repetition */
	char name[48];
	struct bench_figures *repetition[BENCH_WHERE_END];
};

/* Makes n points with room for figures; the caller sets point[i].config. NULL: no memory. */
struct bench_point *bench_points_new(const struct bench_options *opt, uint32_t n);
double bench_points_cost(const struct bench_options *opt, const struct bench_point *point,
			 uint32_t n);

/*
 * Runs every point once in each repetition, in random order. The runs of a point (BENCH_NIC,
 * BENCH_HOST, ...) follow each other, also in random order. So a drift of the machine affects them
 * alike.
 */
int bench_points_run(struct bench_session *s, const struct bench_point *point, uint32_t n);

/* Makes the rows of an experiment from its points, and the notes below them. complete: all points
 * were measured. */
struct bench_rows {
	void (*row)(const void *arg, const struct bench_options *opt, const struct bench_point *p,
		    enum bench_where where, struct result *r);
	void (*notes)(const void *arg, const struct bench_options *opt,
		      const struct bench_point *point, uint32_t n, bool complete, struct result *r);
	const void *arg; /* of row() and notes() */
};

/* Runs a whole experiment that is a set of points. Takes ownership of the result, which is NULL if
 * the caller had no memory. Returns the exit code. */
int bench_points_all(struct bench_options *opt, const struct bench_point *point, uint32_t n,
		     const struct bench_rows *rows, struct result *result);

/* How many of the n repetitions a bench has measured: fewer than n if it was interrupted. */
uint32_t bench_repetitions_done(const struct bench_figures *repetition, uint32_t n);

/* The median of a figure over the repetitions. figure: BENCH_FIGURE(its name). */
struct metric_median bench_median(const struct bench_figures *repetition, uint32_t n,
				  size_t figure);
#define BENCH_FIGURE(name) (offsetof(struct bench_figures, name) / sizeof(double))

/* The metric `mean` of a point over the repetitions: its median, low and high. */
struct metric_median bench_point_mean(const struct bench_options *opt,
				      const struct bench_point *point, enum bench_where where);

/* Host mean / NIC mean; NAN unless both were measured. */
double bench_point_speedup(const struct bench_options *opt, const struct bench_point *point);

/* Adds the notes that all results of runs need. */
void bench_session_notes(const struct bench_options *opt, struct result *r);

#endif
