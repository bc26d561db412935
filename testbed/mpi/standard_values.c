/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard_values.c - rules of the MPI standard (6.9, 6.12, 9.3) that a small MPI_Allreduce or
 * MPI_Iallreduce of nbar can break. The cases: allreduces that nbar leaves to the MPI, wrong
 * arguments, failures, threads and new communicators. oracle_values.c checks results.
 */
#include <pthread.h>
#include <string.h>

#include "standard.h"

#define TAG 11
#define THREADS 4

static int heard;

static void on_comm(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	heard++;
}

static int reduce(const void *in, void *out, int n, MPI_Comm comm, bool nonblocking)
{
	MPI_Request request;
	int rc;

	if (!nonblocking)
		return MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
	rc = MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm, &request);
	return rc == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

/* Sums of ranks; the first ones are not offloaded. */
static void sums(MPI_Comm comm, int n)
{
	for (int i = 0; i < n; i++) {
		int in[2] = { me + i, 1 }, out[2] = { -1, -1 };

		want(reduce(in, out, 2, comm, i % 3 == 2) == MPI_SUCCESS, "an allreduce failed");
		want(out[0] == 2 * i + 1 && out[1] == 2, "a wrong sum");
	}
}

static void weigh(void *in, void *inout, int *n, MPI_Datatype *type)
{
	int *a = in, *b = inout;

	(void)type;
	for (int i = 0; i < *n; i++)
		b[i] += 2 * a[i];
}

/* Allreduces that nbar leaves to the MPI, among offloaded ones. */
void rule_allreduce(void)
{
	MPI_Comm comm = duplicate(false);
	MPI_Op op;
	int in[200], out[200];
	double real = me ? 3 : 5, product = 0;
	long double wide = me, sum = 0;

	MPI_Op_create(weigh, 0, &op);
	for (int i = 0; i < OFFLOADED; i++) {
		sums(comm, 3);
		for (int k = 0; k < 200; k++)
			in[k] = k + me;
		want(MPI_Allreduce(in, out, 200, MPI_INT, MPI_MAX, comm) == MPI_SUCCESS &&
			     out[199] == 200,
		     "800 bytes");
		want(MPI_Allreduce(in, out, 2, MPI_INT, op, comm) == MPI_SUCCESS &&
			     out[1] == 2 + 2 * 1,
		     "an operation of the program");
		want(MPI_Allreduce(&real, &product, 1, MPI_DOUBLE, MPI_PROD, comm) == MPI_SUCCESS &&
			     product == 15,
		     "a product of reals");
		want(MPI_Allreduce(&wide, &sum, 1, MPI_LONG_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS &&
			     sum == 1,
		     "a type that NICs do not know");
		want(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS,
		     "no element");
	}
	MPI_Op_free(&op);
	MPI_Comm_free(&comm);
}

/* Wrong arguments: the MPI reports them, as it does without nbar. MPICH of Debian 12 does not check
 * them, and crashes. */
#ifdef OPEN_MPI
static int class_of(int code)
{
	int class = code;

	MPI_Error_class(code, &class);
	return class;
}

void rule_allreduce_arguments(void)
{
	static const struct {
		int count;
		MPI_Datatype type;
		MPI_Op op;
	} wrong[] = {
		{ -1, MPI_INT, MPI_SUM },       { 1, MPI_DATATYPE_NULL, MPI_SUM },
		{ 1, MPI_INT, MPI_OP_NULL },    { 1, MPI_DOUBLE, MPI_BAND },
		{ 1, MPI_DOUBLE_INT, MPI_SUM },
	};
	MPI_Comm comm = duplicate(false);
	double in = 1, out = 1;

	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	sums(comm, OFFLOADED);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int mine = class_of(
			MPI_Allreduce(&in, &out, wrong[i].count, wrong[i].type, wrong[i].op, comm));
		int theirs = class_of(PMPI_Allreduce(&in, &out, wrong[i].count, wrong[i].type,
						     wrong[i].op, comm));

		want(mine == theirs && mine != MPI_SUCCESS, "another error than the MPI's");
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	want(class_of(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_NULL)) ==
		     MPI_ERR_COMM,
	     "no communicator");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	sums(comm, OFFLOADED);
	MPI_Comm_free(&comm);
}

#endif

/* An allreduce that fails tells its communicator's handler alone. */
static void fails(bool nonblocking)
{
	MPI_Comm comm = duplicate(false);
	MPI_Errhandler handler;
	char text[MPI_MAX_ERROR_STRING] = "";
	int in = 1, out = -1, length, code;

	heard = 0;
	sums(comm, OFFLOADED);
	MPI_Comm_create_errhandler(on_comm, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Errhandler_free(&handler);
	if (me == 1) {
		MPI_Comm_free(&comm);
		hear();
		return;
	}
	code = reduce(&in, &out, 1, comm, nonblocking);
	MPI_Error_string(code, text, &length);
	want(code != MPI_SUCCESS && strstr(text, "nbar: allreduce over 2 ranks failed") != NULL,
	     text);
	want(heard == 1 && out == -1, "the handler was not called once, or there is a result");
	MPI_Comm_free(&comm);
	tell();
}

void rule_allreduce_fails(void)
{
	fails(false);
	fails(true);
}

void rule_allreduce_inter(void)
{
	MPI_Comm inter;

	MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - me, TAG, &inter);
	for (int i = 0; i < OFFLOADED; i++) {
		int in = 10 * me + i, out = -1;

		want(reduce(&in, &out, 1, inter, i % 2) == MPI_SUCCESS && out == 10 * (1 - me) + i,
		     "not the sum of the other group");
	}
	MPI_Comm_free(&inter);
}

/* Allreduces of the program under way beside those by which the MPI makes a communicator. One rank
 * makes progress between them. */
void rule_allreduce_idup(void)
{
	MPI_Comm comm = duplicate(false), again;

	sums(comm, OFFLOADED);
	for (int i = 0; i < OFFLOADED; i++) {
		MPI_Request request[2];
		int in = me + i, out = -1, flag = 0;

		MPI_Comm_idup(comm, &again, &request[0]);
		for (int k = 0; k < 100 && me == i % 2 && !flag; k++)
			MPI_Test(&request[0], &flag, MPI_STATUS_IGNORE);
		want(MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request[1]) ==
			     MPI_SUCCESS,
		     "an allreduce failed");
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		want(out == 2 * i + 1, "a wrong sum");
		MPI_Comm_free(&again);
	}
	MPI_Comm_free(&comm);
}

static void *reduce_in_thread(void *arg)
{
	MPI_Comm *comm = arg;

	sums(*comm, 20 * OFFLOADED);
	return NULL;
}

/* Threads with a communicator each; a handle that MPI uses again is a new communicator. */
void rule_allreduce_threads(void)
{
	MPI_Comm comm[THREADS];
	pthread_t id[THREADS];

	for (int i = 0; i < 3; i++) {
		MPI_Comm again = duplicate(i == 1);

		sums(again, OFFLOADED / (1 + i));
		MPI_Comm_free(&again);
	}
	for (int i = 0; i < THREADS; i++) {
		comm[i] = duplicate(i % 2);
		pthread_create(&id[i], NULL, reduce_in_thread, &comm[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(id[i], NULL);
		MPI_Comm_free(&comm[i]);
	}
}
