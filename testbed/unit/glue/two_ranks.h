/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * two_ranks.h - an offloaded communicator of two ranks of one host, without an MPI and without a
 * NIC. The test plays rank 1.
 */
#ifndef NBAR_TEST_TWO_RANKS_H
#define NBAR_TEST_TWO_RANKS_H

#include "comm_internal.h"
#include "unit/unit.h"

static inline struct nbmpi_comm *two_ranks_open(void)
{
	struct nbmpi_comm *c = nbmpi_comm_open(NULL, 0, 2, false, NBMPI_BARRIERS);
	const size_t line = _Alignof(struct nbmpi_memory);
	size_t size = sizeof(*c->memory) + 2 * sizeof(c->memory->mate[0]);

	assert_non_null(c);
	size = (size + line - 1) / line * line; /* as aligned_alloc wants it */
	c->memory = aligned_alloc(line, size);
	assert_non_null(c->memory);
	memset(c->memory, 0, size);
	assert_int_equal(nbar_process_team_init(&c->memory->procs, 2), 0);
	c->path = NBMPI_OFFLOADED;
	c->nhost = 1;
	c->nlocal = 2;
	return c;
}

static inline void two_ranks_close(struct nbmpi_comm *c)
{
	free(c->memory);
	c->memory = NULL;
	nbmpi_comm_close(c);
	assert_null(nbmpi_self.comm); /* it is freed at once: no request uses it */
}

#endif
