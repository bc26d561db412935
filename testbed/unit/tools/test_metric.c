/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_metric.c - the table of metrics: every row is complete, and values are merged as the table
 * says.
 */
#include "unit/unit.h"

#include <math.h>

#include "metric.h"

static void rows_are_complete(void **state)
{
	for (unsigned m = 0; m < METRIC_END; m++) {
		assert_true(*metrics[m].name && *metrics[m].help && metrics[m].tables);
		assert_true(metrics[m].members != METRIC_OVER_QUANTILE || metrics[m].quantile > 0);
		/* No two rows of one table have the same name. */
		for (unsigned k = 0; k < m; k++)
			if (metrics[k].tables & metrics[m].tables)
				assert_string_not_equal(metrics[k].name, metrics[m].name);
	}
}

static void tables_have_their_columns(void **state)
{
	struct result_column column[RESULT_COLUMNS_MAX];

	assert_int_equal(metric_columns(METRIC_IBARRIER, column), 5);
	assert_string_equal(column[0].name, "overall");
	assert_string_equal(column[3].unit, "%");
	assert_string_equal(column[4].name, "speedup");
	assert_int_equal(metric_next(METRIC_BENCH, 0), METRIC_MEAN);
	assert_int_equal(metric_next(METRIC_BENCH, METRIC_MEAN + 1), METRIC_LOW);
	assert_int_equal(metric_next(0, 0), METRIC_END);
}

static void runs_are_merged_over_members(void **state)
{
	struct hist *all = calloc(1, sizeof(*all));
	double value[METRIC_END] = { [METRIC_WAIT] = 7 };

	for (uint64_t ns = 1; ns <= 100; ns++)
		hist_add(all, ns);
	hist_add(all, 123456);
	metric_set_means(value, 2, 1, 3);
	metric_set_all(value, all, 0.5);
	assert_true(value[METRIC_MEAN] == 3 && value[METRIC_MEAN_MIN] == 1);
	assert_true(value[METRIC_MEAN_AVG] == 2 && value[METRIC_SKEW] == 0.5);
	assert_true(value[METRIC_P50] == 0.051 && value[METRIC_MAX] == 123.456);
	assert_true(value[METRIC_WAIT] == 7);
	free(all);
}

static void repetitions_are_merged_as_the_row_says(void **state)
{
	double run[6][METRIC_END] = { { 0 } }, value[METRIC_END];
	static const double wait[6] = { 5, 1, 6, 2, 4, 3 };

	for (int i = 0; i < 6; i++) {
		run[i][METRIC_WAIT] = run[i][METRIC_MEAN] = wait[i];
		run[i][METRIC_MAX] = 10 * wait[i];
	}
	metric_merge(run[0], METRIC_END, 6, METRIC_BUSY, value);
	assert_true(value[METRIC_WAIT] == 3.5 && value[METRIC_MAX] == 35);
	assert_true(value[METRIC_FASTEST] == 1 && value[METRIC_SLOWEST] == 6);
	assert_true(isnan(value[METRIC_SPEEDUP]) && isnan(value[METRIC_OF_MPI]));
	metric_merge(run[0], METRIC_END, 6, METRIC_BENCH, value);
	assert_true(value[METRIC_MEAN] == 3.5 && value[METRIC_LOW] == 1 && value[METRIC_HIGH] == 6);
	metric_merge(run[0], METRIC_END, 1, METRIC_BENCH, value);
	assert_true(value[METRIC_MEAN] == 5 && isnan(value[METRIC_LOW]));
	metric_merge(run[0], METRIC_END, 0, METRIC_BENCH, value);
	assert_true(isnan(value[METRIC_MEAN]) && isnan(value[METRIC_P99]));
}

static void neighbours_share_a_line_of_help(void **state)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	metric_usage(to, METRIC_BUSY);
	metric_names(to, METRIC_BUSY);
	fclose(to);
	assert_non_null(strstr(text, "  p50, p99"));
	assert_non_null(strstr(text, "\nwait, p50, p99"));
	free(text);
}

UNIT_MAIN(NULL, NULL, UNIT(rows_are_complete), UNIT(tables_have_their_columns),
	  UNIT(runs_are_merged_over_members), UNIT(repetitions_are_merged_as_the_row_says),
	  UNIT(neighbours_share_a_line_of_help))
