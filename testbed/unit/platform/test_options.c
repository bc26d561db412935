/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_options.c - the options of nbar-nicd, on the command line and in a file: the value that each
 * sets, its bounds, the defaults, and the message for each error.
 */
#include "unit/unit.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <pwd.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_file.h"
#include "daemon.h"
#include "logged.h"
#include "options.h"
#include "rundir.h"

static struct options o;
static cpu_set_t allowed;
static int affinity_error, load_error, auth_error;
static char loaded[64]; /* what was loaded last */
static uint32_t nauth;
static const char *listed; /* what was printed last */
static bool no_memory;

char *__real_strdup(const char *text);

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	assert_true(pid == 0 && size == sizeof(*set));
	if (affinity_error)
		return -1;
	*set = allowed;
	return 0;
}

char *__wrap_strdup(const char *text)
{
	return no_memory ? NULL : __real_strdup(text);
}

static struct passwd *alice(bool known)
{
	static struct passwd user = { .pw_name = (char *)"alice", .pw_uid = 1001, .pw_gid = 1002 };

	return known ? &user : NULL;
}

struct passwd *__wrap_getpwnam(const char *name)
{
	return alice(strcmp(name, "alice") == 0);
}

struct passwd *__wrap_getpwuid(uid_t uid)
{
	return alice(uid == 1001);
}

int __wrap_wire_auth_load(const char *what, const char *path, struct wire_auth *out)
{
	assert_ptr_equal(out, &o.auth);
	snprintf(loaded, sizeof(loaded), "%s %s", what, path);
	return load_error;
}

static const struct wire wires[] = { { .name = "ring" },
				     { .name = "udp", .key = { { "bind", "an address" } } },
				     { .name = "kernel", .key = { { "dev", "an interface" } } } };

const struct wire *wires_default(void)
{
	return &wires[0];
}

int wires_find(const char *what, const char *name, unsigned platform, const struct wire **out)
{
	assert_string_equal(what, "--nic");
	assert_int_equal(platform, WIRE_IN_DAEMON);
	for (uint32_t i = 0; i < 3; i++) {
		if (strcmp(wires[i].name, name) == 0) {
			*out = &wires[i];
			return 0;
		}
	}
	log_error("no such wire");
	return -EINVAL;
}

bool wires_has_key(const struct wire *row, const char *key)
{
	return row->key[0].name && strcmp(row->key[0].name, key) == 0;
}

int wires_auth_check(const struct wire *row, const char *nic, const struct wire_auth *auth)
{
	assert_true(row && auth == &o.auth);
	nauth++;
	return auth_error;
}

void options_help(void)
{
	listed = "help";
}

void options_version(void)
{
	listed = "version";
}

void options_list_algs(void)
{
	listed = "algs";
}

void options_list_wires(void)
{
	listed = "wires";
}

/* Parses a command line of words with one blank between them. */
static int parse(const char *line)
{
	static char text[4096];
	char *argv[256] = { (char *)"nbar-nicd" }, *save = NULL;
	int argc = 1;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	logged[0] = loaded[0] = '\0';
	nauth = 0;
	optind = 0;
	opterr = 0;
	return options_parse(argc, argv, &o);
}

/* Processors 3 and 5. */
static int begin(void **state)
{
	CPU_ZERO(&allowed);
	CPU_SET(3, &allowed);
	CPU_SET(5, &allowed);
	affinity_error = load_error = auth_error = 0;
	no_memory = false;
	setenv("NBAR_RUN_DIR", "/run/default", 1);
	return 0;
}

static void accepted(const char *line)
{
	require(parse(line) == 0, "%s: %s", line, logged);
	assert_string_equal(logged, "");
}

static void refused(const char *line, const char *message)
{
	require(parse(line) == -EINVAL, "%s", line);
	require(strcmp(logged, message) == 0, "%s: %s", line, logged);
}

static uint32_t lines_of(const char *text)
{
	uint32_t n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

static void defaults(void **state)
{
	accepted("--nics 1");
	assert_string_equal(o.set.run_dir, "/run/default");
	assert_true(o.set.cpu == 3 && o.nallowed == 2 && o.set.idle == NICD_IDLE_SLEEP);
	assert_true(o.set.config.pull_ns == NBNIC_PULL_NS_DEFAULT);
	assert_true(o.set.config.budget_ns == NBNIC_BUDGET_NS_DEFAULT);
	assert_true(o.set.config.memory_bytes == NBNIC_MEMORY_BYTES);
	assert_int_equal(o.set.config.user_percent, 100);
	assert_true(o.set.mode == 0600 && o.set.group == (gid_t)-1 && !o.set.has_user);
	assert_true(o.set.trace == 0 && o.eal_argc == 0 && !o.auth.hash);
	assert_true(o.nnic == 1 && nauth == 1);
	assert_string_equal(o.nic[0].name, "n0");
	assert_ptr_equal(o.nic[0].wire, wires_default());
	assert_int_equal(o.nic[0].spec.n, 0);
	/* An interface is named. */
	accepted("--nic dev=eth0 --nic wire=udp");
	assert_ptr_equal(o.nic[0].wire, &wires[2]);
	assert_ptr_equal(o.nic[1].wire, &wires[1]);
	assert_int_equal(parse("--nic wire=udp,dev=eth0"), -EINVAL);
}

static void modes(void **state)
{
	accepted("--nics 1 --mode 0777");
	assert_int_equal(o.set.mode, 0777);
	assert_int_equal(o.set.config.user_percent, 50); /* others may connect */
	accepted("--nics 1 --mode 0");
	assert_true(o.set.mode == 0 && o.set.config.user_percent == 100);
	accepted("--nics 1 --mode 0700");
	assert_int_equal(o.set.config.user_percent, 100);
	accepted("--nics 1 --mode 0620");
	assert_int_equal(o.set.config.user_percent, 50);
	accepted("--nics 1 --mode 0601");
	assert_int_equal(o.set.config.user_percent, 50);
	accepted("--nics 1 --mode 0666 --user-percent 7");
	assert_int_equal(o.set.config.user_percent, 7);
	accepted("--nics 1 --attach 192.0.2.1:7100");
	assert_true(o.set.mode == 0600 && o.set.config.user_percent == 50);
	accepted("--nics 1 --attach 192.0.2.1:7100 --user-percent 100");
	assert_int_equal(o.set.config.user_percent, 100);
	assert_int_equal(parse("--nics 1 --mode 1000"), -EINVAL);
}

static void processors(void **state)
{
	accepted("--nics 1 --cpu 5");
	assert_int_equal(o.set.cpu, 5);
	refused("--nics 1 --cpu 4",
		"--cpu 4: this process may not use that processor (see taskset -p $$)\n");
	accepted("--nics 1 --cpu 3");
	assert_int_equal(o.set.cpu, 3);
	CPU_ZERO(&allowed);
	CPU_SET(CPU_SETSIZE - 1, &allowed);
	accepted("--nics 1");
	assert_int_equal(o.set.cpu, CPU_SETSIZE - 1);
	accepted("--nics 1 --cpu 1023");
	assert_int_equal(parse("--nics 1 --cpu 1024"), -EINVAL);
	assert_null(strstr(logged, "taskset"));
	CPU_ZERO(&allowed);
	refused("--nics 1",
		"--cpu 1023: this process may not use that processor (see taskset -p $$)\n");
	CPU_SET(0, &allowed);
	accepted("--nics 1 --cpu 0");
	affinity_error = 1; /* a processor is there */
	accepted("--nics 1");
	assert_true(o.set.cpu == 0 && o.nallowed == 1);
}

/* With a processor of its own, on a machine with others, the daemon spins. */
static void idle(void **state)
{
	CPU_SET(6, &allowed);
	accepted("--nics 1 --cpu 5");
	assert_int_equal(o.set.idle, NICD_IDLE_SLEEP);
	CPU_SET(7, &allowed);
	accepted("--nics 1 --cpu 5");
	assert_int_equal(o.set.idle, NICD_IDLE_SPIN);
	accepted("--nics 1");
	assert_int_equal(o.set.idle, NICD_IDLE_SLEEP);
	accepted("--nics 1 --cpu 5 --idle sleep");
	assert_int_equal(o.set.idle, NICD_IDLE_SLEEP);
	accepted("--nics 1 --idle yield");
	assert_int_equal(o.set.idle, NICD_IDLE_YIELD);
	accepted("--nics 1 --idle spin");
	assert_int_equal(o.set.idle, NICD_IDLE_SPIN);
	refused("--nics 1 --idle fast", "--idle fast: it is one of spin|yield|sleep\n");
	accepted("--nics 1 --huge no");
	assert_int_equal(o.set.huge, WIRE_HUGE_NO);
	refused("--nics 1 --huge sleep", "--huge sleep: it is one of auto|yes|no\n");
}

static void users(void **state)
{
	accepted("--nics 1 --user alice");
	assert_true(o.set.has_user && o.set.uid == 1001 && o.set.gid == 1002);
	accepted("--nics 1 --user 1001");
	assert_true(o.set.has_user && o.set.uid == 1001 && o.set.gid == 1002);
	accepted("--nics 1 --user 1003"); /* a number without a name */
	assert_true(o.set.has_user && o.set.uid == 1003 && o.set.gid == 1003);
	accepted("--nics 1 --user 0");
	assert_true(o.set.has_user && o.set.uid == 0 && o.set.gid == 0);
	accepted("--nics 1 --user 4294967294");
	assert_int_equal(o.set.uid, 4294967294u);
	assert_int_equal(parse("--nics 1 --user 4294967295"), -EINVAL); /* "no change" */
	assert_false(o.set.has_user);
	assert_int_equal(parse("--nics 1 --user 9x"), -EINVAL);
	refused("--nics 1 --user bob", "--user bob: there is no such user\n");
	refused("--nics 1 --user :1", "--user :1: there is no such user\n");
	refused("--nics 1 --user /1", "--user /1: there is no such user\n");
	accepted("--nics 1 --group 77");
	assert_int_equal(o.set.group, 77);
	assert_int_equal(parse("--nics 1 --group no-such-group"), -EINVAL);
}

static void names_of_nics(void **state)
{
	accepted("--nic name=a --nic wire=ring --nics 2 --nic name=b,wire=udp,bind=127.0.0.1:0");
	assert_int_equal(o.nnic, 5);
	assert_int_equal(nauth, 5);
	assert_string_equal(o.nic[0].name, "a");
	assert_string_equal(o.nic[1].name, "n1");
	assert_string_equal(o.nic[2].name, "n2");
	assert_string_equal(o.nic[3].name, "n3");
	assert_string_equal(o.nic[4].name, "b");
	assert_string_equal(o.nic[1].wire->name, "ring");
	assert_string_equal(o.nic[4].wire->name, "udp");
	assert_string_equal(spec_value(&o.nic[4].spec, "bind"), "127.0.0.1:0");
	refused("--nic name=a --nic name=b --nic name=a",
		"--nic name=a: two NICs have this name\n");
	refused("--nic name=n1 --nics 1", "--nic name=n1: two NICs have this name\n");
	assert_int_equal(o.nnic, 1);
	assert_int_equal(parse("--nic name=.a"), -EINVAL);
	assert_int_equal(parse("--nic name"), -EINVAL);
	assert_int_equal(parse("--nic wire=none"), -EINVAL);
	assert_string_equal(logged, "no such wire\n");
	assert_int_equal(parse("--nic wire=ring,bind=127.0.0.1:0"), -EINVAL);
	assert_non_null(
		strstr(logged, "unknown key \"bind\"; a NIC on wire ring has: name, wire\n"));
	accepted("--nics 63 --nic name=last");
	refused("--nics 64 --nic name=x", "--nic name=x: one daemon has at most 64 NICs; start "
					  "another with its own --run-dir\n");
	assert_int_equal(parse("--nics 0"), -EINVAL);
	refused("--nics 64 --nics 1", "--nic : one daemon has at most 64 NICs; start another with "
				      "its own --run-dir\n");
}

static void options_that_depend(void **state)
{
	char line[96];

	refused("--mode 0600", "no NIC to run; name some with --nic name=n0, or --nics 4; see "
			       "nbar-nicd --help\n");
	snprintf(line, sizeof(line), "--nics 1 --budget-ms %u --pull-us 1000", NBFW_WINDOW);
	accepted(line);
	snprintf(line, sizeof(line), "--nics 1 --budget-ms %u --pull-us 1001", NBFW_WINDOW);
	assert_int_equal(parse(line), -EINVAL);
	snprintf(line, sizeof(line), "budget-ms must be at least %u times pull-us\n", NBFW_WINDOW);
	assert_string_equal(logged, line);
	auth_error = -EINVAL;
	refused("--nics 2", "");
	assert_int_equal(nauth, 1);
}

static void run_directories(void **state)
{
	char line[256] = "--nics 1 --run-dir ";
	size_t n = strlen(line);

	memset(line + n, 'd', sizeof(o.set.run_dir) - 1);
	setenv("NBAR_RUN_DIR", line + n, 1);
	accepted("--nics 1");
	assert_string_equal(o.set.run_dir, line + n);
	accepted(line);
	assert_string_equal(o.set.run_dir, line + n);
	line[strlen(line)] = 'd';
	assert_int_equal(parse(line), -EINVAL);
	setenv("NBAR_RUN_DIR", line + n, 1);
	refused("--nics 1", "the default run directory has too long a name; give --run-dir\n");
	accepted("--nics 1 --run-dir d");
	assert_string_equal(o.set.run_dir, "d");
	accepted("--nics 1 --run-dir /run/other");
	assert_string_equal(o.set.run_dir, "/run/other");
}

static void files_that_are_loaded(void **state)
{
	accepted("--nics 1 --key-file /b");
	assert_string_equal(loaded, "--key-file /b");
	load_error = -EINVAL;
	refused("--nics 1 --key-file /b", "");
}

/* What stdout gets of a parse. */
static int parse_to(const char *line, char *text, size_t size)
{
	FILE *to = tmpfile();
	int out = dup(STDOUT_FILENO), rc;

	assert_non_null(to);
	fflush(stdout);
	dup2(fileno(to), STDOUT_FILENO);
	rc = parse(line);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	rewind(to);
	text[fread(text, 1, size - 1, to)] = '\0';
	fclose(to);
	return rc;
}

static void options_that_end(void **state)
{
	char text[128];

	assert_int_equal(parse("--help --nics 0"), 1);
	assert_string_equal(listed, "help");
	assert_int_equal(parse("--version"), 1);
	assert_string_equal(listed, "version");
	assert_int_equal(parse("--list-algs"), 1);
	assert_string_equal(listed, "algs");
	assert_int_equal(parse("--list-wires"), 1);
	assert_string_equal(listed, "wires");
	assert_int_equal(parse("--nonsense"), -EINVAL);
	refused("--nics 1 word",
		"unexpected argument \"word\"; EAL arguments stand behind \"--\"\n");
	accepted("--nics 1 --");
	assert_int_equal(parse_to("--check-config --nics 2", text, sizeof(text)), 1);
	assert_string_equal(text, "The configuration is valid; number of NICs: 2.\n");
	assert_int_equal(parse_to("--check-config", text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "");
}

static char path[] = "/tmp/nbar-options-XXXXXX";

static void file_is(const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void file_gives(const char *text, const char *message, unsigned line)
{
	char command[96], want[512];

	file_is(text, strlen(text));
	snprintf(command, sizeof(command), "--config %s", path);
	snprintf(want, sizeof(want),
		 "%s%s, line %u: correct this line, then try nbar-nicd --config %s "
		 "--check-config\n",
		 message, path, line, path);
	refused(command, want);
}

static void configuration_files(void **state)
{
	static const char good[] = "# a comment\n\n  \t\r\nnics\t 2\r\n\tcpu 5  \n  # another\n"
				   "nic  name=last\nmode 0660\nkey-file /a b";
	char line[96], want[128];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	file_is(good, strlen(good));
	snprintf(line, sizeof(line), "--config %s --mode 0600", path);
	accepted(line);
	assert_true(o.nnic == 3 && o.set.cpu == 5 && o.set.mode == 0600);
	assert_string_equal(o.nic[2].name, "last");
	assert_string_equal(loaded, "--key-file /a b"); /* a value may have blanks */
	snprintf(line, sizeof(line), "--mode 0600 --config %s", path);
	accepted(line);
	assert_int_equal(o.set.mode, 0660);
	CPU_SET(6, &allowed);
	CPU_SET(7, &allowed);
	accepted(line); /* the file has logged --cpu */
	assert_int_equal(o.set.idle, NICD_IDLE_SPIN);
	file_gives("nics 1\n\nnothing 7\nnics 0\n",
		   "nothing: no such option; it is one of those of nbar-nicd --help, without "
		   "dashes, or eal\n",
		   3);
	file_gives(
		"config /etc/other",
		"config: no such option; it is one of those of nbar-nicd --help, without dashes, "
		"or eal\n",
		1);
	file_gives(
		"help me",
		"help: no such option; it is one of those of nbar-nicd --help, without dashes, or "
		"eal\n",
		1);
	file_gives("#\ncpu",
		   "cpu has no value; a line is an option without its dashes, then its value\n", 2);
	file_gives("idle fast\nnics 0\n", "--idle fast: it is one of spin|yield|sleep\n", 1);
	/* Arguments of the EAL come before those of the command line. */
	file_is("eal -l 0,1\neal b", 16);
	snprintf(line, sizeof(line), "--config %s -- c", path);
	assert_int_equal(parse(line), -EINVAL); /* no NIC */
	assert_int_equal(o.eal_argc, 3);
	assert_string_equal(o.eal_argv[0], "-l 0,1");
	assert_string_equal(o.eal_argv[1], "b");
	assert_string_equal(o.eal_argv[2], "c");
	for (uint32_t i = 0; i < 3; i++)
		free(o.eal_argv[i]);
	file_is("nics 1\0", 7);
	snprintf(line, sizeof(line), "--nics 1 --config %s", path);
	snprintf(want, sizeof(want), "--config %s: the file is not text\n", path);
	refused(line, want);
	unlink(path);
	snprintf(want, sizeof(want), "--config %s: No such file or directory\n", path);
	refused(line, want);
}

/* Files leave no memory. */
static void many_configuration_files(void **state)
{
	static const char text[] = "# a file that is longer than a small block of the allocator\n";
	size_t used = 0;
	char line[96];

	for (uint32_t n = 0; n < 80; n++) {
		if (n == 16)
			used = mallinfo2().uordblks;
		file_is(text, sizeof(text) - (n % 2 == 0)); /* every second is not text */
		snprintf(line, sizeof(line), "--config %s", path);
		assert_int_equal(parse(line), -EINVAL);
	}
	if (!unit_sanitized() || unit_counted())
		assert_true(mallinfo2().uordblks < used + 2048);
	unlink(path);
}

static void arguments_of_dpdk(void **state)
{
	const uint32_t most = sizeof(o.eal_argv) / sizeof(o.eal_argv[0]);
	char line[1024] = "--";

	for (uint32_t n = 0; n <= most; n++)
		strcat(line, " a");
	assert_int_equal(parse(line), -EINVAL);
	assert_int_equal(strncmp(logged, "a: there are at most ", 21), 0);
	assert_int_equal(lines_of(logged), 1);
	assert_int_equal(o.eal_argc, most);
	for (uint32_t n = 0; n < most; n++) {
		assert_string_equal(o.eal_argv[n], "a");
		free(o.eal_argv[n]);
	}
	no_memory = true;
	assert_int_equal(parse("-- b c"), -ENOMEM);
	assert_string_equal(logged, "b: no memory\n");
	assert_int_equal(o.eal_argc, 0);
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(defaults, begin), cmocka_unit_test_setup(modes, begin),
	  cmocka_unit_test_setup(processors, begin), cmocka_unit_test_setup(idle, begin),
	  cmocka_unit_test_setup(users, begin), cmocka_unit_test_setup(names_of_nics, begin),
	  cmocka_unit_test_setup(options_that_depend, begin),
	  cmocka_unit_test_setup(run_directories, begin),
	  cmocka_unit_test_setup(files_that_are_loaded, begin),
	  cmocka_unit_test_setup(options_that_end, begin),
	  cmocka_unit_test_setup(configuration_files, begin),
	  cmocka_unit_test_setup(many_configuration_files, begin),
	  cmocka_unit_test_setup(arguments_of_dpdk, begin))
