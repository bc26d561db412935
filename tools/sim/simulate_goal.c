/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate_goal.c - `nbar simulate --goal` and `--write-goal`.
 */
#include <errno.h>
#include <string.h>

#include "goal.h"
#include "output.h"
#include "simulate.h"
#include "tool.h"

int simulate_goal_write(const char *path, const struct sim_plans *plans)
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

int simulate_goal_run(const char *path, const struct sim_net_options *net, uint32_t *ranks,
		      struct sim_report *out)
{
	FILE *from = fopen(path, "r");
	struct goal goal;
	char why[200];

	if (!from) {
		tool_error("--goal: %s: %s", path, strerror(errno));
		return TOOL_FAILED;
	}
	int r = goal_read(from, &goal, why, sizeof(why));

	fclose(from);
	if (r) {
		tool_error("--goal: %s, %s", path, why);
		return TOOL_FAILED;
	}
	*ranks = goal.ranks;
	goal_run(&goal, net, out);
	goal_free(&goal);
	return 0;
}
