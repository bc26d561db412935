/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_bench.c - `nbar mpi-bench`: detects the MPI that has launched it, and executes the program
 * that is built with this MPI. Uses no MPI itself, so --help needs none.
 */
#include "tool.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

/* Variables with the rank that launchers set, and their MPI. The order matters: mpirun of Open MPI
 * also sets the last one. */
static const struct launcher {
	const char *rank, *mpi;
} launchers[] = {
	{ "OMPI_COMM_WORLD_RANK", "openmpi" },
	{ "PMI_RANK", "mpich" },
	{ "PMIX_RANK", "openmpi" },
};
#define NLAUNCHER (sizeof(launchers) / sizeof(launchers[0]))

static const struct launcher *find_launcher(void)
{
	for (size_t i = 0; i < NLAUNCHER; i++)
		if (getenv(launchers[i].rank))
			return &launchers[i];
	return NULL;
}

/* Executes the program beside this one, or the installed one. Returns only if there is none. */
static int become(const char *mpi, char **argv)
{
	static const char *const where[] = { "", "/../libexec/nbar" };
	char self[PATH_MAX / 2], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	if (n > 0)
		*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		snprintf(path, sizeof(path), "%s%s/nbar-mpi-bench-%s", self, where[i], mpi);
		execv(path, argv);
	}
	if (errno == ENOENT)
		tool_error("there is no nbar-mpi-bench-%s in %s or %s%s: build nbar where "
			   "mpicc.%s is",
			   mpi, self, self, where[1], mpi);
	else
		tool_error("cannot run %s: %s", path, strerror(errno));
	return TOOL_FAILED;
}

int tool_mpi_bench(int argc, char **argv)
{
	const struct launcher *launcher = find_launcher();
	struct mpib_options opt;
	bool help = false;
	int r;

	/* Wrong usage is for the program to say: a rank that ends before MPI begins takes the
	 * others with it, before they have said a word. */
	tool_quiet(launcher);
	r = mpib_options_parse(argc, argv, &opt, &help);
	tool_quiet(false);
	if (help && (!launcher || !strcmp(getenv(launcher->rank), "0")))
		mpib_usage(stdout);
	if (help || (r && !launcher))
		return r;
	if (!launcher && !opt.mpi)
		return tool_usage("no MPI has started this: run it by mpirun or mpiexec, as\n"
				  "  mpirun --mca coll_nbar_enable 1 -np 4 nbar mpi-bench\n"
				  "or name the MPI by --mpi");
	return become(opt.mpi ? opt.mpi : launcher->mpi, argv);
}
