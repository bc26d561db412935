/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nbar_look.c - the functions by which a program looks for a message, and does not wait.
 *
 * Programs expect that their first look after a barrier finds a message that was sent before it. A
 * barrier of NICs receives no message of Open MPI, so a pass of Open MPI's progress has to follow
 * it. A pass costs system calls: as much time as a barrier of two hosts. So a barrier owes its pass
 * to the next look that finds nothing: MPI_Iprobe, MPI_Improbe and the tests of requests look
 * first, and make one pass after that. The functions here call them again, once for each pass that
 * is owed. (Open MPI's own vprotocol replaces the same pointers.)
 *
 * Other operations of the program need progress, too. So barriers still make passes themselves: for
 * at most 1 / PASS_SHARE of the time, but one in PASS_MOST_NS.
 */
#include "coll_nbar.h"

#include "nbar_host.h"

#define PASS_SHARE 16u /* times as long as a pass, until a barrier makes the next one */
#define PASS_MOST_NS UINT64_C(1000000)
#define OWED_MAX 16u /* a pass takes some 30 messages of each other rank */

/* Not used while several threads may call MPI. */
static struct {
	bool installed;
	unsigned owed;    /* passes */
	uint64_t next_ns; /* when a barrier makes a pass itself */
	mca_pml_base_module_iprobe_fn_t iprobe;
	mca_pml_base_module_improbe_fn_t improbe;
	ompi_request_fns_t request;
} look;

/* True: the look, which has found nothing and made a pass, shall be repeated. */
static bool look_repeats(int rc, bool found)
{
	if (rc != OMPI_SUCCESS || found || look.owed == 0)
		return false;
	look.owed--;
	return true;
}

static int look_iprobe(int rank, int tag, struct ompi_communicator_t *comm, int *matched,
		       ompi_status_public_t *status)
{
	int rc;

	do
		rc = look.iprobe(rank, tag, comm, matched, status);
	while (look_repeats(rc, *matched));
	return rc;
}

static int look_improbe(int rank, int tag, struct ompi_communicator_t *comm, int *matched,
			struct ompi_message_t **message, ompi_status_public_t *status)
{
	int rc;

	do
		rc = look.improbe(rank, tag, comm, matched, message, status);
	while (look_repeats(rc, *matched));
	return rc;
}

static int look_test(ompi_request_t **request, int *complete, ompi_status_public_t *status)
{
	int rc;

	do
		rc = look.request.req_test(request, complete, status);
	while (look_repeats(rc, *complete));
	return rc;
}

static int look_test_any(size_t n, ompi_request_t **request, int *index, int *complete,
			 ompi_status_public_t *status)
{
	int rc;

	do
		rc = look.request.req_test_any(n, request, index, complete, status);
	while (look_repeats(rc, *complete));
	return rc;
}

static int look_test_all(size_t n, ompi_request_t **request, int *complete,
			 ompi_status_public_t *status)
{
	int rc;

	do
		rc = look.request.req_test_all(n, request, complete, status);
	while (look_repeats(rc, *complete));
	return rc;
}

static int look_test_some(size_t n, ompi_request_t **request, int *ncomplete, int *index,
			  ompi_status_public_t *status)
{
	int rc;

	do
		rc = look.request.req_test_some(n, request, ncomplete, index, status);
	while (look_repeats(rc, *ncomplete != 0));
	return rc;
}

#if MCA_ompi_pml_DIRECT_CALL /* MPI_Iprobe does not use the pointers */
static bool look_install(void)
{
	return false;
}
#else
/* False: Open MPI was not built for it. */
static bool look_install(void)
{
	look.iprobe = mca_pml.pml_iprobe;
	look.improbe = mca_pml.pml_improbe;
	look.request = ompi_request_functions;
	mca_pml.pml_iprobe = look_iprobe;
	mca_pml.pml_improbe = look_improbe;
	ompi_request_functions.req_test = look_test;
	ompi_request_functions.req_test_any = look_test_any;
	ompi_request_functions.req_test_all = look_test_all;
	ompi_request_functions.req_test_some = look_test_some;
	look.installed = true;
	return true;
}
#endif

void coll_nbar_receive(void)
{
	uint64_t begin, cost;

	if (COLL_NBAR_THREADS || !(look.installed || look_install())) {
		look.owed = 0;
		opal_progress();
		return;
	}
	begin = nbar_now_ns();
	if (begin < look.next_ns) {
		look.owed += look.owed < OWED_MAX;
		return;
	}
	opal_progress();
	cost = PASS_SHARE * (nbar_now_ns() - begin);
	look.next_ns = begin + (cost < PASS_MOST_NS ? cost : PASS_MOST_NS);
}

/* Open MPI may unload the component, so none of its functions may stay. */
void coll_nbar_look_stop(void)
{
	if (!look.installed)
		return;
	look.installed = false;
	if (mca_pml.pml_iprobe == look_iprobe)
		mca_pml.pml_iprobe = look.iprobe;
	if (mca_pml.pml_improbe == look_improbe)
		mca_pml.pml_improbe = look.improbe;
	if (ompi_request_functions.req_test == look_test)
		ompi_request_functions.req_test = look.request.req_test;
	if (ompi_request_functions.req_test_any == look_test_any)
		ompi_request_functions.req_test_any = look.request.req_test_any;
	if (ompi_request_functions.req_test_all == look_test_all)
		ompi_request_functions.req_test_all = look.request.req_test_all;
	if (ompi_request_functions.req_test_some == look_test_some)
		ompi_request_functions.req_test_some = look.request.req_test_some;
}
