/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_progress.c - what must go on while a rank waits in a barrier, and what happens when a
 * barrier cannot complete. A glue that breaks MPI's rule of progress hangs here.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "oracle.h"

#define LONG_MESSAGE (4 << 20) /* far beyond what any MPI sends eagerly */

/* A barrier by turns of either kind. */
static void barrier(int iteration)
{
	MPI_Request request;

	if (iteration % 2) {
		MPI_Ibarrier(MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

static char *buffer(int fill)
{
	char *b = malloc(LONG_MESSAGE);

	if (!b)
		MPI_Abort(MPI_COMM_WORLD, 2);
	memset(b, fill, LONG_MESSAGE);
	return b;
}

/* Sender: Isend, barrier, Wait. Receiver: Recv (found by a probe, or not), barrier. */
static void long_message(int n, bool probe)
{
	char *b = buffer(oracle.rank);

	for (int i = 0; i < n; i++) {
		int from = i % oracle.size, to = (i + 1) % oracle.size, flag = 0;
		MPI_Request request;

		if (oracle.rank == from && from != to)
			MPI_Isend(b, LONG_MESSAGE, MPI_CHAR, to, 7, MPI_COMM_WORLD, &request);
		if (oracle.rank == to && from != to) {
			while (probe && !flag)
				MPI_Iprobe(from, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
			MPI_Recv(b, LONG_MESSAGE, MPI_CHAR, from, 7, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			oracle_want(b[LONG_MESSAGE - 1] == (char)from, "wrong bytes in round",
				    (uint64_t)i);
			memset(b, oracle.rank, LONG_MESSAGE);
		}
		barrier(i);
		if (oracle.rank == from && from != to)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	free(b);
}

void test_rendezvous(int n)
{
	long_message(n, false);
}

void test_probe(int n)
{
	long_message(n, true);
}

/* All others put into the window of a rank that waits in the barrier already. */
void test_one_sided(int n)
{
	uint64_t *word, one = 1, old;
	MPI_Win win;

	MPI_Win_allocate((MPI_Aint)(2 * sizeof(*word)), sizeof(*word), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &word, &win);
	word[0] = word[1] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		int target = i % oracle.size;

		if (oracle.rank != target) {
			MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
			MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, target, 0, MPI_SUM, win);
			MPI_Win_unlock(target, win);
		}
		barrier(i);
	}
	MPI_Win_lock(MPI_LOCK_SHARED, oracle.rank, 0, win);
	oracle_want(word[0] ==
			    (uint64_t)(oracle.size - 1) *
				    (uint64_t)((n + oracle.size - 1 - oracle.rank) / oracle.size),
		    "wrong count in the window:", word[0]);
	MPI_Win_unlock(oracle.rank, win);
	MPI_Win_free(&win);
}

static double cpu_s(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* With the wait policy "block": the first rank comes late, the others count what they use. What
 * else goes on in their processes, as an MPI's own threads, may fall into some of the waits. */
void test_idle(int n)
{
	double used, sum = 0;
	int more = 0;

	for (int i = 0; i < 3; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		if (oracle.rank == 0)
			usleep(100000);
		used = cpu_s();
		MPI_Barrier(MPI_COMM_WORLD);
		used = cpu_s() - used;
		sum += used;
		more += used >= 0.002;
	}
	oracle_want(2 * more <= n, "waits of 0.1 s that took 2 ms of processor:", (uint64_t)more);
	if (oracle.rank == 1)
		printf("# rank 1 used %.0f us each time\n", sum / n * 1e6);
}

/* Two halves, and the whole that they become. */
void test_inter(int n)
{
	int half = oracle.rank < oracle.size / 2 ? 0 : 1, members, *ranks;
	MPI_Comm local, inter, merged;

	if (oracle.size < 2)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, half, oracle.rank, &local);
	MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, half ? 0 : oracle.size / 2, 5, &inter);
	MPI_Intercomm_merge(inter, half, &merged);
	oracle_settle(merged);
	ranks = oracle_members(merged, &members);
	for (int i = 1; i <= n; i++) {
		MPI_Request request;

		oracle_enter(0, (uint64_t)i);
		if (i % 3 == 0) {
			MPI_Barrier(inter);
		} else if (i % 3 == 1) {
			MPI_Ibarrier(inter, &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		} else {
			MPI_Barrier(merged);
			oracle_leave(0, (uint64_t)i, ranks, members);
		}
	}
	free(ranks);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&local);
}

/*
 * Barriers until one fails: somebody outside stops a NIC. The handler of the communicator gets the
 * error, and its text names the rank or the NIC.
 */
void test_fails(int n)
{
	char text[MPI_MAX_ERROR_STRING];
	int rc = MPI_SUCCESS, length;
	MPI_Comm comm;

	(void)n;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int i = 0; rc == MPI_SUCCESS; i++) {
		MPI_Request request;

		if (i == 1000 && oracle.rank == 0) {
			printf("# waiting to fail\n");
			fflush(stdout);
		}
		if (i % 2) {
			rc = MPI_Barrier(comm);
		} else {
			rc = MPI_Ibarrier(comm, &request);
			if (rc == MPI_SUCCESS)
				rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
	}
	MPI_Error_string(rc, text, &length);
	printf("# rank %d: %s\n", oracle.rank, text);
	fflush(stdout);
	oracle_want(strstr(text, "nbar") != NULL, "not an error of nbar", 0);
	MPI_Comm_free(&comm);
}

/* Says what has become of a barrier that cannot complete. */
static bool want_error(int rc, const char *kind)
{
	char text[MPI_MAX_ERROR_STRING];
	int length;

	if (rc == MPI_SUCCESS) {
		printf("# rank %d, %s: complete without the dead\n", oracle.rank, kind);
		return false;
	}
	MPI_Error_string(rc, text, &length);
	printf("# rank %d, %s: %s\n", oracle.rank, kind, text);
	return true;
}

/*
 * Rank n is killed while the others are in an MPI_Barrier of one communicator and have an
 * MPI_Ibarrier of another under way. Both come back with an error, and again; a communicator
 * without the dead one goes on. MPI itself may not survive it, so it is never called for anything
 * else, nor ended.
 */
void test_dies(int n)
{
	MPI_Comm comm[2], others;
	MPI_Request request;
	bool good;

	MPI_Comm_split(MPI_COMM_WORLD, oracle.rank == n, oracle.rank, &others);
	for (int i = 0; i < 2; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		MPI_Comm_set_errhandler(comm[i], MPI_ERRORS_RETURN);
	}
	for (int i = 0; i < 100; i++) {
		MPI_Barrier(comm[0]);
		MPI_Barrier(comm[1]);
		MPI_Barrier(others);
	}
	if (oracle.rank == n) {
		usleep(50000);
		kill(getpid(), SIGKILL);
	}
	MPI_Ibarrier(comm[1], &request);
	good = want_error(MPI_Barrier(comm[0]), "MPI_Barrier");
	good = want_error(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Ibarrier") && good;
	good = want_error(MPI_Barrier(comm[0]), "again") && good;
	good = want_error(MPI_Ibarrier(comm[1], &request), "again") && good;
	for (int i = 0; i < 2; i++)
		MPI_Comm_free(&comm[i]);
	for (int i = 0; i < 100; i++)
		good = MPI_Barrier(others) == MPI_SUCCESS && good;
	printf("# rank %d %s\n", oracle.rank, good ? "goes on" : "has no error");
	fflush(stdout);
	_exit(!good);
}
