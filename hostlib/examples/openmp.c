/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * openmp.c - OpenMP threads that meet in a team.
 *
 * Usage: openmp [KIND [NIC]]. KIND is how the threads of a team meet: sense-reverse, mcs,
 * tournament, dissemination:N. Without a NIC, the threads are one team. With a NIC, they are two
 * teams; each team is a member of a group of two, on a port of its own, like a process;
 * between nodes, exchange the endpoint addresses as hello.c does.
 * Build it by: cc -fopenmp openmp.c $(pkg-config --cflags --libs nbar) -o openmp
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nbar.h>

#define TEAM 4u
#define ROUNDS 1000u

static struct nbar_team *team[2];
static struct nbar_port *port[2];
static struct nbar_group *group[2];

/* Two members in one process pass their endpoint addresses in memory. */
static int connect_both(const char *nic)
{
	struct nbar_endpoint endpoint[2];

	for (unsigned i = 0; i < 2; i++) {
		struct nbar_group_attr attr = { .rank = i, .size = 2 };

		if (nbar_open(nic, &port[i]) < 0 ||
		    nbar_group_open(port[i], &attr, &group[i], &endpoint[i]) < 0)
			return -1;
	}
	for (unsigned i = 0; i < 2; i++)
		if (nbar_group_connect(group[i], endpoint) < 0)
			return -1;
	return 0;
}

/* Allocates and prepares a team. The size of its memory depends on the kind. */
static int openmp_prepare(unsigned i, const char *kind)
{
	struct nbar_team_attr attr = { .size = TEAM, .kind = kind, .group = group[i] };
	size_t bytes;

	if (nbar_team_size(kind, TEAM, &bytes) < 0)
		return -1;
	team[i] = aligned_alloc(128, bytes);
	if (!team[i])
		return -1;
	return nbar_team_init(team[i], bytes, &attr);
}

/* A barrier in phases: the thread could compute until test returns 1. */
static int meet_later(struct nbar_team *mine, const char *kind, unsigned me)
{
	uint32_t ticket;
	int rc;

	if (strcmp(kind, "sense-reverse") != 0)
		return nbar_team_barrier(mine, me);
	rc = nbar_team_post(mine, me, &ticket);
	if (rc == 0)
		rc = nbar_team_test(mine, ticket);
	return rc == 0 ? nbar_team_wait(mine, ticket) : rc;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "sense-reverse";
	unsigned nteam = argc > 2 ? 2 : 1, failed = 0;
	unsigned long at[2 * TEAM] = { 0 }, early = 0;
	double start, took = 0;

	if (argc > 2 && connect_both(argv[2]) < 0) {
		fprintf(stderr, "openmp: %s\n", nbar_error());
		return 1;
	}
	for (unsigned i = 0; i < nteam; i++) {
		if (openmp_prepare(i, kind) < 0) {
			fprintf(stderr, "openmp: %s\n", nbar_error());
			return 1;
		}
	}
	omp_set_dynamic(0);
	start = omp_get_wtime();
#pragma omp parallel num_threads((int)(nteam * TEAM)) reduction(+ : early, failed)
	{
		unsigned me = (unsigned)omp_get_thread_num();
		struct nbar_team *mine = team[me / TEAM];

		for (unsigned i = 1; i <= ROUNDS && !failed; i++) {
			at[me] = i;
			failed += nbar_team_barrier(mine, me % TEAM) < 0;
			for (unsigned t = 0; t < nteam * TEAM; t++)
				early += at[t] < i;
			/* No thread goes on before all threads have looked. */
			failed += meet_later(mine, kind, me % TEAM) < 0;
		}
		if (failed)
			fprintf(stderr, "openmp: %s\n", nbar_error());
	}
	took = omp_get_wtime() - start;
	printf("%s: %u threads in %u team%s, %u barriers, %.2f us each; %lu came early\n", kind,
	       nteam * TEAM, nteam, nteam > 1 ? "s" : "", 2 * ROUNDS, took * 1e6 / (2 * ROUNDS),
	       early);
	nbar_close(port[0]);
	nbar_close(port[1]);
	free(team[0]);
	free(team[1]);
	return early || failed;
}
