/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_value.h - what an MPI's Allreduce gets, as the value of a barrier: for both glues.
 */
#ifndef NBMPI_MPI_VALUE_H
#define NBMPI_MPI_VALUE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "nbar_abi.h"

/* Called when the MPI runs. False: operands may be in the memory of a GPU, or are big-endian, so
 * the MPI runs all allreduces. */
bool nbmpi_value_is_of_host(void);

/*
 * Takes the operands of an allreduce. False: the MPI must run it. Decides by op, kind and size of
 * the type, and count: they are the same on all ranks. And by errors of this rank, which the MPI
 * reports at once.
 */
bool nbmpi_value_take(struct nbar_value *v, const void *in, const void *out, size_t count,
		      MPI_Datatype type, MPI_Op op);

/* Writes the elements of a value to the buffer of a program. */
void nbmpi_value_give(const struct nbar_value *v, void *out);

#endif
