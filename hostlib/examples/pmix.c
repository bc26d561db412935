/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix.c - barriers in a job whose launcher speaks PMIx, without MPI:
 *
 *	mpirun -n 4 ./pmix n0 1000       # NIC BARRIERS; srun and prterun do as well
 *
 * Build it by: cc pmix.c $(pkg-config --cflags --libs nbar pmix) -o pmix
 */
#include <stdio.h>
#include <stdlib.h>

#include <nbar_pmix.h>

static int pmix_fail(const char *what, const char *why)
{
	fprintf(stderr, "pmix: %s: %s\n", what, why);
	return 1;
}

int main(int argc, char **argv)
{
	struct nbar_group_attr attr = { .struct_size = sizeof(attr) };
	struct nbar_endpoint mine, *all;
	struct nbar_port *port;
	struct nbar_group *group;
	pmix_proc_t self;
	pmix_status_t rc;

	if (argc != 3)
		return pmix_fail("usage", "pmix NIC BARRIERS");
	rc = nbar_pmix_begin(&self, &attr.rank, &attr.size);
	if (rc != PMIX_SUCCESS)
		return pmix_fail("cannot join the job", PMIx_Error_string(rc));
	all = calloc(attr.size, sizeof(*all));
	if (!all)
		return pmix_fail("endpoint addresses", "no memory");
	if (nbar_open(argv[1], &port) < 0 || nbar_group_open(port, &attr, &group, &mine) < 0)
		return pmix_fail("open", nbar_error());
	rc = nbar_pmix_exchange(&self, "example", group, &mine, all);
	if (rc != PMIX_SUCCESS)
		return pmix_fail("cannot exchange endpoint addresses", PMIx_Error_string(rc));
	if (nbar_group_connect(group, all) < 0)
		return pmix_fail("connect", nbar_error());
	for (int i = atoi(argv[2]); i > 0; i--)
		if (nbar_barrier(group) < 0)
			return pmix_fail("barrier", nbar_error());
	printf("rank %u of %u: %s barriers\n", attr.rank, attr.size, argv[2]);
	nbar_close(port);
	free(all);
	PMIx_Finalize(NULL, 0);
	return 0;
}
