/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * glue.c - checks whether nbar runs the barriers of this program, and reads its settings: from the
 * counters of the PMPI library and the environment, or from the variables of the Open MPI
 * component.
 *
 * It is called before and after the measured barriers, never between them.
 */
#include "bench.h"

#include <dlfcn.h>
#include <string.h>

const char *const mpib_glue_name[] = {
	[MPIB_NO_GLUE] = "none",
	[MPIB_PMPI] = "PMPI library",
	[MPIB_COMPONENT] = "component coll/nbar",
};

typedef void (*read_fn)(struct nbmpi_counters *);

static read_fn library(void)
{
	read_fn read = NULL;

	*(void **)&read = dlsym(RTLD_DEFAULT, "nbar_mpi_counters");
	return read;
}

static bool pvar_index(const char *name, int *out)
{
	return MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_GENERIC, out) == MPI_SUCCESS;
}

static uint64_t pvar_read(MPI_T_pvar_session session, const char *name)
{
	MPI_T_pvar_handle handle;
	unsigned long long value = 0;
	int index, count;

	if (!pvar_index(name, &index) ||
	    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS)
		return 0;
	MPI_T_pvar_read(session, handle, &value);
	MPI_T_pvar_handle_free(session, &handle);
	return value;
}

static void component_counters(struct nbmpi_counters *out)
{
	MPI_T_pvar_session session;

	if (MPI_T_pvar_session_create(&session) != MPI_SUCCESS)
		return;
	out->by_nic = pvar_read(session, "coll_nbar_barriers_by_nic");
	out->by_host = pvar_read(session, "coll_nbar_barriers_by_host");
	out->fallback = pvar_read(session, "coll_nbar_barriers_by_mpi");
	out->allreduces_by_nic = pvar_read(session, "coll_nbar_allreduces_by_nic");
	out->allreduces_by_mpi = pvar_read(session, "coll_nbar_allreduces_by_mpi");
	out->comms = pvar_read(session, "coll_nbar_communicators");
#define WHY(name, level, text) \
	out->why[NBMPI_WHY_##name] = pvar_read(session, "coll_nbar_by_mpi_" #name);
	NBMPI_WHYS(WHY)
#undef WHY
	MPI_T_pvar_session_free(&session);
}

enum mpib_glue mpib_glue_find(void)
{
	enum mpib_glue glue = library() ? MPIB_PMPI : MPIB_NO_GLUE;
	int threads, index;

	if (glue != MPIB_NO_GLUE || MPI_T_init_thread(MPI_THREAD_SINGLE, &threads) != MPI_SUCCESS)
		return glue;
	if (pvar_index("coll_nbar_barriers_by_nic", &index))
		glue = MPIB_COMPONENT;
	MPI_T_finalize();
	return glue;
}

void mpib_glue_counters(enum mpib_glue glue, struct nbmpi_counters *out)
{
	int threads;

	*out = (struct nbmpi_counters){ 0 };
	switch (glue) {
	case MPIB_NO_GLUE:
		break;
	case MPIB_PMPI:
		library()(out);
		break;
	case MPIB_COMPONENT:
		if (MPI_T_init_thread(MPI_THREAD_SINGLE, &threads) != MPI_SUCCESS)
			break;
		component_counters(out);
		MPI_T_finalize();
		break;
	}
}

/* The value of a parameter of Open MPI; all 0 if Open MPI has no such parameter. */
union cvar {
	char text[4096]; /* Open MPI gives 2048 as the length of every text */
	uint64_t number;
};

static void cvar_read(const char *name, union cvar *out)
{
	MPI_T_cvar_handle handle;
	int index, count;

	memset(out, 0, sizeof(*out));
	if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS ||
	    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
		return;
	if ((size_t)count < sizeof(out->text))
		MPI_T_cvar_read(handle, out);
	MPI_T_cvar_handle_free(&handle);
}

/* Reads the settings of the component, which has already refused bad values. */
static void component_config(struct nbmpi_config *out)
{
	union cvar value;
	int threads;

	nbmpi_config_init(out);
	if (MPI_T_init_thread(MPI_THREAD_SINGLE, &threads) != MPI_SUCCESS)
		return;
	cvar_read("coll_nbar_algorithm", &value);
	if (value.text[0])
		snprintf(out->alg, sizeof(out->alg), "%.*s", (int)sizeof(out->alg) - 1, value.text);
	cvar_read("coll_nbar_nic", &value);
	snprintf(out->nic, sizeof(out->nic), "%.*s", (int)sizeof(out->nic) - 1, value.text);
	cvar_read("coll_nbar_wait", &value);
	(void)nbmpi_wait_read("coll_nbar_wait", value.text, &out->wait);
	cvar_read("coll_nbar_where", &value);
	(void)nbmpi_where_read("coll_nbar_where", value.text, &out->where);
	MPI_T_finalize();
}

void mpib_glue_config(enum mpib_glue glue, uint32_t rank, struct nbmpi_config *out)
{
	if (glue == MPIB_COMPONENT)
		component_config(out);
	else
		nbmpi_config_env(out);
	/* The user has named method lib: only an invalid NIC disables it. */
	out->enable = true;
	nbmpi_config_check(out, rank);
}
