/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standard_memory.c - allocations of nbar fail, while it sets up a communicator, or for a request.
 *
 * This program replaces malloc, calloc and realloc for nbar's library. Set-up k fails in its k-th
 * allocation, or in all allocations from the k-th on. Then all ranks must leave the communicator to
 * the MPI, or all must offload it; no rank may wait for another forever (MPI 4.0, 2.8: after an
 * error, calls that do not depend on it still work).
 */
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standard.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static struct {
	uintptr_t first, last; /* nbar's code */
	int fails_in;          /* allocations of nbar before one fails; -1: none fails */
	bool exhausted;        /* all later allocations fail, too */
	bool hit;
} inject = { .fails_in = -1 };

static bool fails(void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	if (inject.fails_in < 0 || at < inject.first || at >= inject.last)
		return false;
	if (inject.fails_in > 0) {
		inject.fails_in--;
		return false;
	}
	inject.hit = true;
	if (!inject.exhausted)
		inject.fails_in = -1;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

static int find_nbar(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	if (!strstr(info->dlpi_name, "mca_coll_nbar") && !strstr(info->dlpi_name, "libnbar-mpi"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
			inject.first = info->dlpi_addr + p->p_vaddr;
			inject.last = inject.first + p->p_memsz;
		}
	}
	return 1;
}

static void inject_at(int rank, int n)
{
	inject.hit = false;
	inject.fails_in = me == rank ? n : -1;
}

/* Sets up a communicator; allocation n of this rank, counted from 0, fails. Returns true if it did
 * fail, false if the set-up needs no more than n allocations. */
static bool set_up(int rank, int n)
{
	unsigned long long before[3] = { 0 }, after[3] = { 0 };
	int mine[2], all[2];
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int i = 0; i < SET_UP - 1; i++)
		MPI_Barrier(comm);
	inject_at(rank, n);
	want(MPI_Barrier(comm) == MPI_SUCCESS, "a barrier failed for lack of memory");
	inject.fails_in = -1;
	oracle_counters(before);
	for (int i = 0; i < 3; i++)
		want(MPI_Barrier(comm) == MPI_SUCCESS, "a barrier failed after the set-up");
	oracle_counters(after);
	mine[0] = inject.hit;
	mine[1] = (int)(after[0] + after[1] - before[0] - before[1]);
	MPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	want(2 * mine[1] == all[1], "ranks do not agree whether the communicator is offloaded");
	want(all[0] || all[1] == 0 || mine[1] == 3, "nbar runs a part of the barriers");
	MPI_Comm_free(&comm);
	return all[0] != 0;
}

/* If an MPI_Ibarrier has no memory for its request, its barrier has not begun: the other rank's
 * barrier waits until this rank calls the next MPI_Ibarrier. */
static void no_request(int rank)
{
	MPI_Comm comm = duplicate(true);
	MPI_Request request;
	int flag = 0;

	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	inject_at(rank, 0);
	if (me == rank) {
		want(MPI_Ibarrier(comm, &request) != MPI_SUCCESS, "no memory is no error");
		want(inject.hit, "a request needs no memory of nbar");
		tell();
		hear();
		MPI_Ibarrier(comm, &request);
	} else {
		hear();
		MPI_Ibarrier(comm, &request);
		for (int i = 0; i < 1000 && !flag; i++)
			MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		want(!flag, "complete by a barrier that has failed");
		tell();
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_free(&comm);
}

/* The first set-ups include the look-up of ranks that are not known yet: without memory for it, all
 * ranks must come to the same decision. */
void rule_memory(void)
{
	int failed = 0;

	dl_iterate_phdr(find_nbar, NULL);
	want(inject.first != 0, "nbar's library is not loaded");
	for (int i = 0; i < 4; i++) {
		inject.exhausted = i < 2;
		for (int n = 0; set_up(i % 2, n) && n < 1000; n++)
			failed++;
	}
	if (me == 0)
		printf("# allocations failed in %d set-ups\n", failed);
	want(failed > 0, "no allocation failed: does this program replace malloc?");
	for (int rank = 0; rank < 2; rank++)
		no_request(rank);
}
