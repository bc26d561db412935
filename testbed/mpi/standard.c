/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard.c - rules of the MPI standard that a barrier can break: one test per rule.
 *
 * usage: mpi-standard TEST..., on two ranks
 *
 * The program uses only MPI, except that it reads nbar's counters. Rank 0 prints a line of TAP. If
 * a rule is broken, the test hangs, or ends with an error. Sections are those of MPI 4.0.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "standard.h"

#define TAG 5
#define FEW 100   /* barriers under way on a communicator that is not offloaded */
#define MANY 3000 /* more than a NIC takes at once */
#define COMMUNICATORS 1100
#define BARRIERS 3 /* nonblocking barriers of each communicator */
#define FILES 20   /* that the program can still open */

int me;
const char *program;
static int failures; /* of this test */
static bool broken;  /* a test has failed */

void want(bool good, const char *what)
{
	if (good)
		return;
	failures++;
	fprintf(stderr, "# rank %d: %s\n", me, what);
}

MPI_Comm duplicate(bool offloaded)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 0; i < OFFLOADED && offloaded; i++)
		MPI_Barrier(comm);
	return comm;
}

void tell(void)
{
	MPI_Send(NULL, 0, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD);
}

void hear(void)
{
	MPI_Recv(NULL, 0, MPI_BYTE, 1 - me, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void begin(MPI_Comm comm, MPI_Request *request, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Ibarrier(comm, &request[i]);
}

/* --- 2.4, 6.12: a nonblocking call is local ----------------------------------------------------
 */

/* Rank 1 calls its first barrier after rank 0 has called all of its barriers. */
static void ahead(MPI_Comm comm, int n)
{
	MPI_Request *request = malloc((size_t)n * sizeof(MPI_Request));

	if (me == 1)
		hear();
	begin(comm, request, n);
	if (me == 0)
		tell();
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	MPI_Comm_free(&comm);
	free(request);
}

static void rule_ahead(void)
{
	ahead(duplicate(false), FEW);
}

static void rule_ahead_offloaded(void)
{
	ahead(duplicate(true), MANY);
}

/* --- 3.7.4, 6.12: progress, whatever the program blocks in -------------------------------------
 */

/* After rank 0 has called its barriers, it only waits for a message. Rank 1 sends the message when
 * the barriers are complete at rank 1. So nbar must make progress at rank 0 without a call for
 * barriers. */
static void receives(MPI_Comm comm, int n)
{
	MPI_Request *request = malloc((size_t)n * sizeof(MPI_Request));

	begin(comm, request, n);
	if (me == 0)
		hear();
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	if (me == 1)
		tell();
	MPI_Comm_free(&comm);
	free(request);
}

static void rule_receives(void)
{
	receives(duplicate(false), FEW);
}

static void rule_receives_offloaded(void)
{
	receives(duplicate(true), MANY);
}

/* As the test before, but rank 0 has called all its barriers before rank 1 calls the first. */
static void rule_receives_ahead(void)
{
	MPI_Request request[MANY];
	MPI_Comm comm = duplicate(true);

	if (me == 1)
		hear();
	begin(comm, request, MANY);
	if (me == 0) {
		tell();
		hear();
	}
	MPI_Waitall(MANY, request, MPI_STATUSES_IGNORE);
	if (me == 1)
		tell();
	MPI_Comm_free(&comm);
}

/* A request completes by MPI_Request_get_status alone. */
static void rule_status(void)
{
	for (int offloaded = 0; offloaded < 2; offloaded++) {
		MPI_Comm comm = duplicate(offloaded);
		MPI_Request request[3];
		MPI_Status status;

		begin(comm, request, 3);
		for (int i = 3; i-- > 0;) {
			int flag = 0;

			while (!flag)
				MPI_Request_get_status(request[i], &flag, MPI_STATUS_IGNORE);
			memset(&status, 0xff, sizeof(status));
			MPI_Test(&request[i], &flag, &status);
			want(flag && request[i] == MPI_REQUEST_NULL, "complete, and then not");
			MPI_Test_cancelled(&status, &flag);
			want(!flag, "a barrier is cancelled");
		}
		MPI_Comm_free(&comm);
	}
}

/* --- 6.12: collectives of a communicator match in the order of their calls ---------------------
 */

/* Blocking and nonblocking barriers, before and after the communicator is offloaded; one rank is
 * always ahead. */
static void rule_order(void)
{
	MPI_Comm comm = duplicate(false);

	for (int round = 0; round < OFFLOADED; round++) {
		MPI_Request request[16];
		int value[16], sum[16];

		if (round % 2 == me)
			hear();
		for (int i = 0; i < 16; i++) {
			value[i] = round * 16 + i;
			if (i % 3 == round % 3)
				MPI_Ibarrier(comm, &request[i]);
			else
				MPI_Iallreduce(&value[i], &sum[i], 1, MPI_INT, MPI_SUM, comm,
					       &request[i]);
		}
		if (round % 2 != me)
			tell();
		MPI_Waitall(16, request, MPI_STATUSES_IGNORE);
		for (int i = 0; i < 16; i++)
			want(i % 3 == round % 3 || sum[i] == 2 * value[i], "a wrong sum");
		if (round % 4 == 3)
			MPI_Barrier(comm);
	}
	MPI_Comm_free(&comm);
}

/* --- 6.13: persistent barriers match by the order of their initialization ----------------------
 */

#ifdef BARRIER_INIT
/* Rank 0 starts barrier a, and rank 1 starts barrier b: neither barrier is complete. */
static void crossed(MPI_Comm comm)
{
	MPI_Request request[2];
	int flag;

	for (int i = 0; i < 2; i++)
		BARRIER_INIT(comm, MPI_INFO_NULL, &request[i]);
	for (int round = 0; round < 20; round++) {
		int first = (me + round) % 2;

		MPI_Start(&request[first]);
		tell();
		hear();
		for (int i = 0; i < 1000; i++) {
			MPI_Test(&request[first], &flag, MPI_STATUS_IGNORE);
			if (flag)
				break;
		}
		want(!flag, "complete before the other rank had started it");
		tell();
		hear();
		MPI_Start(&request[1 - first]);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	}
	for (int i = 0; i < 2; i++)
		MPI_Request_free(&request[i]);
	MPI_Comm_free(&comm);
}

/* A start has no position in the order of the other collectives. */
static void among(MPI_Comm comm)
{
	MPI_Request request[2];
	int sum, one = 1;

	BARRIER_INIT(comm, MPI_INFO_NULL, &request[0]);
	for (int round = 0; round < 3 * OFFLOADED; round++) {
		if (me == 0)
			MPI_Start(&request[0]);
		MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request[1]);
		if (me == 1)
			MPI_Start(&request[0]);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		want(sum == 2, "a wrong sum");
		if (round % 2)
			MPI_Barrier(comm);
	}
	MPI_Request_free(&request[0]);
	MPI_Comm_free(&comm);
}

static void rule_persistent_crossed(void)
{
	crossed(duplicate(false));
	crossed(duplicate(true));
}

static void rule_persistent_among(void)
{
	among(duplicate(false));
	among(duplicate(true));
}
#endif

/* --- resources of communicators ----------------------------------------------------------------
 */

static bool by_nbar(void)
{
	unsigned long long before[3] = { 0 }, after[3] = { 0 };
	MPI_Comm comm = duplicate(true);

	oracle_counters(before);
	MPI_Barrier(comm);
	oracle_counters(after);
	MPI_Comm_free(&comm);
	return after[0] + after[1] > before[0] + before[1];
}

/* Communicators with few barriers use no resources that the program or other communicators need. */
static void rule_descriptors(void)
{
	MPI_Comm *comm = malloc(COMMUNICATORS * sizeof(MPI_Comm));
	int file[FILES], first = open("/dev/null", O_RDONLY);
	struct rlimit limit;

	want(by_nbar(), "nbar does not run barriers");
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)first + 3 * FILES;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < COMMUNICATORS; i++) {
		MPI_Request request[BARRIERS];

		comm[i] = duplicate(false);
		begin(comm[i], request, BARRIERS);
		MPI_Waitall(BARRIERS, request, MPI_STATUSES_IGNORE);
		if (i % 2)
			MPI_Barrier(comm[i]);
	}
	for (int i = 0; i < FILES; i++) {
		file[i] = open("/dev/null", O_RDONLY);
		want(file[i] >= 0, "no descriptor is left");
	}
	want(by_nbar(), "no group is left");
	for (int i = 0; i < FILES; i++)
		close(file[i]);
	for (int i = 0; i < COMMUNICATORS; i++)
		MPI_Comm_free(&comm[i]);
	free(comm);
	close(first);
}

/* --- running -----------------------------------------------------------------------------------
 */

static const struct {
	const char *name;
	void (*run)(void);
	const char *text;
} tests[] = {
	{ "ahead", rule_ahead, "MPI_Ibarrier is local" },
	{ "ahead-offloaded", rule_ahead_offloaded, "MPI_Ibarrier is local, 3,000 under way" },
	{ "receives", rule_receives, "MPI_Ibarrier goes on in MPI_Recv" },
	{ "receives-offloaded", rule_receives_offloaded,
	  "MPI_Ibarrier goes on in MPI_Recv, 3,000 under way" },
	{ "receives-ahead", rule_receives_ahead, "MPI_Ibarrier goes on in MPI_Recv, 3,000 ahead" },
	{ "status", rule_status, "MPI_Request_get_status sees MPI_Ibarrier complete" },
	{ "order", rule_order, "collectives match in the order of their calls" },
#ifdef BARRIER_INIT
	{ "persistent-crossed", rule_persistent_crossed,
	  "persistent barriers match by their initialization" },
	{ "persistent-among", rule_persistent_among,
	  "a start has no place among other collectives" },
#endif
	{ "probe", rule_probe, "a message from before a barrier is there after it" },
	{ "freed", rule_freed, "a communicator is freed with barriers under way" },
	{ "handle-again", rule_handle_again, "a handle that MPI uses again is a new communicator" },
	{ "requests", rule_requests, "requests of barriers among those of messages" },
	{ "threads", rule_threads, "threads, which complete each other's barriers" },
	{ "stack", rule_stack, "a thread with a small stack sets a communicator up" },
	{ "counters", rule_counters, "MPI_T or the library count each barrier once" },
	{ "inter", rule_inter, "intercommunicators" },
	{ "spawn", rule_spawn, "barriers with a process that has been spawned" },
#if MPI_VERSION >= 4
	{ "sessions", rule_sessions, "barriers of a session" },
#endif
	{ "memory", rule_memory, "allocations that fail in a set-up, and for a request" },
	{ "descriptors", rule_descriptors, "1,100 communicators of 3 MPI_Ibarrier each" },
	{ "fails", rule_fails, "a barrier that fails tells its communicator's handler alone" },
	{ "fails-freed", rule_fails_freed, "so it does when the communicator has been freed" },
	{ "fatal", rule_fatal, "a barrier that fails in MPI_Waitall ends the job" },
	{ "handlers", rule_handlers, "handlers of other communicators stay as they are" },
	{ "wrong-communicator", rule_wrong_communicator, "a wrong communicator is MPI_ERR_COMM" },
	{ "allreduce", rule_allreduce, "MPI_Allreduce of all sizes and operations" },
#ifdef OPEN_MPI
	{ "allreduce-arguments", rule_allreduce_arguments, "the MPI reports wrong arguments" },
#endif
	{ "allreduce-fails", rule_allreduce_fails, "one that fails tells its handler alone" },
	{ "allreduce-idup", rule_allreduce_idup, "beside MPI_Comm_idup" },
	{ "allreduce-inter", rule_allreduce_inter, "MPI_Allreduce of an intercommunicator" },
	{ "allreduce-threads", rule_allreduce_threads, "threads, with a communicator each" },
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
	{ "revoked", rule_revoked, "a revoked communicator frees a rank that waits in it" },
#endif
};

/* False: there is no test of this name. */
static bool run(const char *name, int number)
{
	int all = 0;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (strcmp(name, tests[i].name) != 0)
			continue;
		tests[i].run();
		MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (me == 0)
			printf("%sok %d - %s: %s\n", all ? "not " : "", number, name,
			       tests[i].text);
		fflush(stdout);
		broken |= all != 0;
		failures = 0;
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	static char line[BUFSIZ];
	int size, level;
	bool known;

	program = argv[0];
	/* Only for these rules: with MPI_THREAD_MULTIPLE some MPIs lack functions. */
	if (argc == 2 && (strstr(argv[1], "threads") || strcmp(argv[1], "stack") == 0))
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	else
		MPI_Init(&argc, &argv);
	/* MPICH 4.2 takes the buffer away, and lines of ranks would mix. */
	setvbuf(stdout, line, _IOLBF, sizeof(line));
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc == 2 && is_child(argv[1]))
		return MPI_Finalize() != MPI_SUCCESS || failures != 0;
	known = argc > 1 && size == 2;
	for (int i = 1; i < argc && known; i++)
		known = run(argv[i], i);
	if (!known && me == 0)
		fprintf(stderr, "usage: mpi-standard TEST..., on two ranks\n");
	MPI_Finalize();
	return known ? broken : 2;
}
