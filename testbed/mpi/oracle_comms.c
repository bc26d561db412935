/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_comms.c - communicators of all kinds: made, used, freed, many at once, and while other
 * operations are under way.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "oracle_predict.h"

#define WAYS 10u
#define INNER 24u /* barriers of each communicator */

/* Makes a communicator from comm in one of several ways. MPI_COMM_NULL: this rank is not in it. */
static MPI_Comm make(MPI_Comm comm, uint32_t way)
{
	MPI_Comm out = MPI_COMM_NULL;
	MPI_Group group, part;
	int rank, size, dims[2] = { 0, 0 }, periods[2] = { 0, 0 }, range[1][3];

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	switch (way % WAYS) {
	case 0:
		MPI_Comm_dup(comm, &out);
		break;
	case 1:
		MPI_Comm_split(comm, rank % 2, rank, &out);
		break;
	case 2: /* the ranks in reverse order */
		MPI_Comm_split(comm, 0, size - rank, &out);
		break;
	case 3: /* all but the first */
		MPI_Comm_split(comm, rank == 0 && size > 1 ? MPI_UNDEFINED : 1, rank, &out);
		break;
	case 4:
		MPI_Comm_group(comm, &group);
		range[0][0] = 0;
		range[0][1] = (size - 1) / 2;
		range[0][2] = 1;
		MPI_Group_range_incl(group, 1, range, &part);
		MPI_Comm_create(comm, part, &out);
		MPI_Group_free(&part);
		MPI_Group_free(&group);
		break;
	case 5:
		MPI_Dims_create(size, 2, dims);
		MPI_Cart_create(comm, 2, dims, periods, 1, &out);
		break;
	case 6:
		MPI_Comm_split(comm, rank, 0, &out); /* alone */
		break;
	case 7: /* ranks of the same host */
		MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &out);
		break;
	case 9: /* consecutive ranks are on one host, if the launcher placed ranks round robin on 4
		   hosts */
		MPI_Comm_split(comm, 0, rank % 4 * size + rank, &out);
		break;
	case 8: /* all except the last; only these ranks call MPI_Comm_create_group */
		MPI_Comm_group(comm, &group);
		range[0][0] = 0;
		range[0][1] = size > 1 ? size - 2 : 0;
		range[0][2] = 1;
		MPI_Group_range_incl(group, 1, range, &part);
		if (rank <= range[0][1])
			MPI_Comm_create_group(comm, part, 3, &out);
		MPI_Group_free(&part);
		MPI_Group_free(&group);
		break;
	}
	return out;
}

static void use(MPI_Comm comm, uint64_t step, uint32_t way)
{
	int n, *ranks = oracle_members(comm, &n);
	MPI_Request request;

	oracle_enter(0, step);
	if (way % 2) {
		MPI_Barrier(comm);
	} else {
		MPI_Ibarrier(comm, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	oracle_leave(0, step, ranks, n);
	free(ranks);
}

void test_split(int n)
{
	uint64_t step = 1;

	for (int i = 0; i < n; i++) {
		MPI_Comm outer = make(MPI_COMM_WORLD, (uint32_t)i);
		uint32_t inner_way = oracle_random(WAYS);

		for (uint32_t k = 0; k < 30; k++, step++)
			if (outer != MPI_COMM_NULL)
				use(outer, step, k / 20 + (uint32_t)i);
		if (outer != MPI_COMM_NULL) {
			MPI_Comm inner = make(outer, inner_way);

			for (uint32_t k = 0; k < INNER; k++)
				if (inner != MPI_COMM_NULL)
					use(inner, step + k, k);
			if (inner != MPI_COMM_NULL)
				MPI_Comm_free(&inner);
			MPI_Comm_free(&outer);
		}
		step += INNER;
	}
	use(MPI_COMM_SELF, step, 0);
	use(MPI_COMM_SELF, step + 1, 1);
}

void test_storm(int n)
{
	uint64_t step = 1;

	for (int i = 0; i < n; i++) {
		MPI_Comm comm = make(MPI_COMM_WORLD, oracle_random(4));
		uint32_t times = oracle_random(16), way = oracle_random(2);

		for (uint32_t k = 0; k < times; k++, step++)
			if (comm != MPI_COMM_NULL)
				use(comm, step, way + k);
		if (comm != MPI_COMM_NULL)
			MPI_Comm_free(&comm);
	}
}

void test_alive(int n)
{
	MPI_Comm *comm = malloc((size_t)n * sizeof(*comm));
	uint64_t step = 1;

	if (!comm)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (int i = 0; i < n; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		use(comm[i], step++, 1);
	}
	for (int i = 0; i < n; i++)
		oracle_settle(comm[i]);
	for (int k = 0; k < 2; k++)
		for (int i = n - 1; i >= 0; i--)
			use(comm[i], step++, (uint32_t)(i + k));
	for (int i = 0; i < n; i++)
		MPI_Comm_free(&comm[i]);
	free(comm);
}

void test_freed(int n)
{
	int members, *ranks = oracle_members(MPI_COMM_WORLD, &members);
	uint64_t step = 1;

	for (int i = 0; i < n; i++) {
		MPI_Request request[24];
		MPI_Comm comm;
		int before = i % 24;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		/* Open MPI 4.1 fails here if it runs the barriers itself. */
		oracle_settle(comm);
		use(comm, step++, 1);
		for (int k = 0; k <= before; k++) {
			oracle_enter(0, step + (uint64_t)k);
			MPI_Ibarrier(comm, &request[k]);
		}
		MPI_Comm_free(&comm);
		for (int k = 0; k <= before; k++) {
			MPI_Wait(&request[k], MPI_STATUS_IGNORE);
			oracle_leave(0, step + (uint64_t)k, ranks, members);
		}
		step += 24;
	}
	free(ranks);
}

/*
 * Nonblocking barriers and other collectives on a new communicator, all under way at once. In turn,
 * each rank is ahead of the others; in some communicators nbar takes over the barriers meanwhile.
 * If nbar changed the order of barriers and other collectives, values would be wrong, or the test
 * would hang.
 */
void test_order(int n)
{
	enum { CALLS = 36 };
	int members, *ranks = oracle_members(MPI_COMM_WORLD, &members);
	uint64_t step = 1;

	for (int i = 0; i < n; i++) {
		MPI_Request request[CALLS];
		int value[CALLS], sum[CALLS];
		uint64_t entered[CALLS];
		MPI_Comm comm;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		if ((i + oracle.rank) % 4 == 0)
			usleep(300);
		for (int k = 0; k < CALLS; k++) {
			uint32_t what = oracle_random(3);
			int flag;

			if (k == i % 60)
				oracle_settle(comm);

			value[k] = oracle.rank == 0 || what != 1 ? 1000 * i + k : -1;
			entered[k] = 0;
			if (what == 0) {
				entered[k] = step;
				oracle_enter(0, step++);
				MPI_Ibarrier(comm, &request[k]);
			} else if (what == 1) {
				MPI_Ibcast(&value[k], 1, MPI_INT, 0, comm, &request[k]);
			} else {
				MPI_Iallreduce(&value[k], &sum[k], 1, MPI_INT, MPI_MAX, comm,
					       &request[k]);
			}
			/* Some ranks test the first barriers, others do not. */
			if (k % 5 == 4 && (k + oracle.rank) % 2)
				MPI_Testall(k + 1, request, &flag, MPI_STATUSES_IGNORE);
		}
		MPI_Waitall(CALLS, request, MPI_STATUSES_IGNORE);
		for (int k = 0; k < CALLS; k++) {
			oracle_want(value[k] == 1000 * i + k, "wrong value at", (uint64_t)k);
			oracle_leave(0, entered[k], ranks, members);
		}
		MPI_Comm_free(&comm);
	}
	free(ranks);
}

/* --- threads --------------------------------------------------------------------------------- */

struct thread {
	pthread_t id;
	MPI_Comm comm;
	int lane, n, members, *ranks;
};

static void *thread_main(void *arg)
{
	const struct thread *t = arg;

	for (int i = 1; i <= t->n; i++) {
		MPI_Request request[4];

		oracle_enter(t->lane, (uint64_t)i);
		if (i % 3 == 0) {
			for (int k = 0; k < 4; k++)
				MPI_Ibarrier(t->comm, &request[k]);
			MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
		} else {
			MPI_Barrier(t->comm);
		}
		oracle_leave(t->lane, (uint64_t)i, t->ranks, t->members);
	}
	return NULL;
}

void test_threads(int n)
{
	struct thread thread[LANES];
	int threads;

	MPI_Query_thread(&threads);
	oracle_want(threads == MPI_THREAD_MULTIPLE, "the MPI provides thread level",
		    (uint64_t)threads);
	if (threads != MPI_THREAD_MULTIPLE)
		return;
	for (int i = 0; i < LANES; i++) {
		thread[i].lane = i;
		thread[i].n = n;
		MPI_Comm_dup(MPI_COMM_WORLD, &thread[i].comm);
		thread[i].ranks = oracle_members(thread[i].comm, &thread[i].members);
	}
	for (int i = 0; i < LANES; i++)
		pthread_create(&thread[i].id, NULL, thread_main, &thread[i]);
	for (int i = 0; i < LANES; i++) {
		pthread_join(thread[i].id, NULL);
		MPI_Comm_free(&thread[i].comm);
		free(thread[i].ranks);
	}
}

/* --- many processes per host --------------------------------------------------------------------
 */

/* Communicators of two ranks. If the two are on different hosts, every rank is the first of its
 * host in its communicator, and needs a port. */
void test_pairs(int n)
{
	MPI_Comm comm;

	MPI_Comm_split(MPI_COMM_WORLD, oracle.rank / 2, oracle.rank, &comm);
	oracle_settle(comm);
	for (int i = 0; i < n; i++)
		use(comm, (uint64_t)i + 1, 1);
	MPI_Comm_free(&comm);
}
