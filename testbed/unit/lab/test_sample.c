/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sample.c - the clusters of `nbar-lab profile --sample`, of nodes whose distances the test
 * sets; and which pairs it measures.
 */
#include "tool_profile.h"
#include "unit/unit.h"

#define NODES 7u

struct measure *tool_measure;

static const uint32_t rack[NODES] = { 0, 1, 0, 2, 1, 1, 0 }; /* of each node */
static uint32_t further[NODES][NODES]; /* by sender: measurements of further messages */
static uint32_t measured;

/* Round trips take 100 ns between racks, 10 ns in a rack, and the call of node i takes 1000 + i. */
int tool_profile_pair(struct tool_profile_pairs *pairs, uint32_t i, uint32_t j, uint32_t k,
		      bool swapped, double *matrix)
{
	assert_true(i != j && i < NODES && j < NODES);
	measured++;
	if (matrix == tool_measure->more) {
		assert_int_equal(k, MEASURE_MORE);
		further[swapped ? j : i][swapped ? i : j]++;
		return 0;
	}
	assert_true(k == 1 && !swapped && matrix == tool_measure->round);
	matrix[i * NODES + j] = 1000 + i + (rack[i] == rack[j] ? 10 : 100);
	return 0;
}

/* Three racks, one of which has only one node. */
static void test_racks(void **state)
{
	static const uint32_t pair[][2] = { { 0, 1 }, { 0, 3 }, { 1, 3 }, { 0, 2 }, { 1, 4 } };
	static const uint32_t centre[] = { 0, 1, 3 }, second[] = { 2, 4, 3 };
	double alone[NODES], round[NODES * NODES], more[1];
	struct measure m = { .nodes = NODES, .alone = alone, .round = round, .more = more };
	uint32_t room[3][NODES];
	struct tool_profile_classes c = { 0, room[0], room[1], room[2] };

	tool_measure = &m;
	for (uint32_t i = 0; i < NODES; i++)
		alone[i] = 1000 + i;
	memset(room, 0xff, sizeof(room));
	assert_int_equal(tool_profile_sample(NULL, &c), 0);
	assert_int_equal(c.n, 3);
	assert_memory_equal(c.of, rack, sizeof(rack));
	assert_memory_equal(c.centre, centre, sizeof(centre));
	assert_memory_equal(c.second, second, sizeof(second));
	/* Between the centres, and between the first two nodes of a cluster, in both directions. */
	for (uint32_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++)
		assert_true(further[pair[i][0]][pair[i][1]] == 1 &&
			    further[pair[i][1]][pair[i][0]] == 1);
	assert_int_equal(measured, 6 + 5 + 3 + 2 * 5);
}

UNIT_MAIN(NULL, NULL, UNIT(test_racks))
