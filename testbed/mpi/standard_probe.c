/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard_probe.c - a message that was sent before a barrier is there after it.
 *
 * The standard does not promise this of MPI_Iprobe, but the barriers of all MPIs, which send
 * messages themselves, receive such a message on the way. Programs rely on that.
 */
#include <stdio.h>

#include "standard.h"

#define TAG 7
#define ROUNDS 1000
#define BYTES 100

enum way { BARRIER, WAIT, TEST, STATUS, WAYS };

/* Runs a barrier. Returns a request that the caller has to free by MPI_Wait. */
static MPI_Request pass(MPI_Comm comm, enum way way)
{
	MPI_Request request = MPI_REQUEST_NULL;
	int flag = 0;

	if (way == BARRIER)
		MPI_Barrier(comm);
	else
		MPI_Ibarrier(comm, &request);
	if (way == WAIT)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	while (way == TEST && !flag)
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	while (way == STATUS && !flag)
		MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
	return request;
}

/* Returns how often the first probe after the barrier missed the message. */
static int misses(MPI_Comm comm, enum way way)
{
	char in[BYTES], out[BYTES] = { 0 };
	int missed = 0;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request request;
		int flag;

		MPI_Send(out, BYTES, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD);
		request = pass(comm, way);
		MPI_Iprobe(1 - me, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		missed += !flag;
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Recv(in, BYTES, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return missed;
}

void rule_probe(void)
{
	static const char *const name[WAYS] = { "MPI_Barrier", "MPI_Ibarrier and MPI_Wait",
						"MPI_Ibarrier and MPI_Test",
						"MPI_Ibarrier and MPI_Request_get_status" };
	MPI_Comm comm = duplicate(true);

	for (enum way way = BARRIER; way < WAYS; way++) {
		char text[120];
		int missed = misses(comm, way);

		snprintf(text, sizeof(text), "%s: the first MPI_Iprobe missed %d of %d messages",
			 name[way], missed, ROUNDS);
		want(missed == 0, text);
	}
	MPI_Comm_free(&comm);
}
