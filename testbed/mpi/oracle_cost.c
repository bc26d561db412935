/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_cost.c - the cost of nbar for a program whose barriers the MPI runs, for example because
 * no host has a NIC: in the time of a barrier, and of a communicator.
 *
 * Measures with nbar and without in turns, in one run, and takes medians; so other programs disturb
 * both alike. Prints the times. A test fails only if barriers did not run as the comparison needs.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle_predict.h"

#define BLOCK 64      /* barriers between two looks at the clock */
#define LONG_LIVED 20 /* barriers of a communicator that nbar sets up */

static int by_time(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *time, int n)
{
	qsort(time, (size_t)n, sizeof(*time), by_time);
	return time[n / 2];
}

static double *times(int n)
{
	double *time = malloc((size_t)n * sizeof(*time));

	if (!time)
		MPI_Abort(MPI_COMM_WORLD, 2);
	return time;
}

/* Returns an info object with or without nbar, for a new communicator. The component of Open MPI
 * reads its key. The PMPI library replaces only the functions whose names do not begin with P. */
static MPI_Info info_of(const char *enable)
{
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "nbar_enable", enable);
	return info;
}

/* --- communicators --------------------------------------------------------------------------- */

/* The time of a communicator with n barriers, from MPI_Comm_dup to MPI_Comm_free, in us. */
static double life(MPI_Info info, int (*barrier)(MPI_Comm), int n)
{
	int zero = 0, sum;
	double since;
	MPI_Comm comm;

	MPI_Allreduce(&zero, &sum, 1, MPI_INT, MPI_SUM,
		      MPI_COMM_WORLD); /* not MPI_Barrier, which the test would count */
	since = MPI_Wtime();
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
	for (int i = 0; i < n; i++)
		barrier(comm);
	MPI_Comm_free(&comm);
	return 1e6 * (MPI_Wtime() - since);
}

static void lives(int n, int barriers)
{
	double *with = times(n), *without = times(n), a, b;
	MPI_Info off = info_of("false"), on = info_of("true");

	for (int i = 0; i < n; i++) {
		without[i] = life(off, PMPI_Barrier, barriers);
		with[i] = life(on, MPI_Barrier, barriers);
	}
	a = median(with, n);
	b = median(without, n);
	if (oracle.rank == 0)
		printf("# a communicator of %d barriers: with nbar %.2f us, without %.2f us: "
		       "%+.2f us (medians of %d)\n",
		       barriers, a, b, a - b, n);
	MPI_Info_free(&off);
	MPI_Info_free(&on);
	free(with);
	free(without);
}

/* Communicators with few barriers: nbar sets up nothing for them. */
void test_short(int n)
{
	unsigned long long before[3] = { 0 }, after[3] = { 0 };

	oracle_counters(before);
	lives(n, 1);
	oracle_counters(after);
	oracle_want(after[0] == before[0] && after[1] == before[1], "barriers were offloaded:",
		    (uint64_t)(after[0] + after[1] - before[0] - before[1]));
	oracle_want(after[2] - before[2] == (uint64_t)n, "barriers by MPI:", after[2] - before[2]);
}

/* --- barriers -------------------------------------------------------------------------------- */

/* The mean time of a barrier, in ns. */
static double block(MPI_Comm comm, int (*barrier)(MPI_Comm))
{
	double since;

	PMPI_Barrier(comm);
	since = MPI_Wtime();
	for (int i = 0; i < BLOCK; i++)
		barrier(comm);
	return 1e9 * (MPI_Wtime() - since) / BLOCK;
}

static void compare(const char *what, MPI_Comm on, MPI_Comm off, int n)
{
	double *with = times(n), *without = times(n), *again = times(n), a, b, c;

	for (int i = 0; i < n; i++) {
		without[i] = block(off, PMPI_Barrier);
		with[i] = block(on, MPI_Barrier);
		again[i] = block(off, PMPI_Barrier);
	}
	a = median(with, n);
	b = median(without, n);
	c = median(again, n);
	if (oracle.rank == 0)
		printf("# %s: with nbar %.1f ns, without %.1f ns, once more without %.1f ns: %+.2f %% "
		       "(medians of %d times %d)\n",
		       what, a, b, c, 200 * a / (b + c) - 100, n, BLOCK);
	free(with);
	free(without);
	free(again);
}

/* For runs in which nbar leaves all barriers to the MPI. */
void test_cost(int n)
{
	unsigned long long before[3] = { 0 }, after[3] = { 0 };
	MPI_Info info[2] = { info_of("false"), info_of("true") };
	MPI_Comm off, on;

	oracle_counters(before);
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info[0], &off);
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info[1], &on);
	oracle_settle(on);
	compare("a barrier of one rank", MPI_COMM_SELF, MPI_COMM_SELF, n);
	compare("a barrier of all ranks", on, off, n);
	lives(n, 1);
	lives(n, LONG_LIVED);
	oracle_counters(after);
	oracle_want(after[0] == before[0] && after[1] == before[1], "barriers were offloaded:",
		    (uint64_t)(after[0] + after[1] - before[0] - before[1]));
	for (int i = 0; i < 2; i++)
		MPI_Info_free(&info[i]);
	MPI_Comm_free(&off);
	MPI_Comm_free(&on);
}

/* --- records --------------------------------------------------------------------------------- */

/* Open MPI calls this function in place of PMIx's own. */
int PMIx_Get(const void *proc, const char *key, const void *info, size_t n, void **value);
int PMIx_Get(const void *proc, const char *key, const void *info, size_t n, void **value)
{
	static int (*get)(const void *, const char *, const void *, size_t, void **);

	if (!get)
		*(void **)&get = dlsym(dlopen("libpmix.so.2", RTLD_LAZY), "PMIx_Get");
	oracle.records += key && strstr(key, "nbar");
	return get(proc, key, info, n, value);
}

/* The oracle has settled MPI_COMM_WORLD, and this test its duplicate. */
void test_records(int n)
{
	MPI_Comm dup;

	(void)n;
	oracle_want(oracle.records == 0, "records looked up after MPI_Init:", oracle.records);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	oracle_settle(dup);
	MPI_Comm_free(&dup);
	oracle_want(oracle.records == 0, "and by a duplicate:", oracle.records);
}
