/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard_life.c - begin and end of communicators and requests, threads, and counters.
 *
 * Exact counts show which barriers nbar has run: a stale state of another communicator, or a
 * barrier that is counted twice, changes them.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "standard.h"

#define TAG 6
#define ROUNDS 20
#define THREADS 4

struct ran {
	unsigned long long offloaded, fallback;
};

static struct ran ran(void)
{
	unsigned long long n[3] = { 0 };

	want(oracle_counters(n), "no counters");
	return (struct ran){ n[0] + n[1], n[2] };
}

/* --- 7.4.3: a communicator that is freed; 2.5.1: a handle that MPI uses again ----------------- */

/* In turns, the same handle is a communicator of two ranks and of one rank. */
void rule_handle_again(void)
{
	struct ran before = ran(), after;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm comm;

		MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? me : 0, me, &comm);
		for (int k = 0; k < OFFLOADED; k++)
			want(MPI_Barrier(comm) == MPI_SUCCESS, "a barrier failed");
		MPI_Comm_free(&comm);
	}
	after = ran();
	want(after.offloaded - before.offloaded == ROUNDS / 2 * (OFFLOADED - SET_UP),
	     "a communicator got the state of another");
}

void rule_freed(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm comm = duplicate(true);
		MPI_Request request[8];

		if (me == i % 2)
			hear();
		for (int k = 0; k < 8; k++)
			MPI_Ibarrier(comm, &request[k]);
		MPI_Comm_free(&comm);
		if (me != i % 2)
			tell();
		want(MPI_Waitall(8, request, MPI_STATUSES_IGNORE) == MPI_SUCCESS,
		     "a barrier of a freed communicator failed");
	}
}

/* --- 3.7.3, 3.7.5: requests of barriers among those of messages ------------------------------- */

enum call { WAITALL, TESTALL, WAITANY, TESTANY, WAITSOME, TESTSOME, CALLS };

/* Completes all requests by calls of this kind; status[i] is the status of request i. */
static void complete(MPI_Request *request, int n, MPI_Status *status, enum call call)
{
	int count = 0, index[8], flag = 0, left = n;
	MPI_Status some[8];

	while (left > 0) {
		if (call == WAITALL) {
			MPI_Waitall(n, request, status);
			return;
		}
		if (call == TESTALL) {
			MPI_Testall(n, request, &flag, status);
			if (flag)
				return;
			continue;
		}
		if (call == WAITANY)
			MPI_Waitany(n, request, index, some);
		else if (call == TESTANY)
			MPI_Testany(n, request, index, &flag, some);
		else if (call == WAITSOME)
			MPI_Waitsome(n, request, &count, index, some);
		else
			MPI_Testsome(n, request, &count, index, some);
		if (call == WAITANY || call == TESTANY)
			count = (call == WAITANY || flag) && index[0] != MPI_UNDEFINED;
		for (int i = 0; i < count; i++)
			status[index[i]] = some[i];
		left -= count;
	}
}

static void requests_by(MPI_Comm comm, enum call call)
{
	enum { N = 4 };
	MPI_Request request[N];
	MPI_Status status[N];
	int sent = me + 10 * (int)call, got = -1, count = 0;

	MPI_Ibarrier(comm, &request[0]);
	MPI_Irecv(&got, 1, MPI_INT, 1 - me, TAG, MPI_COMM_WORLD, &request[1]);
	MPI_Isend(&sent, 1, MPI_INT, 1 - me, TAG, MPI_COMM_WORLD, &request[2]);
	MPI_Ibarrier(comm, &request[3]);
	complete(request, N, status, call);
	for (int i = 0; i < N; i++)
		want(request[i] == MPI_REQUEST_NULL, "a complete request is left");
	MPI_Get_count(&status[1], MPI_INT, &count);
	want(count == 1 && status[1].MPI_SOURCE == 1 - me && status[1].MPI_TAG == TAG,
	     "the status of a message is that of a barrier");
	want(got == 1 - me + 10 * (int)call, "a wrong message");
}

void rule_requests(void)
{
	for (int offloaded = 0; offloaded < 2; offloaded++) {
		MPI_Comm comm = duplicate(offloaded);

		for (int i = 0; i < ROUNDS; i++)
			for (enum call call = WAITALL; call < CALLS; call++)
				requests_by(comm, call);
		MPI_Comm_free(&comm);
	}
}

/* --- 11.6: threads ---------------------------------------------------------------------------- */

struct lane {
	pthread_t id;
	MPI_Comm comm;
	MPI_Request request;
	pthread_barrier_t *meet;
	struct lane *next; /* whose request this thread completes */
};

static void *lane_main(void *arg)
{
	struct lane *lane = arg;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Barrier(lane->comm);
		MPI_Ibarrier(lane->comm, &lane->request);
		pthread_barrier_wait(lane->meet);
		MPI_Wait(&lane->next->request, MPI_STATUS_IGNORE);
		pthread_barrier_wait(lane->meet);
	}
	return NULL;
}

/* Each thread calls barriers of its own communicator, and completes a request of another thread. */
void rule_threads(void)
{
	struct lane lane[THREADS];
	pthread_barrier_t meet;
	struct ran before;
	int level;

	MPI_Query_thread(&level);
	want(level == MPI_THREAD_MULTIPLE, "the MPI does not provide MPI_THREAD_MULTIPLE");
	if (level != MPI_THREAD_MULTIPLE)
		return;
	pthread_barrier_init(&meet, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		lane[i].comm = duplicate(true);
		lane[i].meet = &meet;
		lane[i].next = &lane[(i + 1) % THREADS];
	}
	before = ran();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&lane[i].id, NULL, lane_main, &lane[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(lane[i].id, NULL);
	want(ran().offloaded - before.offloaded == 2 * ROUNDS * THREADS,
	     "not all barriers of threads were offloaded");
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&lane[i].comm);
	pthread_barrier_destroy(&meet);
}

/* --- 15.3: performance variables; with the PMPI library, its counters ------------------------- */

void rule_counters(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct ran before = ran(), after;
		MPI_Comm comm = duplicate(false);
		MPI_Request request;

		for (int k = 0; k < i; k++) {
			MPI_Ibarrier(comm, &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
		for (int k = 0; k < OFFLOADED; k++)
			MPI_Barrier(comm);
		/* Again after the communicator is freed: its counts must remain. */
		for (int gone = 0; gone < 2; gone++) {
			int few = i < SET_UP - 1 ? i : SET_UP - 1;

			after = ran();
			want(after.offloaded - before.offloaded ==
				     (unsigned long long)(OFFLOADED - SET_UP + few),
			     "a wrong number of offloaded barriers");
			want(after.fallback - before.fallback ==
				     (unsigned long long)(SET_UP + i - few),
			     "a wrong number of barriers by the MPI");
			if (!gone)
				MPI_Comm_free(&comm);
		}
	}
}
