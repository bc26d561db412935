/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_wait.c - completes requests of a program, in all the ways that MPI has, and checks received
 * values. Called by run.c.
 */
#include <stdlib.h>

#include "run.h"

#define AT_ONCE 8u /* requests completed by one call */

static void received(uint32_t event, const MPI_Status *status)
{
	const struct event *e = &run.p->event[event];
	const char *got = run.buffer[event];
	int count;

	MPI_Get_count(status, MPI_BYTE, &count);
	world_want(count == (int)e->size, run.p, "a message of another length", event);
	for (uint32_t i = 0; i < e->size; i++) {
		if (got[i] == (char)(event + i))
			continue;
		world_want(false, run.p, "a message with other bytes", event);
		break;
	}
}

/* True if the barrier may end early. Open MPI's own MPI_Ibarrier on an intercommunicator may end
 * before all ranks of the other group have called it (4.1.4: seed 1000911 on 6 ranks, without
 * nbar). nbar leaves these barriers to the MPI. */
static bool early(const struct event *e)
{
#ifdef OPEN_MPI
	return run.p->comm[e->comm].near != 0;
#else
	(void)e;
	return false;
#endif
}

void finish(uint32_t event, const MPI_Status *status)
{
	const struct event *e = &run.p->event[event];
	uint32_t n = run.p->comm[e->comm].n;

	run.done[event] = true;
	if ((e->kind == EVENT_IBARRIER && !early(e)) || e->kind == EVENT_START)
		world_left(run.p, e, e->step);
	else if (e->kind == EVENT_IALLREDUCE || e->kind == EVENT_ALLREDUCE)
		world_want(run.sum[event] == (int)n * value_of(event), run.p, "a wrong sum", event);
	else if (e->kind == EVENT_IBCAST)
		world_want(run.value[event] == value_of(event), run.p, "a wrong value", event);
	else if (e->kind == EVENT_MESSAGE && e->to == run.p->me)
		received(event, status);
	free(run.buffer[event]);
	run.buffer[event] = NULL;
	world_want(e->kind == EVENT_START || *request_of(event) == MPI_REQUEST_NULL, run.p,
		   "complete, and its request is still there", event);
}

void test(uint32_t event)
{
	MPI_Status status;
	int flag = 0;

	if (run.done[event])
		return;
	MPI_Test(request_of(event), &flag, &status);
	if (flag)
		finish(event, &status);
}

/* Completes these requests by calls that complete some of them, until all are complete. */
static void wait_some(const uint32_t *event, MPI_Request *request, int n, uint32_t how)
{
	MPI_Status status[AT_ONCE];
	int index[AT_ONCE], left = n, got;

	while (left > 0) {
		if (how == 0) {
			MPI_Waitany(n, request, &index[0], &status[0]);
			got = 1;
		} else if (how == 1) {
			MPI_Waitsome(n, request, &got, index, status);
		} else {
			MPI_Testsome(n, request, &got, index, status);
		}
		for (int i = 0; i < got; i++) {
			*request_of(event[index[i]]) = request[index[i]];
			finish(event[index[i]], &status[i]);
		}
		left -= got;
	}
}

/* Completes all these requests by one call. */
static void wait_all(const uint32_t *event, MPI_Request *request, int n, bool poll)
{
	MPI_Status status[AT_ONCE];
	int flag = 0;

	while (poll && !flag)
		MPI_Testall(n, request, &flag, status);
	if (!poll)
		MPI_Waitall(n, request, status);
	for (int i = 0; i < n; i++) {
		*request_of(event[i]) = request[i];
		finish(event[i], &status[i]);
	}
}

/* Completes one request. how: 0: by MPI_Wait; 1: by MPI_Request_get_status, which must not change
 * the request, and MPI_Wait; 2: by MPI_Test. */
static void wait_one(uint32_t event, uint32_t how)
{
	MPI_Status status;
	int flag = how == 0;

	while (!flag && how == 1)
		MPI_Request_get_status(*request_of(event), &flag, MPI_STATUS_IGNORE);
	while (!flag)
		MPI_Test(request_of(event), &flag, &status);
	if (how < 2)
		MPI_Wait(request_of(event), &status);
	finish(event, &status);
}

/* True if the event must be completed by a call for one request: MPICH 4.0 aborts some programs
 * that complete a persistent barrier by a call for several requests. */
static bool alone(uint32_t event)
{
#ifdef MPICH
	return run.p->event[event].kind == EVENT_START;
#else
	(void)event;
	return false;
#endif
}

void wait_from(uint32_t first)
{
	MPI_Request request[AT_ONCE];
	uint32_t event[AT_ONCE], most = 1 + draw(&run.state, AT_ONCE), how = draw(&run.state, 6);
	int n = 0;

	for (run.at = first; run.at < run.p->naction && most-- > 0; run.at++) {
		uint32_t e = run.p->action[run.at].event;

		if (run.p->action[run.at].phase != PHASE_WAIT || (n > 0 && alone(e)))
			break;
		if (run.done[e])
			continue;
		world_at(run.at, "waits for %u, %s on communicator %u, and %d before", e,
			 event_name(run.p->event[e].kind), run.p->event[e].comm, n);
		request[n] = *request_of(e);
		event[n++] = e;
		if (alone(e))
			most = 0;
	}
	if (n == 0)
		return;
	if (alone(event[0]))
		how %= 3;
	if (n == 1 && how < 3)
		wait_one(event[0], how);
	else if (how < 3)
		wait_some(event, request, n, how);
	else
		wait_all(event, request, n, how == 3);
}
