/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_pmix.h - exchanges endpoint addresses by PMIx, as job launchers offer it (srun, prterun,
 * Open MPI's mpirun).
 *
 * Header only, so that libnbar needs libc alone: compile and link with PMIx (pkg-config pmix).
 * Called when groups are made, by one thread. Functions return PMIX_SUCCESS or an error of PMIx;
 * PMIx_Error_string gives its text.
 */
#ifndef NBAR_PMIX_H
#define NBAR_PMIX_H

#include <pmix.h>
#include <stdio.h>
#include <string.h>

#include "nbar.h"

/* Finds this process in its job; the caller ends with PMIx_Finalize(NULL, 0). */
static inline pmix_status_t nbar_pmix_begin(pmix_proc_t *self, uint32_t *rank, uint32_t *size)
{
	pmix_proc_t job;
	pmix_value_t *value;
	pmix_status_t rc = PMIx_Init(self, NULL, 0);

	if (rc != PMIX_SUCCESS)
		return rc;
	PMIX_LOAD_PROCID(&job, self->nspace, PMIX_RANK_WILDCARD);
	rc = PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value);
	if (rc != PMIX_SUCCESS)
		return rc;
	*rank = self->rank;
	*size = value->data.uint32;
	PMIX_VALUE_RELEASE(value);
	return PMIX_SUCCESS;
}

/* Gets the value that a rank has published. */
static inline pmix_status_t nbar_pmix_get(const pmix_proc_t *self, const char *key, uint32_t rank,
					  struct nbar_endpoint *out)
{
	pmix_proc_t peer;
	pmix_value_t *value;
	pmix_status_t rc;

	PMIX_LOAD_PROCID(&peer, self->nspace, rank);
	rc = PMIx_Get(&peer, key, NULL, 0, &value);
	if (rc != PMIX_SUCCESS)
		return rc;
	if (value->type == PMIX_BYTE_OBJECT && value->data.bo.size == sizeof(*out))
		memcpy(out, value->data.bo.bytes, sizeof(*out));
	else
		rc = PMIX_ERR_TYPE_MISMATCH;
	PMIX_VALUE_RELEASE(value);
	return rc;
}

/*
 * Publishes the endpoint address of group g, and gets the addresses of the ranks that g needs. all
 * has `size` elements, by rank; those of other ranks stay as they are. All processes of the job
 * must call it. name: any text; a different text for each group.
 */
static inline pmix_status_t nbar_pmix_exchange(const pmix_proc_t *self, const char *name,
					       const struct nbar_group *g,
					       const struct nbar_endpoint *mine,
					       struct nbar_endpoint *all)
{
	pmix_key_t key;
	pmix_value_t value;
	const uint32_t *peer;
	int npeer = nbar_group_peers(g, &peer);
	pmix_status_t rc;

	snprintf(key, sizeof(key), "nbar.%s", name);
	PMIX_VALUE_CONSTRUCT(&value);
	value.type = PMIX_BYTE_OBJECT;
	value.data.bo.bytes = (char *)(uintptr_t)mine;
	value.data.bo.size = sizeof(*mine);
	rc = PMIx_Put(PMIX_GLOBAL, key, &value);
	if (rc == PMIX_SUCCESS)
		rc = PMIx_Commit();
	/* All addresses are published. Each process fetches only the addresses that it needs. */
	if (rc == PMIX_SUCCESS)
		rc = PMIx_Fence(NULL, 0, NULL, 0);
	for (int i = 0; i < npeer && rc == PMIX_SUCCESS; i++)
		rc = nbar_pmix_get(self, key, peer[i], &all[peer[i]]);
	return rc;
}

#endif
