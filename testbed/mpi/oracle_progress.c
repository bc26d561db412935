/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_progress.c - communication that must go on while a rank waits in a barrier, and barriers
 * that cannot complete. If a glue breaks MPI's rule of progress, these tests hang.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "oracle_predict.h"

#define LONG_MESSAGE (4 << 20) /* far larger than any MPI sends eagerly */

/* A blocking or a nonblocking barrier, in turn. */
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

/* Sender: Isend, barrier, Wait. Receiver: Recv, barrier; with `probe`, Iprobe before the Recv. */
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

/* All other ranks access the window of a rank that already waits in the barrier. */
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

static double cpu_s(const struct rusage *use)
{
	return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
	       1e-6 * (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
}

/* With the wait policy "block": the first rank comes late, and the others sleep. On a busy machine
 * other ranks may be late too, so some of their waits are short. */
void test_idle(int n)
{
	struct rusage before, after;
	double used = 0;
	int slept = 0;

	for (int i = 0; i < 3; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		if (oracle.rank == 0)
			usleep(100000);
		getrusage(RUSAGE_THREAD, &before);
		MPI_Barrier(MPI_COMM_WORLD);
		getrusage(RUSAGE_THREAD, &after);
		used += cpu_s(&after) - cpu_s(&before);
		slept += after.ru_nvcsw > before.ru_nvcsw;
	}
	oracle_want(oracle.rank == 0 || 2 * slept >= n,
		    "waits of 0.1 s in which it slept:", (uint64_t)slept);
	if (oracle.rank == 1)
		printf("# rank 1 used %.0f us each time\n", used / n * 1e6);
}

/* An intercommunicator of two halves, and the communicator merged from it. */
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
 * Runs barriers until a barrier fails, because the script ends a NIC or a rank. The error handler
 * of the communicator gets the error, and the text names the rank or the NIC.
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

/* Prints the result of a barrier that cannot complete. True if the result is an error. */
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
 * MPI_Ibarrier of another under way. Both return an error, and so do the next calls on these
 * communicators. Barriers of a communicator without the dead rank go on. MPI itself may not survive
 * the death, so the ranks do not call MPI_Finalize.
 */
void test_dies(int n)
{
	MPI_Comm comm[2], others;
	MPI_Request request = MPI_REQUEST_NULL;
	bool good;
	int rc;

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
	rc = MPI_Ibarrier(comm[1], &request); /* an error, if this rank knows of the death */
	good = want_error(MPI_Barrier(comm[0]), "MPI_Barrier");
	rc = rc == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
	good = want_error(rc, "MPI_Ibarrier") && good;
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
