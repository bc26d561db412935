/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.c - `nbar stat`: counters of NICs, and the state of each of their groups.
 *
 * It only reads: it changes nothing at a NIC, and takes no port.
 */
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nbar_host.h"
#include "option.h"
#include "stat.h"
#include "stat_watch.h"
#include "subcommands.h"

static void stat_usage(FILE *to)
{
	fputs("usage: nbar stat [OPTION]... [NIC]\n"
	      "Shows the counters of a NIC, and for each group its state and who is missing.\n"
	      "NIC is a name (n0) or the path of a control socket; without it, all NICs of the\n"
	      "run directory are shown.\n\n"
	      "  -a, --all        show also counters that are 0\n"
	      "  --json           print JSON; with --watch, one line for each display\n"
	      "  --openmetrics    print the counters of NICs as OpenMetrics, for Prometheus\n"
	      "  --last           for each group: from which ranks the last tokens of its\n"
	      "                   barriers came, and how long those barriers took\n"
	      "  --why GROUP      why the barrier of the group (its index) is not complete: the\n"
	      "                   ranks that have not arrived; late, stopped, ended, or silent\n"
	      "  --watch SEC      every SEC seconds: rates, and the groups that wait longest;\n"
	      "                   a line per NIC if stdout is not a terminal; Ctrl-C ends it\n"
	      "  -n, --count N    with --watch: end after N displays\n"
	      "  --run-dir DIR    run directory of the daemon ($NBAR_RUN_DIR, or else /run/nbar\n"
	      "                   for root, $XDG_RUNTIME_DIR/nbar or /tmp/nbar-UID; if that\n"
	      "                   directory does not exist, /run/nbar)\n"
	      "  -h, --help       this text\n"
	      "\nColumns: index of the group at its NIC; its port, and the process that owns the\n"
	      "port; rank/size; epoch: the last barrier that has started; posted: the last\n"
	      "barrier that the host has posted; step, and the number of steps; state: the\n"
	      "rank that the group waits for, and late ranks.\n",
	      to);
}

static int by_name(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	size_t nx = strlen(x), ny = strlen(y);

	/* n2 before n10. */
	return nx != ny ? (nx > ny) - (nx < ny) : strcmp(x, y);
}

static int find_nics(struct stat_targets *t)
{
	char dir[512];
	struct dirent *e;
	int r = 0;
	DIR *d;

	nbar_run_dir_find(dir, sizeof(dir));
	d = opendir(dir);
	if (!d && errno == EACCES) {
		tool_error("no permission for %s: ask its owner for access, or name another run "
			   "directory by --run-dir",
			   dir);
		return TOOL_FAILED;
	}
	if (!d && errno != ENOENT) {
		tool_error("cannot read %s: %s", dir, strerror(errno));
		return TOOL_FAILED;
	}
	while (d && (e = readdir(d)) && t->n < NBAR_NICS_MAX && r == 0) {
		size_t n = strlen(e->d_name);

		if (n <= 5 || strcmp(e->d_name + n - 5, ".sock") != 0)
			continue;
		if (asprintf(&t->name[t->n], "%s/%s", dir, e->d_name) > 0)
			t->n++;
		else
			r = TOOL_FAILED, tool_error("no memory: free some, and try again");
	}
	if (d)
		closedir(d);
	if (r)
		return r;
	if (!t->n) {
		tool_error("no NIC in %s: start nbar-nicd, or name its run directory by --run-dir",
			   dir);
		return TOOL_FAILED;
	}
	qsort(t->name, t->n, sizeof(t->name[0]), by_name);
	return 0;
}

static int stat_show(struct stat_targets *t, const struct stat_options *opt)
{
	int r = stat_take(t);

	if (r)
		return r;
	if (opt->openmetrics)
		stat_print_openmetrics(t);
	else if (!opt->asks_why)
		stat_print(t, opt);
	else if (!stat_print_why(t, opt->why)) {
		tool_error("no group %u here: nbar stat shows the groups and their indices",
			   opt->why);
		return TOOL_FAILED;
	}
	return stat_flush();
}

static int stat_read_option(void *arg, int c, const char *value)
{
	struct stat_options *opt = arg;

	switch (c) {
	case 'a':
		return option_flag(&opt->all);
	case 'j':
		return option_flag(&opt->json);
	case 'l':
		return option_flag(&opt->last);
	case 'o':
		return option_flag(&opt->openmetrics);
	case 'y':
		opt->asks_why = true;
		return option_u32("--why", value, 0, UINT32_MAX, &opt->why);
	case 'n':
		return option_u32("--count", value, 1, UINT32_MAX, &opt->count);
	case 'w':
		return option_u32("--watch", value, 1, 86400, &opt->watch);
	}
	return option_run_dir(value);
}

static int stat_parse(int argc, char **argv, struct stat_options *opt, bool *help)
{
	static const struct option long_options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' },
		{ "last", no_argument, NULL, 'l' },
		{ "openmetrics", no_argument, NULL, 'o' },
		{ "watch", required_argument, NULL, 'w' },
		{ "why", required_argument, NULL, 'y' },
		{ "count", required_argument, NULL, 'n' },
		{ "run-dir", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int r = option_each(argc, argv, 1, ":ahn:", long_options, stat_read_option, opt, help);

	if (r || *help)
		return r;
	if (opt->asks_why && (opt->json || opt->watch || opt->last))
		return tool_usage("--why cannot be combined with --json, --last or --watch");
	if (opt->openmetrics && (opt->json || opt->watch || opt->last || opt->all || opt->asks_why))
		return tool_usage("--openmetrics cannot be combined with --all, --json, --last, "
				  "--watch or --why");
	if (opt->last && opt->watch && !opt->json)
		return tool_usage("--last with --watch needs --json");
	if (opt->count && !opt->watch)
		return tool_usage("--count needs --watch");
	if (optind < argc)
		opt->nic = argv[optind++];
	if (optind < argc)
		return tool_usage("name one NIC, or none to see all NICs; '%s' is too much",
				  argv[optind]);
	return 0;
}

int tool_stat(int argc, char **argv)
{
	struct stat_options opt = { 0 };
	struct stat_targets *t;
	bool help = false;
	int r = stat_parse(argc, argv, &opt, &help);

	if (option_ends(r, help, stat_usage))
		return r;
	t = tool_alloc(1, sizeof(*t));
	t->last = opt.last;
	t->counters_only = opt.openmetrics;
	if (!opt.nic)
		r = find_nics(t);
	else if ((t->name[0] = strdup(opt.nic)))
		t->n = 1;
	else
		r = TOOL_FAILED, tool_error("no memory: free some, and try again");
	if (!r)
		r = opt.watch ? stat_watch_run(t, &opt) : stat_show(t, &opt);
	for (uint32_t i = 0; i < t->n; i++) {
		free(t->name[i]);
		free(t->now[i].group);
		free(t->now[i].last);
	}
	free(t);
	return r;
}
