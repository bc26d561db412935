/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_basic.c - blocking and nonblocking barriers on one communicator, and several under way.
 */
#include <stdlib.h>
#include <unistd.h>

#include "oracle_predict.h"

#define UNDER_WAY 100 /* barriers under way: more than a process team, or a set-up, can hold */

static void one_blocking(MPI_Comm comm, uint64_t step, const int *ranks, int n)
{
	oracle_enter(0, step);
	oracle_want(MPI_Barrier(comm) == MPI_SUCCESS, "MPI_Barrier failed at step", step);
	oracle_leave(0, step, ranks, n);
}

static void one_nonblocking(MPI_Comm comm, uint64_t step, const int *ranks, int n, bool test)
{
	MPI_Request request;
	int flag = 0;

	oracle_enter(0, step);
	MPI_Ibarrier(comm, &request);
	while (test && !flag)
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	if (!test)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	oracle_want(request == MPI_REQUEST_NULL, "request not gone at step", step);
	oracle_leave(0, step, ranks, n);
}

void test_blocking(int n)
{
	int members, *ranks = oracle_members(MPI_COMM_WORLD, &members);

	for (int i = 1; i <= n; i++)
		one_blocking(MPI_COMM_WORLD, (uint64_t)i, ranks, members);
	free(ranks);
}

void test_nonblocking(int n)
{
	int members, *ranks = oracle_members(MPI_COMM_WORLD, &members);
	MPI_Comm comm;

	/* A new communicator, so that its first barriers are nonblocking. */
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 1; i <= n; i++) {
		one_nonblocking(comm, (uint64_t)i, ranks, members, i % 3 == 0);
		if (i == n / 10)
			oracle_settle(comm);
	}
	MPI_Comm_free(&comm);
	free(ranks);
}

void test_mixed(int n)
{
	int members, *ranks = oracle_members(MPI_COMM_WORLD, &members);
	MPI_Comm comm = MPI_COMM_NULL;

	for (int i = 1; i <= n; i++) {
		uint32_t what = oracle_random(40);

		if (comm == MPI_COMM_NULL)
			MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		if (what == 0)
			MPI_Comm_free(&comm);
		else if (what < 20)
			one_blocking(comm, (uint64_t)i, ranks, members);
		else
			one_nonblocking(comm, (uint64_t)i, ranks, members, what < 30);
	}
	if (comm != MPI_COMM_NULL)
		MPI_Comm_free(&comm);
	free(ranks);
}

/* Calls MPI_Waitsome and similar functions. Returns how many requests they have completed. */
static int complete_some(MPI_Request *request, uint64_t first, const int *ranks, int n, int way)
{
	int done[UNDER_WAY], count = 0, flag = 0;

	if (way == 0) {
		MPI_Testany(UNDER_WAY, request, &done[0], &flag, MPI_STATUS_IGNORE);
		count = flag && done[0] != MPI_UNDEFINED;
	} else if (way == 1) {
		MPI_Testsome(UNDER_WAY, request, &count, done, MPI_STATUSES_IGNORE);
	} else if (way == 2) {
		MPI_Waitsome(UNDER_WAY, request, &count, done, MPI_STATUSES_IGNORE);
	} else {
		for (int i = 0; i < UNDER_WAY && !flag; i++) {
			done[0] = i;
			if (request[i] != MPI_REQUEST_NULL)
				MPI_Request_get_status(request[i], &flag, MPI_STATUS_IGNORE);
		}
		if (flag)
			oracle_leave(0, first + (uint64_t)done[0], ranks, n);
		if (flag)
			MPI_Test(&request[done[0]], &count, MPI_STATUS_IGNORE);
		oracle_want(flag == count, "complete, and then not:", (uint64_t)done[0]);
	}
	for (int i = 0; i < count; i++) {
		oracle_leave(0, first + (uint64_t)done[i], ranks, n);
		oracle_want(request[done[i]] == MPI_REQUEST_NULL, "not gone:", (uint64_t)done[i]);
	}
	return count == MPI_UNDEFINED ? 0 : count;
}

/* Completes all requests in one of six ways. */
static void complete(MPI_Request *request, uint64_t first, const int *ranks, int n, int way)
{
	int flag = 0;

	if (way == 0) {
		MPI_Waitall(UNDER_WAY, request, MPI_STATUSES_IGNORE);
		oracle_leave(0, first + UNDER_WAY - 1, ranks, n);
	} else if (way == 1) {
		while (!flag)
			MPI_Testall(UNDER_WAY, request, &flag, MPI_STATUSES_IGNORE);
		oracle_leave(0, first + UNDER_WAY - 1, ranks, n);
	} else if (way == 2) {
		for (int i = 0; i < UNDER_WAY; i++) {
			int which;

			MPI_Waitany(UNDER_WAY, request, &which, MPI_STATUS_IGNORE);
			oracle_leave(0, first + (uint64_t)which, ranks, n);
		}
	} else if (way == 3) {
		/* A function is called until it has completed one. */
		for (int left = UNDER_WAY, turn = 0, some; left > 0; left -= some, turn += some > 0)
			some = complete_some(request, first, ranks, n, turn % 4);
	} else {
		for (int i = UNDER_WAY - 1; i >= 0; i--) {
			MPI_Wait(&request[i], MPI_STATUS_IGNORE);
			oracle_leave(0, first + (uint64_t)i, ranks, n);
		}
	}
}

/* Rounds of UNDER_WAY barriers on three communicators, one of them new in each round. */
void test_outstanding(int n)
{
	int members, *ranks = oracle_members(MPI_COMM_WORLD, &members);
	MPI_Request request[UNDER_WAY];
	MPI_Comm comm[3];
	uint64_t step = 1;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
	for (int i = 0; i < n; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[2]);
		if (i < 2 || i % 2)
			oracle_settle(comm[i < 2 ? i : 2]);
		for (int k = 0; k < UNDER_WAY; k++) {
			oracle_enter(0, step + (uint64_t)k);
			MPI_Ibarrier(comm[oracle_random(3)], &request[k]);
		}
		complete(request, step, ranks, members, (i + oracle.rank) % 5);
		step += UNDER_WAY;
		MPI_Comm_free(&comm[2]);
	}
	MPI_Comm_free(&comm[0]);
	MPI_Comm_free(&comm[1]);
	free(ranks);
}

void test_persistent(int n)
{
#ifdef BARRIER_INIT
	int members, *ranks = oracle_members(MPI_COMM_WORLD, &members);
	MPI_Request request;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	BARRIER_INIT(comm, MPI_INFO_NULL, &request);
	for (int i = 1; i <= n; i++) {
		int flag = 0;

		oracle_enter(0, (uint64_t)i);
		MPI_Start(&request);
		while (i % 2 && !flag)
			MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		if (i % 2 == 0)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		oracle_leave(0, (uint64_t)i, ranks, members);
	}
	MPI_Request_free(&request);
	MPI_Comm_free(&comm);
	free(ranks);
#else
	(void)n;
#endif
}

void test_late(int n)
{
	int members, *ranks = oracle_members(MPI_COMM_WORLD, &members);
	uint64_t step = 0;

	for (int i = 0; i < n; i++) {
		for (int who = 0; who < 2 * oracle.size; who++) {
			MPI_Request request;
			double start;

			/* Take the time here, because the late rank may leave this barrier
			 * later. */
			start = MPI_Wtime();
			MPI_Barrier(MPI_COMM_WORLD);
			if (who / 2 == oracle.rank)
				usleep(200000);
			oracle_enter(0, ++step);
			if (who % 2) {
				MPI_Ibarrier(MPI_COMM_WORLD, &request);
				MPI_Wait(&request, MPI_STATUS_IGNORE);
			} else {
				MPI_Barrier(MPI_COMM_WORLD);
			}
			oracle_want(MPI_Wtime() - start >= 0.2, "did not see the late rank",
				    (uint64_t)who / 2);
			oracle_leave(0, step, ranks, members);
		}
	}
	free(ranks);
}
