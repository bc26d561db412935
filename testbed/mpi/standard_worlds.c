/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard_worlds.c - communicators beyond one MPI_COMM_WORLD: intercommunicators, spawned
 * processes, sessions. nbar leaves some of them to the MPI, and must change nothing.
 */
#include <string.h>

#include "standard.h"

#define TAG 8
#define CHILD "child" /* argument of a spawned process, instead of the name of a rule */

static void barriers(MPI_Comm comm)
{
	for (int i = 0; i < OFFLOADED; i++) {
		MPI_Request request[2];

		want(MPI_Barrier(comm) == MPI_SUCCESS, "a barrier failed");
		MPI_Ibarrier(comm, &request[0]);
		MPI_Ibarrier(comm, &request[1]);
		want(MPI_Waitall(2, request, MPI_STATUSES_IGNORE) == MPI_SUCCESS,
		     "a nonblocking barrier failed");
	}
}

/* --- 6.3, 7.6: intercommunicators ------------------------------------------------------------- */

/* A barrier waits for all ranks of the other group: rank 1 enters after rank 0 has checked that
 * rank 0's barrier is not complete. */
static void waits_for_other(MPI_Comm comm)
{
	MPI_Request request;
	int flag = 0;

	for (int i = 0; i < 10; i++) {
		if (me == i % 2) {
			MPI_Ibarrier(comm, &request);
			for (int k = 0; k < 100; k++)
				MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
			want(!flag, "complete before the other group has entered");
			tell();
		} else {
			hear();
			MPI_Ibarrier(comm, &request);
		}
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
}

void rule_inter(void)
{
	MPI_Comm inter, merged;

	MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - me, TAG, &inter);
	waits_for_other(inter);
	barriers(inter);
	MPI_Intercomm_merge(inter, me, &merged);
	barriers(merged);
	waits_for_other(merged);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
}

/* --- 11.8: processes that join later ---------------------------------------------------------- */

static void with_other_world(MPI_Comm inter, bool high)
{
	MPI_Comm merged;

	barriers(inter);
	MPI_Intercomm_merge(inter, high, &merged);
	barriers(merged);
	MPI_Comm_free(&merged);
	MPI_Comm_disconnect(&inter);
}

bool is_child(const char *name)
{
	MPI_Comm parent;

	if (strcmp(name, CHILD) != 0)
		return false;
	MPI_Comm_get_parent(&parent);
	with_other_world(parent, true);
	return true;
}

void rule_spawn(void)
{
	char *argv[] = { (char[]){ CHILD }, NULL };
	MPI_Comm inter;
	int error = MPI_ERR_OTHER;

	want(MPI_Comm_spawn(program, argv, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, &error) ==
		     MPI_SUCCESS,
	     "no process was spawned");
	with_other_world(inter, false);
	barriers(MPI_COMM_WORLD);
}

/* --- 11.3: sessions, beside the world model --------------------------------------------------- */

#if MPI_VERSION >= 4
void rule_sessions(void)
{
	for (int i = 0; i < 3; i++) {
		MPI_Session session;
		MPI_Group group;
		MPI_Comm comm;

		MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
		MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
		MPI_Comm_create_from_group(group, "nbar", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
		barriers(comm);
		waits_for_other(comm);
		MPI_Comm_free(&comm);
		MPI_Group_free(&group);
		MPI_Session_finalize(&session);
		barriers(MPI_COMM_WORLD);
	}
}
#endif
