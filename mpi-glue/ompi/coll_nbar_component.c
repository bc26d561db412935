/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nbar_component.c - the component as Open MPI sees it: parameters, counters, start and end.
 *
 * Called by Open MPI in MPI_Init and MPI_Finalize. Does nothing unless it is enabled.
 */
#include "coll_nbar.h"

#include <stdio.h>
#include <string.h>

#include "mpi_value.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static int component_init_query(bool progress_threads, bool threads);

static struct nbmpi_config config;
static bool started;

struct mca_coll_nbar_component_t mca_coll_nbar_component = {
	.super = {
		.collm_version = {
			COLL_NBAR_BASE_VERSION,
			.mca_component_name = "nbar",
			MCA_BASE_MAKE_VERSION(component, NBAR_VERSION_MAJOR, NBAR_VERSION_MINOR, 0),
			.mca_open_component = component_open,
			.mca_close_component = component_close,
			.mca_register_component_params = component_register,
		},
		.collm_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
		.collm_init_query = component_init_query,
		.collm_comm_query = coll_nbar_comm_query,
	},
};
COLL_NBAR_INIT

#define SELF mca_coll_nbar_component
#define VERSION &mca_coll_nbar_component.super.collm_version

static void param(const char *name, const char *text, mca_base_var_type_t type, void *storage)
{
	mca_base_component_var_register(VERSION, name, text, type, NULL, 0, 0, OPAL_INFO_LVL_5,
					MCA_BASE_VAR_SCOPE_READONLY, storage);
}

/* Reads a performance variable: ctx is its offset in struct nbmpi_counters. */
static int counter_value(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
	struct nbmpi_counters counters;

	(void)object;
	nbmpi_counters_read(&counters);
	*(unsigned long long *)value =
		*(const uint64_t *)((const char *)&counters + (size_t)pvar->ctx);
	return OMPI_SUCCESS;
}

/* For variables of some classes, MPI_T starts to count when a tool makes a handle. These variables
 * are of another class: a tool always sees all barriers of the run. */
static void counter(const char *name, const char *text, size_t offset)
{
	mca_base_component_pvar_register(
		VERSION, name, text, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_GENERIC,
		MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
		MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, counter_value, NULL,
		NULL, (void *)offset);
}

static void register_counters(void)
{
	counter("barriers_by_nic", "barriers run by NICs", offsetof(struct nbmpi_counters, by_nic));
	counter("barriers_by_host", "barriers run by the ranks of one host, without a NIC",
		offsetof(struct nbmpi_counters, by_host));
	counter("barriers_by_mpi", "barriers run by other components, for any reason",
		offsetof(struct nbmpi_counters, fallback));
	counter("allreduces_by_nic", "allreduces of up to 256 bytes run by NICs",
		offsetof(struct nbmpi_counters, allreduces_by_nic));
	counter("allreduces_by_mpi", "allreduces of up to 256 bytes run by other components",
		offsetof(struct nbmpi_counters, allreduces_by_mpi));
	counter("failed", "communicators whose barriers or allreduces failed",
		offsetof(struct nbmpi_counters, failed));
	counter("communicators", "communicators that have called a barrier",
		offsetof(struct nbmpi_counters, comms));
#define WHY(name, level, text)                                                      \
	if (NBMPI_WHY_##name != NBMPI_WHY_none)                                     \
		counter("by_mpi_" #name, "barriers run by other components: " text, \
			offsetof(struct nbmpi_counters, why) +                      \
				NBMPI_WHY_##name * sizeof(uint64_t));
	NBMPI_WHYS(WHY)
#undef WHY
}

static int component_register(void)
{
	SELF.allreduce = true;
	SELF.priority = 95;
	SELF.min_nodes = 1;
	SELF.algorithm = "auto";
	SELF.wait = "auto";
	SELF.where = "auto";
	SELF.nic = "";
	param("enable", "Run barriers by NIC where it can be done (default: 0)",
	      MCA_BASE_VAR_TYPE_BOOL, &SELF.enable);
	param("allreduce", "Run small allreduces by NIC, too (default: 1)", MCA_BASE_VAR_TYPE_BOOL,
	      &SELF.allreduce);
	param("priority", "Priority among the collective components (default: 95)",
	      MCA_BASE_VAR_TYPE_INT, &SELF.priority);
	param("algorithm",
	      "Algorithm, a text for the NIC: see nbar(3); or tuned:FILE: see nbar-lab-tune(1) "
	      "(default: auto)",
	      MCA_BASE_VAR_TYPE_STRING, &SELF.algorithm);
	param("min_nodes",
	      "Communicators over fewer nodes are left to other components (default: 1)",
	      MCA_BASE_VAR_TYPE_INT, &SELF.min_nodes);
	param("wait", "How ranks wait: auto, spin, yield or block (default: auto)",
	      MCA_BASE_VAR_TYPE_STRING, &SELF.wait);
	param("where",
	      "nic: in the NIC of each node; host: in one inside a rank of each; auto: as nic, if it "
	      "is not slower than MPI's own barrier (default: auto)",
	      MCA_BASE_VAR_TYPE_STRING, &SELF.where);
	param("nic",
	      "NIC, or path of its socket; %r is the rank, %h the host (default: nbar's own)",
	      MCA_BASE_VAR_TYPE_STRING, &SELF.nic);
	param("verbose", "1: fall-backs and counters; 2: every communicator (default: 0)",
	      MCA_BASE_VAR_TYPE_INT, &SELF.verbose);
	register_counters();
	return OMPI_SUCCESS;
}

/* Open MPI has NULL for an empty text: the default counts then, as with MPICH. */
static const char *text_or(const char *text, const char *usual)
{
	return text ? text : usual;
}

/* False, and a line on stderr: a parameter is invalid. */
static bool read_params(void)
{
	const char *alg = text_or(SELF.algorithm, "auto"), *nic = text_or(SELF.nic, "");

	SELF.allreduce &= nbmpi_value_is_of_host();
	config.allreduce = SELF.allreduce;
	config.min_hosts = SELF.min_nodes > 0 ? (uint32_t)SELF.min_nodes : 0;
	config.verbose = SELF.verbose;
	if (!nbmpi_wait_read("coll_nbar_wait", text_or(SELF.wait, "auto"), &config.wait) ||
	    !nbmpi_where_read("coll_nbar_where", text_or(SELF.where, "auto"), &config.where))
		return false;
	if (strlen(alg) >= sizeof(config.alg) || strlen(nic) >= sizeof(config.nic)) {
		nbmpi_say("coll_nbar_algorithm or coll_nbar_nic is too long");
		return false;
	}
	strcpy(config.alg, alg);
	strcpy(config.nic, nic);
	return true;
}

/* With invalid parameters the component stays loaded, so that its counters show why no barrier is
 * offloaded. But the component is disabled, and its published terms tell this to all processes. */
static void configure(void)
{
	nbmpi_config_init(&config);
	config.enable = read_params();
	if (!config.enable) {
		nbmpi_say("all barriers are left to MPI until that is put right");
		return;
	}
	nbmpi_config_pin(&config);
	nbmpi_config_check(&config, coll_nbar_rank());
}

/* Called before the processes exchange their records: this process must publish its record now. All
 * processes see that a process without a record has no nbar. */
static int component_open(void)
{
	if (!SELF.enable)
		return OMPI_ERR_NOT_AVAILABLE;
	configure();
	return coll_nbar_publish(&config);
}

static int component_init_query(bool progress_threads, bool threads)
{
	(void)progress_threads;
	(void)threads;
	coll_nbar_start(&config);
	started = true;
	return OMPI_SUCCESS;
}

static int component_close(void)
{
	if (started)
		coll_nbar_stop();
	started = false;
	return OMPI_SUCCESS;
}
