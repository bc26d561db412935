/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat.h - differences between releases of Open MPI: 4.1, 5.0 and main.
 *
 * The rest of the component is the same for all of them. Built and tested with 4.1.
 */
#ifndef COLL_NBAR_COMPAT_H
#define COLL_NBAR_COMPAT_H

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/mca/coll/coll.h"

/* Version of the component's struct. */
#if defined(MCA_COLL_BASE_VERSION_3_0_0) /* main */
#define COLL_NBAR_BASE_VERSION MCA_COLL_BASE_VERSION_3_0_0
#elif defined(MCA_COLL_BASE_VERSION_2_4_0) /* 5.0 */
#define COLL_NBAR_BASE_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else /* 4.1 */
#define COLL_NBAR_BASE_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif

/* Functions for the records that processes publish when they start. */
#if OMPI_MAJOR_VERSION >= 5
#include "opal/mca/pmix/pmix-internal.h"
#define COLL_NBAR_GLOBAL PMIX_GLOBAL
#else
#include "opal/mca/pmix/pmix.h"
#define COLL_NBAR_GLOBAL OPAL_PMIX_GLOBAL
#endif

/* main finds the component by this definition. */
#if defined(MCA_BASE_COMPONENT_INIT)
#define COLL_NBAR_INIT MCA_BASE_COMPONENT_INIT(ompi, coll, nbar)
#else
#define COLL_NBAR_INIT
#endif

#endif
