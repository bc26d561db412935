/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.c - records, outside of MPI, which rank has entered which barrier; and a watchdog, which
 * prints the ranks that hang, with their actions.
 *
 * The record is a file that all ranks of the job map: one word per barrier and rank. A rank writes
 * the number of the program there before it calls the barrier. After the barrier, it checks that
 * the other ranks have written this number. The watchdog is a thread that never calls MPI.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "random.h"

struct place {
	uint64_t seed, moves; /* actions that have begun */
	char text[112];
};

struct shared {
	uint64_t barked; /* 1 once a watchdog has reported */
	struct place place[RANKS];
	uint64_t entered[STEPS][MEMBERS];
};

struct counts counts;

static struct {
	struct shared *shared;
	uint64_t program; /* a number that no earlier program had, of this job or an earlier job */
	int rank, size, failures, said;
	double patience;
	bool stop;
	pthread_t dog;
} self;

const char *event_name(enum event_kind kind)
{
	static const char *const name[] = {
		[EVENT_BARRIERS] = "MPI_Barrier",
		[EVENT_IBARRIER] = "MPI_Ibarrier",
		[EVENT_INIT] = "MPI_Barrier_init",
		[EVENT_START] = "persistent barrier",
		[EVENT_UNINIT] = "MPI_Request_free",
		[EVENT_MESSAGE] = "message",
		[EVENT_ALLREDUCE] = "MPI_Allreduce",
		[EVENT_IALLREDUCE] = "MPI_Iallreduce",
		[EVENT_IBCAST] = "MPI_Ibcast",
		[EVENT_DUP] = "MPI_Comm_dup",
		[EVENT_SPLIT] = "MPI_Comm_split",
		[EVENT_CREATE] = "MPI_Comm_create",
		[EVENT_CREATE_GROUP] = "MPI_Comm_create_group",
		[EVENT_INTERCOMM] = "MPI_Intercomm_create",
		[EVENT_MERGE] = "MPI_Intercomm_merge",
		[EVENT_FREE] = "MPI_Comm_free",
	};

	return name[kind];
}

/* --- the watchdog ---------------------------------------------------------------------------- */

static uint64_t all_moves(void)
{
	uint64_t sum = 0;

	for (int r = 0; r < self.size; r++)
		sum += __atomic_load_n(&self.shared->place[r].moves, __ATOMIC_RELAXED);
	return sum;
}

static void bark(void)
{
	if (__atomic_exchange_n(&self.shared->barked, 1, __ATOMIC_SEQ_CST) != 0)
		return;
	for (int r = 0; r < self.size; r++) {
		const struct place *p = &self.shared->place[r];

		fprintf(stderr, "# hangs: rank %d: seed %llu: %.*s\n", r,
			(unsigned long long)p->seed, (int)sizeof(p->text), p->text);
	}
	fflush(stderr);
	sleep(1); /* so that the launcher can forward the output */
	_exit(3);
}

/* Reports a hang if no rank has begun an action for the time `patience`. */
static void *watch(void *arg)
{
	uint64_t before = all_moves();
	double waited = 0;

	(void)arg;
	while (!__atomic_load_n(&self.stop, __ATOMIC_RELAXED)) {
		uint64_t now;

		usleep(100000);
		now = all_moves();
		waited = now == before ? waited + 0.1 : 0;
		before = now;
		if (waited > self.patience)
			bark();
	}
	return NULL;
}

void world_open(const char *file, double patience)
{
	int fd = open(file, O_RDWR | O_CREAT, 0600);

	MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &self.size);
	if (fd < 0 || ftruncate(fd, sizeof(struct shared)) < 0) {
		fprintf(stderr, "mpi-random: cannot share %s: give a file with -s\n", file);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	self.shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (self.shared == MAP_FAILED)
		MPI_Abort(MPI_COMM_WORLD, 2);
	close(fd);
	self.shared->barked = 0;
	self.program = (uint64_t)(MPI_Wtime() * 1e6);
	MPI_Bcast(&self.program, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	self.patience = patience;
	if (pthread_create(&self.dog, NULL, watch, NULL) != 0)
		MPI_Abort(MPI_COMM_WORLD, 2);
}

void world_close(void)
{
	__atomic_store_n(&self.stop, true, __ATOMIC_RELAXED);
	pthread_join(self.dog, NULL);
}

/* --- the current action of this rank --------------------------------------------------------- */

void world_program(const struct program *p)
{
	self.program++;
	counts.programs++;
	self.shared->place[self.rank].seed = p->seed;
	world_at(0, "%s", p->me == p->n ? "not in the program" : "begins the program");
}

void world_at(uint32_t action, const char *format, ...)
{
	struct place *at = &self.shared->place[self.rank];
	char text[96];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(at->text, sizeof(at->text), "action %u: %s", action, text);
	__atomic_fetch_add(&at->moves, 1, __ATOMIC_RELAXED);
	if (getenv("RANDOM_VERBOSE"))
		fprintf(stderr, "# rank %d: seed %llu: %s\n", self.rank,
			(unsigned long long)at->seed, at->text);
}

const char *world_place(void)
{
	static char text[160];
	const struct place *at = &self.shared->place[self.rank];

	snprintf(text, sizeof(text), "rank %d: seed %llu: %s", self.rank,
		 (unsigned long long)at->seed, at->text);
	return text;
}

/* --- the record of barriers ------------------------------------------------------------------ */

void world_enter(const struct program *p, uint32_t step)
{
	__atomic_store_n(&self.shared->entered[step][p->me], self.program, __ATOMIC_SEQ_CST);
}

void world_left(const struct program *p, const struct event *e, uint32_t step)
{
	const struct comm *c = &p->comm[e->comm];
	bool near = false, all = true;

	for (uint32_t i = 0; i < c->near; i++)
		near |= c->member[i] == p->me;
	for (uint32_t i = 0; i < c->n; i++) {
		/* A barrier of an intercommunicator waits for the other group. */
		if (c->near && (i < c->near) == near)
			continue;
		all = all && __atomic_load_n(&self.shared->entered[step][c->member[i]],
					     __ATOMIC_SEQ_CST) == self.program;
	}
	world_want(all, p, "left before all had entered", (uint32_t)(e - p->event));
}

void world_want(bool good, const struct program *p, const char *what, uint32_t event)
{
	if (good)
		return;
	self.failures++;
	if (self.said++ < 5)
		fprintf(stderr, "# rank %d: seed %llu: event %u, %s on communicator %u: %s\n",
			self.rank, (unsigned long long)p->seed, event,
			event_name(p->event[event].kind), p->event[event].comm, what);
}

int world_failures(void)
{
	int n = self.failures;

	self.failures = 0;
	return n;
}
