/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nbar.h - the Open MPI component coll/nbar: what its files share.
 *
 * coll_nbar_component.c: parameters, start and end. coll_nbar_module.c: communicators and their
 * barriers. coll_nbar_request.c: requests of nonblocking ones. All that knows NICs is behind
 * comm.h.
 */
#ifndef COLL_NBAR_H
#define COLL_NBAR_H

#include "compat.h"

#include "ompi/communicator/communicator.h"
#include "ompi/request/request.h"

#include "comm.h"

struct mca_coll_nbar_component_t {
	mca_coll_base_component_t super;
	bool enable;
	int priority, min_nodes, verbose;
	char *algorithm, *wait, *where, *nic;
};
OMPI_DECLSPEC extern struct mca_coll_nbar_component_t mca_coll_nbar_component;

/* A communicator. */
struct mca_coll_nbar_module_t {
	mca_coll_base_module_t super;
	struct nbmpi_comm *comm; /* NULL until its first barrier */
	/* What would have run before. */
	mca_coll_base_module_barrier_fn_t barrier;
	mca_coll_base_module_t *barrier_module;
	mca_coll_base_module_ibarrier_fn_t ibarrier;
	mca_coll_base_module_t *ibarrier_module;
};
OBJ_CLASS_DECLARATION(mca_coll_nbar_module_t);
typedef struct mca_coll_nbar_module_t mca_coll_nbar_module_t;

/* --- coll_nbar_module.c -------------------------------------------------------------------- */

/* Rank in MPI_COMM_WORLD. */
uint32_t coll_nbar_rank(void);

/* Publishes where this process is, before MPI_Init meets the others. OMPI_SUCCESS or an error. */
int coll_nbar_publish(const struct nbmpi_config *config);

/* Begins, once all have published; ends. */
void coll_nbar_start(const struct nbmpi_config *config);
void coll_nbar_stop(void);

mca_coll_base_module_t *coll_nbar_comm_query(ompi_communicator_t *comm, int *priority);

/* --- coll_nbar_request.c ------------------------------------------------------------------- */

/* A request for a barrier that is yet to begin: once it has, nothing may be missing any more. NULL:
 * no memory. */
ompi_request_t *coll_nbar_request_new(ompi_communicator_t *comm);

/* Begins it: as nbmpi_ibarrier. After other than 0 the request is gone. */
int coll_nbar_request_start(ompi_request_t *request, struct nbmpi_comm *c);

/* When no request is under way any more. */
void coll_nbar_request_stop(void);

#endif
