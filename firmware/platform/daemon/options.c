/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - the command line of nbar-nicd: settings of the daemon alone, and checks of their
 * combinations.
 *
 * Called by main() before anything else. A message names each wrong option and the right form.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_file.h"
#include "log.h"

#define USER_PERCENT_SHARED 50u /* default of --user-percent if others may connect */

/* What the functions here hand to each other. */
struct parsing {
	struct options *o;
	struct settings_reader reader;
	bool check; /* only check the options */
};

static int usage(const char *what)
{
	log_error("%s; see nbar-nicd --help", what);
	return -EINVAL;
}

static int nic_add(struct options *o, const char *text)
{
	struct option_nic n = { .wire = wires_default() };
	char label[SPEC_TEXT_MAX];
	const char *value;
	int rc = 0;

	if (o->nnic == NBAR_NICS_MAX) {
		log_error("--nic %s: one daemon has at most %u NICs; start another with its own "
			  "--run-dir",
			  text, NBAR_NICS_MAX);
		return -EINVAL;
	}
	snprintf(n.name, sizeof(n.name), "n%u", o->nnic);
	rc = spec_parse("--nic", text, &n.spec);
	value = rc == 0 ? spec_value(&n.spec, "wire") : NULL;
	if (rc == 0 && !value && spec_value(&n.spec, "dev"))
		value = NBAR_WIRE_OF_DEVICE;
	if (value)
		rc = wires_find("--nic", value, WIRE_IN_DAEMON, &n.wire);
	if (rc == 0)
		rc = spec_check("--nic", &n.spec, n.wire, SETTING_KEY);
	value = spec_value(&n.spec, "name");
	snprintf(label, sizeof(label), "--nic name=%s", value ? value : n.name);
	if (rc == 0 && value)
		rc = settings_name(label, value, n.name);
	for (uint32_t i = 0; i < o->nnic && rc == 0; i++) {
		if (strcmp(n.name, o->nic[i].name) == 0) {
			log_error("%s: two NICs have this name", label);
			rc = -EINVAL;
		}
	}
	if (rc == 0)
		o->nic[o->nnic++] = n;
	return rc;
}

/* Adds an argument of the EAL, DPDK's start-up. */
static int eal_add(struct options *o, const char *arg)
{
	if (o->eal_argc == WIRE_ARGS_MAX) {
		log_error("%s: there are at most %u EAL arguments", arg, WIRE_ARGS_MAX);
		return -EINVAL;
	}
	o->eal_argv[o->eal_argc] = strdup(arg);
	if (!o->eal_argv[o->eal_argc]) {
		log_error("%s: no memory", arg);
		return -ENOMEM;
	}
	o->eal_argc++;
	return 0;
}

/* Handles a line of a configuration file: an option with a value, or an argument of the EAL. */
static int config_take(void *arg, const char *word, const char *value)
{
	const struct parsing *p = arg;
	const struct setting *s = settings_find(SETTING_NICD, word);

	if (strcmp(word, "eal") == 0)
		return eal_add(p->o, value);
	if (s && s->value && s->type != SETTING_CONFIG)
		return settings_option(&p->reader, s, value);
	log_error("%s: no such option; it is one of those of nbar-nicd --help, without dashes, or "
		  "eal",
		  word);
	return -EINVAL;
}

/* settings_reader.own */
static int options_own_take(void *arg, const struct setting *s, const char *text)
{
	struct parsing *p = arg;
	struct options *o = p->o;
	struct setting number = *s;
	int rc;

	if (s->type == SETTING_NIC)
		return nic_add(o, text);
	if (s->type == SETTING_KEY_FILE)
		return wire_auth_load("--key-file", text, &o->auth);
	if (s->type == SETTING_ATTACH)
		return settings_text(s->name, text, o->attach, sizeof(o->attach));
	if (s->type == SETTING_CONFIG)
		return config_file_read(text, config_take, p);
	if (s->type == SETTING_NICS) {
		number.type = SETTING_NUMBER;
		rc = settings_option(&p->reader, &number, text);
		for (; rc == 0 && o->set.nics > 0; o->set.nics--)
			rc = nic_add(o, "");
		return rc;
	}
	if (s->type == SETTING_CHECK)
		p->check = true;
	else if (s->type == SETTING_ALGS)
		options_list_algs();
	else if (s->type == SETTING_WIRES)
		options_list_wires();
	else if (s->type == SETTING_VERSION)
		options_version();
	else
		options_help();
	return s->type != SETTING_CHECK;
}

/* Checks options that depend on each other, and sets their defaults. */
static int options_finish(struct options *o)
{
	struct settings *s = &o->set;
	const bool cpu_given = s->cpu != SETTINGS_UNSET;
	bool takes_arguments = false;

	if (o->nnic == 0)
		return usage("no NIC to run; name some with --nic name=n0, or --nics 4");
	for (uint32_t i = 0; i < o->nnic; i++) {
		takes_arguments |= o->nic[i].wire->object && o->nic[i].wire->object->start;
		if (wires_auth_check(o->nic[i].wire, o->nic[i].name, &o->auth) < 0)
			return -EINVAL;
	}
	if (o->eal_argc > 0 && !takes_arguments)
		return usage("EAL arguments are for DPDK, and no NIC here uses it");
	if (settings_check(s) < 0)
		return -EINVAL;
	for (s->cpu = cpu_given ? s->cpu : 0; !cpu_given && s->cpu < CPU_SETSIZE - 1; s->cpu++)
		if (CPU_ISSET(s->cpu, &o->allowed))
			break;
	if (!CPU_ISSET(s->cpu, &o->allowed)) {
		log_error("--cpu %u: this process may not use that processor (see taskset -p $$)",
			  s->cpu);
		return -EINVAL;
	}
	if (s->idle == SETTINGS_UNSET)
		s->idle = cpu_given && o->nallowed >= 4 ? NICD_IDLE_SPIN : NICD_IDLE_SLEEP;
	if (s->config.user_percent == 0)
		s->config.user_percent = s->mode & 077 || o->attach[0] ? USER_PERCENT_SHARED : 100;
	return 0;
}

int options_parse(int argc, char **argv, struct options *o)
{
	struct parsing p = {
		.o = o,
		.reader = { SETTING_NICD, &o->set, options_own_take, &p },
	};
	int rc;

	*o = (struct options){ .nnic = 0 };
	settings_default(SETTING_NICD, &o->set);
	if (sched_getaffinity(0, sizeof(o->allowed), &o->allowed) < 0)
		CPU_SET(0, &o->allowed);
	o->nallowed = CPU_COUNT(&o->allowed);
	rc = settings_options(&p.reader, argc, argv);
	if (rc == 0 && optind < argc && strcmp(argv[optind - 1], "--") != 0) {
		log_error("unexpected argument \"%s\"; EAL arguments stand behind \"--\"",
			  argv[optind]);
		return -EINVAL;
	}
	for (; rc == 0 && optind < argc; optind++)
		rc = eal_add(o, argv[optind]);
	if (rc == 0)
		rc = options_finish(o);
	if (rc == 0 && p.check) {
		printf("The configuration is valid; number of NICs: %u.\n", o->nnic);
		return 1;
	}
	return rc;
}
