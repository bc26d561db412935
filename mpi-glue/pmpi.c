/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmpi.c - the PMPI library, which replaces the MPI functions that pmpi.map lists: so NICs run the
 * barriers and allreduces of any program. LD_PRELOAD loads it.
 *
 * For MPICH and MPIs derived from it. Replaces MPI_Barrier, MPI_Ibarrier, MPI_Allreduce,
 * MPI_Iallreduce, the calls that complete requests, and the calls that begin and end MPI. The
 * states of a communicator are attributes, so they end when the communicator is freed. Never ends
 * the program: failures go to the error handler of the communicator.
 */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm.h"
#include "exchange.h"
#include "mpi_value.h"
#include "node.h"
#include "pmpi.h"

#define TELL_S 10.0 /* wait in MPI_Init before a message */

static struct {
	bool ready;
	int keyval[NBMPI_KINDS];
	int error_class;
	int size;       /* of MPI_COMM_WORLD */
	uint32_t *host; /* by rank: 2 * number of its host, + 1 if the rank has found a NIC; NULL:
			 * the ranks have different settings */
	int *mates;     /* ranks of the world on this host, and their number */
	int nmate;
	int tags; /* a bit mask */
	MPI_Group group;
	MPI_Comm comm; /* all ranks, for messages of the set-up */
} world;

static void *from_comm(MPI_Comm comm)
{
	return (void *)(uintptr_t)comm;
}

static MPI_Comm to_comm(void *mpi)
{
	return (MPI_Comm)(uintptr_t)mpi;
}

static struct nbmpi_start start;

/* --- functions that the core needs from MPI -------------------------------------------------- */

#define CHUNK 256 /* ranks in one look-up */

static int world_rank(MPI_Group group, int rank)
{
	int of_world;

	PMPI_Group_translate_ranks(group, 1, &rank, world.group, &of_world);
	return of_world;
}

static uint64_t mpi_host(void *mpi, uint32_t rank)
{
	MPI_Group group;
	int of_world;

	PMPI_Comm_group(to_comm(mpi), &group);
	of_world = world_rank(group, (int)rank);
	PMPI_Group_free(&group);
	return world.host[of_world] / 2;
}

/* True if some members belong to another world. */
static bool is_foreign(MPI_Group group, int size)
{
	for (int r = 0; r < size; r++)
		if (world_rank(group, r) == MPI_UNDEFINED)
			return true;
	return false;
}

static int pmpi_by_rank(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* True if the first rank has found no NIC when MPI started: all ranks know it without a vote. */
static bool lacks_nic(MPI_Group group)
{
	return world.host[world_rank(group, 0)] % 2 == 0;
}

static uint32_t *mpi_mates(void *mpi, uint32_t *n, enum nbmpi_why *why)
{
	int *rank = malloc((size_t)world.nmate * sizeof(*rank)), size;
	MPI_Group group;
	bool foreign;

	_Static_assert(sizeof(*rank) == sizeof(uint32_t), "ranks stay where they are");
	*n = 0;
	if (!world.host) {
		*why = NBMPI_WHY_terms;
		return (uint32_t *)rank;
	}
	PMPI_Comm_group(to_comm(mpi), &group);
	PMPI_Group_size(group, &size);
	foreign = is_foreign(group, size);
	/* For a process of another world, our processes are foreign: so all decide alike. */
	if (foreign)
		*why = NBMPI_WHY_foreign;
	for (int first = 0; first < world.nmate; first += CHUNK) {
		int in_comm[CHUNK], m = world.nmate - first < CHUNK ? world.nmate - first : CHUNK;

		PMPI_Group_translate_ranks(world.group, m, world.mates + first, group, in_comm);
		for (int i = 0; i < m; i++)
			if (in_comm[i] != MPI_UNDEFINED) {
				if (rank)
					rank[*n] = in_comm[i];
				(*n)++;
			}
	}
	if (!foreign && *n < (uint32_t)size && lacks_nic(group))
		*why = NBMPI_WHY_nic;
	PMPI_Group_free(&group);
	if (rank)
		qsort(rank, *n, sizeof(*rank), pmpi_by_rank);
	return (uint32_t *)rank;
}

static int mpi_exchange(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n)
{
	MPI_Group group;
	int rc;

	PMPI_Comm_group(to_comm(mpi), &group);
	rc = pmpi_exchange(world.comm, group, (int)tag & world.tags, message, n);
	PMPI_Group_free(&group);
	if (rc != MPI_SUCCESS) /* call the error handler of the user's communicator */
		PMPI_Comm_call_errhandler(to_comm(mpi), rc);
	return rc;
}

/*
 * Not by MPICH's own Allreduce: it takes 134 KB of the stack, and a thread may have less.
 *
 * Other threads may call this function for other communicators, and all their messages use
 * world.comm. So rank 0 of this communicator chooses tags that no other sum has.
 */
static int mpi_sum(void *mpi, struct nbmpi_sum *sum)
{
	static uint32_t sums; /* relaxed: it orders nothing */
	struct nbmpi_channel at = { .exchange = mpi_exchange, .mpi = mpi };
	int rank, size, rc;

	PMPI_Comm_rank(to_comm(mpi), &rank);
	PMPI_Comm_size(to_comm(mpi), &size);
	at.tag = 2 * (start.rank +
		      (uint32_t)world.size * __atomic_fetch_add(&sums, 1, __ATOMIC_RELAXED));
	rc = PMPI_Bcast(&at.tag, 1, MPI_UINT32_T, 0, to_comm(mpi));
	if (rc != MPI_SUCCESS)
		return rc;
	return nbmpi_tree_sum(&at, (uint32_t)rank, (uint32_t)size, NULL, sum);
}

static int error_code(const char *text)
{
	char string[MPI_MAX_ERROR_STRING];
	int code;

	snprintf(string, sizeof(string), "%s", text);
	if (PMPI_Add_error_code(world.error_class, &code) != MPI_SUCCESS)
		return MPI_ERR_OTHER;
	PMPI_Add_error_string(code, string);
	return code;
}

static const struct nbmpi_ops ops = {
	.mates = mpi_mates,
	.host = mpi_host,
	.sum = mpi_sum,
	.exchange = mpi_exchange,
	.progress = pmpi_progress,
	.receive = pmpi_progress,
	.error = error_code,
};

/* --- communicators --------------------------------------------------------------------------- */

/* The last communicator of this thread, by enum nbmpi_kind: MPI takes longer to find the attribute.
 * All accesses to `gone` are relaxed: if another thread has freed a handle, the program has
 * synchronized with that thread before it uses the handle again. */
static _Thread_local struct {
	MPI_Comm comm;
	uint32_t gone;
	struct nbmpi_comm *c; /* NULL: none */
	uint64_t *fallbacks;
} lasts[NBMPI_KINDS] __attribute__((tls_model("initial-exec")));
static uint32_t gone; /* number of communicators freed so far */

static bool is_last(MPI_Comm comm, enum nbmpi_kind kind)
{
	return lasts[kind].c && lasts[kind].comm == comm &&
	       lasts[kind].gone == __atomic_load_n(&gone, __ATOMIC_RELAXED);
}

static int on_delete(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm;
	(void)keyval;
	(void)extra;
	__atomic_fetch_add(&gone, 1, __ATOMIC_RELAXED);
	if (world.ready)
		nbmpi_comm_close(value);
	return MPI_SUCCESS;
}

static int no_memory(MPI_Comm comm)
{
	PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
	return MPI_ERR_NO_MEM;
}

/* Makes the state of a communicator. MPI_SUCCESS, or an error after a call of its error handler. */
static int comm_open(MPI_Comm comm, enum nbmpi_kind kind, struct nbmpi_comm **out)
{
	int rank, size, inter, rc;

	PMPI_Comm_rank(comm, &rank);
	PMPI_Comm_size(comm, &size);
	PMPI_Comm_test_inter(comm, &inter);
	*out = nbmpi_comm_open(from_comm(comm), (uint32_t)rank, (uint32_t)size, inter, kind);
	if (!*out)
		return no_memory(comm);
	rc = PMPI_Comm_set_attr(comm, world.keyval[kind], *out);
	if (rc != MPI_SUCCESS)
		nbmpi_comm_close(*out);
	return rc;
}

/* Returns the state of a communicator, as comm_open. MPI reports an invalid communicator. */
static int comm_of(MPI_Comm comm, enum nbmpi_kind kind, struct nbmpi_comm **out)
{
	int found, rc;

	if (is_last(comm, kind)) {
		*out = lasts[kind].c;
		return MPI_SUCCESS;
	}
	rc = PMPI_Comm_get_attr(comm, world.keyval[kind], out, &found);
	if (rc == MPI_SUCCESS && !found)
		rc = comm_open(comm, kind, out);
	if (rc != MPI_SUCCESS)
		return rc;
	lasts[kind].comm = comm;
	lasts[kind].gone = __atomic_load_n(&gone, __ATOMIC_RELAXED);
	lasts[kind].c = *out;
	lasts[kind].fallbacks = nbmpi_comm_fallbacks(*out);
	return MPI_SUCCESS;
}

/* True if the MPI itself runs all barriers, or allreduces, of the communicator; then counts one. */
static bool by_mpi(MPI_Comm comm, enum nbmpi_kind kind)
{
	if (!is_last(comm, kind) || !lasts[kind].fallbacks)
		return false;
	nbmpi_bump(lasts[kind].fallbacks);
	return true;
}

/* Call it after a call that may have changed the path of c. */
static void path_look(struct nbmpi_comm *c, enum nbmpi_kind kind)
{
	if (lasts[kind].c == c) /* an error handler may have called another one */
		lasts[kind].fallbacks = nbmpi_comm_fallbacks(c);
}

/* --- failures -------------------------------------------------------------------------------- */

/* Calls the error handler of the communicator, unless MPI has called it. */
static int pmpi_failed(MPI_Comm comm, const struct nbmpi_comm *c, int rc)
{
	int code = nbmpi_comm_code(c);

	if (rc == NBMPI_FAILED)
		PMPI_Comm_call_errhandler(comm, code);
	return code;
}

/* --- MPI's own names ------------------------------------------------------------------------- */

int MPI_Barrier(MPI_Comm comm)
{
	struct nbmpi_comm *c;
	int rc;

	if (!world.ready || comm == MPI_COMM_NULL || by_mpi(comm, NBMPI_BARRIERS))
		return PMPI_Barrier(comm);
	rc = comm_of(comm, NBMPI_BARRIERS, &c);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = nbmpi_barrier(c);
	path_look(c, NBMPI_BARRIERS);
	if (rc < 0)
		return pmpi_failed(comm, c, rc);
	if (rc == NBMPI_BY_MPI) {
		rc = PMPI_Barrier(comm);
		if (rc == MPI_SUCCESS) /* an error handler may have freed the communicator */
			nbmpi_barrier_by_mpi(c);
	}
	return rc;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct nbmpi_comm *c;
	int rc;

	if (world.ready)
		pmpi_request_drain();
	if (!world.ready || comm == MPI_COMM_NULL || by_mpi(comm, NBMPI_BARRIERS))
		return PMPI_Ibarrier(comm, request);
	rc = comm_of(comm, NBMPI_BARRIERS, &c);
	if (rc != MPI_SUCCESS)
		return rc;
	if (nbmpi_comm_offloaded(c, NULL))
		rc = pmpi_request_start(c, comm, NULL, NULL, request);
	else if (nbmpi_ibarrier(c, NULL) == NBMPI_BY_MPI)
		rc = PMPI_Ibarrier(comm, request);
	else
		rc = NBMPI_FAILED;
	return rc < 0 ? pmpi_failed(comm, c, rc) : rc;
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct nbar_value value;
	struct nbmpi_comm *c;
	int rc;

	if (!world.ready || comm == MPI_COMM_NULL || count <= 0 || !start.config.allreduce ||
	    !nbmpi_value_take(&value, in, out, (size_t)count, type, op) ||
	    by_mpi(comm, NBMPI_ALLREDUCES))
		return PMPI_Allreduce(in, out, count, type, op, comm);
	rc = comm_of(comm, NBMPI_ALLREDUCES, &c);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = nbmpi_allreduce(c, &value);
	path_look(c, NBMPI_ALLREDUCES);
	if (rc < 0)
		return pmpi_failed(comm, c, rc);
	if (rc == 0)
		nbmpi_value_give(&value, out);
	if (rc == NBMPI_BY_MPI) {
		rc = PMPI_Allreduce(in, out, count, type, op, comm);
		if (rc == MPI_SUCCESS) /* an error handler may have freed the communicator */
			nbmpi_barrier_by_mpi(c);
	}
	return rc;
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
		   MPI_Comm comm, MPI_Request *request)
{
	struct nbar_value value;
	struct nbmpi_comm *c;
	int rc;

	if (world.ready)
		pmpi_request_drain();
	if (!world.ready || comm == MPI_COMM_NULL || count <= 0 || !start.config.allreduce ||
	    !nbmpi_value_take(&value, in, out, (size_t)count, type, op) ||
	    by_mpi(comm, NBMPI_ALLREDUCES))
		return PMPI_Iallreduce(in, out, count, type, op, comm, request);
	rc = comm_of(comm, NBMPI_ALLREDUCES, &c);
	if (rc != MPI_SUCCESS)
		return rc;
	if (nbmpi_comm_offloaded(c, &value))
		rc = pmpi_request_start(c, comm, &value, out, request);
	else if (nbmpi_iallreduce(c, &value, NULL) == NBMPI_BY_MPI)
		rc = PMPI_Iallreduce(in, out, count, type, op, comm, request);
	else
		rc = NBMPI_FAILED;
	return rc < 0 ? pmpi_failed(comm, c, rc) : rc;
}

#if MPI_VERSION >= 4
int MPI_Iallreduce_c(const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op,
		     MPI_Comm comm, MPI_Request *request)
{
	return count > 0 && count <= (MPI_Count)NBAR_VALUE_MAX
		       ? MPI_Iallreduce(in, out, (int)count, type, op, comm, request)
		       : PMPI_Iallreduce_c(in, out, count, type, op, comm, request);
}

int MPI_Allreduce_c(const void *in, void *out, MPI_Count count, MPI_Datatype type, MPI_Op op,
		    MPI_Comm comm)
{
	return count > 0 && count <= (MPI_Count)NBAR_VALUE_MAX
		       ? MPI_Allreduce(in, out, (int)count, type, op, comm)
		       : PMPI_Allreduce_c(in, out, count, type, op, comm);
}
#endif

/* --- begin and end --------------------------------------------------------------------------- */

static uint64_t host_of_node(void *node, uint32_t rank)
{
	return nbmpi_node_host((const struct nbmpi_node *)node + rank);
}

/* Finds the hosts of the world. False: no memory. world.host stays NULL if the terms differ. */
static bool number_hosts(struct nbmpi_node *node, const struct nbmpi_node *self)
{
	uint32_t *host = nbmpi_hosts_number(host_of_node, node, (uint32_t)world.size);
	bool good, same = true;

	world.mates = malloc((size_t)world.size * sizeof(*world.mates));
	good = host && world.mates;
	for (int r = 0; r < world.size && good; r++) {
		host[r] = 2 * host[r] + (node[r].has_nic != 0);
		same = same && node[r].terms == self->terms;
		if (nbmpi_node_same(&node[r], self))
			world.mates[world.nmate++] = r;
	}
	if (good && same)
		world.host = host;
	else
		free(host);
	return good;
}

/* Gathers the places of all processes of the world. MPI cannot cancel this, and a rank without this
 * library never takes part. So a rank that waits for long prints a message. */
static int nodes_exchange(const struct nbmpi_node *self, struct nbmpi_node *all)
{
	const int size = (int)sizeof(*self);
	double since = PMPI_Wtime();
	MPI_Request request;
	int done = 0, rc;

	rc = PMPI_Iallgather(self, size, MPI_BYTE, all, size, MPI_BYTE, MPI_COMM_WORLD, &request);
	while (rc == MPI_SUCCESS && !done) {
		rc = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (!done && since > 0 && PMPI_Wtime() - since > TELL_S) {
			nbmpi_say("MPI_Init waits for ranks that run without this "
				  "library: preload it into all ranks of the job, or none");
			since = 0;
		}
		sched_yield();
	}
	return rc;
}

/* A mask of the bits that any tag may have. */
static int tag_bits(void)
{
	int *most, found, bits = 1;

	PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
	while (found && bits < *most / 2)
		bits = 2 * bits + 1;
	return bits;
}

/* Before MPI begins. */
static void pmpi_configure(void)
{
	nbmpi_config_env(&start.config);
	nbmpi_config_pin(&start.config);
}

/* After MPI has begun, with result rc: all processes of the world learn the places of the others.
 */
static int pmpi_begin(int rc)
{
	struct nbmpi_node self, *node;
	struct nbmpi_comm *c;
	int rank;

	if (rc != MPI_SUCCESS)
		return rc;
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &world.size);
	start.rank = (uint32_t)rank;
	start.ops = &ops;
	start.config.allreduce &= nbmpi_value_is_of_host();
	nbmpi_config_check(&start.config, start.rank);
	nbmpi_node_self(&start.config, start.rank, &self);
	node = malloc((size_t)world.size * sizeof(*node));
	if (!node)
		return no_memory(MPI_COMM_WORLD);
	rc = nodes_exchange(&self, node);
	if (rc == MPI_SUCCESS && !number_hosts(node, &self))
		rc = no_memory(MPI_COMM_WORLD);
	free(node);
	for (int kind = 0; kind < NBMPI_KINDS && rc == MPI_SUCCESS; kind++)
		rc = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &world.keyval[kind],
					     NULL);
	if (rc == MPI_SUCCESS)
		rc = PMPI_Add_error_class(&world.error_class);
	if (rc == MPI_SUCCESS)
		rc = PMPI_Comm_group(MPI_COMM_WORLD, &world.group);
	if (rc == MPI_SUCCESS)
		rc = PMPI_Comm_dup(MPI_COMM_WORLD, &world.comm);
	if (rc == MPI_SUCCESS)
		rc = PMPI_Comm_set_errhandler(world.comm, MPI_ERRORS_RETURN);
	if (rc == MPI_SUCCESS)
		rc = pmpi_request_begin();
	if (rc != MPI_SUCCESS)
		return rc;
	world.tags = tag_bits();
	nbmpi_start(&start);
	world.ready = true;
	return comm_of(MPI_COMM_WORLD, NBMPI_BARRIERS, &c); /* here, not in the first barrier */
}

int MPI_Init(int *argc, char ***argv)
{
	pmpi_configure();
	return pmpi_begin(PMPI_Init(argc, argv));
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	pmpi_configure();
	return pmpi_begin(PMPI_Init_thread(argc, argv, required, provided));
}

int MPI_Finalize(void)
{
	if (world.ready) {
		/* From here on, ignore attributes that MPI finds on its own communicators. */
		world.ready = false;
		nbmpi_stop();
		pmpi_request_end();
		PMPI_Group_free(&world.group);
		for (int kind = 0; kind < NBMPI_KINDS; kind++)
			PMPI_Comm_free_keyval(&world.keyval[kind]);
		PMPI_Comm_free(&world.comm);
		free(world.host);
		free(world.mates);
		world.host = NULL;
	}
	return PMPI_Finalize();
}

void nbar_mpi_counters(struct nbmpi_counters *out)
{
	nbmpi_counters_read(out);
}
