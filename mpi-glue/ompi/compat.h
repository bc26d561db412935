/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat.h - all headers of Open MPI that the component needs, and the differences between
 * releases: 4.1, 5.0 and main. The makefile leaves the component out if this file does not compile.
 *
 * The rest of the component is the same for all releases. Built and tested with 4.1 and 5.0.
 */
#ifndef COLL_NBAR_COMPAT_H
#define COLL_NBAR_COMPAT_H

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/info.h"

/* Version of the component's struct. */
#if defined(MCA_COLL_BASE_VERSION_3_0_0) /* main */
#define COLL_NBAR_BASE_VERSION MCA_COLL_BASE_VERSION_3_0_0
#elif defined(MCA_COLL_BASE_VERSION_2_4_0) /* 5.0 */
#define COLL_NBAR_BASE_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else /* 4.1 */
#define COLL_NBAR_BASE_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif

/* Names of processes, and functions for the records that processes publish when they start. */
#if OMPI_MAJOR_VERSION >= 5
#include "ompi/runtime/ompi_rte.h"
#include "opal/mca/pmix/pmix-internal.h"
/* True: several threads may call MPI. */
#define COLL_NBAR_THREADS opal_using_threads()
#define COLL_NBAR_GLOBAL PMIX_GLOBAL
/* The type of a failed request: Open MPI calls the error handler of its communicator. */
#define COLL_NBAR_FAILED OMPI_REQUEST_COLL
#else
#include "ompi/mca/rte/rte.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/pmix/pmix.h"
/* opal_using_threads() holds with MPI_THREAD_FUNNELED, too. */
#define COLL_NBAR_THREADS ompi_mpi_thread_multiple
#define COLL_NBAR_GLOBAL OPAL_PMIX_GLOBAL
/* For all types but this one, 4.1 calls the handler of MPI_COMM_WORLD, which ends the program. */
#define COLL_NBAR_FAILED OMPI_REQUEST_PML
#endif

/* main finds the component by this definition. */
#if defined(MCA_BASE_COMPONENT_INIT)
#define COLL_NBAR_INIT MCA_BASE_COMPONENT_INIT(ompi, coll, nbar)
#else
#define COLL_NBAR_INIT
#endif

#endif
