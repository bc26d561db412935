/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metric.h - the table of metrics: what `nbar bench` and `nbar mpi-bench` report about barriers.
 *
 * To add a metric, add a row: terminal, JSON, CSV, --help and manual page take it from here. Both
 * benches pass their measurements; metric_man.c reads the table at build time. Must never measure.
 */
#ifndef NBAR_TOOLS_METRIC_H
#define NBAR_TOOLS_METRIC_H

#include <stdio.h>

#include "hist.h"
#include "result.h"

/*
 * ROW(id, name, unit, digits, members, quantile, repetitions, tables, help). A metric is merged
 * twice: over the members of a run (METRIC_OVER_*), and over the repetitions of the run
 * (METRIC_BY_*). In `nbar mpi-bench` a repetition is called a block. Neighbours with the same help
 * share a line of help. The rows have the order of the columns.
 */
/* clang-format off */
#define METRICS(ROW)                                                                               \
	ROW(MEAN, "mean", "us", 2, GREATEST, 0, MEDIAN, METRIC_BENCH,                              \
	    "mean time of a barrier, at the slowest member")                                       \
	ROW(AVG, "avg", "us", 2, AVERAGE, 0, MEDIAN, METRIC_BARRIER,                               \
	    "average, least and greatest of the members' mean times")                              \
	ROW(MIN, "min", "us", 2, LEAST, 0, MEDIAN, METRIC_BARRIER,                                 \
	    "average, least and greatest of the members' mean times")                              \
	ROW(MAX_MEAN, "max", "us", 2, GREATEST, 0, MEDIAN, METRIC_BARRIER,                         \
	    "average, least and greatest of the members' mean times")                              \
	ROW(OVERALL, "overall", "us", 2, GIVEN, 0, MEDIAN, METRIC_IBARRIER,                        \
	    "start the barrier, compute, and wait for its end")                                    \
	ROW(COMPUTE, "compute", "us", 2, GIVEN, 0, MEDIAN, METRIC_IBARRIER,                        \
	    "the computation alone")                                                               \
	ROW(PURE, "pure", "us", 2, GIVEN, 0, MEDIAN, METRIC_IBARRIER,                              \
	    "start the barrier and wait for its end, without computing")                           \
	ROW(OVERLAP, "overlap", "%", 1, GIVEN, 0, MEDIAN, METRIC_IBARRIER,                         \
	    "1 - (overall - compute) / pure, from 0 to 100 %")                                     \
	ROW(EXECUTION, "execution", "us", 2, GIVEN, 0, MEDIAN, METRIC_APP,                         \
	    "time of all steps of the application, at the slowest rank")                           \
	ROW(WAIT, "wait", "us", 2, GIVEN, 0, MEDIAN, METRIC_BUSY,                                  \
	    "mean time in the barrier, over ranks that do not compute")                            \
	ROW(LOW, "low", "us", 2, FIRST, 0, LOW, METRIC_BENCH | METRIC_BARRIER | METRIC_APP,        \
	    "interval that covers the median of mean, avg or execution")                           \
	ROW(HIGH, "high", "us", 2, FIRST, 0, HIGH, METRIC_BENCH | METRIC_BARRIER | METRIC_APP,      \
	    "interval that covers the median of mean, avg or execution")                           \
	ROW(EFFICIENCY, "efficiency", "", 3, GIVEN, 0, MEDIAN, METRIC_APP,                         \
	    "compute / execution")                                                                 \
	ROW(P50, "p50", "us", 2, QUANTILE, 0.50, MEDIAN,                                           \
	    METRIC_BENCH | METRIC_BARRIER | METRIC_BUSY,                                           \
	    "percentiles over all barriers of all members")                                        \
	ROW(P99, "p99", "us", 2, QUANTILE, 0.99, MEDIAN,                                           \
	    METRIC_BENCH | METRIC_BARRIER | METRIC_BUSY,                                           \
	    "percentiles over all barriers of all members")                                        \
	ROW(P99_9, "p99.9", "us", 2, QUANTILE, 0.999, MEDIAN,                                      \
	    METRIC_BENCH | METRIC_BARRIER | METRIC_BUSY,                                           \
	    "percentiles over all barriers of all members")                                        \
	ROW(MAX, "max", "us", 2, QUANTILE, 1, MEDIAN, METRIC_BENCH | METRIC_BUSY,                  \
	    "the longest barrier of any member")                                                   \
	ROW(SKEW, "skew", "us", 2, SKEW, 0, MEDIAN, METRIC_BENCH | METRIC_BARRIER,                 \
	    "median over the barriers of (last exit - first exit)")                                \
	ROW(FASTEST, "fastest", "us", 2, FIRST, 0, LEAST, METRIC_MPI_FULL,                         \
	    "avg, overall, wait or execution in the fastest block")                                \
	ROW(SLOWEST, "slowest", "us", 2, FIRST, 0, GREATEST, METRIC_MPI_FULL,                      \
	    "avg, overall, wait or execution in the slowest block")                                \
	ROW(SPEEDUP, "speedup", "", 2, NONE, 0, RATIO, METRIC_BENCH,                               \
	    "mean if hosts run the barrier / mean if NICs run it")                                 \
	ROW(SPEEDUP_MPI, "speedup", "", 3, NONE, 0, RATIO,                                         \
	    METRIC_BARRIER | METRIC_IBARRIER | METRIC_APP,                                         \
	    "avg, overall or execution: method mpi / this method")                                 \
	ROW(OF_MPI, "of mpi", "%", 2, NONE, 0, RATIO, METRIC_BUSY,                                 \
	    "wait in percent of the wait of method mpi")                                           \
	ROW(MEAN_MIN, "mean min", "us", 2, LEAST, 0, MEDIAN, METRIC_BENCH_FULL,                    \
	    "least and average of the members' mean times (--full)")                               \
	ROW(MEAN_AVG, "mean avg", "us", 2, AVERAGE, 0, MEDIAN, METRIC_BENCH_FULL,                  \
	    "least and average of the members' mean times (--full)")
/* clang-format on */

/* Bits: the tables that show a metric. */
enum {
	METRIC_BENCH = 1,
	METRIC_BENCH_FULL = 2,
	METRIC_BARRIER = 4, /* tests of `nbar mpi-bench` */
	METRIC_IBARRIER = 8,
	METRIC_BUSY = 16,
	METRIC_APP = 32,
	METRIC_MPI_FULL = 64
};

enum metric_members {
	METRIC_OVER_GREATEST, /* of the members' mean times */
	METRIC_OVER_LEAST,
	METRIC_OVER_AVERAGE,
	METRIC_OVER_QUANTILE, /* of all barriers of all members */
	METRIC_OVER_SKEW,
	METRIC_OVER_GIVEN, /* set by the test itself: metric[METRIC_ID], as in tools/mpi/run.c */
	METRIC_OVER_FIRST, /* the value of the first metric of the table: of mean, or avg, ... */
	METRIC_OVER_NONE   /* the metric compares rows */
};

enum metric_repetitions {
	METRIC_BY_MEDIAN,
	METRIC_BY_LOW, /* ends of the interval of the median */
	METRIC_BY_HIGH,
	METRIC_BY_LEAST,
	METRIC_BY_GREATEST,
	METRIC_BY_RATIO /* set by the bench, because the ratio needs another row */
};

#define METRIC_ID(id, ...) METRIC_##id,
enum metric_id { METRICS(METRIC_ID) METRIC_END };
#undef METRIC_ID

struct metric {
	const char *name, *unit;
	int digits;
	enum metric_members members;
	double quantile;
	enum metric_repetitions repetitions;
	unsigned tables;
	const char *help;
};
extern const struct metric metrics[METRIC_END];

/* The first metric of these tables that is not before `from`, or METRIC_END. */
enum metric_id metric_next(unsigned tables, unsigned from);

/* Writes the columns of these tables; returns their number. */
uint32_t metric_columns(unsigned tables, struct result_column *column);

/* Sets the metrics that are merged from the members' mean times, in us. */
void metric_set_means(double value[METRIC_END], double average, double least, double greatest);

/* Sets the quantiles and the skew. all: all barriers of all members, in ns. skew: in us; NAN: not
 * known. */
void metric_set_all(double value[METRIC_END], const struct hist *all, double skew);

/* The median of n figures, `stride` doubles apart, and the interval from low to high that covers
 * the median with confidence `covered`. NAN if n is too small: 0, or for the interval 1. */
struct metric_median {
	double median, low, high, covered;
};
struct metric_median metric_median(const double *figure, size_t stride, uint32_t n);

/* Merges n repetitions: METRIC_END values each, `stride` doubles apart. Ratios (METRIC_BY_RATIO)
 * become NAN. tables: the tables that show the values. */
void metric_merge(const double *repetition, size_t stride, uint32_t n, unsigned tables,
		  double value[METRIC_END]);

/* Appends the values of these tables to the row. */
static inline void metric_put(struct result *r, unsigned tables, const double value[METRIC_END])
{
	for (unsigned m = metric_next(tables, 0); m < METRIC_END; m = metric_next(tables, m + 1))
		result_real(r, value[m]);
}

/* For --help. metric_usage: lines with names and help; metric_names: one line with all names. */
void metric_usage(FILE *to, unsigned tables);
void metric_names(FILE *to, unsigned tables);

#endif
