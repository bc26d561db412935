/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quiet.c - "quiet, then barrier": remote writes, and a barrier after which all may read them.
 *
 * The barrier orders no RDMA writes: its tokens can overtake them. So a rank that has written waits
 * until its writes are in the memory of the target ("quiet"), then arrives:
 *
 *	MPI      MPI_Win_flush_all(window)           this example
 *	SHMEM    shmem_quiet()
 *	UCX      ucp_worker_flush_nbx, and wait for its completion
 *	verbs    the completion of a read behind the writes, on the same queue pair
 *
 *	mpirun -n 4 ./quiet n0 1000                  # NIC ROUNDS
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <nbar.h>

#define WORDS 512

static void die(const char *why)
{
	fprintf(stderr, "quiet: %s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The group of all ranks; the endpoint addresses travel by MPI. */
static struct nbar_group *quiet_open_group(const char *nic, int rank, int size,
					   struct nbar_port **port)
{
	const struct nbar_group_attr attr = {
		.struct_size = sizeof(attr),
		.rank = (uint32_t)rank,
		.size = (uint32_t)size,
	};
	struct nbar_endpoint mine, *all = calloc((size_t)size, sizeof(*all));
	struct nbar_group *group;

	if (!all || nbar_open(nic, port) < 0 || nbar_group_open(*port, &attr, &group, &mine) < 0)
		die(all ? nbar_error() : "no memory");
	MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
	if (nbar_group_connect(group, all) < 0)
		die(nbar_error());
	free(all);
	return group;
}

int main(int argc, char **argv)
{
	int rank, size, wrong = 0;
	uint64_t out[WORDS], *in;
	struct nbar_group *group;
	struct nbar_port *port;
	MPI_Win window;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 3)
		die("usage: quiet NIC ROUNDS");
	group = quiet_open_group(argv[1], rank, size, &port);
	MPI_Win_allocate(sizeof(out), sizeof(*in), MPI_INFO_NULL, MPI_COMM_WORLD, &in, &window);
	MPI_Win_lock_all(0, window);
	for (uint64_t round = 1; round <= strtoull(argv[2], NULL, 10); round++) {
		for (int i = 0; i < WORDS; i++)
			out[i] = round << 32 | (uint64_t)rank;
		MPI_Put(out, WORDS, MPI_UINT64_T, (rank + 1) % size, 0, WORDS, MPI_UINT64_T,
			window);
		MPI_Win_flush_all(window);   /* quiet: the writes are in place ... */
		if (nbar_barrier(group) < 0) /* ... and now on all ranks */
			die(nbar_error());
		MPI_Win_sync(window);
		for (int i = 0; i < WORDS; i++)
			wrong += in[i] != (round << 32 | (uint64_t)((rank + size - 1) % size));
		if (nbar_barrier(group) < 0) /* nobody writes what others still read */
			die(nbar_error());
	}
	printf("rank %d of %d: %d words were wrong\n", rank, size, wrong);
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
	nbar_close(port);
	MPI_Finalize();
	return wrong != 0;
}
