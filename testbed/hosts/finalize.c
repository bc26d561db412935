/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * finalize.c - libcluster-finalize.so: lets programs of MPICH before 4.2 over UCX end.
 *
 * `cluster mpiexec` preloads it. In MPI_Finalize these releases flush every connection, and wait
 * for an answer of the peer. A peer that has flushed its own connections no longer answers (see
 * openucx/ucx#8738). If ranks share processors, every second run hangs there. With this library all
 * ranks first run a barrier, as MPICH does from 4.2 on. After the barrier no message is under way,
 * so the library leaves out the flush. It changes nothing else.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

void *ucp_disconnect_nb(void *ep);

/* NULL tells the caller that the flush is complete. UCX closes the connection with its worker. */
void *ucp_disconnect_nb(void *ep)
{
	(void)ep;
	return NULL;
}

/* The program calls MPI_Finalize; a profiling library between program and MPI calls PMPI_Finalize.
 * The first call runs the barrier. */
static int meet_and_go_on(const char *name)
{
	static bool met;
	int (*next)(void) = NULL;

	if (!met) {
		met = true;
		PMPI_Barrier(MPI_COMM_WORLD);
	}
	*(void **)&next = dlsym(RTLD_NEXT, name);
	if (!next) {
		fprintf(stderr, "libcluster-finalize: there is no %s here; is this MPICH?\n", name);
		return MPI_ERR_INTERN;
	}
	return next();
}

int MPI_Finalize(void)
{
	return meet_and_go_on("MPI_Finalize");
}

int PMPI_Finalize(void)
{
	return meet_and_go_on("PMPI_Finalize");
}
