/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nic_loss.c - what a barrier costs if 30 % of the frames are lost, in round trips: whole NICs
 * in simulated time, with round trips from 24 us to 1 ms, and hosts that arrive together or apart.
 */
#include "nbar_abi.h"
#include "sim/nics.h"
#include "unit/unit.h"

#define MEMBERS 8u
#define ROUNDS 3.0
#define BARRIERS 2000u

static struct sim_report run(const struct sim_plans *plans, sim_time latency, sim_time arrive,
			     uint32_t percent)
{
	const struct sim_setup setup = {
		.net = {
			.members = MEMBERS,
			.latency = latency,
			.overhead = 2 * SIM_US,
			.bytes = 1,
			.loss = percent * (SIM_MILLION / 100),
			.seed = unit_seed(),
		},
		.plans = plans,
		.barriers = BARRIERS,
		.arrive = arrive,
		.pull_ns = 1000000,
		.budget_ns = UINT64_C(8000000000),
		.limit = UINT64_MAX,
	};
	struct sim_report out;

	sim_nics_run(&setup, "dissemination:1", 100 * SIM_NS, &out);
	assert_int_equal(out.end, SIM_END_DONE);
	assert_int_equal(out.failed, 0);
	assert_int_equal(out.completed, MEMBERS * BARRIERS);
	return out;
}

/* Without loss a barrier takes 1.5 round trips and not one extra frame. With 30 % loss, the median
 * is 9 to 12 round trips, and p99 26 to 42; 6 and 15 are the least that is possible (bench-loss).
 * The round trip may be as long as pull_ns. */
static void test_loss_costs_round_trips(void **state)
{
	/* Hosts that arrive apart by more than pull_ns would cause PULLs without a loss. */
	static const struct {
		sim_time latency, arrive;
	} net[] = {
		{ 8 * SIM_US, 0 },   { 8 * SIM_US, 16 * SIM_US },
		{ 120 * SIM_US, 0 }, { 120 * SIM_US, 240 * SIM_US },
		{ 500 * SIM_US, 0 },
	};
	struct sim_plans plans;
	struct nbfw_alg alg;

	assert_int_equal(nbfw_alg_parse("dissemination:1", &alg), 0);
	assert_int_equal(sim_plans_generate(&plans, alg, MEMBERS), 0);
	for (uint32_t i = 0; i < sizeof(net) / sizeof(net[0]); i++) {
		struct sim_report none = run(&plans, net[i].latency, net[i].arrive, 0);
		struct sim_report some = run(&plans, net[i].latency, net[i].arrive, 30);
		double rtt = 2 * none.median_ns / ROUNDS;

		assert_int_equal(none.tokens + none.pulls + none.laters,
				 (uint64_t)plans.tokens * BARRIERS);
		require(some.lost > BARRIERS && some.median_ns < 15 * rtt &&
				some.p99_ns < 60 * rtt &&
				some.tokens + some.pulls + some.laters < UINT64_C(140) * BARRIERS,
			"round trip %.0f us: median %.1f, p99 %.1f round trips, %.1f frames",
			rtt / 1e3, some.median_ns / rtt, some.p99_ns / rtt,
			(double)(some.tokens + some.pulls + some.laters) / BARRIERS);
	}
	sim_plans_free(&plans);
}

UNIT_MAIN(NULL, NULL, UNIT(test_loss_costs_round_trips))
