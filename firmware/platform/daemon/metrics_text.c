/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_text.c - see metrics_text.h. Each metric is a family: type and help, then a line per NIC.
 */
#include "metrics_text.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nicd.h"

struct text {
	const struct metrics_nic *nic;
	uint32_t n;
	bool open_metrics;
	FILE *to;
};

/* The older format has no type "info", and in it the name of a family ends in the suffix of its
 * samples. */
static void family(const struct text *t, const char *type, const char *name, const char *suffix,
		   const char *help)
{
	const char *own = t->open_metrics ? "" : suffix;

	if (!t->open_metrics && strcmp(type, "info") == 0)
		type = "gauge";
	fprintf(t->to, "# TYPE nbar_%s%s %s\n# HELP nbar_%s%s %s\n", name, own, type, name, own,
		help);
}

/* The value of a label. */
static void quoted(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text; text++) {
		if (*text == '\n') {
			fputs("\\n", to);
			continue;
		}
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

static void sample(const struct text *t, const char *name, const char *suffix, uint32_t i,
		   uint64_t value)
{
	fprintf(t->to, "nbar_%s%s{nic=", name, suffix);
	quoted(t->to, t->nic[i].stat.nic);
	fprintf(t->to, "} %" PRIu64 "\n", value);
}

static void infos(const struct text *t)
{
	family(t, "info", "daemon", "_info", "version of the daemon");
	fprintf(t->to, "nbar_daemon_info{version=\"" NBAR_VERSION_TEXT "\"} 1\n");
	family(t, "info", "nic", "_info", "wire and address of a NIC");
	for (uint32_t i = 0; i < t->n; i++) {
		fputs("nbar_nic_info{nic=", t->to);
		quoted(t->to, t->nic[i].stat.nic);
		fputs(",wire=", t->to);
		quoted(t->to, t->nic[i].stat.wire);
		fputs(",address=", t->to);
		quoted(t->to, t->nic[i].stat.address);
		fputs("} 1\n", t->to);
	}
}

static void gauges(const struct text *t)
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
		family(t, "gauge", gauge[k].name, "", gauge[k].help);
		for (uint32_t i = 0; i < t->n; i++)
			sample(t, gauge[k].name, "", i,
			       *(const uint32_t *)((const char *)&t->nic[i].stat +
						   gauge[k].offset));
	}
}

static void counters(const struct text *t)
{
	static const struct {
		const char *name, *help;
	} counter[NBAR_COUNTER_END] = {
#define ROW(name, text) { #name, text },
		NBAR_COUNTERS(ROW)
#undef ROW
	};

	for (uint32_t k = 0; k < NBAR_COUNTER_END; k++) {
		family(t, "counter", counter[k].name, "_total", counter[k].help);
		for (uint32_t i = 0; i < t->n; i++)
			sample(t, counter[k].name, "_total", i, t->nic[i].stat.counter[k]);
	}
}

/* Writes the latency histogram. A bucket has the times below its bound. A time that equals the
 * bound, to the nanosecond, is in the next bucket. */
static void latency(const struct text *t)
{
	family(t, "histogram", "barrier_seconds", "",
	       "time of barriers at a NIC, from start to completion");
	for (uint32_t i = 0; i < t->n; i++) {
		const struct nbar_rep_nic_latency *l = &t->nic[i].latency;
		uint64_t n = 0;

		for (uint32_t k = 0; k < NBAR_LATENCY_BUCKETS; k++) {
			n += l->bucket[k];
			fputs("nbar_barrier_seconds_bucket{nic=", t->to);
			quoted(t->to, t->nic[i].stat.nic);
			if (k < NBAR_LATENCY_BUCKETS - 1)
				fprintf(t->to, ",le=\"%.9g\"} %" PRIu64 "\n",
					(double)NBAR_LATENCY_NS(k) / 1e9, n);
			else
				fprintf(t->to, ",le=\"+Inf\"} %" PRIu64 "\n", n);
		}
		sample(t, "barrier_seconds", "_count", i, n);
		fputs("nbar_barrier_seconds_sum{nic=", t->to);
		quoted(t->to, t->nic[i].stat.nic);
		fprintf(t->to, "} %.9f\n", (double)l->ns / 1e9);
	}
}

void metrics_text_print(const struct metrics_nic *nic, uint32_t n, bool open_metrics,
			uint64_t dropped, FILE *to)
{
	const struct text t = { .nic = nic, .n = n, .open_metrics = open_metrics, .to = to };

	infos(&t);
	gauges(&t);
	counters(&t);
	latency(&t);
	family(&t, "counter", "scrapes_dropped", "_total",
	       "connections for metrics that the daemon gave up: too slow, or too many");
	fprintf(to, "nbar_scrapes_dropped_total %" PRIu64 "\n", dropped);
	if (open_metrics)
		fputs("# EOF\n", to);
}

/* A reply of a NIC, as its clients get it. */
struct reply {
	struct nbar_reply head;
	uint8_t body[NBAR_MESSAGE_MAX - sizeof(struct nbar_reply)];
};

/* Sends a request without a body. If the NIC refuses the request, *out does not change. */
static void ask(struct nbnic_client *c, enum nbar_op op, struct reply *room, void *out, size_t size)
{
	_Alignas(uint64_t) const struct nbar_request request = {
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = (uint16_t)op,
		.length = sizeof(request),
	};

	nbnic_client_request(c, &request, sizeof(request), false, room);
	if (room->head.status == 0)
		memcpy(out, room->body, size);
}

static void ask_all(struct nbnic_device *d, struct reply *room, struct metrics_nic *out)
{
	struct nbnic_client client;

	nbnic_client_begin(d, &client, (uint32_t)getpid(), (uint32_t)geteuid(), false);
	ask(&client, NBAR_OP_NIC_STAT, room, &out->stat, sizeof(out->stat));
	ask(&client, NBAR_OP_NIC_LATENCY, room, &out->latency, sizeof(out->latency));
	nbnic_client_end(&client, NBAR_STATUS_CLOSED);
}

void metrics_text_write(void *arg, bool open_metrics, uint64_t dropped, FILE *to)
{
	const struct nicd *d = arg;
	struct metrics_nic *nic = calloc(d->nnic ? d->nnic : 1, sizeof(*nic));
	struct reply *room = malloc(sizeof(*room));

	for (uint32_t i = 0; nic && room && i < d->nnic; i++)
		ask_all(&d->nic[i]->device, room, &nic[i]);
	if (nic && room)
		metrics_text_print(nic, d->nnic, open_metrics, dropped, to);
	free(room);
	free(nic);
}
