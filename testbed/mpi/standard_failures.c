/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard_failures.c - barriers that fail, and the error handlers that are called (9.3).
 *
 * A barrier of rank 0 fails because rank 1 frees the communicator and does not call the barrier.
 * This is an error of the program, but the MPI still works and no process ends.
 */
#include <stdio.h>
#include <string.h>

#include "standard.h"

static int heard, heard_by_world, code_heard;
static MPI_Comm comm_heard;

static void on_comm(MPI_Comm *comm, int *code, ...)
{
	heard++;
	comm_heard = *comm;
	code_heard = *code;
}

static void on_world(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	heard_by_world++;
}

static void want_nbar(int code)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length;

	want(code != MPI_SUCCESS, "complete without the other rank");
	MPI_Error_string(code, text, &length);
	want(strstr(text, "nbar: ") != NULL, text);
}

/* The call that reports the failure. */
enum call {
	BY_WAIT,
	BY_TEST,
	BY_STATUS,
	BY_WAITANY,
	BY_TESTANY,
	BY_WAITALL,
	BY_TESTALL,
	BY_WAITSOME,
	BY_TESTSOME,
	BY_BARRIER,
	CALLS
};

/* Completes the failed request together with two requests that succeed: MPI_ERROR of each status is
 * that of its own request. */
static int find_among(MPI_Request *request, enum call call)
{
	const int at = call == BY_TESTALL ? 0 : 2, others[2] = { 1, 2 - at };
	MPI_Request all[3];
	MPI_Status status[3];
	int flag = 0, rc = MPI_SUCCESS;

	for (int i = 0; i < 3; i++)
		status[i].MPI_ERROR = 12345; /* no error code of any MPI */
	all[at] = *request;
	MPI_Irecv(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &all[others[0]]);
	MPI_Isend(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &all[others[1]]);
	if (call == BY_WAITALL)
		rc = MPI_Waitall(3, all, status);
	else
		while (!flag && rc == MPI_SUCCESS)
			rc = MPI_Testall(3, all, &flag, status);
	*request = all[at];
	want(rc == MPI_ERR_IN_STATUS, "a call for several does not return MPI_ERR_IN_STATUS");
	for (int i = 0; i < 2; i++)
		want(status[others[i]].MPI_ERROR == MPI_SUCCESS,
		     "the failure of one request changes MPI_ERROR of another");
	return status[at].MPI_ERROR;
}

static bool for_several(enum call call)
{
	return call >= BY_WAITALL && call <= BY_TESTSOME;
}

static int find(MPI_Comm comm, MPI_Request *request, enum call call)
{
	MPI_Status status = { .MPI_ERROR = MPI_SUCCESS };
	int flag = 0, index = -1, rc = MPI_SUCCESS;

	switch (call) {
	case BY_WAIT:
		return MPI_Wait(request, &status);
	case BY_TEST:
		while (!flag && rc == MPI_SUCCESS)
			rc = MPI_Test(request, &flag, &status);
		return rc;
	case BY_STATUS: /* MPI 4.0 does not say whether this call reports the failure: call again */
		while (!flag && rc == MPI_SUCCESS)
			rc = MPI_Request_get_status(*request, &flag, &status);
		heard = 0;
		return MPI_Wait(request, &status);
	case BY_WAITANY:
		return MPI_Waitany(1, request, &index, &status);
	case BY_TESTANY:
		while (!flag && rc == MPI_SUCCESS)
			rc = MPI_Testany(1, request, &index, &flag, &status);
		return rc;
	case BY_WAITALL:
	case BY_TESTALL:
		return find_among(request, call);
	case BY_WAITSOME:
	case BY_TESTSOME:
		while (flag == 0 && rc == MPI_SUCCESS)
			rc = call == BY_WAITSOME ? MPI_Waitsome(1, request, &flag, &index, &status)
						 : MPI_Testsome(1, request, &flag, &index, &status);
		want(rc == MPI_ERR_IN_STATUS, "a call for some does not return MPI_ERR_IN_STATUS");
		want(flag == 1 && index == 0, "a call for some does not name the request");
		return status.MPI_ERROR;
	case BY_BARRIER:
	case CALLS:
		break;
	}
	return MPI_Barrier(comm);
}

/* --- the communicator's handler ----------------------------------------------------------------
 */

static void fails_by(MPI_Errhandler handler, bool own, enum call call)
{
	MPI_Comm comm = duplicate(true), same = comm;
	MPI_Request request;
	int code;

	heard = heard_by_world = 0;
	if (call != BY_WAITALL) /* there, the handler changes under way */
		MPI_Comm_set_errhandler(comm, handler);
	if (me == 1) {
		MPI_Comm_free(&comm);
		hear();
		return;
	}
	if (call != BY_BARRIER)
		want(MPI_Ibarrier(comm, &request) == MPI_SUCCESS, "MPI_Ibarrier failed");
	MPI_Comm_set_errhandler(comm, handler);
	code = find(comm, &request, call);
	want_nbar(code);
	want(heard == own, "the communicator's handler was not called once");
	if (own) {
		want(comm_heard == same, "the handler got another communicator");
#ifdef OPEN_MPI
		want(for_several(call) || code_heard == code, "the handler got another code");
#else
		want(code_heard == (for_several(call) ? MPI_ERR_IN_STATUS : code),
		     "the handler got another code");
#endif
	}
	MPI_Comm_free(&comm);
	tell();
}

void rule_fails(void)
{
	MPI_Errhandler handler;

	MPI_Comm_create_errhandler(on_comm, &handler);
	for (enum call call = BY_WAIT; call < CALLS; call++) {
		fails_by(handler, true, call);
		fails_by(MPI_ERRORS_RETURN, false, call);
	}
	MPI_Errhandler_free(&handler);
}

static void fails_freed_by(MPI_Errhandler handler, bool own, enum call call)
{
	MPI_Comm comm = duplicate(true);
	MPI_Request request;

	heard = 0;
	MPI_Comm_set_errhandler(comm, handler);
	if (me == 1) {
		MPI_Comm_free(&comm);
		hear();
		return;
	}
	want(MPI_Ibarrier(comm, &request) == MPI_SUCCESS, "MPI_Ibarrier failed");
	MPI_Comm_free(&comm);
	want_nbar(find(comm, &request, call));
	want(heard == own, "the handler of the freed communicator was not called once");
	tell();
}

void rule_fails_freed(void)
{
	MPI_Errhandler handler;

	MPI_Comm_create_errhandler(on_comm, &handler);
	for (enum call call = BY_WAIT; call < BY_BARRIER; call++) {
		fails_freed_by(MPI_ERRORS_RETURN, false, call);
		fails_freed_by(handler, true, call);
	}
	MPI_Errhandler_free(&handler);
}

/* Ends the job: MPI_ERRORS_ARE_FATAL is the handler of a new communicator. */
void rule_fatal(void)
{
	MPI_Comm comm = duplicate(true);
	MPI_Request request;

	if (me == 1) {
		MPI_Comm_free(&comm);
		hear();
		return;
	}
	MPI_Ibarrier(comm, &request);
	find_among(&request, BY_WAITALL);
	want(false, "the job did not end");
	tell();
}

/* --- the handlers of MPI_COMM_WORLD and MPI_COMM_SELF ------------------------------------------
 */

/* Errors of MPI_COMM_WORLD and MPI_COMM_SELF reach the handlers that the program has set. */
static void want_world(MPI_Errhandler handler)
{
	MPI_Errhandler now;
	int before = heard_by_world;

	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
	want(now == handler, "MPI_COMM_WORLD has another handler");
	MPI_Errhandler_free(&now);
	MPI_Comm_get_errhandler(MPI_COMM_SELF, &now);
	want(now == handler, "MPI_COMM_SELF has another handler");
	MPI_Errhandler_free(&now);
	MPI_Send(NULL, 0, MPI_BYTE, 77, 0, MPI_COMM_WORLD);
	MPI_Send(NULL, 0, MPI_BYTE, 77, 0, MPI_COMM_SELF);
	want(heard_by_world == before + 2,
	     "an error did not reach the handler of its communicator");
}

void rule_handlers(void)
{
	MPI_Errhandler world, mine;

	MPI_Comm_create_errhandler(on_world, &world);
	MPI_Comm_create_errhandler(on_comm, &mine);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, world);
	want_world(world);
	for (enum call call = BY_WAIT; call < CALLS; call++) {
		fails_by(mine, true, call);
		want(heard_by_world == 0, "the handler of another communicator was called");
		want_world(world);
	}
	fails_freed_by(mine, true, BY_WAIT);
	want_world(world);
	MPI_Errhandler_free(&world);
	MPI_Errhandler_free(&mine);
}

/* --- wrong arguments ---------------------------------------------------------------------------
 */

static void want_wrong(int code)
{
	int class;

	MPI_Error_class(code, &class);
	want(class == MPI_ERR_COMM, "no MPI_ERR_COMM");
	want(heard == 1, "no handler was called, or more than one");
	heard = 0;
}

static void wrong(MPI_Comm comm)
{
	MPI_Request request;

	want_wrong(MPI_Barrier(comm));
	want_wrong(MPI_Ibarrier(comm, &request));
}

void rule_wrong_communicator(void)
{
	MPI_Comm comm = duplicate(true);
	MPI_Errhandler handler;

	heard = 0;
	MPI_Comm_create_errhandler(on_comm, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	wrong(MPI_COMM_NULL);
#ifndef OPEN_MPI /* there a communicator is a pointer */
	wrong((MPI_Comm)0x12345678);
	MPI_Comm gone = comm;
	MPI_Comm_free(&comm);
	wrong(gone);
#else
	MPI_Comm_free(&comm);
#endif
	MPI_Errhandler_free(&handler);
}
