/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launcher.c - see launcher.h.
 */
#include "launcher.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* For each MPI, the variable in which its launcher sets the rank. OMPI_COMM_WORLD_RANK is first,
 * because Open MPI's mpirun also sets PMIX_RANK. */
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

const char *launcher_mpi(void)
{
	const struct launcher *l = find_launcher();

	return l ? l->mpi : NULL;
}

bool launcher_is_first(void)
{
	const struct launcher *l = find_launcher();

	return !l || !strcmp(getenv(l->rank), "0");
}

int launcher_become(const char *name, const char *mpi, char **argv)
{
	static const char *const where[] = { "", "/../libexec/nbar" };
	char self[PATH_MAX / 2], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	if (n > 0)
		*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		snprintf(path, sizeof(path), "%s%s/%s-%s", self, where[i], name, mpi);
		execv(path, argv);
	}
	if (errno == ENOENT)
		tool_error("there is no %s-%s in %s or %s%s: build nbar where mpicc.%s is", name,
			   mpi, self, self, where[1], mpi);
	else
		tool_error("cannot run %s: %s", path, strerror(errno));
	return TOOL_FAILED;
}
