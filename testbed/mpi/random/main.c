/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c - mpi-random: runs MPI programs made from seeds, one after the other, in one job.
 *
 * usage: mpi-random [-f] [-s FILE] [-e nic|host|mpi] [-p SECONDS] FIRST [LAST]
 *
 * -f: descriptors and memory must be the same after a quarter of the programs and at the end. -e:
 * how nbar must have run the barriers. -p: if no rank begins an action for this time, the job
 * counts as hanging. The program uses only MPI, except that it reads nbar's counters. Rank 0 prints
 * TAP; RANDOM_VERBOSE=1 shows every action.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../oracle.h"
#include "random.h"

#define PATIENCE_S 60.0

#define FEW_ALLREDUCES 32u /* of a rank */

static int rank, size;

/* --- early ends ------------------------------------------------------------------------------ */

static void on_crash(int number)
{
	char text[192];
	int n = snprintf(text, sizeof(text), "# %s: ended by signal %d\n", world_place(), number);

	if (write(2, text, (size_t)n) != n)
		_exit(4);
	signal(number, SIG_DFL);
	raise(number);
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length;

	(void)comm;
	MPI_Error_string(*code, text, &length);
	fprintf(stderr, "# %s: MPI says: %s\n", world_place(), text);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static void tell_ends(void)
{
	MPI_Errhandler handler;

	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Errhandler_free(&handler);
	signal(SIGSEGV, on_crash);
	signal(SIGBUS, on_crash);
	signal(SIGABRT, on_crash);
}

/* --- all programs ---------------------------------------------------------------------------- */

static void say_counts(void)
{
	uint64_t *mine = (uint64_t *)&counts, all[sizeof(counts) / sizeof(uint64_t)];
	const int n = sizeof(counts) / sizeof(uint64_t);

	MPI_Allreduce(mine, all, n, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("# calls of all ranks: %llu MPI_Barrier, %llu MPI_Ibarrier, %llu starts of "
		       "persistent ones, %llu messages, %llu other collectives, %llu communicators "
		       "made, %llu barriers pending over MPI_Comm_free\n",
		       (unsigned long long)all[1], (unsigned long long)all[2],
		       (unsigned long long)all[3], (unsigned long long)all[4],
		       (unsigned long long)all[5], (unsigned long long)all[6],
		       (unsigned long long)all[7]);
}

/* True if at least a quarter of the barriers ran as expected: the MPI runs the first barriers of
 * each communicator. If `expect` is mpi, true if nbar ran none. */
static bool as_expected(const char *expect)
{
	static const char *const name[] = { "nic", "host", "mpi" };
	unsigned long long mine[5] = { 0 }, all[5], sum;

	oracle_counters(mine);
	oracle_allreduces(&mine[3]);
	MPI_Allreduce(mine, all, 5, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
	sum = all[0] + all[1] + all[2];
	if (rank == 0)
		printf("# barriers offloaded %llu, within the host %llu, by fallback %llu; "
		       "allreduces offloaded %llu, by fallback %llu\n",
		       all[0], all[1], all[2], all[3], all[4]);
	/* The MPI runs the first allreduces of each communicator, too: in few programs, all. */
	if (strcmp(expect, "nic") == 0 ? all[3] == 0 && all[4] >= FEW_ALLREDUCES * (unsigned)size
				       : all[3] > 0)
		return false;
	for (int i = 0; i < 3; i++)
		if (strcmp(expect, name[i]) == 0)
			return i == 2 ? all[0] + all[1] == 0 : sum > 0 && all[i] * 4 >= sum;
	return false;
}

static int run_all(uint64_t first, uint64_t last, bool flat)
{
	static struct program program;
	int bad = 0, mine, sum;

	for (uint64_t seed = first; seed <= last; seed++) {
		if (flat && seed == first + (last - first) / 4)
			flat_begin();
		program_make(&program, seed, (uint32_t)size, (uint32_t)rank);
		program_run(&program);
		mine = world_failures();
		MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		bad += sum != 0;
		if (sum && rank == 0)
			printf("# seed %llu on %d ranks fails\n", (unsigned long long)seed, size);
	}
	mine = flat && !flat_end(rank);
	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sum && rank == 0)
		printf("# %d ranks hold more than before\n", sum);
	return bad + sum;
}

int main(int argc, char **argv)
{
	const char *file = "/tmp/mpi-random", *expect = NULL;
	double patience = PATIENCE_S;
	bool flat = false;
	uint64_t first, last;
	int bad, threads, c;

	MPI_Init(&argc, &argv);
	MPI_T_init_thread(MPI_THREAD_SINGLE, &threads); /* once, as the counters are read often */
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	while ((c = getopt(argc, argv, "fs:e:p:")) != -1) {
		if (c == 'f')
			flat = true;
		else if (c == 's')
			file = optarg;
		else if (c == 'e')
			expect = optarg;
		else if (c == 'p')
			patience = atof(optarg);
		else
			optind = argc;
	}
	if (optind >= argc || size < 2 || size > RANKS) {
		fprintf(stderr,
			"usage: mpi-random [-f] [-s FILE] [-e nic|host|mpi] [-p SECONDS] FIRST "
			"[LAST], on 2 to %d ranks\n",
			RANKS);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	first = strtoull(argv[optind], NULL, 10);
	last = optind + 1 < argc ? strtoull(argv[optind + 1], NULL, 10) : first;
	tell_ends();
	world_open(file, patience);
	bad = run_all(first, last, flat);
	say_counts();
	if (rank == 0)
		printf("%sok 1 - programs %llu to %llu on %d ranks: %d failed\n", bad ? "not " : "",
		       (unsigned long long)first, (unsigned long long)last, size, bad);
	if (expect && !as_expected(expect)) {
		bad++;
		if (rank == 0)
			printf("not ok 2 - barriers are not run by %s\n", expect);
	}
	fflush(stdout);
	world_close();
	MPI_T_finalize();
	MPI_Finalize();
	return bad != 0;
}
