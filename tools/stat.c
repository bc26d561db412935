/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.c - `nbar stat`: what NICs count, and where each of their groups stands.
 *
 * Only asks; changes nothing at a NIC and takes no port.
 */
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nbar.h"

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
static const char *const status_name[] = { "ok", "silent", "host died", "closed", "NIC down", "?" };

static const char *life_of(const struct nbar_group_info *g)
{
	return life_name[g->life <= NBAR_LIFE_LINGER ? g->life : 0];
}

static const char *status_of(const struct nbar_group_info *g)
{
	return status_name[g->status < NBAR_STATUS_END ? g->status : NBAR_STATUS_END];
}

struct stat_options {
	const char *nic; /* NULL: all of the run directory */
	bool json, all;
	uint32_t watch; /* seconds; 0: once */
};

/* What one NIC said. */
struct snapshot {
	struct nbar_rep_nic_stat nic;
	struct nbar_group_info *group;
	uint32_t ngroup, room;
};

static int keep_group(void *arg, const struct nbar_group_info *info)
{
	struct snapshot *s = arg;

	if (s->ngroup == s->room) {
		uint32_t room = s->room ? 2 * s->room : 64;
		struct nbar_group_info *more = realloc(s->group, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->group = more;
		s->room = room;
	}
	s->group[s->ngroup++] = *info;
	return 0;
}

static int take(const char *nic, struct snapshot *s)
{
	int r = nbar_nic_stat(nic, &s->nic);

	s->ngroup = 0;
	if (!r)
		r = nbar_nic_groups(nic, keep_group, s);
	if (!r)
		return 0;
	tool_error("%s", nbar_error());
	return TOOL_FAILED;
}

static void usage(FILE *to)
{
	fputs("usage: nbar stat [OPTION]... [NIC]\n"
	      "Counters of a NIC, and its groups: where each stands, and whom it waits for.\n"
	      "NIC is a name (n0) or the path of a control socket; without it, all NICs of the run\n"
	      "directory are shown.\n\n"
	      "  -a, --all        also counters that are 0\n"
	      "  --json           as JSON; with --watch one line each time\n"
	      "  --watch SEC      again every SEC seconds, with rates; end it with Ctrl-C\n"
	      "  --run-dir DIR    run directory of the daemon ($NBAR_RUN_DIR, or else /run/nbar\n"
	      "                   for root, $XDG_RUNTIME_DIR/nbar, /tmp/nbar-UID)\n"
	      "  -h, --help       this text\n"
	      "\nColumns: index of the group at its NIC; its port, and the process that owns it;\n"
	      "rank/size; epoch, the last barrier started, and posted, the last one its host has\n"
	      "arrived at; step, of how many; whom it waits for, and ranks known to be late.\n",
	      to);
}

static void print_counters(const struct snapshot *s, const struct snapshot *before, bool all,
			   uint32_t seconds)
{
	for (uint32_t i = 0; i < NBAR_COUNTER_END; i++) {
		uint64_t value = s->nic.counter[i];

		if (!value && !all)
			continue;
		printf("  %-18s %14llu", counter_name[i], (unsigned long long)value);
		if (before)
			printf(" %12.0f/s",
			       (double)(value - before->nic.counter[i]) / (double)seconds);
		printf("  %s\n", counter_text[i]);
	}
}

/* What a group is doing, in words: "waits for 3; late: 5, 6". */
static void print_state(const struct nbar_group_info *g)
{
	if (g->status != NBAR_STATUS_OK) {
		/* A group whose host has left in good order has not failed. */
		if (g->life == NBAR_LIFE_LINGER && g->culprit == g->rank &&
		    g->status == NBAR_STATUS_CLOSED)
			printf("closed");
		else
			printf("failed: rank %u: %s", g->culprit, status_of(g));
		return;
	}
	if (!g->running) {
		printf("idle");
		return;
	}
	printf("waits for %u", g->waits_for);
	if (g->nmissing > 1)
		printf(" and %u more", g->nmissing - 1);
	for (uint32_t i = 0; i < g->nlate; i++)
		printf("%s%u", i ? ", " : "; late: ", g->late[i]);
}

static void print_groups(const struct snapshot *s)
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
		print_state(g);
		putchar('\n');
	}
}

static void print_nic(const struct snapshot *s, const struct snapshot *before,
		      const struct stat_options *opt)
{
	const struct nbar_rep_nic_stat *n = &s->nic;

	printf("NIC %s: wire %s, address %s, daemon %u; ports %u, groups %u, lingering %u\n",
	       n->nic, n->wire, n->address, n->pid, n->nport, n->ngroup, n->nlinger);
	print_counters(s, before, opt->all, opt->watch);
	print_groups(s);
}

/* A rank, or null. */
static json_t *rank_json(uint32_t rank)
{
	return rank == NBAR_RANK_NONE ? json_null() : json_integer(rank);
}

static json_t *group_json(const struct nbar_group_info *g)
{
	json_t *o = json_object(), *late = json_array();

	for (uint32_t i = 0; i < g->nlate; i++)
		json_array_append_new(late, json_integer(g->late[i]));
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
	json_object_set_new(o, "culprit", rank_json(g->culprit));
	NUMBER(nmissing);
	json_object_set_new(o, "waits_for", rank_json(g->waits_for));
	json_object_set_new(o, "late", late);
#undef NUMBER
	return o;
}

static json_t *nic_json(const struct snapshot *s)
{
	const struct nbar_rep_nic_stat *n = &s->nic;
	json_t *o = json_object(), *counters = json_object(), *groups = json_array();

	for (uint32_t i = 0; i < NBAR_COUNTER_END; i++)
		json_object_set_new(counters, counter_name[i],
				    json_integer((json_int_t)n->counter[i]));
	for (uint32_t i = 0; i < s->ngroup; i++)
		json_array_append_new(groups, group_json(&s->group[i]));
	json_object_set_new(o, "nic", json_string(n->nic));
	json_object_set_new(o, "wire", json_string(n->wire));
	json_object_set_new(o, "address", json_string(n->address));
	json_object_set_new(o, "pid", json_integer(n->pid));
	json_object_set_new(o, "ports", json_integer(n->nport));
	json_object_set_new(o, "lingering", json_integer(n->nlinger));
	json_object_set_new(o, "counters", counters);
	json_object_set_new(o, "groups", groups);
	return o;
}

/* The NICs to show. */
struct targets {
	char *name[NBAR_NICS_MAX];
	struct snapshot now[NBAR_NICS_MAX], before[NBAR_NICS_MAX];
	uint32_t n;
};

static void print_all(struct targets *t, const struct stat_options *opt, bool first)
{
	json_t *nics = json_array(), *root;

	if (!opt->json) {
		if (opt->watch && isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		for (uint32_t i = 0; i < t->n; i++)
			print_nic(&t->now[i], first ? NULL : &t->before[i], opt);
		json_decref(nics);
		return;
	}
	for (uint32_t i = 0; i < t->n; i++)
		json_array_append_new(nics, nic_json(&t->now[i]));
	root = json_pack("{s:s, s:o}", "version", NBAR_VERSION_TEXT, "nics", nics);
	json_dumpf(root, stdout, opt->watch ? JSON_COMPACT : JSON_INDENT(2));
	json_decref(root);
	putchar('\n');
}

/* The rule of libnbar and nbar-nicd; see nbar-nicd(8). */
static void find_run_dir(char *out, size_t size)
{
	const char *set = getenv("NBAR_RUN_DIR"), *xdg = getenv("XDG_RUNTIME_DIR");

	if (set && *set)
		snprintf(out, size, "%s", set);
	else if (geteuid() == 0)
		snprintf(out, size, "/run/nbar");
	else if (xdg && *xdg)
		snprintf(out, size, "%s/nbar", xdg);
	else
		snprintf(out, size, "/tmp/nbar-%u", (unsigned)geteuid());
}

static int by_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	size_t nx = strlen(x), ny = strlen(y);

	/* n2 before n10. */
	return nx != ny ? (nx > ny) - (nx < ny) : strcmp(x, y);
}

static int find_nics(struct targets *t)
{
	char dir[512];
	struct dirent *e;
	DIR *d;

	find_run_dir(dir, sizeof(dir));
	d = opendir(dir);
	while (d && (e = readdir(d)) && t->n < NBAR_NICS_MAX) {
		size_t n = strlen(e->d_name);

		if (n > 5 && !strcmp(e->d_name + n - 5, ".sock") &&
		    asprintf(&t->name[t->n], "%s/%s", dir, e->d_name) > 0)
			t->n++;
	}
	if (d)
		closedir(d);
	if (!t->n) {
		tool_error("no NIC in %s: start nbar-nicd, or name its run directory by --run-dir",
			   dir);
		return TOOL_FAILED;
	}
	qsort(t->name, t->n, sizeof(t->name[0]), by_name);
	return 0;
}

static int show(struct targets *t, const struct stat_options *opt)
{
	int r = 0;

	for (bool first = true; !r; first = false) {
		for (uint32_t i = 0; i < t->n && !r; i++)
			r = take(t->name[i], &t->now[i]);
		if (r)
			break;
		print_all(t, opt, first);
		for (uint32_t i = 0; i < t->n; i++)
			t->before[i].nic = t->now[i].nic;
		if (fflush(stdout)) {
			tool_error("cannot write to stdout: %s", strerror(errno));
			r = TOOL_FAILED;
		}
		if (!opt->watch)
			break;
		sleep(opt->watch);
	}
	return r;
}

static int parse(int argc, char **argv, struct stat_options *opt, bool *help)
{
	static const struct option long_options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' },
		{ "watch", required_argument, NULL, 'w' },
		{ "run-dir", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	uint64_t seconds = 0;
	int c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":ah", long_options, NULL)) != -1) {
		switch (c) {
		case 'a':
			opt->all = true;
			break;
		case 'j':
			opt->json = true;
			break;
		case 'w':
			if (!tool_number(optarg, 1, 86400, &seconds))
				return tool_usage("--watch: '%s' is not a number from 1 to 86400",
						  optarg);
			opt->watch = (uint32_t)seconds;
			break;
		case 'r':
			setenv("NBAR_RUN_DIR", optarg, 1);
			break;
		case 'h':
			*help = true;
			return 0;
		case ':':
			return tool_usage("%s wants a value", argv[optind - 1]);
		default:
			return tool_usage("unknown option %s", argv[optind - 1]);
		}
	}
	if (optind < argc)
		opt->nic = argv[optind++];
	if (optind < argc)
		return tool_usage("one NIC at a time, or none for all; what is '%s'?",
				  argv[optind]);
	return 0;
}

int tool_stat(int argc, char **argv)
{
	struct stat_options opt = { 0 };
	struct targets *t;
	bool help = false;
	int r = parse(argc, argv, &opt, &help);

	if (help)
		usage(stdout);
	if (r || help)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t) {
		tool_error("no memory");
		return TOOL_FAILED;
	}
	if (opt.nic)
		t->name[t->n++] = strdup(opt.nic);
	else
		r = find_nics(t);
	if (!r)
		r = show(t, &opt);
	for (uint32_t i = 0; i < t->n; i++) {
		free(t->name[i]);
		free(t->now[i].group);
	}
	free(t);
	return r;
}
