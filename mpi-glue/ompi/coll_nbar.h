/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nbar.h - the Open MPI component coll/nbar: what its files share.
 *
 * coll_nbar_component.c: parameters, start and end. coll_nbar_module.c: communicators, their
 * barriers and allreduces. coll_nbar_request.c: requests of nonblocking ones. coll_nbar_look.c:
 * how a program looks for messages after a barrier. Only the code behind comm.h knows NICs.
 */
#ifndef COLL_NBAR_H
#define COLL_NBAR_H

#include "compat.h"

#include "comm.h"

struct mca_coll_nbar_component_t {
	mca_coll_base_component_t super;
	bool enable, allreduce;
	int priority, min_nodes, verbose;
	char *algorithm, *wait, *where, *nic;
};
OMPI_DECLSPEC extern struct mca_coll_nbar_component_t mca_coll_nbar_component;

/* A communicator. */
struct mca_coll_nbar_module_t {
	mca_coll_base_module_t super;
	/* By enum nbmpi_kind. */
	struct nbmpi_comm *comm[NBMPI_KINDS]; /* NULL until its first barrier, or allreduce */
	uint64_t *fallbacks[NBMPI_KINDS];     /* nbmpi_comm_fallbacks */
	/* The functions that would run without this component. */
	mca_coll_base_module_barrier_fn_t barrier;
	mca_coll_base_module_t *barrier_module;
	mca_coll_base_module_ibarrier_fn_t ibarrier;
	mca_coll_base_module_t *ibarrier_module;
	mca_coll_base_module_allreduce_fn_t allreduce;
	mca_coll_base_module_t *allreduce_module;
	mca_coll_base_module_iallreduce_fn_t iallreduce;
	mca_coll_base_module_t *iallreduce_module;
};
OBJ_CLASS_DECLARATION(mca_coll_nbar_module_t);
typedef struct mca_coll_nbar_module_t mca_coll_nbar_module_t;

/* --- coll_nbar_module.c -------------------------------------------------------------------- */

/* Rank in MPI_COMM_WORLD. */
uint32_t coll_nbar_rank(void);

/* Publishes the place of this process, before MPI_Init exchanges them. OMPI_SUCCESS or an error. */
int coll_nbar_publish(const struct nbmpi_config *config);

/* Start, after all processes have published; stop. */
void coll_nbar_start(const struct nbmpi_config *config);
void coll_nbar_stop(void);

mca_coll_base_module_t *coll_nbar_comm_query(ompi_communicator_t *comm, int *priority);

/* --- coll_nbar_look.c ---------------------------------------------------------------------- */

/* Call it after each offloaded barrier. Open MPI then receives the messages that were sent before
 * the barrier: now, or when the program looks for a message. */
void coll_nbar_receive(void);

/* Called before the component is unloaded. */
void coll_nbar_look_stop(void);

/* --- coll_nbar_request.c ------------------------------------------------------------------- */

/* Makes a request before its barrier begins: after the begin, nothing may fail for lack of memory.
 * value: of an allreduce, whose result goes to `out`; NULL: a barrier. NULL: no memory. */
ompi_request_t *coll_nbar_request_new(ompi_communicator_t *comm, const struct nbar_value *value,
				      void *out);

/* Begins the barrier or allreduce: as nbmpi_ibarrier. If the result is not 0, the request is gone.
 */
int coll_nbar_request_start(ompi_request_t *request, struct nbmpi_comm *c);

/* Called when no request is under way any more. */
void coll_nbar_request_stop(void);

#endif
