/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostnic_spec.c - the description of an in-process NIC: values, bounds, defaults, the wire
 * that is chosen, and the text of each error. The wires are those of the test.
 */
#include "unit/unit.h"

#include <errno.h>
#include <sched.h>

#include "hostnic.h"
#include "log.h"
#include "wires.h"

static struct hostnic_spec spec;
static struct wire_base *opened;
static char text[256];    /* of an error */
static char calls[256];   /* to open wires */
static const char *fails; /* name of the wire that cannot be opened */
static int load_error, auth_error, getaffinity_error, setaffinity_error;
static char loaded[64];
static uint32_t nbound;
static cpu_set_t bound[4];
static uint32_t nwire;

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	assert_int_equal(pid, 0);
	memset(set, 0, size);
	CPU_SET(9, set);
	return getaffinity_error;
}

int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	assert_true(pid == 0 && size == sizeof(*set) && nbound < 4);
	bound[nbound++] = *set;
	errno = EINVAL;
	return CPU_ISSET(9, set) ? 0 : setaffinity_error;
}

int __wrap_wire_auth_load(const char *what, const char *path, struct wire_auth *out)
{
	assert_ptr_equal(out, &spec.auth);
	snprintf(loaded + strlen(loaded), sizeof(loaded) - strlen(loaded), "%s %s", what, path);
	return load_error;
}

/* Of an in-process NIC: all but the first. */
static const struct wire wires[] = {
	{ .name = "ring", .reach = WIRE_REACH_DAEMON },
	{ .name = "udp",
	  .reach = WIRE_REACH_NETWORK,
	  .key = { { "bind", "" }, { "address", "" } } },
	{ .name = "verbs", .reach = WIRE_REACH_NETWORK, .key = { { "device", "" } } },
	{ .name = "shm", .reach = WIRE_REACH_MACHINE, .key = { { "dir", "" } } },
	{ .name = "other", .reach = WIRE_REACH_MACHINE },
};

const struct wire *wires_next(const struct wire *row, unsigned platform)
{
	assert_int_equal(platform, WIRE_IN_PROCESS);
	row = row ? row + 1 : &wires[1];
	return row < wires + nwire ? row : NULL;
}

int wires_find(const char *what, const char *name, unsigned platform, const struct wire **out)
{
	assert_string_equal(what, "host");
	assert_int_equal(platform, WIRE_IN_PROCESS);
	for (uint32_t i = 1; i < nwire; i++)
		if (strcmp(name, wires[i].name) == 0) {
			*out = &wires[i];
			return 0;
		}
	log_error("no wire %s", name);
	return -1;
}

bool wires_has_key(const struct wire *row, const char *key)
{
	for (uint32_t i = 0; i < WIRE_KEYS_MAX && row->key[i].name; i++)
		if (strcmp(row->key[i].name, key) == 0)
			return true;
	return false;
}

static void note(const char *what, const struct wire *row)
{
	size_t used = strlen(calls);

	snprintf(calls + used, sizeof(calls) - used, "%s %s; ", what, row->name);
}

int wires_auth_check(const struct wire *row, const char *nic, const struct wire_auth *auth)
{
	assert_ptr_equal(auth, &spec.auth);
	assert_string_equal(nic, spec.set.name);
	note("check", row);
	return auth_error;
}

int wires_open(const struct wire *row, const char *nic, wire_option *option, void *args,
	       struct wire_base **out)
{
	const char *bind = option(args, "bind");

	assert_string_equal(nic, spec.set.name);
	note(bind ? bind : "open", row);
	if (fails && strcmp(fails, row->name) == 0)
		return -1;
	*out = (struct wire_base *)&spec; /* only its address counts */
	return 0;
}

void wires_auth(const struct wire *row, const struct wire_auth *auth, struct wire_base *w)
{
	assert_ptr_equal(auth, &spec.auth);
	assert_ptr_equal(w, opened);
	note("key", row);
}

static int begin(void **state)
{
	fails = NULL;
	load_error = auth_error = getaffinity_error = setaffinity_error = 0;
	nwire = sizeof(wires) / sizeof(wires[0]);
	return 0;
}

static int open_nic(const char *description)
{
	int rc;

	memset(&spec, 0, sizeof(spec));
	opened = NULL;
	calls[0] = loaded[0] = '\0';
	nbound = 0;
	hostnic_log_begin(text, sizeof(text));
	rc = hostnic_spec_open(description, &spec, &opened);
	hostnic_log_end(rc);
	log_error("after the end"); /* it has no reader */
	return rc;
}

static void accepted(const char *description, const char *want)
{
	require(open_nic(description) == 0, "%s: %s", description, text);
	assert_string_equal(calls, want);
	assert_ptr_equal(opened, &spec);
	assert_string_equal(text, "");
}

static void refused(const char *description, int error, const char *message)
{
	require(open_nic(description) == error, "%s", description);
	require(strcmp(text, message) == 0, "%s: %s", description, text);
}

#define VERBS "check verbs; open verbs; key verbs; "
#define UDP "check udp; open udp; key udp; "

static void defaults(void **state)
{
	accepted("", VERBS);
	assert_string_equal(spec.set.name, "host");
	assert_true(spec.set.config.pull_ns == NBNIC_PULL_NS_DEFAULT);
	assert_true(spec.set.config.budget_ns == NBNIC_BUDGET_NS_DEFAULT);
	assert_true(spec.set.cpu == SETTINGS_UNSET && nbound == 0);
	assert_string_equal(loaded, "");
}

static void values(void **state)
{
	char line[128];

	accepted("name=a,pull-us=1,budget-ms=86400000", VERBS);
	assert_string_equal(spec.set.name, "a");
	assert_true(spec.set.config.pull_ns == 1000);
	assert_true(spec.set.config.budget_ns == UINT64_C(86400000000000));
	accepted("pull-us=60000000,budget-ms=86400000", VERBS);
	assert_true(spec.set.config.pull_ns == UINT64_C(60000000000));
	accepted("pull-us=1,budget-ms=200", VERBS);
	assert_true(spec.set.config.budget_ns == 200000000);
	refused("pull-us=0", -EINVAL, "host pull-us=0: not a number from 1 to 60000000");
	refused("budget-ms=199", -EINVAL, "host budget-ms=199: not a number from 200 to 86400000");
	snprintf(line, sizeof(line), "pull-us=1000000,budget-ms=%u", NBFW_WINDOW * 1000);
	accepted(line, VERBS);
	snprintf(line, sizeof(line), "pull-us=1000001,budget-ms=%u", NBFW_WINDOW * 1000);
	assert_int_equal(open_nic(line), -EINVAL);
	snprintf(line, sizeof(line), "budget-ms must be at least %u times pull-us", NBFW_WINDOW);
	assert_string_equal(text, line);
	assert_string_equal(calls, "");
	assert_int_equal(open_nic("name=.a"), -EINVAL);
	assert_int_equal(strncmp(text, "host name=.a: a name has ", 25), 0);
	refused("pull-us", -EINVAL,
		"host pull-us: not a list of KEY=VALUE, such as name=n0,wire=WIRE");
}

static void processors(void **state)
{
	accepted("cpu=4", VERBS);
	assert_true(spec.set.cpu != SETTINGS_UNSET && CPU_COUNT(&spec.cpu) == 1 &&
		    CPU_ISSET(4, &spec.cpu));
	/* The thread that asks gets its own processors back. */
	assert_int_equal(nbound, 2);
	assert_true(CPU_COUNT(&bound[0]) == 1 && CPU_ISSET(4, &bound[0]));
	assert_true(CPU_COUNT(&bound[1]) == 1 && CPU_ISSET(9, &bound[1]));
	setaffinity_error = -1;
	refused("cpu=4", -EINVAL,
		"host cpu=4: this process cannot use that processor: Invalid argument");
	assert_true(nbound == 2 && CPU_ISSET(9, &bound[1]));
	assert_string_equal(calls, "");
	getaffinity_error = -1; /* then nobody knows */
	accepted("cpu=4", VERBS);
	assert_true(spec.set.cpu != SETTINGS_UNSET && nbound == 0);
	accepted("cpu=0", VERBS);
	accepted("cpu=1023", VERBS);
	assert_true(CPU_ISSET(1023, &spec.cpu));
	refused("cpu=1024", -EINVAL, "host cpu=1024: not a number from 0 to 1023");
	assert_int_equal(spec.set.cpu, SETTINGS_UNSET);
}

static void files(void **state)
{
	accepted("key-file=/b", VERBS);
	assert_string_equal(loaded, "host key-file /b");
	load_error = -EACCES;
	refused("key-file=/b", -EACCES, "Permission denied");
	assert_string_equal(calls, "");
}

/* Without wire=, the last that leads to other machines, has the keys, and can be opened. */
static void best_wires(void **state)
{
	accepted("bind=x", "check udp; x udp; key udp; ");
	accepted("device=d", VERBS);
	fails = "verbs";
	accepted("", "check verbs; open verbs; " UDP);
	fails = "udp";
	refused("bind=x", -1, "Operation not permitted");
	assert_string_equal(calls, "check udp; x udp; ");
	refused("dir=/tmp", -EINVAL,
		"host: unknown key \"dir\"; a NIC on wire verbs has: name, wire, cpu, pull-us, "
		"budget-ms, key-file, device");
	assert_string_equal(calls, "");
	auth_error = -1;
	refused("", -1, "Operation not permitted");
	assert_string_equal(calls, "check verbs; check udp; ");
	assert_null(opened);
}

static void named_wires(void **state)
{
	accepted("wire=udp", UDP);
	accepted("wire=other", "check other; open other; key other; ");
	refused("wire=ring", -1, "no wire ring");
	refused("wire=udp,device=d", -EINVAL,
		"host: unknown key \"device\"; a NIC on wire udp has: name, wire, cpu, pull-us, "
		"budget-ms, key-file, bind, address");
	assert_string_equal(calls, "");
	fails = "udp";
	refused("wire=udp", -1, "Operation not permitted");
	assert_string_equal(calls, "check udp; open udp; ");
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(defaults, begin),
	  cmocka_unit_test_setup(values, begin), cmocka_unit_test_setup(processors, begin),
	  cmocka_unit_test_setup(files, begin), cmocka_unit_test_setup(best_wires, begin),
	  cmocka_unit_test_setup(named_wires, begin))
