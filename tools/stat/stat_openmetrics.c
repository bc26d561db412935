/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_openmetrics.c - the metrics of NICs as OpenMetrics 1.0, for Prometheus; a dashboard of
 * Grafana is beside it. Each metric is a family: type and help, then a line per NIC.
 */
#include <inttypes.h>
#include <stddef.h>

#include "stat.h"

static void family(const char *type, const char *name, const char *help)
{
	printf("# TYPE nbar_%s %s\n# HELP nbar_%s %s\n", name, type, name, help);
}

/* The value of a label. */
static void openmetrics_quoted(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '\n') {
			fputs("\\n", stdout);
			continue;
		}
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void sample(const struct stat_targets *t, const char *name, const char *suffix, uint32_t i,
		   uint64_t value)
{
	printf("nbar_%s%s{nic=", name, suffix);
	openmetrics_quoted(t->now[i].nic.nic);
	printf("} %" PRIu64 "\n", value);
}

static void openmetrics_infos(const struct stat_targets *t)
{
	family("info", "daemon", "version of nbar");
	printf("nbar_daemon_info{version=\"" NBAR_VERSION_TEXT "\"} 1\n");
	family("info", "nic", "wire and address of a NIC");
	for (uint32_t i = 0; i < t->n; i++) {
		fputs("nbar_nic_info{nic=", stdout);
		openmetrics_quoted(t->now[i].nic.nic);
		fputs(",wire=", stdout);
		openmetrics_quoted(t->now[i].nic.wire);
		fputs(",address=", stdout);
		openmetrics_quoted(t->now[i].nic.address);
		fputs("} 1\n", stdout);
	}
}

static void openmetrics_gauges(const struct stat_targets *t)
{
	static const struct {
		const char *name, *help;
		size_t offset;
	} gauge[] = {
		{ "ports", "open ports", offsetof(struct nbar_rep_nic_stat, nport) },
		{ "groups", "open groups", offsetof(struct nbar_rep_nic_stat, ngroup) },
		{ "groups_lingering", "closed groups that still answer their peers",
		  offsetof(struct nbar_rep_nic_stat, nlinger) },
	};

	for (size_t k = 0; k < sizeof(gauge) / sizeof(gauge[0]); k++) {
		family("gauge", gauge[k].name, gauge[k].help);
		for (uint32_t i = 0; i < t->n; i++)
			sample(t, gauge[k].name, "", i,
			       *(const uint32_t *)((const char *)&t->now[i].nic + gauge[k].offset));
	}
}

static void openmetrics_counters(const struct stat_targets *t)
{
	static const struct {
		const char *name, *help;
	} counter[NBAR_COUNTER_END] = {
#define ROW(name, text) { #name, text },
		NBAR_COUNTERS(ROW)
#undef ROW
	};

	for (uint32_t k = 0; k < NBAR_COUNTER_END; k++) {
		family("counter", counter[k].name, counter[k].help);
		for (uint32_t i = 0; i < t->n; i++)
			sample(t, counter[k].name, "_total", i, t->now[i].nic.counter[k]);
	}
}

/* Writes the latency histogram. A bucket has the times below its bound. A time that equals the
 * bound, to the nanosecond, is in the next bucket. */
static void openmetrics_latency(const struct stat_targets *t)
{
	family("histogram", "barrier_seconds",
	       "time of barriers at a NIC, from start to completion");
	for (uint32_t i = 0; i < t->n; i++) {
		const struct nbar_rep_nic_latency *l = &t->now[i].latency;
		uint64_t n = 0;

		for (uint32_t k = 0; k < NBAR_LATENCY_BUCKETS; k++) {
			n += l->bucket[k];
			fputs("nbar_barrier_seconds_bucket{nic=", stdout);
			openmetrics_quoted(t->now[i].nic.nic);
			if (k < NBAR_LATENCY_BUCKETS - 1)
				printf(",le=\"%.9g\"} %" PRIu64 "\n",
				       (double)NBAR_LATENCY_NS(k) / 1e9, n);
			else
				printf(",le=\"+Inf\"} %" PRIu64 "\n", n);
		}
		sample(t, "barrier_seconds", "_count", i, n);
		fputs("nbar_barrier_seconds_sum{nic=", stdout);
		openmetrics_quoted(t->now[i].nic.nic);
		printf("} %.9f\n", (double)l->ns / 1e9);
	}
}

void stat_print_openmetrics(const struct stat_targets *t)
{
	openmetrics_infos(t);
	openmetrics_gauges(t);
	openmetrics_counters(t);
	openmetrics_latency(t);
	fputs("# EOF\n", stdout);
}
