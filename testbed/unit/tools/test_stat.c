/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stat.c - the command line of `nbar stat`: which NICs it asks, what it prints of them, and
 * what it refuses. The replies are those of the test.
 */
#include "unit/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <unistd.h>

#include "stat.h"
#include "stat_watch.h"
#include "subcommands.h"
#include "tool.h"
#include "unit/said.h"

static char dir[] = "/tmp/nbar-stat-XXXXXX";
static char calls[8192]; /* with the NICs, and what they are called for */
static const char *err;
static int take_result, opendir_error;
static bool has_group;

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);

DIR *__wrap_opendir(const char *path)
{
	if (!opendir_error)
		return __real_opendir(path);
	errno = opendir_error;
	return NULL;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	size_t used = strlen(calls);
	va_list args;

	va_start(args, format);
	vsnprintf(calls + used, sizeof(calls) - used, format, args);
	va_end(args);
}

int stat_take(struct stat_targets *t)
{
	note("take%s%s", t->last ? " last" : "", t->counters_only ? " counters" : "");
	for (uint32_t i = 0; i < t->n; i++) {
		const char *base = strrchr(t->name[i], '/');

		assert_true(!base || strncmp(t->name[i], dir, strlen(dir)) == 0);
		note(" %s", base ? base + 1 : t->name[i]);
		t->now[i].group = calloc(1, sizeof(*t->now[i].group));
		t->now[i].last = calloc(1, sizeof(*t->now[i].last));
	}
	note("; ");
	return take_result;
}

int stat_flush(void)
{
	note("flush");
	return 0;
}

void stat_print(const struct stat_targets *t, const struct stat_options *opt)
{
	note("print %u%s%s%s; ", t->n, opt->json ? " json" : "", opt->all ? " all" : "",
	     opt->last ? " last" : "");
}

void stat_print_openmetrics(const struct stat_targets *t)
{
	note("openmetrics %u; ", t->n);
}

bool stat_print_why(const struct stat_targets *t, uint32_t index)
{
	note("why %u %u; ", t->n, index);
	return has_group;
}

int stat_watch_run(struct stat_targets *t, const struct stat_options *opt)
{
	note("watch %u %u %u%s", t->n, opt->watch, opt->count, opt->json ? " json" : "");
	return 9;
}

/* Runs `nbar stat` with these words, and returns its exit status. */
static int run(const char *line)
{
	static char text[256];
	char *argv[32] = { (char *)"stat" }, *save = NULL;
	int argc = 1, r;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	calls[0] = '\0';
	optind = 0;
	said_begin();
	r = tool_stat(argc, argv);
	err = said_end();
	return r;
}

static void does(const char *line, int status, const char *want)
{
	require(run(line) == status, "%s: %s", line, err);
	require(strcmp(calls, want) == 0, "%s: %s", line, calls);
	assert_string_equal(err, "");
}

static void fails(const char *line, const char *message)
{
	require(run(line) == TOOL_FAILED, "%s", line);
	require(strcmp(err, message) == 0, "%s: %s", line, err);
}

static void refuses(const char *line, const char *message)
{
	require(run(line) == TOOL_USAGE, "%s", line);
	require(strncmp(err, message, strlen(message)) == 0, "%s: %s", line, err);
	assert_string_equal(calls, "");
}

static void one_nic(void **state)
{
	does("n7", 0, "take n7; print 1; flush");
	does("--all n7", 0, "take n7; print 1 all; flush");
	does("-a --json n7", 0, "take n7; print 1 json all; flush");
	does("--last n7", 0, "take last n7; print 1 last; flush");
	does("--openmetrics n7", 0, "take counters n7; openmetrics 1; flush");
	has_group = true;
	does("--why 0 n7", 0, "take n7; why 1 0; flush");
	does("--why 4294967295 n7", 0, "take n7; why 1 4294967295; flush");
	has_group = false;
	fails("--why 5 n7",
	      "nbar: no group 5 here: nbar stat shows the groups and their indices\n");
	take_result = 4;
	does("n7", 4, "take n7; ");
	take_result = 0;
	does("--watch 3 n7", 9, "watch 1 3 0");
	does("--watch 86400 -n 2 --json n7", 9, "watch 1 86400 2 json");
	does("--watch 1 --last --json n7", 9, "watch 1 1 0 json");
}

static void wrong_options(void **state)
{
	static const char why[] = "nbar: --why cannot be combined with --json, --last or --watch\n",
			  metrics[] = "nbar: --openmetrics cannot be combined with --all, --json, "
				      "--last, --watch or --why\n";

	refuses("--why 1 --json", why);
	refuses("--why 1 --watch 1", why);
	refuses("--why 1 --last", why);
	refuses("--openmetrics --json", metrics);
	refuses("--openmetrics --watch 1", metrics);
	refuses("--openmetrics --last", metrics);
	refuses("--openmetrics --all", metrics);
	refuses("--openmetrics --why 1", metrics);
	refuses("--last --watch 1", "nbar: --last with --watch needs --json\n");
	refuses("--count 1", "nbar: --count needs --watch\n");
	refuses("a b", "nbar: name one NIC, or none to see all NICs; 'b' is too much\n");
	refuses("--watch 0", "nbar: --watch");
	refuses("--watch 86401", "nbar: --watch");
	refuses("--watch 1 --count 0", "nbar: --count");
	refuses("--why 4294967296", "nbar: --why");
	refuses("--nonsense", "nbar: ");
}

static void file(const char *name, bool there)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!there) {
		unlink(path);
		return;
	}
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

/* All sockets of the run directory, n2 before n10. */
static void all_nics(void **state)
{
	static const char *const names[] = { "n10.sock", "n2.sock", "n1.sock",  "n3.socks",
					     ".sock",    "n.sock",  "nicd.lock" };
	char line[64], want[256], name[16];
	size_t used = 0;

	assert_non_null(mkdtemp(dir));
	snprintf(line, sizeof(line), "--run-dir %s", dir);
	snprintf(want, sizeof(want),
		 "nbar: no NIC in %s: start nbar-nicd, or name its run directory by --run-dir\n",
		 dir);
	fails(line, want);
	for (uint32_t i = 0; i < 7; i++)
		file(names[i], true);
	does(line, 0, "take n.sock n1.sock n2.sock n10.sock; print 4; flush");
	for (uint32_t i = 0; i < 80; i++) {
		if (i == 16)
			used = mallinfo2().uordblks;
		assert_int_equal(run(line), 0);
	}
	/* The allocator keeps some blocks back. */
	if (!unit_sanitized() || unit_counted())
		assert_true(mallinfo2().uordblks < used + 1024);
	opendir_error = EACCES;
	snprintf(want, sizeof(want),
		 "nbar: no permission for %s: ask its owner for access, or name another run "
		 "directory by --run-dir\n",
		 dir);
	fails(line, want);
	opendir_error = EIO;
	snprintf(want, sizeof(want), "nbar: cannot read %s: Input/output error\n", dir);
	fails(line, want);
	opendir_error = 0;
	for (uint32_t there = 2; there-- > 0;) {
		for (uint32_t i = 0; i < NBAR_NICS_MAX + 2; i++) {
			snprintf(name, sizeof(name), "m%u.sock", i);
			file(name, there);
		}
		if (there) {
			assert_int_equal(run(line), 0);
			snprintf(want, sizeof(want), "print %u; flush", NBAR_NICS_MAX);
			assert_non_null(strstr(calls, want));
		}
	}
	for (uint32_t i = 0; i < 7; i++)
		file(names[i], false);
	assert_int_equal(rmdir(dir), 0);
	snprintf(want, sizeof(want),
		 "nbar: no NIC in %s: start nbar-nicd, or name its run directory by --run-dir\n",
		 dir);
	fails(line, want);
}

UNIT_MAIN(NULL, NULL, UNIT(one_nic), UNIT(wrong_options), UNIT(all_nics))
