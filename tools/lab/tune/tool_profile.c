/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_profile.c - `nbar-lab profile`: measures the cost of messages between every two hosts, and
 * writes the profile that `nbar-lab tune` and --alg tuned:FILE read.
 */
#include "tool_profile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "lab.h"
#include "launcher.h"
#include "option.h"
#include "profile.h"
#include "stats.h"

enum { OPT_OUTPUT = BENCH_OPT_MORE, OPT_QUANTILE, OPT_SAMPLE };

struct profile_options {
	const char *output;
	uint32_t percent; /* --percentile: of the barriers of a pair */
	bool sample;
};

static const struct option more_options[] = {
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "percentile", required_argument, NULL, OPT_QUANTILE },
	{ "sample", no_argument, NULL, OPT_SAMPLE },
	{ 0 },
};

static void tool_profile_usage(FILE *to)
{
	fputs("usage: nbar-lab profile [OPTION]...\n"
	      "Measures the cost of a message, and of a further message, between every two\n"
	      "hosts, by barriers of two. Pairs that share no host run at the same time.\n"
	      "nbar-lab tune, and --alg tuned:FILE, read the profile. Started by mpirun or\n"
	      "mpiexec, it measures messages of the MPI: mpirun nbar-lab profile --help.\n\n"
	      "  --output FILE     the profile\n"
	      "  --nodes N         number of hosts (8, or with --nic the number of NICs)\n"
	      "  --hosts LIST      names of the hosts of the NICs (as the NICs: n0,n1,...)\n"
	      "  --where nic|host  for barriers that NICs run, or hosts (nic)\n"
	      "  -i, --iterations N  measured barriers per pair (100)\n"
	      "  --percentile N    percentile of these barriers that is the time of the pair;\n"
	      "                    take a low N on a machine with other work (50: median)\n",
	      to);
	fputs("  --sample          measure each host only with the first host of each cluster\n",
	      to);
	bench_usage_common(to);
}

static int profile_read_more(void *arg, int c, const char *value)
{
	struct profile_options *o = arg;

	if (c == OPT_QUANTILE)
		return option_u32("--percentile", value, 1, 99, &o->percent);
	if (c == OPT_SAMPLE)
		o->sample = true;
	else
		o->output = value;
	return 0;
}

static const struct result_column columns[] = {
	{ "from", "", RESULT_TEXT, 0 },   { "to", "", RESULT_TEXT, 0 },
	{ "O", "us", RESULT_REAL, 2 },    { "L", "us", RESULT_REAL, 3 },
	{ "remark", "", RESULT_TEXT, 0 },
};
#define NCOLUMN (sizeof(columns) / sizeof(columns[0]))

static struct measure *measure_new(uint32_t n, const struct bench_options *opt)
{
	size_t cells = (size_t)n * n;
	size_t length = sizeof(struct measure) + (3 * cells + 2 * n) * sizeof(double) +
			n * (sizeof(struct nbar_endpoint) + 4 * sizeof(uint32_t));
	struct measure *m =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED) {
		tool_error("no memory for %u hosts: free some, and try again", n);
		return NULL;
	}
	*m = (struct measure){ .nodes = n,
			       .iters = opt->iters,
			       .warmup = opt->warmup,
			       .by_host = opt->where[0] == BENCH_HOST };
	m->self = (void *)(m + 1);
	m->alone = m->self + n;
	m->round = m->alone + n;
	m->more = m->round + cells;
	m->spread = m->more + cells;
	m->endpoint = (void *)(m->spread + cells);
	m->owner = (void *)(m->endpoint + n);
	m->classes.of = m->owner + n;
	m->classes.centre = m->classes.of + n;
	m->classes.second = m->classes.centre + n;
	return m;
}

/*
 * Computes O and L, the costs of messages from node i to node j, from the times: a round trip is a
 * call and two messages, a message is O + L, and each further message adds L.
 */
static void to_cost(const struct measure *m, uint32_t i, uint32_t j, double *o, double *l)
{
	uint32_t n = m->nodes;
	size_t at = (size_t)i * n + j, low = i < j ? at : (size_t)j * n + i;
	double further = (m->more[at] - m->round[low]) / (MEASURE_MORE - 1) / 1e9;

	*l = further > 0 ? further : 0;
	*o = (m->round[low] - m->alone[i]) / 2 / 1e9 - *l;
	*o = *o > 0 ? *o : 0;
}

static void to_costs(const struct measure *m, struct profile *p)
{
	for (uint32_t a = 0; a < p->classes; a++) {
		uint32_t i = m->sample ? m->classes.centre[a] : a;

		p->self[a] = m->self[i] / 1e9;
		if (!p->class_of)
			p->o[(size_t)a * p->classes + a] = p->self[a];
		for (uint32_t b = 0; b < p->classes; b++) {
			uint32_t j = m->sample ? m->classes.centre[b] : b;
			size_t at = (size_t)a * p->classes + b;

			if (a == b && p->class_of)
				j = m->classes.second[a];
			if (i != j)
				to_cost(m, i, j, &p->o[at], &p->l[at]);
		}
	}
	for (uint32_t i = 0; p->class_of && i < p->hosts; i++)
		p->class_of[i] = m->classes.of[i];
}

/* Gives nodes with the same owner the same number. If all owners differ, p->processor is NULL. */
static int to_processors(const struct measure *m, struct profile *p)
{
	bool shared = false;

	p->processor = calloc(m->nodes, sizeof(*p->processor));
	if (!p->processor)
		return TOOL_FAILED;
	for (uint32_t i = 0; i < m->nodes; i++) {
		while (m->owner[p->processor[i]] != m->owner[i])
			p->processor[i]++;
		shared |= p->processor[i] != i;
	}
	if (!shared) {
		free(p->processor);
		p->processor = NULL;
	}
	return 0;
}

static struct profile *profile_make_profile(const struct measure *m,
					    const struct bench_options *opt,
					    const struct bench_nics *nics)
{
	struct profile *p = profile_new(m->nodes, m->sample ? m->classes.n : m->nodes);
	time_t now = time(NULL);
	struct tm tm;
	char text[160];

	for (uint32_t i = 0; p && i < m->nodes; i++) {
		char name[PROFILE_NAME_MAX];

		bench_nic_name(opt, nics, i % nics->n, name, sizeof(name));
		p->name[i] = strdup(name);
		if (!p->name[i]) {
			profile_free(p);
			p = NULL;
		}
	}
	if (!p || to_processors(m, p)) {
		tool_error("no memory for the profile: free some, and try again");
		profile_free(p);
		return NULL;
	}
	to_costs(m, p);
	snprintf(text, sizeof(text),
		 "nbar-lab profile%s --where %s, wire %s, percentile %.0f of %u barriers a pair",
		 m->sample ? " --sample" : "", bench_where_name[opt->where[0]], opt->wire,
		 m->quantile * 100, m->iters);
	p->how = strdup(text);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	p->when = strdup(text);
	return p;
}

#define SPREAD 3.0 /* a pair is noisy if 90th percentile / median is above this */
#define APART 1.5  /* two directions differ if the ratio of their costs is above this */

/* Adds one row per pair, which says if the pair is noisy or its directions differ. */
static void add_rows(const struct measure *m, const struct profile *p, struct result *r)
{
	uint32_t noisy = 0, apart = 0;

	for (uint32_t i = 0; i < p->hosts; i++) {
		for (uint32_t j = 0; j < p->hosts; j++) {
			uint32_t low = i < j ? i : j, high = i < j ? j : i;
			double spread = m->spread[(size_t)low * m->nodes + high];
			double there = profile_l(p, i, j), back = profile_l(p, j, i);
			bool differ = there > APART * back && there > 1e-7;

			if (i == j)
				continue;
			result_text(r, p->name[i]);
			result_text(r, p->name[j]);
			result_real(r, profile_o(p, i, j) * 1e6);
			result_real(r, there * 1e6);
			result_text(r, spread > SPREAD ? "noisy"
				       : differ        ? "dearer than back"
						       : "");
			noisy += i < j && spread > SPREAD;
			apart += differ;
		}
	}
	result_note(r,
		    "%u of %u pairs are noisy: their 90th percentile is above %.0f medians; "
		    "measure them again on a quiet machine if there are many",
		    noisy, p->hosts * (p->hosts - 1) / 2, SPREAD);
	result_note(r, "%u links cost more than %.1f times as much as back", apart, APART);
	if (m->sample)
		result_note(r, "%u clusters; hosts of a cluster have the costs of its first hosts",
			    p->classes);
	result_note(r, "O: one message; L: a further message; a call that sends nothing: %.2f us",
		    profile_self(p, 0) * 1e6);
}

/* Runs an algorithm of the table among all nodes; see tool_profile_run. */
static int measure_flat(void *arg, struct nbfw_alg alg, uint32_t round, double *seconds)
{
	struct bench_session *s = arg;
	char name[NBAR_NAME_MAX];
	struct bench_figures figures;
	const struct bench_options *opt = s->opt;
	const struct bench_config config = { .nodes = opt->nodes[0],
					     .where = opt->where[0],
					     .alg = name,
					     .iters = opt->iters,
					     .warmup = opt->warmup,
					     .repetition = round };
	int r;

	nbfw_alg_name(alg, name);
	r = bench_session_run(s, &config, "", &figures);
	if (!r)
		*seconds = figures.metric[METRIC_P50] / 1e6;
	return r;
}

static int profile_run(struct bench_session *s, struct measure *m, const char *path,
		       struct result *result)
{
	struct bench_figures figures;
	const struct bench_config config = { .nodes = m->nodes,
					     .where = BENCH_NIC,
					     .alg = NBFW_ALG_SIGNAL_NAME,
					     .iters = 1,
					     .drive = tool_profile_drive };
	struct output out;
	struct profile *p;
	int r = output_open(&out, "--output", path);

	if (r)
		return r;
	r = bench_session_run(s, &config, "profile", &figures);
	p = r ? NULL : profile_make_profile(m, s->opt, &s->nics);
	r = p ? tool_profile_flats(p, m->quantile, measure_flat, s) : TOOL_FAILED;
	if (!r)
		r = tool_profile_fit(p);
	if (!r) {
		add_rows(m, p, result);
		r = output_begin(&out);
		if (!r)
			profile_write(p, out.file);
	}
	profile_free(p);
	return output_close(&out, r == 0) | r;
}

int tool_profile(int argc, char **argv)
{
	struct bench_options opt = bench_options_default();
	struct profile_options own = { .percent = 50 };
	const struct bench_extra_options more = { more_options, profile_read_more, &own };
	struct bench_session s;
	struct result *result;
	uint32_t most, named = 0;
	bool help;
	int r;

	if (launcher_mpi())
		return launcher_become("nbar-mpi-profile", launcher_mpi(), argv);
	opt.iters = 100;
	opt.warmup = 10;
	opt.nnodes = 0;
	opt.nwhere = 1;
	opt.sorted = true;
	opt.drivers = BENCH_DRIVERS_AUTO;
	r = bench_options_parse(argc, argv, &opt, &more, &help);
	if (option_ends(r, help, tool_profile_usage))
		return r;
	if (opt.nnodes == 0) {
		opt.nodes[0] = opt.nnic ? opt.nnic : 8;
		opt.nnodes = 1;
	}
	if (opt.nnodes != 1 || opt.nwhere != 1 || bench_in_process(opt.where[0]))
		return tool_usage(
			"a profile needs one number with --nodes, and one --where: nic or host");
	most = opt.nnic ? opt.nnic : NBAR_NICS_MAX;
	if (opt.nodes[0] > most)
		return tool_usage("--nodes %u: there are %u NICs, and each host of a profile needs "
				  "its own NIC",
				  opt.nodes[0], most);
	for (const char *h = opt.hosts; h; h = strchr(h, ',') ? strchr(h, ',') + 1 : NULL)
		named++;
	if (opt.hosts && named < opt.nodes[0])
		return tool_usage("--hosts: %u names for %u nodes", named, opt.nodes[0]);
	if (!own.output)
		return tool_usage("name a file for the profile: --output FILE");
	tool_measure = measure_new(opt.nodes[0], &opt);
	if (!tool_measure)
		return TOOL_FAILED;
	tool_measure->quantile = own.percent / 100.0;
	tool_measure->sample = own.sample ? tool_profile_sample : NULL;
	result = result_new("profile", columns, NCOLUMN);
	result_command(result, argc, argv);
	r = bench_session_begin(&s, &opt, result, 0.01 * opt.nodes[0] * opt.nodes[0]);
	return r ? r : bench_session_end(&s, profile_run(&s, tool_measure, own.output, result));
}
