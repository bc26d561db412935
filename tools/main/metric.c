/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metric.c - see metric.h. Only the functions that print have side effects.
 */
#include "metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define LEVEL 0.95 /* of the interval of a median */

#define METRIC_ROW(id, name, unit, digits, members, quantile, repetitions, tables, help) \
	[METRIC_##id] = { name,     unit,                                                \
			  digits,   METRIC_OVER_##members,                               \
			  quantile, METRIC_BY_##repetitions,                             \
			  tables,   help },
const struct metric metrics[METRIC_END] = { METRICS(METRIC_ROW) };

enum metric_id metric_next(unsigned tables, unsigned from)
{
	while (from < METRIC_END && !(metrics[from].tables & tables))
		from++;
	return (enum metric_id)from;
}

uint32_t metric_columns(unsigned tables, struct result_column *column)
{
	uint32_t n = 0;

	for (unsigned m = metric_next(tables, 0); m < METRIC_END; m = metric_next(tables, m + 1))
		column[n++] = (struct result_column){ metrics[m].name, metrics[m].unit, RESULT_REAL,
						      metrics[m].digits };
	return n;
}

static double quantile_us(const struct hist *all, double q)
{
	return (double)(q < 1 ? hist_quantile(all, q) : all->max) / 1e3;
}

static void metric_set(double value[METRIC_END], enum metric_members members, double to)
{
	for (unsigned m = 0; m < METRIC_END; m++)
		if (metrics[m].members == members)
			value[m] = to;
}

void metric_set_means(double value[METRIC_END], double average, double least, double greatest)
{
	metric_set(value, METRIC_OVER_AVERAGE, average);
	metric_set(value, METRIC_OVER_LEAST, least);
	metric_set(value, METRIC_OVER_GREATEST, greatest);
}

void metric_set_all(double value[METRIC_END], const struct hist *all, double skew)
{
	metric_set(value, METRIC_OVER_SKEW, skew);
	for (unsigned m = 0; m < METRIC_END; m++)
		if (metrics[m].members == METRIC_OVER_QUANTILE)
			value[m] = quantile_us(all, metrics[m].quantile);
}

struct metric_median metric_median(const double *figure, size_t stride, uint32_t n)
{
	struct metric_median m = { NAN, NAN, NAN, 0 };
	double *value = calloc(n + 1, sizeof(*value));

	for (uint32_t i = 0; value && i < n; i++)
		value[i] = figure[i * stride];
	if (value && n)
		m.median = stats_median(value, n);
	if (value && n > 1)
		m.covered = stats_median_interval(value, n, LEVEL, &m.low, &m.high);
	free(value);
	return m;
}

/* With sign 1 the least figure, with sign -1 the greatest. */
static double extreme(const double *figure, size_t stride, uint32_t n, double sign)
{
	double found = NAN;

	for (uint32_t i = 0; i < n; i++)
		if (!i || sign * figure[i * stride] < sign * found)
			found = figure[i * stride];
	return found;
}

void metric_merge(const double *repetition, size_t stride, uint32_t n, unsigned tables,
		  double value[METRIC_END])
{
	enum metric_id first = metric_next(tables, 0);

	for (unsigned m = 0; m < METRIC_END; m++) {
		unsigned from = metrics[m].members == METRIC_OVER_FIRST ? first : m;
		const double *figure = repetition + from;

		switch (metrics[m].repetitions) {
		case METRIC_BY_MEDIAN:
			value[m] = metric_median(figure, stride, n).median;
			break;
		case METRIC_BY_LOW:
			value[m] = metric_median(figure, stride, n).low;
			break;
		case METRIC_BY_HIGH:
			value[m] = metric_median(figure, stride, n).high;
			break;
		case METRIC_BY_LEAST:
			value[m] = extreme(figure, stride, n, 1);
			break;
		case METRIC_BY_GREATEST:
			value[m] = extreme(figure, stride, n, -1);
			break;
		case METRIC_BY_RATIO:
			value[m] = NAN;
			break;
		}
	}
}

void metric_names(FILE *to, unsigned tables)
{
	unsigned m = metric_next(tables, 0);

	for (const char *comma = ""; m < METRIC_END; m = metric_next(tables, m + 1), comma = ", ")
		fprintf(to, "%s%s", comma, metrics[m].name);
	fputc('\n', to);
}

void metric_usage(FILE *to, unsigned tables)
{
	unsigned m = metric_next(tables, 0), next;

	for (char names[64] = ""; m < METRIC_END; m = next) {
		size_t at = strlen(names);

		snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "", metrics[m].name);
		next = metric_next(tables, m + 1);
		if (next < METRIC_END && !strcmp(metrics[m].help, metrics[next].help))
			continue;
		fprintf(to, "  %-18s  %s\n", names, metrics[m].help);
		names[0] = '\0';
	}
}
