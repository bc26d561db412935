/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metric_man.c - fills the table of metrics into a manual page: copies stdin to stdout, and puts
 * the metrics of a table in place of each line ".METRICS TABLE". Run at build time.
 */
#include <stdio.h>
#include <string.h>

#include "metric.h"

static const struct {
	const char *name;
	unsigned tables;
} tables[] = {
	{ "bench", METRIC_BENCH | METRIC_BENCH_FULL },
	{ "barrier", METRIC_BARRIER },
	{ "ibarrier", METRIC_IBARRIER },
	{ "busy", METRIC_BUSY },
	{ "app", METRIC_APP },
	{ "full", METRIC_MPI_FULL },
};

static void put_text(const char *text)
{
	for (; *text; text++)
		printf(*text == '-' ? "\\-" : "%c", *text);
}

/* Neighbours with the same help are tags of one paragraph. */
static void put_metrics(unsigned table)
{
	const char *before = "";

	for (unsigned m = metric_next(table, 0); m < METRIC_END; m = metric_next(table, m + 1)) {
		unsigned next = metric_next(table, m + 1);

		printf(strcmp(metrics[m].help, before) ? ".TP\n.B " : ".TQ\n.B ");
		put_text(metrics[m].name);
		putchar('\n');
		before = metrics[m].help;
		if (next < METRIC_END && !strcmp(metrics[next].help, before))
			continue;
		put_text(before);
		puts(".");
	}
}

int main(void)
{
	char line[512];

	while (fgets(line, sizeof(line), stdin)) {
		char name[16];
		size_t i = 0;

		if (sscanf(line, ".METRICS %15s", name) != 1) {
			fputs(line, stdout);
			continue;
		}
		while (i < sizeof(tables) / sizeof(tables[0]) && strcmp(name, tables[i].name))
			i++;
		if (i == sizeof(tables) / sizeof(tables[0])) {
			fprintf(stderr, "metric_man: there is no table %s\n", name);
			return 1;
		}
		put_metrics(tables[i].tables);
	}
	return 0;
}
