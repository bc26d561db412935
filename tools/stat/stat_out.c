/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_out.c - prints the tables of `nbar stat`, counters and groups, as text or as JSON. Sends no
 * request.
 */
#include "stat.h"

#include <jansson.h>
#include <stdio.h>

static const char *const counter_name[NBAR_COUNTER_END] = {
#define NAME(name, text) #name,
	NBAR_COUNTERS(NAME)
#undef NAME
};

static const char *const counter_text[NBAR_COUNTER_END] = {
#define TEXT(name, text) text,
	NBAR_COUNTERS(TEXT)
#undef TEXT
};

static const char *const life_name[] = { "?", "open", "connected", "linger" };
static const char *const status_name[] = { "ok",       "silent",  "host died", "closed",
					   "NIC down", "aborted", "mismatch",  "?" };

static const char *life_of(const struct nbar_group_info *g)
{
	return life_name[g->life <= NBAR_LIFE_LINGER ? g->life : 0];
}

static const char *status_of(const struct nbar_group_info *g)
{
	return status_name[g->status < NBAR_STATUS_END ? g->status : NBAR_STATUS_END];
}

static void print_counters(const struct stat_nic *s, bool all)
{
	for (uint32_t i = 0; i < NBAR_COUNTER_END; i++) {
		uint64_t value = s->nic.counter[i];

		if (!value && !all)
			continue;
		printf("  %-18s %14llu  %s\n", counter_name[i], (unsigned long long)value,
		       counter_text[i]);
	}
}

void stat_print_state(FILE *to, const struct nbar_group_info *g)
{
	if (g->status != NBAR_STATUS_OK) {
		/* A group that its own host has closed has not failed. */
		if (g->life == NBAR_LIFE_LINGER && g->failed_rank == g->rank &&
		    g->status == NBAR_STATUS_CLOSED)
			fprintf(to, "closed");
		else
			fprintf(to, "failed: rank %u: %s", g->failed_rank, status_of(g));
		return;
	}
	if (!g->running) {
		fprintf(to, "%s", g->life == NBAR_LIFE_OPEN ? "not connected" : "idle");
		return;
	}
	fprintf(to, "waits for %u", g->waits_for);
	if (g->nmissing > 1)
		fprintf(to, " and %u more", g->nmissing - 1);
	for (uint32_t i = 0; i < g->nstragglers; i++)
		fprintf(to, "%s%u", i ? ", " : "; late: ", g->straggler[i]);
}

/* Prints why a group waits: a line for each rank that is missing. */
static void print_why(const struct stat_nic *s, const struct nbar_group_info *g)
{
	char text[64];

	printf("NIC %s, group %u: rank %u of %u, process %u, barrier %u: ", s->nic.nic, g->index,
	       g->rank, g->size, g->pid, g->running ? g->epoch : g->epoch + 1);
	if (g->running && g->status == NBAR_STATUS_OK)
		printf("waits for rank %u", g->waits_for);
	else
		stat_print_state(stdout, g);
	putchar('\n');
	if (nbar_why_text(g->host_why, text, sizeof(text)) > 0)
		printf("  rank %u: %s (the host of this NIC: others wait for it)\n", g->rank, text);
	for (uint32_t i = 0; i < g->nstragglers; i++) {
		nbar_why_text(g->why[i], text, sizeof(text));
		printf("  rank %u: %s\n", g->straggler[i], *text ? text : "reason not known");
	}
	if (g->running && g->status == NBAR_STATUS_OK && g->nstragglers == 0)
		printf("  no rank is known to be late: the NIC has begun to ask\n");
}

bool stat_print_why(const struct stat_targets *t, uint32_t index)
{
	bool found = false;

	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t k = 0; k < t->now[i].ngroup; k++)
			if (t->now[i].group[k].index == index) {
				print_why(&t->now[i], &t->now[i].group[k]);
				found = true;
			}
	return found;
}

static void print_groups(const struct stat_nic *s)
{
	if (!s->ngroup)
		return;
	printf("  %5s %4s %8s %12s %-16s %-9s %10s %10s %7s  %s\n", "index", "port", "pid",
	       "rank/size", "algorithm", "life", "epoch", "posted", "step", "state");
	for (uint32_t i = 0; i < s->ngroup; i++) {
		const struct nbar_group_info *g = &s->group[i];
		char place[24], step[24] = "-";

		snprintf(place, sizeof(place), "%u/%u", g->rank, g->size);
		if (g->running)
			snprintf(step, sizeof(step), "%u/%u", g->step + 1, g->nstep);
		printf("  %5u %4u %8u %12s %-16s %-9s %10u %10u %7s  ", g->index, g->port, g->pid,
		       place, g->alg, life_of(g), g->epoch, g->posted, step);
		stat_print_state(stdout, g);
		putchar('\n');
	}
}

static void print_nic(const struct stat_nic *s, bool all)
{
	const struct nbar_rep_nic_stat *n = &s->nic;

	printf("NIC %s: wire %s, address %s, daemon %u; ports %u, groups %u, lingering %u\n",
	       n->nic, n->wire, n->address, n->pid, n->nport, n->ngroup, n->nlinger);
	print_counters(s, all);
	stat_print_latency(s);
	print_groups(s);
	stat_print_last(s);
}

/* A rank, or null. */
static json_t *rank_json(uint32_t rank)
{
	return rank == NBAR_RANK_NONE ? json_null() : json_integer(rank);
}

/* Why a rank is missing, or null. */
static json_t *why_json(uint16_t why)
{
	static const char *const name[] = { NULL, "late", "stopped", "ended", "silent" };
	_Static_assert(sizeof(name) / sizeof(name[0]) == NBAR_WHY_END, "a name for each reason");
	uint32_t kind = NBAR_WHY_KIND(why);

	if (kind == NBAR_WHY_UNKNOWN || kind >= NBAR_WHY_END)
		return json_null();
	return json_pack("{s:s, s:f}", "why", name[kind], "seconds",
			 (double)NBAR_WHY_NS(why) / 1e9);
}

static json_t *group_json(const struct nbar_group_info *g, const struct nbar_group_stat *last)
{
	json_t *o = json_object(), *late = json_array(), *why = json_array();

	for (uint32_t i = 0; i < g->nstragglers; i++) {
		json_array_append_new(late, json_integer(g->straggler[i]));
		json_array_append_new(why, why_json(g->why[i]));
	}
#define NUMBER(field) json_object_set_new(o, #field, json_integer(g->field))
	NUMBER(index);
	NUMBER(port);
	NUMBER(cell);
	NUMBER(pid);
	NUMBER(uid);
	NUMBER(rank);
	NUMBER(size);
	json_object_set_new(o, "alg", json_string(g->alg));
	json_object_set_new(o, "life", json_string(life_of(g)));
	NUMBER(epoch);
	NUMBER(posted);
	json_object_set_new(o, "running", json_boolean(g->running));
	NUMBER(step);
	NUMBER(nstep);
	json_object_set_new(o, "status", json_string(status_of(g)));
	json_object_set_new(o, "failed_rank", rank_json(g->failed_rank));
	NUMBER(nmissing);
	json_object_set_new(o, "waits_for", rank_json(g->waits_for));
	json_object_set_new(o, "late", late);
	json_object_set_new(o, "why", why);
	json_object_set_new(o, "host_why", why_json(g->host_why));
	if (last)
		json_object_set_new(o, "last", stat_last_json(last));
#undef NUMBER
	return o;
}

static json_t *nic_json(const struct stat_nic *s, bool last)
{
	const struct nbar_rep_nic_stat *n = &s->nic;
	json_t *o = json_object(), *counters = json_object(), *groups = json_array();

	for (uint32_t i = 0; i < NBAR_COUNTER_END; i++)
		json_object_set_new(counters, counter_name[i],
				    json_integer((json_int_t)n->counter[i]));
	for (uint32_t i = 0; i < s->ngroup; i++)
		json_array_append_new(groups, group_json(&s->group[i], last ? &s->last[i] : NULL));
	json_object_set_new(o, "nic", json_string(n->nic));
	json_object_set_new(o, "wire", json_string(n->wire));
	json_object_set_new(o, "address", json_string(n->address));
	json_object_set_new(o, "pid", json_integer(n->pid));
	json_object_set_new(o, "ports", json_integer(n->nport));
	json_object_set_new(o, "lingering", json_integer(n->nlinger));
	json_object_set_new(o, "counters", counters);
	json_object_set_new(o, "latency", stat_latency_json(&s->latency));
	json_object_set_new(o, "groups", groups);
	return o;
}

void stat_print(const struct stat_targets *t, const struct stat_options *opt)
{
	json_t *nics = json_array(), *root;

	if (!opt->json) {
		for (uint32_t i = 0; i < t->n; i++)
			print_nic(&t->now[i], opt->all);
		json_decref(nics);
		return;
	}
	for (uint32_t i = 0; i < t->n; i++)
		json_array_append_new(nics, nic_json(&t->now[i], t->last));
	root = json_pack("{s:s, s:o}", "version", NBAR_VERSION_TEXT, "nics", nics);
	json_dumpf(root, stdout, opt->watch ? JSON_COMPACT : JSON_INDENT(2));
	json_decref(root);
	putchar('\n');
}
