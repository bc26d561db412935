/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle.c - runs real barriers between real processes and checks each one of them.
 *
 * oracle [-i ITERATIONS] [-a ALG] [-d MS] NIC NIC ...: one process a NIC, rank 0 first. Nobody may
 * leave barrier i before all have entered it, and nobody may be more than one ahead. With -d,
 * every member in turn comes MS late. Used by the end-to-end scripts; exit status 0 if all held.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "nbar.h"

#define RANKS_MAX 64

struct shared {
	uint32_t opened, connected, finished, broken;
	struct nbar_blob blob[RANKS_MAX];
	struct {
		uint32_t entered;
		uint32_t reserved[31];
	} rank[RANKS_MAX];
};

static struct shared *shared;
static uint32_t size, iterations = 1000, delay_ms;
static const char *alg = "auto";

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("# oracle: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	__atomic_store_n(&shared->broken, 1, __ATOMIC_RELAXED);
	_exit(1);
}

static void sleep_ms(uint32_t ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

/* For the set-up alone; what is tested is the other barrier. */
static void meet(uint32_t *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < size) {
		if (__atomic_load_n(&shared->broken, __ATOMIC_RELAXED))
			_exit(1);
		sleep_ms(1);
	}
}

static void one_barrier(struct nbar_group *g, uint32_t rank, uint32_t i)
{
	if (delay_ms && (i - 1) % size == rank)
		sleep_ms(delay_ms);
	__atomic_store_n(&shared->rank[rank].entered, i, __ATOMIC_RELEASE);

	int rc = nbar_barrier(g);

	if (rc < 0)
		die("rank %u, barrier %u: %s", rank, i, nbar_error());
	for (uint32_t r = 0; r < size; r++) {
		uint32_t e = __atomic_load_n(&shared->rank[r].entered, __ATOMIC_ACQUIRE);

		if (e != i && e != i + 1)
			die("rank %u left barrier %u while rank %u was in %u", rank, i, r, e);
	}
}

static void member(uint32_t rank, const char *nic)
{
	struct nbar_group_attr attr = { .rank = rank, .size = size, .alg = alg };
	struct nbar_port *port;
	struct nbar_group *g;

	if (nbar_open(nic, &port) < 0 || nbar_group_open(port, &attr, &g, &shared->blob[rank]) < 0)
		die("rank %u: %s", rank, nbar_error());
	meet(&shared->opened);
	if (nbar_group_connect(g, shared->blob) < 0)
		die("rank %u: %s", rank, nbar_error());
	meet(&shared->connected);
	for (uint32_t i = 1; i <= iterations; i++)
		one_barrier(g, rank, i);
	nbar_group_close(g);
	meet(&shared->finished); /* a port that goes takes nobody with it who still waits */
	nbar_close(port);
}

static void read_options(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "i:a:d:")) != -1) {
		if (option == 'i')
			iterations = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'a')
			alg = optarg;
		else if (option == 'd')
			delay_ms = (uint32_t)strtoul(optarg, NULL, 10);
		else
			exit(2);
	}
	size = (uint32_t)(argc - optind);
	if (size == 0 || size > RANKS_MAX) {
		fprintf(stderr, "usage: oracle [-i ITERATIONS] [-a ALG] [-d MS] NIC NIC ...\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	pid_t pid[RANKS_MAX];
	int failed = 0;

	read_options(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		perror("oracle: mmap");
		return 1;
	}
	for (uint32_t r = 0; r < size; r++) {
		pid[r] = fork();
		if (pid[r] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			member(r, argv[optind + (int)r]);
			return 0;
		}
	}
	for (uint32_t r = 0; r < size; r++) {
		int status;

		waitpid(pid[r], &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			failed = 1;
	}
	return failed;
}
