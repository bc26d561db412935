/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_privileges.c - a daemon that root starts becomes --user: which rights it has at each step,
 * and what it says when a step fails. The system calls are those of the test.
 */
#include "unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "privileges.h"
#include "rundir.h"

#define DIR_FD 0 /* stdin was closed */
#define LOCK_FD 71

static struct options o;
static uid_t euid;
static char done[512]; /* the calls, in order */
static char said[512];
static const char *fails; /* the call that fails */
static int error;

void log_error(const char *format, ...)
{
	size_t used = strlen(said);
	va_list args;

	va_start(args, format);
	vsnprintf(said + used, sizeof(said) - used, format, args);
	va_end(args);
}

/* Notes a call; -1: it fails. */
__attribute__((format(printf, 1, 2))) static int call(const char *format, ...)
{
	size_t used = strlen(done);
	va_list args;

	va_start(args, format);
	vsnprintf(done + used, sizeof(done) - used, format, args);
	va_end(args);
	if (!fails || strncmp(done + used, fails, strlen(fails)) != 0)
		return 0;
	errno = error;
	return -1;
}

int __wrap_prctl(int what, unsigned long on, unsigned long a, unsigned long b, unsigned long c)
{
	assert_int_equal(what, PR_SET_NO_NEW_PRIVS);
	return call("prctl %lu %lu %lu %lu; ", on, a, b, c);
}

uid_t __wrap_geteuid(void)
{
	return euid;
}

uid_t __wrap_getuid(void)
{
	return 11;
}

gid_t __wrap_getgid(void)
{
	return 12;
}

int __wrap_seteuid(uid_t uid)
{
	return call("seteuid %u; ", uid);
}

int __wrap_setegid(gid_t gid)
{
	return call("setegid %u; ", gid);
}

int __wrap_setgroups(size_t n, const gid_t *group)
{
	return call("setgroups %zu %u %u; ", n, group[0], n > 1 ? group[1] : 0);
}

int __wrap_setresgid(gid_t r, gid_t e, gid_t s)
{
	return call("setresgid %u %u %u; ", r, e, s);
}

int __wrap_setresuid(uid_t r, uid_t e, uid_t s)
{
	return call("setresuid %u %u %u; ", r, e, s);
}

int __real_mkdir(const char *path, mode_t mode);
int __real_open(const char *path, int flags, ...);

/* The coverage build writes its counts by these, too. */
static bool not_ours(const char *path)
{
	return strcmp(path, "/run/x") != 0;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	if (not_ours(path))
		return __real_mkdir(path, mode);
	return call("mkdir %s %o; ", path, mode);
}

int __wrap_open(const char *path, int flags, ...)
{
	if (not_ours(path))
		return __real_open(path, flags, 0644);
	assert_int_equal(flags, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return call("open %s; ", path) < 0 ? -1 : DIR_FD;
}

int __wrap_fchown(int fd, uid_t uid, gid_t gid)
{
	assert_int_equal(fd, DIR_FD);
	return call("fchown %u %u; ", uid, gid);
}

int __wrap_close(int fd)
{
	assert_int_equal(fd, DIR_FD);
	return call("close; ");
}

int __wrap_rundir_take(const char *path)
{
	return call("take %s; ", path) < 0 ? -EBUSY : LOCK_FD;
}

/* A daemon of root with --user 21. */
static int begin(void **state)
{
	memset(&o, 0, sizeof(o));
	strcpy(o.set.run_dir, "/run/x");
	o.set.has_user = true;
	o.set.uid = 21;
	o.set.gid = 22;
	o.set.group = (gid_t)-1;
	euid = 0;
	fails = NULL;
	error = EPERM;
	return 0;
}

static void calls(int (*function)(const struct options *), int result, const char *want)
{
	done[0] = said[0] = '\0';
	errno = EEXIST; /* of an earlier call */
	assert_int_equal(function(&o), result);
	assert_string_equal(done, want);
}

static void failure(int (*function)(const struct options *), const char *call_that_fails,
		    const char *want, const char *message)
{
	fails = call_that_fails;
	calls(function, -error, want);
	assert_string_equal(said, message);
	fails = NULL;
}

#define BECOME "--user: cannot become uid 21: "
#define HINT "; start the daemon as root or as that user"
#define EPERM_TEXT "Operation not permitted"

static void no_new_privileges(void **state)
{
	done[0] = said[0] = '\0';
	privileges_freeze();
	assert_string_equal(done, "prctl 1 0 0 0; ");
	assert_string_equal(said, "");
	fails = "prctl";
	privileges_freeze();
	assert_string_equal(said, "no_new_privs: " EPERM_TEXT "; the daemon goes on without it");
}

static void lends(void **state)
{
	calls(privileges_lend, 0, "setegid 22; seteuid 21; ");
	calls(privileges_return, 0, "seteuid 11; setegid 12; ");
	failure(privileges_lend, "setegid", "setegid 22; ", BECOME EPERM_TEXT HINT);
	failure(privileges_lend, "seteuid", "setegid 22; seteuid 21; ", BECOME EPERM_TEXT HINT);
	failure(privileges_return, "seteuid", "seteuid 11; ",
		"--user: cannot return from uid 21: " EPERM_TEXT HINT);
	failure(privileges_return, "setegid", "seteuid 11; setegid 12; ",
		"--user: cannot return from uid 21: " EPERM_TEXT HINT);
}

static void drops(void **state)
{
	calls(privileges_drop, 0, "setgroups 1 22 0; setresgid 22 22 22; setresuid 21 21 21; ");
	failure(privileges_drop, "setgroups", "setgroups 1 22 0; ", BECOME EPERM_TEXT HINT);
	failure(privileges_drop, "setresgid", "setgroups 1 22 0; setresgid 22 22 22; ",
		BECOME EPERM_TEXT HINT);
	failure(privileges_drop, "setresuid",
		"setgroups 1 22 0; setresgid 22 22 22; setresuid 21 21 21; ",
		BECOME EPERM_TEXT HINT);
	o.set.group = 33;
	calls(privileges_drop, 0, "setgroups 2 22 33; setresgid 22 22 22; setresuid 21 21 21; ");
}

/* Without --user, or as that user, nothing changes. */
static void the_same_user(void **state)
{
	euid = 21;
	calls(privileges_lend, 0, "");
	calls(privileges_drop, 0, "");
	calls(privileges_take_run_dir, LOCK_FD, "take /run/x; ");
	o.set.has_user = false;
	euid = 0;
	calls(privileges_lend, 0, "");
	calls(privileges_return, 0, "");
	calls(privileges_drop, 0, "");
	calls(privileges_take_run_dir, LOCK_FD, "take /run/x; ");
}

#define MADE "mkdir /run/x 755; open /run/x; fchown 21 22; close; "
#define AS_USER "setegid 22; seteuid 21; take /run/x; seteuid 11; setegid 12; "
#define CANNOT                                                                                \
	"run directory /run/x: cannot make it for uid 21: " EPERM_TEXT "; make it yourself, " \
	"as that user, or give another one with --run-dir"

/* The directory is of the user, and the user takes it. */
static void run_directory(void **state)
{
	calls(privileges_take_run_dir, LOCK_FD, MADE AS_USER);
	failure(privileges_take_run_dir, "mkdir", "mkdir /run/x 755; ", CANNOT);
	failure(privileges_take_run_dir, "open", "mkdir /run/x 755; open /run/x; ", CANNOT);
	failure(privileges_take_run_dir, "fchown", MADE, CANNOT);
	failure(privileges_take_run_dir, "seteuid 21", MADE "setegid 22; seteuid 21; ",
		BECOME EPERM_TEXT HINT);
	failure(privileges_take_run_dir, "seteuid 11",
		MADE "setegid 22; seteuid 21; take /run/x; seteuid 11; ",
		"--user: cannot return from uid 21: " EPERM_TEXT HINT);
	fails = "take";
	calls(privileges_take_run_dir, -EBUSY, MADE AS_USER);
	/* An existing directory stays as it is. */
	fails = "mkdir";
	error = EEXIST;
	calls(privileges_take_run_dir, LOCK_FD, "mkdir /run/x 755; " AS_USER);
	assert_string_equal(said, "");
	/* Another user than root cannot become --user. */
	fails = NULL;
	euid = 1;
	calls(privileges_take_run_dir, -EPERM, "");
	assert_string_equal(said, BECOME EPERM_TEXT HINT);
}

UNIT_MAIN(NULL, NULL, cmocka_unit_test_setup(no_new_privileges, begin),
	  cmocka_unit_test_setup(lends, begin), cmocka_unit_test_setup(drops, begin),
	  cmocka_unit_test_setup(the_same_user, begin),
	  cmocka_unit_test_setup(run_directory, begin))
