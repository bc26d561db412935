/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile.c - `mpirun nbar-lab profile`: the profile of a cluster, measured by messages of the MPI.
 * See nbar-lab-profile(1) for the quantities, as Meyer and Elster define them.
 *
 * A program of its own, built once with each MPI. No two ranks may have the same host name, because
 * programs search the profile by host.
 */
#include "profile.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "experiment.h"
#include "option.h"
#include "profile_rounds.h"
#include "stats.h"
#include "tool.h"

#define SIZES 21u /* messages of 1 to 2^20 bytes */
#define MORE 32u  /* messages in a row */
#define TRIPS_MAX 10000u

enum { OPT_OUTPUT = OPTION_SUBCOMMAND, OPT_HOSTS };

static const struct option long_options[] = {
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ "iterations", required_argument, NULL, 'i' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct measure {
	const char *output, *hosts;
	uint32_t trips; /* round trips; the figure is their median */
	int rank, size;
	double *sample;
	char *bytes;   /* of the largest message */
	double *o, *l; /* of this rank, by the other rank */
	double self;
};

static void profile_usage(void)
{
	fputs("usage: mpirun [...] nbar-lab profile --output FILE [OPTION]...\n"
	      "Measures the cost of a message, and of a further message, between every two\n"
	      "ranks, by messages of the MPI. Start one rank per host.\n\n"
	      "  --output FILE     the profile\n"
	      "  --hosts LIST      names of the ranks' hosts (the output of uname -n)\n"
	      "  -i, --iterations N  round trips per measurement; the median counts (25)\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
	      stdout);
}

static int profile_read_option(void *arg, int c, const char *value)
{
	struct measure *m = arg;

	if (c == 'i')
		return option_u32("--iterations", value, 1, TRIPS_MAX, &m->trips);
	if (c == OPT_OUTPUT)
		m->output = value;
	else
		m->hosts = value;
	return 0;
}

/* The median time of a round trip, in ns: n messages of this length to the other rank, and a
 * message of `back` bytes back. Both ranks must call it; only the first rank gets the time. */
static double round_trip(struct measure *m, int other, bool first, uint32_t n, int length, int back)
{
	for (uint32_t i = 0; i < m->trips; i++) {
		uint64_t begin = tool_now_ns();

		for (uint32_t k = 0; k < n && first; k++)
			PMPI_Send(m->bytes, length, MPI_BYTE, other, 0, MPI_COMM_WORLD);
		for (uint32_t k = 0; k < n && !first; k++)
			PMPI_Recv(m->bytes, length, MPI_BYTE, other, 0, MPI_COMM_WORLD,
				  MPI_STATUS_IGNORE);
		if (first)
			PMPI_Recv(m->bytes, back, MPI_BYTE, other, 0, MPI_COMM_WORLD,
				  MPI_STATUS_IGNORE);
		else
			PMPI_Send(m->bytes, back, MPI_BYTE, other, 0, MPI_COMM_WORLD);
		m->sample[i] = (double)(tool_now_ns() - begin);
	}
	return stats_median(m->sample, m->trips);
}

/* O: the time of a message of 0 bytes on the line that fits all lengths. */
static void measure_o(struct measure *m, int other, bool first)
{
	double x[SIZES], y[SIZES], slope, o = 0;

	for (uint32_t i = 0; i < SIZES; i++) {
		x[i] = (double)(1u << i);
		y[i] = round_trip(m, other, first, 1, 1 << i, 1 << i) / 2;
	}
	if (first && stats_line(x, y, SIZES, &o, &slope))
		m->o[other] = o > 0 ? o / 1e9 : 0;
}

/* L: the slope of the line that fits 1 to MORE empty messages. */
static void measure_l(struct measure *m, int other, bool first)
{
	double x[MORE], y[MORE], intercept, l = 0;

	for (uint32_t i = 0; i < MORE; i++) {
		x[i] = i + 1;
		y[i] = round_trip(m, other, first, i + 1, 0, 0);
	}
	if (first && stats_line(x, y, MORE, &intercept, &l))
		m->l[other] = l > 0 ? l / 1e9 : 0;
}

/* O_ii: the time to start a request for each rank, where no request sends anything. */
static void measure_self(struct measure *m)
{
	MPI_Request *request = tool_alloc((size_t)m->size, sizeof(MPI_Request));
	MPI_Status *status = tool_alloc((size_t)m->size, sizeof(MPI_Status));

	for (int i = 0; i < m->size; i++)
		PMPI_Send_init(m->bytes, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
			       &request[i]);
	for (uint32_t i = 0; i < m->trips; i++) {
		uint64_t begin = tool_now_ns();

		PMPI_Startall(m->size, request);
		PMPI_Waitall(m->size, request, status);
		m->sample[i] = (double)(tool_now_ns() - begin);
	}
	m->self = stats_median(m->sample, m->trips) / 1e9;
	for (int i = 0; i < m->size; i++)
		PMPI_Request_free(&request[i]);
	free(request);
	free(status);
}

/* Measures in rounds of pairs that share no rank. O takes both directions of a link as equally
 * fast, because it is half a round trip; L does not. */
static void profile_measure_all(struct measure *m)
{
	uint32_t n = (uint32_t)m->size, rounds = n > 1 ? n - 1 + n % 2 : 0;

	measure_self(m);
	for (uint32_t round = 0; round < rounds; round++) {
		int other = (int)profile_partner(n, round, (uint32_t)m->rank);

		PMPI_Barrier(MPI_COMM_WORLD);
		if (other == m->rank)
			continue;
		measure_o(m, other, m->rank < other);
		measure_o(m, other, m->rank > other);
		measure_l(m, other, m->rank < other);
		measure_l(m, other, m->rank > other);
	}
}

/* The name of this rank's host: empty if --hosts has too few names. */
static void name_host(const struct measure *m, char name[PROFILE_NAME_MAX])
{
	const char *at = m->hosts;

	memset(name, 0, PROFILE_NAME_MAX);
	if (!at) {
		gethostname(name, PROFILE_NAME_MAX - 1);
		return;
	}
	for (int i = 0; i < m->rank && at; i++) {
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	if (at)
		snprintf(name, PROFILE_NAME_MAX, "%.*s", (int)strcspn(at, ","), at);
}

/* Rank 0 gets the names of all, and checks them. 0 or an exit code, at rank 0 alone. */
static int check_names(const struct measure *m, const char *all)
{
	for (int i = 0; i < m->size; i++) {
		const char *name = all + (size_t)i * PROFILE_NAME_MAX;

		if (!*name)
			return tool_usage("--hosts has no name for rank %d", i);
		for (int k = 0; k < i; k++)
			if (!strcmp(name, all + (size_t)k * PROFILE_NAME_MAX))
				return tool_usage(
					"ranks %d and %d are on host %s: start one rank per host "
					"(mpirun --map-by node), or name them with --hosts",
					k, i, name);
	}
	return 0;
}

static struct profile *make_profile(const struct measure *m, const char *names)
{
	struct profile *p = profile_new((uint32_t)m->size, (uint32_t)m->size);
	time_t now = time(NULL);
	char text[MPI_MAX_LIBRARY_VERSION_STRING + 80], library[MPI_MAX_LIBRARY_VERSION_STRING];
	int length;
	struct tm tm;

	if (!p) {
		tool_error("no memory for the profile");
		MPI_Abort(MPI_COMM_WORLD, TOOL_FAILED);
		abort();
	}
	for (int i = 0; i < m->size; i++)
		p->name[i] = strdup(names + (size_t)i * PROFILE_NAME_MAX);
	PMPI_Get_library_version(library, &length);
	library[strcspn(library, ",\n")] = '\0';
	snprintf(text, sizeof(text), "mpirun nbar-lab profile, %s, medians of %u round trips",
		 library, m->trips);
	p->how = strdup(text);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	p->when = strdup(text);
	return p;
}

/* Rank 0 gathers the rows of all and writes the file. An exit code; 0 at ranks other than 0. */
static int write_all(const struct measure *m, struct output *out, const char *names)
{
	struct profile *p = m->rank ? NULL : make_profile(m, names);
	int n = m->size, r;

	PMPI_Gather(m->o, n, MPI_DOUBLE, p ? p->o : NULL, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	PMPI_Gather(m->l, n, MPI_DOUBLE, p ? p->l : NULL, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	PMPI_Gather(&m->self, 1, MPI_DOUBLE, p ? p->self : NULL, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	if (!p)
		return 0;
	r = output_begin(out);
	if (!r)
		r = profile_write(p, out->file) ? TOOL_FAILED : 0;
	profile_free(p);
	return output_close(out, r == 0) | r;
}

static int mpi_profile_run(struct measure *m)
{
	char name[PROFILE_NAME_MAX], *names = tool_alloc((size_t)m->size, PROFILE_NAME_MAX);
	struct output out;
	int r = 0;

	name_host(m, name);
	PMPI_Gather(name, PROFILE_NAME_MAX, MPI_CHAR, names, PROFILE_NAME_MAX, MPI_CHAR, 0,
		    MPI_COMM_WORLD);
	if (m->rank == 0) {
		r = check_names(m, names);
		r = r ? r : output_open(&out, "--output", m->output);
	}
	PMPI_Bcast(&r, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (!r) {
		m->sample = tool_alloc(m->trips, sizeof(*m->sample));
		m->bytes = tool_alloc(1u << (SIZES - 1), 1);
		m->o = tool_alloc((size_t)m->size, sizeof(*m->o));
		m->l = tool_alloc((size_t)m->size, sizeof(*m->l));
		profile_measure_all(m);
		r = write_all(m, &out, names);
		free(m->sample);
		free(m->bytes);
		free(m->o);
		free(m->l);
		PMPI_Bcast(&r, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	free(names);
	return r;
}

static int profile_measure(int argc, char **argv)
{
	struct measure m = { .trips = 25 };
	bool help;
	int r;

	MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &m.size);
	tool_begin("nbar-lab profile");
	tool_quiet(m.rank != 0);
	r = option_all(argc, argv, 1, ":i:h", long_options, profile_read_option, &m, &help);
	if (help && m.rank == 0)
		profile_usage();
	if (!r && !help && !m.output)
		r = tool_usage("name a file for the profile: --output FILE");
	return r || help ? r : mpi_profile_run(&m);
}

int main(int argc, char **argv)
{
	int r;

	tool_json_begin();
	MPI_Init(NULL, NULL);
	r = profile_measure(argc, argv);
	MPI_Finalize();
	return tool_end(r);
}
