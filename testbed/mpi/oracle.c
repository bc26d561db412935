/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle.c - an MPI program that checks barriers.
 *
 * usage: mpi-oracle [-s FILE] [-e nic|host|mpi] TEST[=N]...
 *
 * The program uses only MPI, except that it reads nbar's counters. -e: how nbar must have run the
 * barriers. -s: a file that all ranks map, on a shared disk or in memory. Rank 0 prints TAP.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oracle_predict.h"

#define SETTLED 12

struct oracle oracle;

static const struct {
	const char *name;
	void (*run)(int n);
	int n;
	const char *text;
} tests[] = {
	{ "blocking", test_blocking, 10000, "MPI_Barrier" },
	{ "nonblocking", test_nonblocking, 5000, "MPI_Ibarrier, then Wait or Test" },
	{ "outstanding", test_outstanding, 300,
	  "many MPI_Ibarrier under way, completed in any order" },
	{ "mixed", test_mixed, 2000, "both on one communicator, at random" },
	{ "allreduce", test_allreduce, 2000, "MPI_Allreduce and MPI_Iallreduce of few bytes" },
	{ "persistent", test_persistent, 500, "a persistent barrier, where this MPI has it" },
	{ "late", test_late, 1, "each rank in turn comes 0.2 s late, and all see it" },
	{ "split", test_split, 100, "communicators of all kinds" },
	{ "storm", test_storm, 2000, "communicators made, used and freed" },
	{ "alive", test_alive, 1100, "communicators alive at once" },
	{ "pairs", test_pairs, 20, "every rank leads its host in a communicator" },
	{ "short", test_short, 200, "nbar sets up nothing for communicators of one barrier" },
	{ "records", test_records, 1, "no barrier of MPI_COMM_WORLD looks up a process: Open MPI" },
	{ "freed", test_freed, 100, "a communicator freed with a barrier under way" },
	{ "order", test_order, 200, "other collectives in between, all under way" },
	{ "rendezvous", test_rendezvous, 20, "a long message goes on while its sender waits" },
	{ "one-sided", test_one_sided, 20, "a target that waits in a barrier" },
	{ "probe", test_probe, 20, "a message is found by a probe while its sender waits" },
	{ "threads", test_threads, 500, "threads with a communicator each" },
	{ "idle", test_idle, 10, "a rank that waits 0.1 s gives its processor away" },
	{ "inter", test_inter, 20, "intercommunicators" },
	{ "fails", test_fails, 1, "a barrier that fails tells the error handler" },
	{ "dies", test_dies, 1, "rank N is killed, and the others go on" },
	{ "shrinks", test_shrinks, 1, "rank N is killed, and the others shrink (ULFM)" },
};
#define NTEST (sizeof(tests) / sizeof(tests[0]))

/* --- the truth ------------------------------------------------------------------------------- */

static uint64_t *word_of(int lane, int rank)
{
	return &oracle.entered[((size_t)lane * (size_t)oracle.size + (size_t)rank) * 8];
}

void oracle_enter(int lane, uint64_t step)
{
	__atomic_store_n(word_of(lane, oracle.rank), step, __ATOMIC_SEQ_CST);
}

void oracle_leave(int lane, uint64_t step, const int *ranks, int n)
{
	for (int i = 0; i < n; i++)
		oracle_want(__atomic_load_n(word_of(lane, ranks[i]), __ATOMIC_SEQ_CST) >= step,
			    "left before all had entered step", step);
}

void oracle_want(bool good, const char *what, uint64_t where)
{
	static uint32_t said;

	if (good)
		return;
	__atomic_fetch_add(&oracle.bad, 1, __ATOMIC_RELAXED);
	if (__atomic_fetch_add(&said, 1, __ATOMIC_RELAXED) < 5)
		fprintf(stderr, "# rank %d: %s %llu\n", oracle.rank, what,
			(unsigned long long)where);
}

int *oracle_members(MPI_Comm comm, int *n)
{
	MPI_Group group, world;
	int *mine, *theirs;

	MPI_Comm_size(comm, n);
	mine = malloc((size_t)*n * sizeof(*mine));
	theirs = malloc((size_t)*n * sizeof(*theirs));
	if (!mine || !theirs)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int i = 0; i < *n; i++)
		mine[i] = i;
	MPI_Comm_group(comm, &group);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_translate_ranks(group, *n, mine, world, theirs);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	free(mine);
	return theirs;
}

void oracle_settle(MPI_Comm comm)
{
	for (int i = 0; i < SETTLED; i++)
		MPI_Barrier(comm);
}

uint32_t oracle_random(uint32_t n)
{
	oracle.random = oracle.random * 1664525u + 1013904223u;
	return (oracle.random >> 8) % n;
}

static size_t share_size(void)
{
	return (size_t)LANES * (size_t)oracle.size * 8 * sizeof(uint64_t);
}

static void share(const char *file)
{
	size_t size = share_size();
	struct stat st;
	/* The first rank makes the file. No rank removes it, so no rank can miss it. The size of a
	 * device's memory cannot change. */
	int fd = open(file, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || fstat(fd, &st) < 0 ||
	    ((size_t)st.st_size < size && ftruncate(fd, (off_t)size) < 0)) {
		fprintf(stderr, "mpi-oracle: cannot share %s\n", file);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	oracle.entered = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (oracle.entered == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 2);
	close(fd);
}

/* --- running --------------------------------------------------------------------------------- */

/* Prints the counters of all ranks: offloaded, within the host, by fallback. True if nbar has run
 * barriers as expected. */
static bool run_as_expected(const char *expect)
{
	static const char *const name[] = { "nic", "host", "mpi" };
	unsigned long long mine[3] = { 0 }, all[3];
	int known = oracle_counters(mine), every;

	MPI_Allreduce(&known, &every, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(mine, all, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (oracle.rank == 0)
		printf("# barriers offloaded %llu, within the host %llu, by fallback %llu\n",
		       all[0], all[1], all[2]);
	for (int i = 0; i < 3; i++)
		if (strcmp(expect, name[i]) == 0)
			return every && all[i] > 0 && (i == 0 || all[0] == 0);
	return false;
}

static int report(int number, bool good, const char *name, const char *text, int n)
{
	if (oracle.rank == 0)
		printf("%sok %d - %s: %s (%d)\n", good ? "" : "not ", number, name, text, n);
	fflush(stdout);
	return !good;
}

/* True if nbar has run exactly `predicted` barriers since `before`. If not exact: true if nbar has
 * run at least one, and not more than `predicted`. */
static bool offloaded(const unsigned long long before[3], uint64_t predicted, bool exact)
{
	unsigned long long now[3] = { 0 }, by_nbar;

	oracle_counters(now);
	by_nbar = now[0] + now[1] - before[0] - before[1];
	if (by_nbar == predicted || (!exact && by_nbar > 0 && by_nbar < predicted))
		return true;
	fprintf(stderr, "# rank %d: nbar has run %llu barriers, not %llu\n", oracle.rank, by_nbar,
		(unsigned long long)predicted);
	return false;
}

/* Runs NAME or NAME=N. 0: passed; 1: failed; 2: there is no such test. */
static int run(int number, const char *what, bool by_nbar)
{
	size_t length = strcspn(what, "=");
	unsigned long long before[3] = { 0 };

	for (size_t i = 0; i < NTEST; i++) {
		uint64_t bad = 0, predicted;
		int n = what[length] ? atoi(what + length + 1) : tests[i].n;

		if (strlen(tests[i].name) != length || strncmp(what, tests[i].name, length) != 0)
			continue;
		memset(oracle.entered, 0, share_size());
		MPI_Barrier(MPI_COMM_WORLD);
		oracle.bad = 0;
		oracle_counters(before);
		oracle.random = (uint32_t)number;
		predicted = oracle_predicted();
		tests[i].run(n);
		if (by_nbar &&
		    !offloaded(before, oracle_predicted() - predicted, tests[i].run != test_alive))
			oracle.bad++;
		MPI_Allreduce(&oracle.bad, &bad, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		return report(number, bad == 0, tests[i].name, tests[i].text, n);
	}
	return 2;
}

int main(int argc, char **argv)
{
	static char line[BUFSIZ];
	const char *file = "/tmp/mpi-oracle", *expect = NULL;
	int threads = MPI_THREAD_SINGLE, failed = 0, number = 0, c;

	/* Only for this test: with MPI_THREAD_MULTIPLE some MPIs lack functions. */
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "threads", 7) == 0)
			threads = MPI_THREAD_MULTIPLE;
	MPI_Init_thread(&argc, &argv, threads, &threads);
	/* MPICH 4.2 takes the buffer away, and lines of ranks would mix. */
	setvbuf(stdout, line, _IOLBF, sizeof(line));
	MPI_Comm_rank(MPI_COMM_WORLD, &oracle.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &oracle.size);
	while ((c = getopt(argc, argv, "s:e:")) != -1) {
		if (c == 's')
			file = optarg;
		else if (c == 'e')
			expect = optarg;
		else
			MPI_Abort(MPI_COMM_WORLD, 2);
	}
	share(file);
	oracle.records = 0;
	oracle.by_nic = expect && strcmp(expect, "nic") == 0;
	oracle_predict_begin();
	oracle_settle(MPI_COMM_WORLD);
	for (; optind < argc; optind++) {
		int rc = run(++number, argv[optind], expect && strcmp(expect, "mpi") != 0);

		if (rc == 2 && oracle.rank == 0)
			fprintf(stderr, "mpi-oracle: no test %s\n", argv[optind]);
		failed |= rc;
	}
	if (expect)
		failed |= report(number + 1, run_as_expected(expect), "counters", expect, 0);
	MPI_Finalize();
	return failed != 0;
}
