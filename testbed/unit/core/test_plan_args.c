/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_plan_args.c - arguments of the generators of plans: names, sizes, ranks and room.
 */
#include "group_plans.h"

static void test_capacity_and_arguments(void **state)
{
	uint8_t block[GROUP_PLANS_BYTES_A_RANK];
	const struct nbfw_alg good = { NBFW_ALG_DISSEMINATION, 3 };
	int32_t length = nbfw_plan_generate(good, 100, 7, NULL, 0);

	assert_int_equal(length, 24 + 4 * 16 + 10 * 8 + 10 * 4);
	memset(block, 0xa5, sizeof(block));
	assert_int_equal(nbfw_plan_generate(good, 100, 7, block, (size_t)length - 1), length);
	for (uint32_t i = 0; i < sizeof(block); i++)
		assert_int_equal(block[i], 0xa5);
	assert_int_equal(nbfw_plan_generate(good, 100, 7, block, (size_t)length), length);
	for (uint32_t i = (uint32_t)length; i < sizeof(block); i++)
		assert_int_equal(block[i], 0xa5);

	const struct {
		struct nbfw_alg alg;
		uint32_t size, rank;
		int rc;
	} bad[] = {
		{ { NBFW_ALG_CUSTOM, 0 }, 8, 0, -NBFW_EINVAL },
		{ { NBFW_ALG_SIGNAL, 0 }, 8, 0, -NBFW_EINVAL },
		{ { (enum nbfw_alg_kind)77, 0 }, 8, 0, -NBFW_EINVAL },
		{ { NBFW_ALG_END, 0 }, 8, 0, -NBFW_EINVAL },
		{ { NBFW_ALG_LINEAR, 0 }, NBAR_SLOTS_MAX + 2, 0, -NBFW_ERANGE },
		{ { NBFW_ALG_LINEAR, 0 }, NBAR_SLOTS_MAX + 2, 7, -NBFW_ERANGE },
		{ { NBFW_ALG_LINEAR, 0 }, NBAR_SIZE_MAX, 0, -NBFW_ERANGE },
		{ good, 0, 0, -NBFW_ERANGE },
		{ good, 8, 8, -NBFW_ERANGE },
		{ good, 8, UINT32_MAX, -NBFW_ERANGE },
		{ good, NBAR_SIZE_MAX + 1, 0, -NBFW_ERANGE },
		{ good, UINT32_MAX, 0, -NBFW_ERANGE },
	};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(nbfw_plan_generate(bad[i].alg, bad[i].size, bad[i].rank, block,
						    sizeof(block)),
				 bad[i].rc);
}

/* Checks for each row of the table. */
static void test_rows(void **state)
{
	uint8_t block[GROUP_PLANS_BYTES_A_RANK];

	for (uint32_t kind = NBFW_ALG_FIRST; kind < NBFW_ALG_END; kind++) {
		const struct nbfw_alg_row *row = nbfw_alg_row((enum nbfw_alg_kind)kind);
		struct nbfw_alg alg = { (enum nbfw_alg_kind)kind, row->low }, other = alg;
		const char *name = row->name;

		require(*name && name[strspn(name, "abcdefghijklmnopqrstuvwxyz")] == 0, "%s", name);
		require(row->limit > 1 && row->limit <= NBAR_SIZE_MAX, "%s", name);
		require(row->usual >= row->low && row->usual <= row->usual_end, "%s", name);
		require(row->usual_end <= row->high, "%s", name);
		require(row->param[0] ? row->param[0] == ':' && row->high : !row->high, "%s", name);
		require(nbfw_alg_find(name) == alg.kind, "%s", name);
		require(nbfw_alg_parse(name, &other) == 0 && other.kind == alg.kind, "%s", name);
		require(other.n == row->usual, "%s", name);
		require(nbfw_plan_generate(alg, row->limit, row->limit - 1, block, sizeof(block)) >
				0,
			"%s", name);
		require(nbfw_plan_generate(alg, row->limit + 1, 1, block, sizeof(block)) ==
				-NBFW_ERANGE,
			"%s", name);
		require(nbfw_plan_generate(alg, 8, 8, block, sizeof(block)) == -NBFW_ERANGE, "%s",
			name);
		alg.n = row->high + 1u;
		require(nbfw_plan_generate(alg, 8, 0, NULL, 0) == -NBFW_EINVAL, "%s", name);
		alg.n = row->low - 1u;
		require(nbfw_plan_generate(alg, 8, 0, NULL, 0) == -NBFW_EINVAL, "%s", name);
	}
}

/* nbfw_alg_parse reads each name of the table, and refuses a parameter out of range. */
static void test_names_of_rows(void **state)
{
	char text[NBAR_NAME_MAX + 4];
	struct nbfw_alg other;

	group_plans_each (alg) {
		nbfw_alg_name(alg, text);
		require(nbfw_alg_parse(text, &other) == 0, "%s", text);
		require(other.kind == alg.kind && other.n == alg.n, "%s", text);
	}
	for (uint32_t kind = 0; kind < NBFW_ALG_END; kind++) {
		const struct nbfw_alg_row *row = nbfw_alg_row((enum nbfw_alg_kind)kind);

		sprintf(text, "%s:%u", row->name, row->high + 1u);
		require(nbfw_alg_parse(text, &other) ==
				(row->param[0] ? -NBFW_ERANGE : -NBFW_EINVAL),
			"%s", text);
		sprintf(text, "%s:%u", row->name, row->low - 1u);
		require(nbfw_alg_parse(text, &other) < 0, "%s", text);
		sprintf(text, "%sx", row->name);
		require(nbfw_alg_parse(text, &other) == -NBFW_EINVAL, "%s", text);
		require(nbfw_alg_find(text) == NBFW_ALG_END, "%s", text);
	}
}

static void test_alg_names(void **state)
{
	const struct {
		const char *text;
		int rc;
		struct nbfw_alg alg;
	} names[] = {
		{ "auto", 0, { NBFW_ALG_DISSEMINATION, 1 } },
		{ "pairwise", 0, { NBFW_ALG_PAIRWISE, 0 } },
		{ "dissemination", 0, { NBFW_ALG_DISSEMINATION, 1 } },
		{ "dissemination:1", 0, { NBFW_ALG_DISSEMINATION, 1 } },
		{ "dissemination:9", 0, { NBFW_ALG_DISSEMINATION, 9 } },
		{ "dissemination:10", 0, { NBFW_ALG_DISSEMINATION, 10 } },
		{ "dissemination:16", 0, { NBFW_ALG_DISSEMINATION, 16 } },
		{ "mcs", 0, { NBFW_ALG_MCS, 0 } },
		{ "tournament", 0, { NBFW_ALG_TOURNAMENT, 0 } },
		{ "binomial", 0, { NBFW_ALG_BINOMIAL, 0 } },
		{ "linear", 0, { NBFW_ALG_LINEAR, 0 } },
		{ "custom", 0, { NBFW_ALG_CUSTOM, 0 } },
		{ "signal", 0, { NBFW_ALG_SIGNAL, 0 } },
		{ "dissemination:0", -NBFW_ERANGE, { 0 } },
		{ "dissemination:17", -NBFW_ERANGE, { 0 } },
		{ "dissemination:160", -NBFW_ERANGE, { 0 } },
		{ "dissemination:4294967297", -NBFW_ERANGE, { 0 } },
		{ "dissemination:", -NBFW_EINVAL, { 0 } },
		{ "dissemination:x", -NBFW_EINVAL, { 0 } },
		{ "dissemination:3x", -NBFW_EINVAL, { 0 } },
		{ "dissemination:99x", -NBFW_EINVAL, { 0 } },
		{ "dissemination:-1", -NBFW_EINVAL, { 0 } },
		{ "dissemination: 1", -NBFW_EINVAL, { 0 } },
		{ "dissemination3", -NBFW_EINVAL, { 0 } },
		{ "pairwise:2", -NBFW_EINVAL, { 0 } },
		{ "pair", -NBFW_EINVAL, { 0 } },
		{ "mcs:4", -NBFW_EINVAL, { 0 } },
		{ "linear ", -NBFW_EINVAL, { 0 } },
		{ "MCS", -NBFW_EINVAL, { 0 } },
		{ "", -NBFW_EINVAL, { 0 } },
		{ "AUTO", -NBFW_EINVAL, { 0 } },
	};

	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct nbfw_alg alg = { NBFW_ALG_SIGNAL, 99 };
		char again[NBAR_NAME_MAX];

		require(nbfw_alg_parse(names[i].text, &alg) == names[i].rc, "%s", names[i].text);
		nbfw_alg_name(alg, again);
		require(!strchr(names[i].text, ':') || names[i].rc || !strcmp(again, names[i].text),
			"%s", again);
		require(names[i].rc ? alg.n == 99
				    : alg.kind == names[i].alg.kind && alg.n == names[i].alg.n,
			"%s", names[i].text);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(test_capacity_and_arguments), UNIT(test_rows), UNIT(test_names_of_rows),
	  UNIT(test_alg_names))
