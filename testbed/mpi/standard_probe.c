/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard_probe.c - a message that was sent before a barrier is there after it.
 *
 * The standard does not promise this of the functions that look for a message, but the barriers of
 * all MPIs, which send messages themselves, receive such a message on the way. Programs rely on
 * that.
 */
#include <stdio.h>

#include "standard.h"

#define TAG 7
#define ROUNDS 1000
#define BYTES 100
#define BURST 100

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

enum look { IPROBE, IMPROBE, TESTANY, TESTALL, TESTSOME, TESTS, LOOKS };

static const char *const look_name[LOOKS] = { "MPI_Iprobe",  "MPI_Improbe",  "MPI_Testany",
					      "MPI_Testall", "MPI_Testsome", "MPI_Test" };

/* Looks once for the message, which `receive` receives unless it is null. True: it is there. */
static int sees(enum look look, MPI_Request *receive, MPI_Message *message)
{
	int flag = 0, index, n;

	switch (look) {
	case IPROBE:
		MPI_Iprobe(1 - me, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		break;
	case IMPROBE:
		MPI_Improbe(1 - me, TAG, MPI_COMM_WORLD, &flag, message, MPI_STATUS_IGNORE);
		break;
	case TESTANY:
		MPI_Testany(1, receive, &index, &flag, MPI_STATUS_IGNORE);
		break;
	case TESTALL:
		MPI_Testall(1, receive, &flag, MPI_STATUSES_IGNORE);
		break;
	case TESTSOME:
		MPI_Testsome(1, receive, &n, &index, MPI_STATUSES_IGNORE);
		flag = n == 1;
		break;
	default:
		MPI_Test(receive, &flag, MPI_STATUS_IGNORE);
	}
	return flag;
}

/* Returns how often the first look after the barrier missed the message. */
static int misses(MPI_Comm comm, enum way way, enum look look)
{
	char in[BYTES], out[BYTES] = { 0 };
	int missed = 0;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request request, receive = MPI_REQUEST_NULL;
		MPI_Message message = MPI_MESSAGE_NULL;

		if (look >= TESTANY)
			MPI_Irecv(in, BYTES, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD, &receive);
		MPI_Send(out, BYTES, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD);
		request = pass(comm, way);
		missed += !sees(look, &receive, &message);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (message != MPI_MESSAGE_NULL)
			MPI_Mrecv(in, BYTES, MPI_BYTE, &message, MPI_STATUS_IGNORE);
		else if (look < TESTANY)
			MPI_Recv(in, BYTES, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		MPI_Wait(&receive, MPI_STATUS_IGNORE);
	}
	return missed;
}

/* A message before each of many barriers: a program that takes messages until it finds none takes
 * them all. Returns how many it misses. */
static int misses_of_burst(MPI_Comm comm)
{
	static char out[BURST];
	MPI_Request sent[BURST];
	int n = 0, left, flag = 1;
	char in;

	for (int i = 0; i < BURST; i++) {
		MPI_Isend(&out[i], 1, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD, &sent[i]);
		MPI_Barrier(comm);
	}
	while (flag) {
		MPI_Iprobe(1 - me, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		if (flag)
			MPI_Recv(&in, 1, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		n += flag;
	}
	for (left = BURST - n; left > 0; left--)
		MPI_Recv(&in, 1, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Waitall(BURST, sent, MPI_STATUSES_IGNORE);
	MPI_Barrier(comm); /* the next burst begins when both have taken all of this one */
	return BURST - n;
}

void rule_probe(void)
{
	static const char *const name[WAYS] = { "MPI_Barrier", "MPI_Ibarrier and MPI_Wait",
						"MPI_Ibarrier and MPI_Test",
						"MPI_Ibarrier and MPI_Request_get_status" };
	MPI_Comm comm = duplicate(true);
	int missed = 0;

	for (int i = 0; i < WAYS + LOOKS - 1; i++) {
		enum way way = i < WAYS ? (enum way)i : BARRIER;
		enum look look = i < WAYS ? IPROBE : (enum look)(i - WAYS + 1);
		char text[120];
		int n = misses(comm, way, look);

		snprintf(text, sizeof(text), "%s: the first %s missed %d of %d messages", name[way],
			 look_name[look], n, ROUNDS);
		want(n == 0, text);
	}
	for (int i = 0; i < ROUNDS / BURST; i++)
		missed += misses_of_burst(comm);
	want(missed == 0, "MPI_Iprobe missed messages of a burst");
	MPI_Comm_free(&comm);
}
