/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_mpi.c - starts the experiments that are MPI programs: with the words of --mpirun, or with
 * the installed Open MPI, one rank per processor.
 */
#include "report.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* Paths from the folder of this program: in the build folder, and where nbar is installed. */
static const char *const programs[] = { "nbar-mpi-bench-openmpi",
					"../libexec/nbar/nbar-mpi-bench-openmpi" };
static const char *const components[] = { "components/mca_coll_nbar.so",
					  "../lib/openmpi/mca_coll_nbar.so" };

/* The folder of this program. */
static bool own_folder(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);

	out[n > 0 ? n : 0] = '\0';
	if (n <= 0)
		return false;
	*strrchr(out, '/') = '\0';
	return true;
}

/* The first of two paths that exists, relative to the folder of this program. */
static bool find_file(const char *const name[2], char *out, size_t size)
{
	char folder[PATH_MAX / 2];

	if (!own_folder(folder, sizeof(folder)))
		return false;
	for (int i = 0; i < 2; i++) {
		snprintf(out, size, "%s/%s", folder, name[i]);
		if (!access(out, R_OK))
			return true;
	}
	return false;
}

static bool in_path(const char *program)
{
	const char *path = getenv("PATH");
	char at[PATH_MAX];

	while (path && *path) {
		size_t n = strcspn(path, ":");

		snprintf(at, sizeof(at), "%.*s/%s", (int)n, path, program);
		if (n && !access(at, X_OK))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

static const char *find_mpirun(void)
{
	return in_path("mpirun.openmpi") ? "mpirun.openmpi" : in_path("mpirun") ? "mpirun" : NULL;
}

const char *report_mpi_missing(const struct report_options *opt)
{
	char path[PATH_MAX];

	if (opt->mpirun)
		return NULL;
	if (!find_mpirun())
		return "there is no mpirun here";
	if (!find_file(programs, path, sizeof(path)))
		return "nbar was built without Open MPI";
	return NULL;
}

/* One rank per processor, but at least two: a single rank would wait for no other rank. */
static int ranks_here(void)
{
	cpu_set_t cpus;
	int n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 2 : CPU_COUNT(&cpus);

	return n < 2 ? 2 : n > REPORT_RANKS_MAX ? REPORT_RANKS_MAX : n;
}

/* Settings of Open MPI; does not change settings of the caller. */
static void set_open_mpi(void)
{
	char path[PATH_MAX + 16];

	setenv("OMPI_MCA_coll_nbar_enable", "1", 0);
	/* If it is neither here nor there it is in Open MPI's own folder. */
	if (find_file(components, path, PATH_MAX)) {
		strcpy(strrchr(path, '/'), ":SYS_DEFAULT");
		setenv("OMPI_MCA_mca_base_component_path", path, 0);
	}
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
	setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
}

int report_mpi_begin(const struct report_options *opt, char **argv, int room)
{
	static char np[] = "-np", ranks[16], self[PATH_MAX];
	char *words = opt->mpirun ? strdup(opt->mpirun) : NULL, *save = NULL;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int argc = 0;

	self[n > 0 ? n : 0] = '\0';
	for (char *w = words ? strtok_r(words, " ", &save) : NULL; w && argc < room - 1;
	     w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	if (!words) {
		set_open_mpi();
		snprintf(ranks, sizeof(ranks), "%d", ranks_here());
		argv[argc++] = strdup(find_mpirun());
		argv[argc++] = np;
		argv[argc++] = ranks;
	}
	argv[argc++] = self;
	return argc;
}
