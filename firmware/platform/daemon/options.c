/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - the command line of nbar-nicd.
 *
 * Called by main() before anything else. A message names each wrong option and the right form.
 */
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_file.h"
#include "daemon.h"
#include "log.h"
#include "options.h"
#include "rundir.h"

#define USER_PERCENT_SHARED 50u /* default of --user-percent if other users may connect */

static int usage(const char *what)
{
	log_error("%s; see nbar-nicd --help", what);
	return EXIT_USAGE;
}

/* Finds the position of text among n words. */
static int choice(const char *option, const char *text, const char *const *word, int n, int *out)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(text, word[i]) == 0) {
			*out = i;
			return -1;
		}
	}
	log_error("--%s %s: it is one of %s, %s, %s", option, text, word[0], word[1], word[2]);
	return EXIT_USAGE;
}

static int user_parse(const char *text, struct options *o)
{
	const struct passwd *user = getpwnam(text);
	unsigned long n;

	if (!user && (*text < '0' || *text > '9')) {
		log_error("--user %s: there is no such user", text);
		return EXIT_USAGE;
	}
	if (!user && daemon_number("user", text, 10, 0, 0xfffffffeul, &n) != -1)
		return EXIT_USAGE;
	if (!user)
		user = getpwuid((uid_t)n);
	o->uid = user ? user->pw_uid : (uid_t)n;
	o->gid = user ? user->pw_gid : (gid_t)n;
	o->has_user = true;
	return -1;
}

static int name_check(const struct options *o, const char *name)
{
	if (spec_name("--nic", name) < 0)
		return EXIT_USAGE;
	for (uint32_t i = 0; i < o->nnic; i++) {
		if (strcmp(name, o->nic[i].name) == 0) {
			log_error("--nic name=%s: two NICs have this name", name);
			return EXIT_USAGE;
		}
	}
	return -1;
}

static int nic_add(struct options *o, const char *text)
{
	static const char *const keys[] = { "name", "wire", NULL };
	struct option_nic n = { .wire = wires_default() };
	char name[NBAR_NAME_MAX];
	const char *value;
	int rc;

	if (o->nnic == NBAR_NICS_MAX) {
		log_error("--nic %s: one daemon has at most %u NICs; start another with its own "
			  "--run-dir",
			  text ? text : "", NBAR_NICS_MAX);
		return EXIT_USAGE;
	}
	snprintf(name, sizeof(name), "n%u", o->nnic);
	if (text) {
		if (spec_parse("--nic", text, &n.spec) < 0)
			return EXIT_USAGE;
		value = spec_value(&n.spec, "wire");
		if (value && wires_find("--nic", value, WIRE_IN_DAEMON, &n.wire) < 0)
			return EXIT_USAGE;
		if (spec_check("--nic", &n.spec, n.wire, keys) < 0)
			return EXIT_USAGE;
	}
	value = spec_value(&n.spec, "name");
	rc = name_check(o, value ? value : name);
	if (rc != -1)
		return rc;
	snprintf(n.name, sizeof(n.name), "%s", value ? value : name);
	o->nic[o->nnic++] = n;
	return -1;
}

static int nics_add(struct options *o, const char *text)
{
	unsigned long n;
	int rc = daemon_number("nics", text, 10, 1, NBAR_NICS_MAX, &n);

	for (; rc == -1 && n > 0; n--)
		rc = nic_add(o, NULL);
	return rc;
}

/* Which of these options were given. */
struct given {
	bool cpu, idle, check;
};

/* Checks options that depend on each other, and sets their defaults. */
static int finish(struct options *o, const struct given *given)
{
	bool takes_arguments = false;

	if (o->nnic == 0)
		return usage("no NIC to run; name some with --nic name=n0, or --nics 4");
	for (uint32_t i = 0; i < o->nnic; i++) {
		takes_arguments |= o->nic[i].wire->object != NULL;
		if (wires_auth_check(o->nic[i].wire, o->nic[i].name, &o->auth) < 0)
			return EXIT_USAGE;
	}
	if (o->eal_argc > 0 && !takes_arguments)
		return usage("EAL arguments are for DPDK, and no NIC here uses it");
	if (o->config.budget_ns < NBFW_WINDOW * o->config.pull_ns) {
		log_error("--budget-ms must be at least %u times --pull-us", NBFW_WINDOW);
		return EXIT_USAGE;
	}
	if (!o->run_dir[0] && rundir_default(o->run_dir, sizeof(o->run_dir)) < 0)
		return usage("the default run directory has too long a name; give --run-dir");
	while (!given->cpu && o->cpu < CPU_SETSIZE - 1 && !CPU_ISSET(o->cpu, &o->allowed))
		o->cpu++;
	if (!CPU_ISSET(o->cpu, &o->allowed)) {
		log_error("--cpu %u: this process may not use that processor (see taskset -p $$)",
			  o->cpu);
		return EXIT_USAGE;
	}
	if (!given->idle)
		o->idle = given->cpu && o->nallowed >= 4 ? NICD_IDLE_SPIN : NICD_IDLE_SLEEP;
	if (o->config.user_percent == 0)
		o->config.user_percent = o->mode & 077 ? USER_PERCENT_SHARED : 100;
	if (!given->check)
		return -1;
	printf("The configuration is valid; number of NICs: %u.\n", o->nnic);
	return EXIT_SUCCESS;
}

enum {
	OPT_NIC = 1,
	OPT_NICS,
	OPT_RUN_DIR,
	OPT_CPU,
	OPT_IDLE,
	OPT_PULL,
	OPT_BUDGET,
	OPT_MEMORY,
	OPT_USER_PERCENT,
	OPT_MODE,
	OPT_GROUP,
	OPT_USER,
	OPT_HUGE,
	OPT_TUNE,
	OPT_KEY_FILE,
	OPT_TRACE,
	OPT_CONFIG,
	OPT_CHECK,
	OPT_ALGS,
	OPT_LIST,
	OPT_VERSION,
	OPT_HELP
};

static const struct option long_options[] = {
	{ "nic", required_argument, NULL, OPT_NIC },
	{ "nics", required_argument, NULL, OPT_NICS },
	{ "run-dir", required_argument, NULL, OPT_RUN_DIR },
	{ "cpu", required_argument, NULL, OPT_CPU },
	{ "idle", required_argument, NULL, OPT_IDLE },
	{ "pull-us", required_argument, NULL, OPT_PULL },
	{ "budget-ms", required_argument, NULL, OPT_BUDGET },
	{ "memory-mb", required_argument, NULL, OPT_MEMORY },
	{ "user-percent", required_argument, NULL, OPT_USER_PERCENT },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "group", required_argument, NULL, OPT_GROUP },
	{ "user", required_argument, NULL, OPT_USER },
	{ "huge", required_argument, NULL, OPT_HUGE },
	{ "tune", required_argument, NULL, OPT_TUNE },
	{ "key-file", required_argument, NULL, OPT_KEY_FILE },
	{ "trace", required_argument, NULL, OPT_TRACE },
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "check-config", no_argument, NULL, OPT_CHECK },
	{ "list-algs", no_argument, NULL, OPT_ALGS },
	{ "list-wires", no_argument, NULL, OPT_LIST },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

/* Adds an argument of the EAL, DPDK's start-up. */
static int eal_add(struct options *o, const char *arg)
{
	if (o->eal_argc == WIRE_ARGS_MAX) {
		log_error("%s: there are at most %u EAL arguments", arg, WIRE_ARGS_MAX);
		return EXIT_USAGE;
	}
	o->eal_argv[o->eal_argc] = strdup(arg);
	if (!o->eal_argv[o->eal_argc]) {
		log_error("%s: no memory", arg);
		return EXIT_FAILURE;
	}
	o->eal_argc++;
	return -1;
}

static config_file_take config_take;

struct config_take {
	struct options *o;
	struct given *given;
};

/* Handles one option. -1: continue; else the exit status. */
static int option_take(struct options *o, int which, const char *arg, struct given *given)
{
	static const char *const idles[] = { "spin", "yield", "sleep" };
	static const char *const huges[] = { "auto", "yes", "no" };
	unsigned long n = 0;
	int i = 0, rc = -1;

	switch (which) {
	case OPT_NIC:
		return nic_add(o, arg);
	case OPT_NICS:
		return nics_add(o, arg);
	case OPT_RUN_DIR:
		return daemon_text("run-dir", arg, o->run_dir, sizeof(o->run_dir));
	case OPT_CPU:
		rc = daemon_number("cpu", arg, 10, 0, CPU_SETSIZE - 1, &n);
		o->cpu = (unsigned)n;
		given->cpu = true;
		return rc;
	case OPT_IDLE:
		rc = choice("idle", arg, idles, 3, &i);
		o->idle = (enum nicd_idle)i;
		given->idle = true;
		return rc;
	case OPT_PULL:
		rc = daemon_number("pull-us", arg, 10, 1, 60000000, &n);
		o->config.pull_ns = n * UINT64_C(1000);
		return rc;
	case OPT_BUDGET:
		rc = daemon_number("budget-ms", arg, 10, 1, 86400000, &n);
		o->config.budget_ns = n * UINT64_C(1000000);
		return rc;
	case OPT_MEMORY:
		rc = daemon_number("memory-mb", arg, 10, 1, 1048576, &n);
		o->config.memory_bytes = (uint64_t)n << 20;
		return rc;
	case OPT_USER_PERCENT:
		rc = daemon_number("user-percent", arg, 10, 1, 100, &n);
		o->config.user_percent = (uint32_t)n;
		return rc;
	case OPT_MODE:
		rc = daemon_number("mode", arg, 8, 0, 0777, &n);
		o->mode = (mode_t)n;
		return rc;
	case OPT_GROUP:
		return daemon_group(arg, &o->group);
	case OPT_USER:
		return user_parse(arg, o);
	case OPT_HUGE:
		rc = choice("huge", arg, huges, 3, &i);
		o->huge = huges[i];
		return rc;
	case OPT_TUNE:
		return tune_load(arg, &o->tune) < 0 ? EXIT_USAGE : -1;
	case OPT_KEY_FILE:
		return wire_auth_load("--key-file", arg, &o->auth) < 0 ? EXIT_USAGE : -1;
	case OPT_TRACE:
		rc = daemon_number("trace", arg, 10, 1, NBAR_TRACE_EVENTS_MAX, &n);
		o->trace = (uint32_t)n;
		return rc;
	case OPT_CONFIG:
		return config_file_read(arg, config_take,
					&(struct config_take){ .o = o, .given = given });
	case OPT_CHECK:
		given->check = true;
		return -1;
	case OPT_ALGS:
		return options_list_algs();
	case OPT_LIST:
		options_list_wires();
		return EXIT_SUCCESS;
	case OPT_VERSION:
		return options_version();
	case OPT_HELP:
		return options_help();
	}
	return EXIT_USAGE; /* getopt has printed the reason */
}

/* Handles a line of a configuration file: an option with a value, or an argument of the EAL. */
static int config_take(void *arg, const char *word, const char *value)
{
	struct config_take *to = arg;

	if (strcmp(word, "eal") == 0)
		return eal_add(to->o, value);
	for (const struct option *opt = long_options; opt->name; opt++)
		if (opt->has_arg == required_argument && opt->val != OPT_CONFIG &&
		    strcmp(opt->name, word) == 0)
			return option_take(to->o, opt->val, value, to->given);
	log_error("%s: no such option; it is one of those of nbar-nicd --help, without dashes, or "
		  "eal",
		  word);
	return EXIT_USAGE;
}

int options_parse(int argc, char **argv, struct options *o)
{
	struct given given = { false, false, false };
	int which, rc = -1;

	*o = (struct options){
		.config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
			    .budget_ns = NBNIC_BUDGET_NS_DEFAULT,
			    .memory_bytes = NBNIC_MEMORY_BYTES },
		.mode = 0600,
		.group = (gid_t)-1,
		.huge = "auto",
	};
	if (sched_getaffinity(0, sizeof(o->allowed), &o->allowed) < 0)
		CPU_SET(0, &o->allowed);
	o->nallowed = CPU_COUNT(&o->allowed);
	while (rc == -1 && (which = getopt_long(argc, argv, "+", long_options, NULL)) != -1)
		rc = option_take(o, which, optarg, &given);
	if (rc != -1)
		return rc;
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0) {
		log_error("unexpected argument \"%s\"; EAL arguments stand behind \"--\"",
			  argv[optind]);
		return EXIT_USAGE;
	}
	for (; rc == -1 && optind < argc; optind++)
		rc = eal_add(o, argv[optind]);
	if (rc != -1)
		return rc;
	return finish(o, &given);
}
