/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle_predict.h - counts barriers, to predict how many of them nbar must have run.
 *
 * Included by the files of the MPI oracle that call barriers. Macros replace calls of MPI_Barrier
 * and MPI_Ibarrier by the functions here. A function pointer still points to the MPI's function;
 * calls through it are not counted.
 */
#ifndef TESTBED_MPI_ORACLE_PREDICT_H
#define TESTBED_MPI_ORACLE_PREDICT_H

#include "oracle.h"

void oracle_predict_begin(void);
int oracle_barrier(MPI_Comm comm);
int oracle_ibarrier(MPI_Comm comm, MPI_Request *request);
uint64_t oracle_predicted(void);

#define MPI_Barrier(comm) oracle_barrier(comm)
#define MPI_Ibarrier(comm, request) oracle_ibarrier(comm, request)

#endif
