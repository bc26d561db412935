/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nbar_last.c - performance variables of MPI_T that belong to a communicator: which ranks its
 * barriers have waited for.
 *
 * Called by Open MPI when a tool binds such a variable to a communicator, or reads it.
 */
#include "coll_nbar.h"

#include <stdlib.h>

enum field { BARRIERS, NS, MOST_NS };

/* A variable: one value for the communicator, or one for each rank. */
static const struct variable {
	const char *name, *text;
	enum field field;
	bool of_rank;
} variables[] = {
	{ "comm_barriers", "barriers of the communicator that the NIC of this host has completed",
	  BARRIERS, false },
	{ "comm_ns", "sum of their latencies", NS, false },
	{ "comm_most_ns", "the longest among those that the last_ variables count", MOST_NS,
	  false },
	{ "last_barriers",
	  "for each rank: barriers of the communicator whose last token, at this host, came from its host",
	  BARRIERS, true },
	{ "last_ns", "for each rank: sum of the latencies of those barriers", NS, true },
	{ "last_most_ns", "for each rank: the longest of those barriers", MOST_NS, true },
};

static unsigned long long field_of(const struct nbmpi_last *last, enum field field)
{
	switch (field) {
	case BARRIERS:
		return last->barriers;
	case NS:
		return last->ns;
	case MOST_NS:
		break;
	}
	return last->most_ns;
}

static int value_count(const struct variable *v, ompi_communicator_t *comm)
{
	return v->of_rank ? ompi_comm_size(comm) : 1;
}

/* Tells Open MPI how many values a variable has. */
static int notify(mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object, int *count)
{
	if (event == MCA_BASE_PVAR_HANDLE_BIND)
		*count = value_count(pvar->ctx, object);
	return OMPI_SUCCESS;
}

/* Reads the values; all are 0 if no NIC has run barriers of the communicator. */
static int read_last(const mca_base_pvar_t *pvar, void *value, void *object)
{
	const struct variable *v = pvar->ctx;
	ompi_communicator_t *comm = object;
	struct nbmpi_comm *c = coll_nbar_comm_find(comm);
	int n = value_count(v, comm), rc = 0;
	unsigned long long *out = value;
	struct nbmpi_last all = { .barriers = 0 }, *of;

	of = calloc((size_t)ompi_comm_size(comm), sizeof(*of));
	if (!of)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (c)
		rc = nbmpi_comm_last(c, &all, of);
	for (int r = 0; r < n; r++)
		out[r] = field_of(v->of_rank ? &of[r] : &all, v->field);
	free(of);
	return rc < 0 ? OMPI_ERROR : OMPI_SUCCESS;
}

void coll_nbar_last_register(void)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		mca_base_component_pvar_register(
			&mca_coll_nbar_component.super.collm_version, variables[i].name,
			variables[i].text, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_GENERIC,
			MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_MPI_COMM,
			MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_last,
			NULL, notify, (void *)(uintptr_t)&variables[i]);
}
