/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_short.c - what nbar does not do: it sets up nothing for communicators with few barriers,
 * and looks up no process for the communicators that it knows.
 */
#include <dlfcn.h>
#include <string.h>

#include "oracle_predict.h"

/* Communicators with few barriers: nbar sets up nothing for them. */
void test_short(int n)
{
	unsigned long long before[3] = { 0 }, after[3] = { 0 };
	MPI_Comm comm;

	oracle_counters(before);
	for (int i = 0; i < n; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		MPI_Barrier(comm);
		MPI_Comm_free(&comm);
	}
	oracle_counters(after);
	oracle_want(after[0] == before[0] && after[1] == before[1], "barriers were offloaded:",
		    (uint64_t)(after[0] + after[1] - before[0] - before[1]));
	oracle_want(after[2] - before[2] == (uint64_t)n, "barriers by MPI:", after[2] - before[2]);
}

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
