/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_out.c - results of `nbar bench` as a table, as JSON and as CSV.
 */
#include "bench.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

void bench_table(const struct bench_report *r, FILE *to)
{
	bool colour = isatty(fileno(to));

	fprintf(to, "%s%5s %-5s %-16s %9s", colour ? "\033[1m" : "", "nodes", "where", "algorithm",
		"mean");
	if (r->opt->full)
		fprintf(to, " %9s %9s", "mean min", "mean avg");
	fprintf(to, " %9s %9s %9s %9s %9s%s\n", "p50", "p99", "max", "skew", "host/nic",
		colour ? "\033[0m" : "");
	for (uint32_t i = 0; i < r->nresult; i++) {
		const struct bench_result *res = &r->result[i];
		const struct bench_figures *f = &res->median;

		fprintf(to, "%5u %-5s %-16s %9.2f", res->config.nodes,
			bench_where_name[res->config.where], res->config.alg, f->mean_us);
		if (r->opt->full)
			fprintf(to, " %9.2f %9.2f", f->mean_min_us, f->mean_avg_us);
		fprintf(to, " %9.2f %9.2f %9.2f %9.2f", f->p50_us, f->p99_us, f->max_us,
			f->skew_us);
		if (res->factor > 0)
			fprintf(to, " %9.2f", res->factor);
		fputc('\n', to);
	}
	fprintf(to, "us; %u barriers a run, %s, wire %s", r->opt->iters,
		r->opt->one_driver ? "one process drives all nodes" : "a process a node",
		r->opt->wire);
	if (r->opt->launches > 1)
		fprintf(to, "; medians of %u launches", r->opt->launches);
	fputc('\n', to);
}

static void set_number(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void set_text(json_t *o, const char *key, const char *text)
{
	json_t *value = json_string(text);

	/* A command line may be no UTF-8. */
	json_object_set_new(o, key, value ? value : json_string("?"));
}

/* What both formats say of a machine and a bench. */
static json_t *machine_json(const struct bench_report *r)
{
	const struct bench_machine *m = r->machine;
	json_t *o = json_object(), *cpus = json_array();

	for (uint32_t i = 0; i < m->nhost_cpu; i++)
		json_array_append_new(cpus, json_integer(m->host_cpu[i]));
	set_text(o, "host", m->machine.host);
	set_text(o, "cpu", m->machine.cpu);
	set_number(o, "cores", m->ncpu);
	set_text(o, "kernel", m->machine.kernel);
	set_text(o, "idle", m->idle);
	json_object_set_new(o, "daemon_cpu",
			    m->daemon_cpu < 0 ? json_null() : json_integer(m->daemon_cpu));
	json_object_set_new(o, "host_cpus", cpus);
	set_text(o, "drivers", r->opt->one_driver ? "one for all nodes" : "one a node");
	set_number(o, "launches", r->opt->launches);
	set_number(o, "warmup", r->opt->warmup);
	set_number(o, "seed", r->opt->seed);
	set_text(o, "ranks", r->opt->sorted ? "sorted" : "random");
	json_object_set_new(o, "checked", json_boolean(r->opt->check));
	return o;
}

static void set_figures(json_t *o, const struct bench_figures *f)
{
#define REAL(field) json_object_set_new(o, #field, json_real(f->field))
	REAL(mean_us);
	REAL(p50_us);
	REAL(p99_us);
	REAL(max_us);
	REAL(skew_us);
	REAL(mean_min_us);
	REAL(mean_avg_us);
#undef REAL
}

static json_t *result_json(const struct bench_report *r, const struct bench_result *res)
{
	json_t *o = json_object(), *launches = json_array();

	set_number(o, "nodes", res->config.nodes);
	set_text(o, "where", bench_where_name[res->config.where]);
	set_text(o, "alg", res->config.alg);
	set_text(o, "wire", r->opt->wire);
	set_number(o, "iters", r->opt->iters);
	set_figures(o, &res->median);
	if (res->factor > 0)
		json_object_set_new(o, "factor", json_real(res->factor));
	for (uint32_t i = 0; i < r->opt->launches; i++) {
		json_t *launch = json_object();

		set_figures(launch, &res->launch[i]);
		json_array_append_new(launches, launch);
	}
	json_object_set_new(o, "launches", launches);
	return o;
}

void bench_json(const struct bench_report *r, FILE *to)
{
	json_t *root = json_object(), *results = json_array();

	for (uint32_t i = 0; i < r->nresult; i++)
		json_array_append_new(results, result_json(r, &r->result[i]));
	set_text(root, "version", NBAR_VERSION_TEXT);
	set_text(root, "command", r->command);
	json_object_set_new(root, "machine", machine_json(r));
	json_object_set_new(root, "results", results);
	json_dumpf(root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	json_decref(root);
	fputc('\n', to);
}

void bench_csv(const struct bench_report *r, FILE *to)
{
	json_t *machine = machine_json(r), *value;
	const char *key;

	fprintf(to, "#@version=%s\n#@command=%s\n", NBAR_VERSION_TEXT, r->command);
	json_object_foreach(machine, key, value)
	{
		char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		if (json_is_string(value))
			fprintf(to, "#@%s=%s\n", key, json_string_value(value));
		else
			fprintf(to, "#@%s=%s\n", key, text ? text : "");
		free(text);
	}
	json_decref(machine);
	fputs("nodes,where,alg,wire,iters,mean_us,p50_us,p99_us,max_us,skew_us,mean_min_us,"
	      "mean_avg_us,factor\n",
	      to);
	for (uint32_t i = 0; i < r->nresult; i++) {
		const struct bench_result *res = &r->result[i];
		const struct bench_figures *f = &res->median;

		fprintf(to, "%u,%s,%s,%s,%u,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,", res->config.nodes,
			bench_where_name[res->config.where], res->config.alg, r->opt->wire,
			r->opt->iters, f->mean_us, f->p50_us, f->p99_us, f->max_us, f->skew_us,
			f->mean_min_us, f->mean_avg_us);
		if (res->factor > 0)
			fprintf(to, "%.3f", res->factor);
		fputc('\n', to);
	}
}
