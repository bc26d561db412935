/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_last.c - the variables of MPI_T that say which ranks a communicator has waited for.
 */
#include <stdlib.h>

#include "oracle_predict.h"

#define NAMES 6
#define ROUNDS_MAX 50
enum { COMM_BARRIERS, COMM_NS, COMM_MOST_NS, LAST_BARRIERS, LAST_NS, LAST_MOST_NS };

typedef unsigned long long number;

/* Reads a variable of a communicator. Returns the number of its values, or -1. */
static int read_of(MPI_Comm comm, int which, number *out)
{
	static const char *const name[NAMES] = {
		"coll_nbar_comm_barriers", "coll_nbar_comm_ns", "coll_nbar_comm_most_ns",
		"coll_nbar_last_barriers", "coll_nbar_last_ns", "coll_nbar_last_most_ns",
	};
	MPI_T_pvar_session session;
	MPI_T_pvar_handle handle;
	int index, count = -1;

	if (MPI_T_pvar_get_index(name[which], MPI_T_PVAR_CLASS_GENERIC, &index) != MPI_SUCCESS ||
	    MPI_T_pvar_session_create(&session) != MPI_SUCCESS)
		return -1;
	if (MPI_T_pvar_handle_alloc(session, index, &comm, &handle, &count) == MPI_SUCCESS) {
		if (MPI_T_pvar_read(session, handle, out) != MPI_SUCCESS)
			count = -1;
		MPI_T_pvar_handle_free(session, &handle);
	}
	MPI_T_pvar_session_free(&session);
	return count;
}

/* The lowest rank on the host of each rank. */
static int *first_of_host(void)
{
	int *first = calloc((size_t)oracle.size, sizeof(*first)), mine = oracle.rank;
	MPI_Comm host;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Bcast(&mine, 1, MPI_INT, 0, host);
	MPI_Allgather(&mine, 1, MPI_INT, first, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Comm_free(&host);
	return first;
}

/* n barriers; the last rank begins each barrier after all others have begun it. */
static void wait_for_last(MPI_Comm comm, int n)
{
	MPI_Request request;

	for (int i = 0; i < n; i++) {
		for (int r = 0; oracle.rank == oracle.size - 1 && r < oracle.size - 1; r++)
			MPI_Recv(NULL, 0, MPI_BYTE, r, 0, comm, MPI_STATUS_IGNORE);
		MPI_Ibarrier(comm, &request);
		if (oracle.rank < oracle.size - 1)
			MPI_Send(NULL, 0, MPI_BYTE, oracle.size - 1, 0, comm);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
}

/* Each host except that of the last rank counts the barriers whose last token came from the host of
 * the last rank. Returns the largest of these counts. */
static number late_barriers(MPI_Comm comm, const int *first)
{
	number *of = calloc((size_t)oracle.size, sizeof(*of)), most = 0;
	int last = oracle.size - 1;

	if (first[oracle.rank] != first[last] && read_of(comm, LAST_BARRIERS, of) == oracle.size)
		most = of[last];
	free(of);
	MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

/* The values per rank are those of their hosts, and their sum is the value of the communicator. */
static void check(MPI_Comm comm, const int *first, int n)
{
	number all[3] = { 0 }, *of[3], sum[3] = { 0 };

	for (int k = 0; k < 3; k++) {
		of[k] = calloc((size_t)oracle.size, sizeof(**of));
		oracle_want(read_of(comm, COMM_BARRIERS + k, &all[k]) == 1, "a value", (uint64_t)k);
		oracle_want(read_of(comm, LAST_BARRIERS + k, of[k]) == oracle.size,
			    "a value for each rank", (uint64_t)k);
		for (int r = 0; r < oracle.size; r++) {
			oracle_want(of[k][r] == of[k][first[r]], "one value for a host",
				    (uint64_t)r);
			if (first[r] == r && k < 2)
				sum[k] += of[k][r];
		}
	}
	oracle_want(all[0] >= (number)n, "barriers by NIC", all[0]);
	oracle_want(sum[0] == all[0] && sum[1] == all[1], "sums of the ranks", sum[0]);
	for (int r = 0; r < oracle.size; r++)
		oracle_want(of[2][r] <= all[2] && of[2][r] <= of[1][r] &&
				    (of[0][r] > 0 || of[1][r] == 0),
			    "the longest barrier", (uint64_t)r);
	for (int k = 0; k < 3; k++)
		free(of[k]);
}

void test_last(int n)
{
	int threads, *first = first_of_host();
	MPI_Comm comm, unused;
	number zero[1] = { 1 };

	MPI_Query_thread(&threads);
	oracle_want(MPI_T_init_thread(threads, &threads) == MPI_SUCCESS, "MPI_T starts", 0);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &unused);
	oracle_settle(comm);
	/* On a busy machine a NIC may see the doorbell of its host later than the token of the last
	 * rank. */
	for (int i = 0; i < ROUNDS_MAX && late_barriers(comm, first) < (number)n; i++)
		wait_for_last(comm, n);
	oracle_want(late_barriers(comm, first) >= (number)n,
		    "somebody has waited for the last rank", late_barriers(comm, first));
	check(comm, first, n);
	oracle_want(read_of(unused, COMM_BARRIERS, zero) == 1 && zero[0] == 0,
		    "a communicator without barriers", zero[0]);
	/* The group at the NIC ends when its first rank has freed the communicator. */
	MPI_Allreduce(MPI_IN_PLACE, &threads, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	MPI_Comm_free(&unused);
	MPI_Comm_free(&comm);
	MPI_T_finalize();
	free(first);
}
