/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate.c - `nbar-lab simulate`: barriers of any size over a simulated network.
 */
#include "simulate.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#include "algs.h"
#include "goal.h"
#include "lab.h"
#include "option.h"
#include "output.h"
#include "profile.h"
#include "tool.h"

static const struct result_column columns[] = {
	{ "members", "", RESULT_COUNT, 0 },      { "alg", "", RESULT_TEXT, 0 },
	{ "mean", "us", RESULT_REAL, 2 },        { "worst", "us", RESULT_REAL, 2 },
	{ "skew", "us", RESULT_REAL, 2 },        { "tokens", "", RESULT_COUNT, 0 },
	{ "pulls", "", RESULT_COUNT, 0 },        { "lost", "", RESULT_COUNT, 0 },
	{ "failed", "", RESULT_COUNT, 0 },       { "path hops", "", RESULT_COUNT, 0 },
	{ "path queue", "us", RESULT_REAL, 2 },  { "path noise", "us", RESULT_REAL, 2 },
	{ "path repair", "us", RESULT_REAL, 2 }, { "events", "", RESULT_COUNT, 0 },
	{ "memory", "MB", RESULT_REAL, 1 },      { "rate", "1/s", RESULT_REAL, 0 },
	{ "digest", "", RESULT_TEXT, 0 },
};
#define NCOLUMN (sizeof(columns) / sizeof(columns[0]))

static void simulate_add_row(struct result *r, const char *alg, uint32_t members,
			     const struct sim_report *out, double seconds)
{
	char digest[17];

	result_count(r, members);
	result_text(r, alg);
	result_real(r, out->mean_ns / 1e3);
	result_real(r, out->worst_ns / 1e3);
	result_real(r, out->skew_ns / 1e3);
	result_count(r, out->tokens);
	result_count(r, out->pulls);
	result_count(r, out->lost + out->dropped);
	result_count(r, out->failed);
	if (out->path.hops > 0) {
		result_count(r, out->path.hops);
		result_real(r, (double)out->path.queue / 1e3);
		result_real(r, (double)out->path.noise / 1e3);
		result_real(r, (double)out->path.repair / 1e3);
	} else {
		for (uint32_t i = 0; i < 4; i++)
			result_none(r);
	}
	result_count(r, out->events);
	result_real(r, (double)out->bytes / 1e6);
	result_real(r, seconds > 0 ? (double)out->events / seconds : 0);
	snprintf(digest, sizeof(digest), "%016" PRIx64, out->digest);
	result_text(r, digest);
}

/* Prints what is wrong with a run. */
static int simulate_judge(const char *alg, uint32_t members, const struct sim_report *out)
{
	switch (out->end) {
	case SIM_END_DONE:
		if (out->failed)
			tool_error("%s of %u: %" PRIu64
				   " members failed; most of them blame rank %u",
				   alg, members, out->failed, out->failed_rank);
		return out->failed ? TOOL_FAILED : 0;
	case SIM_END_EARLY:
		tool_error("%s of %u: member %u completed barrier %u before all members had "
			   "started it: the plans are no barrier, or the engine is wrong",
			   alg, members, out->member, out->epoch + 1);
		return TOOL_FAILED;
	case SIM_END_HUNG:
		tool_error("%s of %u: no end; members completed %" PRIu64 " barriers in "
			   "total. Are the plans a barrier?",
			   alg, members, out->completed);
		return TOOL_FAILED;
	case SIM_END_INVALID:
		tool_error("%s of %u: an invariant of the engine does not hold at member %u", alg,
			   members, out->member);
		return TOOL_FAILED;
	case SIM_END_MEMORY:
		tool_error("%s of %u: no memory; try fewer members", alg, members);
		return TOOL_FAILED;
	}
	return TOOL_FAILED;
}

static int run_plans(struct simulate_options *opt, const char *alg, const struct sim_plans *plans,
		     const struct simulate_costs *costs, struct result *result)
{
	struct sim_setup setup = opt->setup;
	struct sim_report report;
	uint64_t begin = tool_now_ns();

	setup.plans = plans;
	setup.net.o = costs->o;
	setup.net.l = costs->l;
	setup.notice += costs->call;
	if (costs->profile && costs->profile->processor && !setup.net.cores) {
		setup.net.core = costs->profile->processor;
		setup.net.cores = costs->profile->hosts;
		setup.net.step = (sim_time)(costs->profile->step * (double)SIM_SECOND);
	}
	setup.net.members = plans->size;
	sim_engines_run(&setup, &report);
	int r = simulate_judge(alg, plans->size, &report);

	if (!r || report.failed)
		simulate_add_row(result, alg, plans->size, &report,
				 (double)(tool_now_ns() - begin) / 1e9);
	return r;
}

/* Not an exit code: the algorithm was left out, and a note says why. */
#define LEFT_OUT (TOOL_USAGE + 1)

static int compose_for_topology(const struct sim_net_options *net, uint32_t members,
				struct sim_plans *plans)
{
	struct profile *p;
	int r = simulate_topology_profile(net, members, &p);

	if (r)
		return r;
	r = simulate_compose(p, members, plans);
	profile_free(p);
	return r;
}

static int make_plans(const struct sim_net_options *net, const struct simulate_costs *costs,
		      const char *name, uint32_t members, struct sim_plans *plans,
		      struct result *result)
{
	struct nbfw_alg alg;

	if (!strcmp(name, SIMULATE_TUNED) && costs->profile)
		return simulate_compose(costs->profile, members, plans);
	if (!strcmp(name, SIMULATE_TUNED))
		return compose_for_topology(net, members, plans);
	if (!algs_read(name, &alg))
		return algs_refuse("--alg", name);
	int r = sim_plans_generate(plans, alg, members);

	if (r == -NBAR_ENOMEM) {
		tool_error("%s of %u: no memory for the plans; try fewer members", name, members);
		return TOOL_FAILED;
	}
	if (!r)
		return 0;
	result_note(result, "%s is for at most %u members: left out at %u", name,
		    nbfw_alg_row(alg.kind)->limit, members);
	return LEFT_OUT;
}

/* Writes the plans as GOAL, unless path is NULL. 0, or an exit code after a message. */
static int write_goal(const char *path, const struct sim_plans *plans)
{
	struct output file;
	int r = output_open(&file, "--write-goal", path);

	if (r || !path)
		return r;
	r = output_begin(&file);
	if (!r)
		goal_write(plans, file.file);
	return r | output_close(&file, r == 0);
}

static int run_one(struct simulate_options *opt, const struct simulate_costs *costs,
		   const char *name, uint32_t members, struct result *result)
{
	struct sim_plans plans;
	int r = make_plans(&opt->setup.net, costs, name, members, &plans, result);

	if (r)
		return r == LEFT_OUT ? 0 : r;
	r = write_goal(opt->write_goal, &plans);
	if (!r)
		r = run_plans(opt, name, &plans, costs, result);
	sim_plans_free(&plans);
	return r;
}

/* Runs all algorithms with one size. */
static int run_size(struct simulate_options *opt, struct profile *profile, uint32_t members,
		    struct result *result)
{
	struct simulate_costs costs;
	int worst = simulate_costs_begin(&costs, profile, members);

	if (worst)
		return worst;
	for (uint32_t a = 0; a < opt->nalg && worst != TOOL_USAGE; a++) {
		int r = run_one(opt, &costs, opt->alg[a], members, result);

		worst = r > worst ? r : worst;
	}
	simulate_costs_end(&costs);
	return worst;
}

static int run_all(struct simulate_options *opt, struct result *result)
{
	struct profile *profile;
	int worst = simulate_profile_read(opt->profile, &profile);

	if (worst)
		return worst;
	for (uint32_t i = 0; i < opt->nmembers && worst != TOOL_USAGE; i++) {
		int r = run_size(opt, profile, opt->members[i], result);

		worst = r > worst ? r : worst;
	}
	if (profile)
		profile_free(profile);
	return worst;
}

static void simulate_describe(const struct simulate_options *opt, struct result *r)
{
	static const char *const net[] = { "flat", "fat-tree", "dragonfly" };
	const struct sim_net_options *n = &opt->setup.net;

	result_setting_text(r, "net", net[n->topology]);
	result_setting_number(r, "L_ns", (double)n->latency / 1e3);
	result_setting_number(r, "o_ns", (double)n->overhead / 1e3);
	result_setting_number(r, "g_ns", (double)n->gap / 1e3);
	result_setting_number(r, "G_ns", (double)n->byte / 1e3);
	result_setting_number(r, "hop_ns", (double)n->hop / 1e3);
	result_setting_number(r, "link_byte_ns", (double)n->link_byte / 1e3);
	result_setting_number(r, "frame_bytes", n->bytes);
	result_setting_number(r, "cores", n->cores);
	result_setting_number(r, "barriers", opt->setup.barriers);
	result_setting_number(r, "loss_percent", n->loss * 100.0 / SIM_MILLION);
	result_setting_number(r, "seed", (double)n->seed);
}

static void simulate_add_notes(const struct simulate_options *opt, struct result *r)
{
	struct rusage use;

	result_note(r,
		    "%u barriers a run; worst: longest time from last arrival to last exit; skew: "
		    "from first exit to last exit; path columns: of the last barrier only",
		    opt->setup.barriers);
	if (!getrusage(RUSAGE_SELF, &use))
		result_note(r,
			    "memory is that of members, plans, links and events; the process "
			    "held %.1f MB at most",
			    (double)use.ru_maxrss / 1e3);
}

int tool_simulate(int argc, char **argv)
{
	struct simulate_options opt;
	struct experiment e;
	bool help;
	int r = simulate_options_parse(argc, argv, &opt, &help);

	if (option_ends(r, help, simulate_usage))
		return r;
	struct result *result = result_new("simulate", columns, NCOLUMN);

	result_command(result, argc, argv);
	simulate_describe(&opt, result);
	r = experiment_begin(&e, &opt.files, result, opt.nmembers * opt.nalg);
	if (r)
		return r;
	r = run_all(&opt, result);
	simulate_add_notes(&opt, result);
	/* Failed members are a result, too. */
	int written = experiment_end(&e, r == TOOL_USAGE ? r : 0);

	return r ? r : written;
}
