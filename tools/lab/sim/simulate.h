/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate.h - the options of `nbar-lab simulate`, and what its files share.
 */
#ifndef NBAR_TOOLS_SIM_SIMULATE_H
#define NBAR_TOOLS_SIM_SIMULATE_H

#include "experiment.h"
#include "sim.h"

#define SIMULATE_LIST_MAX 64u
#define SIMULATE_BARRIERS_MAX 1000000u

struct simulate_options {
	uint32_t members[SIMULATE_LIST_MAX], nmembers;
	char alg[SIMULATE_LIST_MAX][NBAR_NAME_MAX];
	uint32_t nalg;
	struct sim_setup setup; /* members and plans are set for each run */
	const char *profile;    /* path of a profile with measured costs, or NULL */
	const char *write_goal; /* path, or NULL */
	struct experiment_options files;
};

/* 0, or an exit code after a message. */
int simulate_options_parse(int argc, char **argv, struct simulate_options *opt, bool *help);
void simulate_usage(FILE *to);

/* The costs of a profile, in the form of sim_net_options, for a number of members. */
struct profile;
struct simulate_costs {
	struct profile *profile;
	double *o, *l;
	sim_time call; /* time of a barrier that sends nothing */
};

/* The costs of a named topology, sampled, as a profile: for SIMULATE_TUNED. 0, or an exit code
 * after a message. */
int simulate_topology_profile(const struct sim_net_options *net, uint32_t members,
			      struct profile **out);

/* Reads the file. 0, or an exit code after a message. */
int simulate_profile_read(const char *path, struct profile **out);

/* The first `members` hosts of the profile. */
int simulate_costs_begin(struct simulate_costs *c, struct profile *p, uint32_t members);
void simulate_costs_end(struct simulate_costs *c);

/* The plans that `nbar-lab tune` composes for these hosts. */
int simulate_compose(const struct profile *p, uint32_t members, struct sim_plans *out);
#define SIMULATE_TUNED "tuned"

#endif
