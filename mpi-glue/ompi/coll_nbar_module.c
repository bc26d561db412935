/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nbar_module.c - communicators of Open MPI, their barriers and allreduces; communicators may
 * be revoked (ULFM, User-Level Failure Mitigation).
 *
 * Called by Open MPI for each communicator, and for each barrier and allreduce on it. Each process
 * has published its place in MPI_Init, so the hosts of a communicator are known without a message.
 */
#include "coll_nbar.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "mpi_value.h"
#include "node.h"

/* What this process knows about the other processes of its job. */
static struct {
	pthread_mutex_t lock;
	struct nbmpi_node self;
	uint32_t nrank;
	uint8_t *seen; /* by rank: contents of its record; 0: not looked up yet, or no memory */
} job = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define SEEN 1u
#define HAS_NIC 2u /* the process has found a NIC */
#define IS_HERE 4u /* the process is on this host */

#define COMPONENT &mca_coll_nbar_component.super.collm_version

uint32_t coll_nbar_rank(void)
{
	return OMPI_PROC_MY_NAME->vpid;
}

int coll_nbar_publish(const struct nbmpi_config *config)
{
	int rc;

	nbmpi_node_self(config, coll_nbar_rank(), &job.self);
	OPAL_MODEX_SEND(rc, COLL_NBAR_GLOBAL, COMPONENT, &job.self, sizeof(job.self));
	return rc;
}

/* --- hosts --------------------------------------------------------------------------------- */

/* Makes room for another rank of the job. */
static bool module_grow(uint32_t rank)
{
	uint32_t n = job.nrank ? job.nrank : 64;
	uint8_t *wider;

	while (n <= rank)
		n *= 2;
	wider = realloc(job.seen, n);
	if (!wider)
		return false;
	memset(wider + job.nrank, 0, n - job.nrank);
	job.seen = wider;
	job.nrank = n;
	return true;
}

/*
 * Reads the record that a process has published. All members get the same result.
 *
 * MPI_Init has brought all records to this process, so no transfer can fail. With a lazy exchange
 * this call fetches the record, and waits without a limit. If the record is never published, the
 * call hangs, but two processes never get different answers.
 */
static enum nbmpi_why read_record(opal_process_name_t name, struct nbmpi_node *out)
{
	enum nbmpi_why why = NBMPI_WHY_foreign;
	void *data = NULL;
	size_t size = 0;
	int rc;

	if (name.jobid != OMPI_PROC_MY_NAME->jobid)
		return why;
	OPAL_MODEX_RECV(rc, COMPONENT, &name, &data, &size);
	if (rc == OMPI_SUCCESS && data && size == sizeof(*out)) {
		memcpy(out, data, sizeof(*out));
		why = out->terms == job.self.terms ? NBMPI_WHY_none : NBMPI_WHY_terms;
	}
	free(data);
	return why;
}

/* Returns the contents of a process's record, or the reason why the record cannot be used. With
 * job.lock. All members must get the same result, so lack of memory changes nothing: this then
 * reads the record again. */
static enum nbmpi_why look_up(opal_process_name_t name, uint8_t *out)
{
	bool ours = name.jobid == OMPI_PROC_MY_NAME->jobid;
	bool room = ours && (name.vpid < job.nrank || module_grow(name.vpid));
	struct nbmpi_node node;
	enum nbmpi_why why;

	*out = room ? job.seen[name.vpid] : 0;
	if (*out)
		return NBMPI_WHY_none;
	why = read_record(name, &node);
	if (why != NBMPI_WHY_none)
		return why;
	*out = SEEN | (node.has_nic ? HAS_NIC : 0) |
	       (nbmpi_node_same(&node, &job.self) ? IS_HERE : 0);
	if (!room)
		return NBMPI_WHY_none;
	job.seen[name.vpid] = *out;
	return NBMPI_WHY_none;
}

/* --- functions that the core needs from MPI ------------------------------------------------ */

static enum nbmpi_why meet(void *mpi, uint32_t rank)
{
	ompi_communicator_t *comm = mpi;
	enum nbmpi_why why;
	uint8_t seen;

	pthread_mutex_lock(&job.lock);
	why = look_up(ompi_group_get_proc_name(comm->c_local_group, (int)rank), &seen);
	pthread_mutex_unlock(&job.lock);
	return why;
}

/* True if a rank is on this host. Does not look up processes of other nodes: Open MPI knows the
 * processes of its own node from the start. */
static bool is_mate(ompi_communicator_t *comm, int rank)
{
	ompi_proc_t *proc = ompi_group_get_proc_ptr_raw(comm->c_local_group, rank);
	uint8_t seen;

	return !ompi_proc_is_sentinel(proc) && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags) &&
	       look_up(proc->super.proc_name, &seen) == NBMPI_WHY_none && seen & IS_HERE;
}

/* True if the first rank has found no NIC when MPI started: all ranks know it without a vote. If
 * its record cannot be used, the vote decides. */
static bool module_lacks_nic(ompi_communicator_t *comm)
{
	uint8_t seen;

	return look_up(ompi_group_get_proc_name(comm->c_local_group, 0), &seen) == NBMPI_WHY_none &&
	       !(seen & HAS_NIC);
}

static uint32_t *coll_mates(void *mpi, uint32_t *n, enum nbmpi_why *why)
{
	ompi_communicator_t *comm = mpi;
	uint32_t *mate = NULL, *wider;
	bool poor = false;
	uint8_t seen;

	pthread_mutex_lock(&job.lock);
	*why = look_up(*OMPI_PROC_MY_NAME, &seen);
	*n = 0;
	for (int r = 0; r < ompi_comm_size(comm) && *why == NBMPI_WHY_none; r++) {
		if (!is_mate(comm, r))
			continue;
		wider = poor ? NULL : realloc(mate, (*n + 1) * sizeof(*mate));
		poor = !wider;
		if (wider) {
			mate = wider;
			mate[*n] = (uint32_t)r;
		}
		(*n)++;
	}
	if (*why == NBMPI_WHY_none && *n < (uint32_t)ompi_comm_size(comm) && module_lacks_nic(comm))
		*why = NBMPI_WHY_nic;
	pthread_mutex_unlock(&job.lock);
	if (!poor)
		return mate;
	free(mate);
	return NULL;
}

/* Does not take job.lock: MPI's progress, which may hold it, also calls this function. */
static uint64_t coll_host(void *mpi, uint32_t rank)
{
	ompi_communicator_t *comm = mpi;
	struct nbmpi_node node;
	opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, (int)rank);

	return read_record(name, &node) == NBMPI_WHY_none ? nbmpi_node_host(&node) : 0;
}

/* Two tags of the MPI's own are enough: all ranks call the blocking collectives of a communicator
 * in the same order. */
static int coll_exchange(void *mpi, uint32_t tag, struct nbmpi_message *message, uint32_t n)
{
	const int own = tag & 1 ? MCA_COLL_BASE_TAG_BARRIER : MCA_COLL_BASE_TAG_GATHER;
	ompi_communicator_t *comm = mpi;
	int rc = OMPI_SUCCESS;

	for (uint32_t i = 0; i < n && rc == OMPI_SUCCESS; i++) {
		struct nbmpi_message *m = &message[i];
		ompi_request_t *request = NULL;
		int rank = m->rank == NBAR_RANK_NONE ? MPI_ANY_SOURCE : (int)m->rank;

		rc = m->in ? MCA_PML_CALL(
				     irecv(m->data, m->size, MPI_BYTE, rank, own, comm, &request))
			   : MCA_PML_CALL(isend(m->data, m->size, MPI_BYTE, rank, own,
						MCA_PML_BASE_SEND_STANDARD, comm, &request));
		m->request = request;
	}
	for (uint32_t i = 0; i < n && rc == OMPI_SUCCESS; i++) {
		ompi_request_t *request = message[i].request;

		rc = ompi_request_wait(&request, MPI_STATUS_IGNORE);
	}
	return rc;
}

static int coll_sum(void *mpi, struct nbmpi_sum *sum)
{
	const struct nbmpi_channel at = { .exchange = coll_exchange, .mpi = mpi };
	ompi_communicator_t *comm = mpi;

	return nbmpi_tree_sum(&at, (uint32_t)ompi_comm_rank(comm), (uint32_t)ompi_comm_size(comm),
			      meet, sum);
}

static int module_error_code(const char *text)
{
	char string[MPI_MAX_ERROR_STRING];
	int class, code;

	snprintf(string, sizeof(string), "%s", text);
	if (PMPI_Add_error_class(&class) != MPI_SUCCESS ||
	    PMPI_Add_error_code(class, &code) != MPI_SUCCESS)
		return MPI_ERR_OTHER;
	PMPI_Add_error_string(code, string);
	return code;
}

/* The result of opal_progress differs between releases. */
static void progress(void)
{
	opal_progress();
}

/* MPIX_Comm_revoke: other ranks may never call the barriers that this rank waits for. */
static int revoked(void *mpi)
{
#if OPAL_ENABLE_FT_MPI
	if (ompi_comm_is_revoked(mpi))
		return MPI_ERR_REVOKED;
#endif
	(void)mpi;
	return MPI_SUCCESS;
}

static const struct nbmpi_ops ops = {
	.mates = coll_mates,
	.host = coll_host,
	.sum = coll_sum,
	.exchange = coll_exchange,
	.progress = progress,
	.receive = coll_nbar_receive,
	.revoked = revoked,
	.error = module_error_code,
};

void coll_nbar_start(const struct nbmpi_config *config)
{
	const struct nbmpi_start start = {
		.config = *config,
		.ops = &ops,
		.rank = coll_nbar_rank(),
	};

	nbmpi_start(&start);
}

void coll_nbar_stop(void)
{
	coll_nbar_look_stop();
	coll_nbar_request_stop();
	nbmpi_stop();
	free(job.seen);
	job.seen = NULL;
	job.nrank = 0;
}

/* --- a communicator ------------------------------------------------------------------------ */

/* Returns the state of a communicator, and makes it at the first barrier or allreduce. NULL: no
 * memory. */
static struct nbmpi_comm *module_comm_of(mca_coll_nbar_module_t *module, ompi_communicator_t *comm,
					 enum nbmpi_kind kind)
{
	struct nbmpi_comm *c = module->comm[kind];

	if (!c) {
		c = nbmpi_comm_open(comm, (uint32_t)ompi_comm_rank(comm),
				    (uint32_t)ompi_comm_size(comm), OMPI_COMM_IS_INTER(comm), kind);
		module->comm[kind] = c;
	}
	return c;
}

static int module_barrier(ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
	mca_coll_nbar_module_t *module = (mca_coll_nbar_module_t *)base;
	struct nbmpi_comm *c;
	int rc;

	if (module->fallbacks[NBMPI_BARRIERS]) {
		nbmpi_bump(module->fallbacks[NBMPI_BARRIERS]);
		return module->barrier(comm, module->barrier_module);
	}
	c = module_comm_of(module, comm, NBMPI_BARRIERS);
	if (!c)
		return OMPI_ERR_OUT_OF_RESOURCE;
	switch (nbmpi_barrier(c)) {
	case 0:
		return OMPI_SUCCESS;
	case NBMPI_BY_MPI:
		module->fallbacks[NBMPI_BARRIERS] = nbmpi_comm_fallbacks(c);
		rc = module->barrier(comm, module->barrier_module);
		if (rc == OMPI_SUCCESS)
			nbmpi_barrier_by_mpi(c);
		return rc;
	}
	return nbmpi_comm_code(c);
}

static int module_ibarrier(ompi_communicator_t *comm, ompi_request_t **out,
			   mca_coll_base_module_t *base)
{
	mca_coll_nbar_module_t *module = (mca_coll_nbar_module_t *)base;
	ompi_request_t *request;
	struct nbmpi_comm *c;

	if (module->fallbacks[NBMPI_BARRIERS]) {
		nbmpi_bump(module->fallbacks[NBMPI_BARRIERS]);
		return module->ibarrier(comm, out, module->ibarrier_module);
	}
	c = module_comm_of(module, comm, NBMPI_BARRIERS);
	request = c ? coll_nbar_request_new(comm, NULL, NULL) : NULL;
	if (!request)
		return OMPI_ERR_OUT_OF_RESOURCE;
	switch (coll_nbar_request_start(request, c)) {
	case 0:
		*out = request;
		return OMPI_SUCCESS;
	case NBMPI_BY_MPI:
		return module->ibarrier(comm, out, module->ibarrier_module);
	}
	return nbmpi_comm_code(c);
}

static int module_allreduce(const void *in, void *out, int count, struct ompi_datatype_t *type,
			    struct ompi_op_t *op, ompi_communicator_t *comm,
			    mca_coll_base_module_t *base)
{
	mca_coll_nbar_module_t *module = (mca_coll_nbar_module_t *)base;
	uint64_t **fallbacks = &module->fallbacks[NBMPI_ALLREDUCES];
	struct nbar_value value;
	struct nbmpi_comm *c;
	int rc = NBMPI_BY_MPI;

	if (!nbmpi_value_take(&value, in, out, (size_t)count, type, op))
		return module->allreduce(in, out, count, type, op, comm, module->allreduce_module);
	if (*fallbacks) {
		nbmpi_bump(*fallbacks);
		return module->allreduce(in, out, count, type, op, comm, module->allreduce_module);
	}
	c = module_comm_of(module, comm, NBMPI_ALLREDUCES);
	if (!c)
		return OMPI_ERR_OUT_OF_RESOURCE;
	rc = nbmpi_allreduce(c, &value);
	if (rc < 0)
		return nbmpi_comm_code(c);
	if (rc == 0) {
		nbmpi_value_give(&value, out);
		return OMPI_SUCCESS;
	}
	*fallbacks = nbmpi_comm_fallbacks(c);
	rc = module->allreduce(in, out, count, type, op, comm, module->allreduce_module);
	if (rc == OMPI_SUCCESS)
		nbmpi_barrier_by_mpi(c);
	return rc;
}

/* Open MPI itself starts such allreduces when it makes communicators, and then not all ranks start
 * them in the same order among those of the program. */
static bool may_be_internal(const struct nbar_value *v)
{
	return v->count == 1 && v->type == NBAR_INT32 && (v->op == NBAR_MIN || v->op == NBAR_MAX);
}

static int module_iallreduce(const void *in, void *out, int count, struct ompi_datatype_t *type,
			     struct ompi_op_t *op, ompi_communicator_t *comm,
			     ompi_request_t **request, mca_coll_base_module_t *base)
{
	mca_coll_nbar_module_t *module = (mca_coll_nbar_module_t *)base;
	uint64_t *fallbacks = module->fallbacks[NBMPI_ALLREDUCES];
	ompi_request_t *ours;
	struct nbar_value value;
	struct nbmpi_comm *c;

	if (!nbmpi_value_take(&value, in, out, (size_t)count, type, op) || may_be_internal(&value))
		return module->iallreduce(in, out, count, type, op, comm, request,
					  module->iallreduce_module);
	if (fallbacks) {
		nbmpi_bump(fallbacks);
		return module->iallreduce(in, out, count, type, op, comm, request,
					  module->iallreduce_module);
	}
	c = module_comm_of(module, comm, NBMPI_ALLREDUCES);
	ours = c ? coll_nbar_request_new(comm, &value, out) : NULL;
	if (!ours)
		return OMPI_ERR_OUT_OF_RESOURCE;
	switch (coll_nbar_request_start(ours, c)) {
	case 0:
		*request = ours;
		return OMPI_SUCCESS;
	case NBMPI_BY_MPI:
		return module->iallreduce(in, out, count, type, op, comm, request,
					  module->iallreduce_module);
	}
	return nbmpi_comm_code(c);
}

/* Does in MPI_Init what would make the first barriers several times as long: makes the state of
 * MPI_COMM_WORLD, and looks up the records that the votes of its set-up need, those of this host
 * and of the neighbours of this rank in the tree of nbmpi_tree_sum. */
static void module_prepare(mca_coll_nbar_module_t *module, ompi_communicator_t *comm)
{
	uint32_t rank = (uint32_t)ompi_comm_rank(comm), size = (uint32_t)ompi_comm_size(comm), n;
	enum nbmpi_why why;

	module_comm_of(module, comm, NBMPI_BARRIERS);
	free(coll_mates(comm, &n, &why));
	for (uint32_t step = 1; step < size; step *= 2) {
		if ((rank ^ step) < size)
			meet(comm, rank ^ step);
		if (rank & step)
			break;
	}
}

/* Keeps the functions that would run without this component: they stay loaded while the component
 * may call them. */
static int module_enable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
	mca_coll_nbar_module_t *module = (mca_coll_nbar_module_t *)base;

	if (!comm->c_coll->coll_barrier || !comm->c_coll->coll_ibarrier ||
	    !comm->c_coll->coll_allreduce || !comm->c_coll->coll_iallreduce)
		return OMPI_ERR_NOT_FOUND;
	module->barrier = comm->c_coll->coll_barrier;
	module->barrier_module = comm->c_coll->coll_barrier_module;
	module->ibarrier = comm->c_coll->coll_ibarrier;
	module->ibarrier_module = comm->c_coll->coll_ibarrier_module;
	module->allreduce = comm->c_coll->coll_allreduce;
	module->allreduce_module = comm->c_coll->coll_allreduce_module;
	module->iallreduce = comm->c_coll->coll_iallreduce;
	module->iallreduce_module = comm->c_coll->coll_iallreduce_module;
	OBJ_RETAIN(module->barrier_module);
	OBJ_RETAIN(module->ibarrier_module);
	OBJ_RETAIN(module->allreduce_module);
	OBJ_RETAIN(module->iallreduce_module);
	if (comm == MPI_COMM_WORLD)
		module_prepare(module, comm);
	return OMPI_SUCCESS;
}

/* True if the program excludes this communicator. All members give the same answer. */
static bool unwanted(ompi_communicator_t *comm)
{
	bool enable = true;
	int found = 0;

	if (comm->super.s_info)
		opal_info_get_bool(comm->super.s_info, "nbar_enable", &enable, &found);
	return found && !enable;
}

mca_coll_base_module_t *coll_nbar_comm_query(ompi_communicator_t *comm, int *priority)
{
	mca_coll_nbar_module_t *module;

	/* A single rank waits for no other rank: Open MPI's own function is best. */
	if (!OMPI_COMM_IS_INTER(comm) && ompi_comm_size(comm) < 2)
		return NULL;
	if (unwanted(comm))
		return NULL;
	module = OBJ_NEW(mca_coll_nbar_module_t);
	if (!module)
		return NULL;
	module->super.coll_module_enable = module_enable;
	module->super.coll_barrier = module_barrier;
	module->super.coll_ibarrier = module_ibarrier;
	if (mca_coll_nbar_component.allreduce) {
		module->super.coll_allreduce = module_allreduce;
		module->super.coll_iallreduce = module_iallreduce;
	}
	*priority = mca_coll_nbar_component.priority;
	return &module->super;
}

static void module_construct(mca_coll_nbar_module_t *module)
{
	for (int kind = 0; kind < NBMPI_KINDS; kind++) {
		module->comm[kind] = NULL;
		module->fallbacks[kind] = NULL;
	}
	module->barrier_module = NULL;
	module->ibarrier_module = NULL;
	module->allreduce_module = NULL;
	module->iallreduce_module = NULL;
}

/* Until module_enable there is none. */
static void module_release(mca_coll_base_module_t *module)
{
	if (module)
		OBJ_RELEASE(module);
}

static void module_destruct(mca_coll_nbar_module_t *module)
{
	for (int kind = 0; kind < NBMPI_KINDS; kind++)
		if (module->comm[kind])
			nbmpi_comm_close(module->comm[kind]);
	module_release(module->barrier_module);
	module_release(module->ibarrier_module);
	module_release(module->allreduce_module);
	module_release(module->iallreduce_module);
}

OBJ_CLASS_INSTANCE(mca_coll_nbar_module_t, mca_coll_base_module_t, module_construct,
		   module_destruct);
