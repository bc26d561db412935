/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rundir.c - the run directory on a folder that other services use too: a daemon must leave
 * their files alone, and other users must not disturb it.
 */
#include "unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rundir.h"

#define NOBODY 65534u

static char dir[32];

static const char *in_dir(const char *name)
{
	static char path[4][80];
	static unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
	return path[turn];
}

static int dir_begin(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/nbar-rundir-XXXXXX");
	return mkdtemp(dir) && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int dir_end(void **state)
{
	static const char *const names[] = { "nicd.lock", "n0.sock", "n1.sock", "other.sock",
					     "away.sock" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(in_dir(names[i]));
	return rmdir(dir);
}

/* A socket of another service. listens: whether the service listens on it. */
static int service(const char *name, bool listens)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(sun.sun_path, in_dir(name));
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	if (listens)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static bool exists(const char *name)
{
	struct stat st;

	return lstat(in_dir(name), &st) == 0;
}

/* A daemon that makes a socket and is killed. */
static void daemon_is_killed(const char *nic)
{
	struct rundir_socket s;
	int lock = rundir_take(dir), fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(lock >= 0 && rundir_bind(dir, nic, fd, &s) == 0 && listen(fd, 1) == 0);
	close(fd);
	close(lock);
}

static void only_listed_sockets_are_removed(void **state)
{
	int live = service("other.sock", true), lock;

	(void)state;
	close(service("n1.sock", true));
	daemon_is_killed("n0");
	assert_true(exists("n0.sock"));
	lock = rundir_take(dir);
	assert_true(lock >= 0);
	assert_false(exists("n0.sock"));
	assert_true(exists("other.sock"));
	assert_true(exists("n1.sock")); /* nobody listens, but it is not of the daemon */
	close(lock);
	close(live);
}

/* The name was listed, but another service has it now. */
static void listed_name_is_not_enough(void **state)
{
	int live, lock;

	(void)state;
	daemon_is_killed("n0");
	assert_int_equal(rename(in_dir("n0.sock"), in_dir("away.sock")), 0);
	live = service("n0.sock", false);
	lock = rundir_take(dir);
	assert_true(lock >= 0 && exists("n0.sock"));
	close(lock);
	close(live);
}

/* A listed socket on which somebody listens belongs to a process that runs. */
static void live_socket_stays(void **state)
{
	struct rundir_socket s;
	int lock = rundir_take(dir), fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	assert_true(lock >= 0 && rundir_bind(dir, "n0", fd, &s) == 0 && listen(fd, 1) == 0);
	close(lock);
	lock = rundir_take(dir);
	assert_true(lock >= 0 && exists("n0.sock"));
	close(fd);
	close(lock);
}

/* A daemon that was killed between bind() and the second write has listed its socket already. */
static void killed_while_binding(void **state)
{
	static const char list[] = "1\nn0.sock 00000000000000000000\n../n1.sock 0\nnonsense\n";
	int fd = open(in_dir("nicd.lock"), O_RDWR | O_CREAT, 0600), lock;

	(void)state;
	assert_int_equal(write(fd, list, sizeof(list) - 1), sizeof(list) - 1);
	close(fd);
	close(service("n0.sock", false));
	lock = rundir_take(dir);
	assert_true(lock >= 0);
	assert_false(exists("n0.sock"));
	close(lock);
}

static void taken_name_is_refused(void **state)
{
	int live = service("n0.sock", true), lock = rundir_take(dir);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct rundir_socket s;

	(void)state;
	assert_int_equal(rundir_bind(dir, "n0", fd, &s), -EADDRINUSE);
	rundir_remove(&s);
	assert_true(exists("n0.sock"));
	close(fd);
	close(lock);
	close(live);
}

static void end_removes_only_its_own(void **state)
{
	int lock = rundir_take(dir), fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), other;
	struct rundir_socket s;

	(void)state;
	assert_int_equal(rundir_bind(dir, "n0", fd, &s), 0);
	assert_int_equal(rename(in_dir("n0.sock"), in_dir("away.sock")), 0);
	other = service("n0.sock", true);
	rundir_remove(&s);
	assert_true(exists("n0.sock"));
	close(other);
	close(fd);
	close(lock);
}

/* The mode of a lock file that an older daemon has left is corrected. */
static void lock_file_has_mode_0600(void **state)
{
	int fd = open(in_dir("nicd.lock"), O_RDWR | O_CREAT, 0644), lock;
	struct stat st;

	(void)state;
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
	lock = rundir_take(dir);
	assert_true(lock >= 0 && fstat(lock, &st) == 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	close(lock);
}

/* Exit status 0: another user cannot even open the lock file, so this user cannot lock it. */
static void another_user_cannot_hold_the_lock(void **state)
{
	int lock, status = 0;
	pid_t child;

	(void)state;
	if (geteuid() != 0) {
		print_message("another user: needs root\n");
		skip();
	}
	lock = rundir_take(dir);
	assert_true(lock >= 0);
	close(lock);
	child = fork();
	if (child == 0) {
		if (setresuid(NOBODY, NOBODY, NOBODY) < 0)
			_exit(2);
		int fd = open(in_dir("nicd.lock"), O_RDONLY);

		_exit(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
	}
	assert_true(child > 0 && waitpid(child, &status, 0) == child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_listed_sockets_are_removed, dir_begin,
						dir_end),
		cmocka_unit_test_setup_teardown(listed_name_is_not_enough, dir_begin, dir_end),
		cmocka_unit_test_setup_teardown(live_socket_stays, dir_begin, dir_end),
		cmocka_unit_test_setup_teardown(killed_while_binding, dir_begin, dir_end),
		cmocka_unit_test_setup_teardown(taken_name_is_refused, dir_begin, dir_end),
		cmocka_unit_test_setup_teardown(end_removes_only_its_own, dir_begin, dir_end),
		cmocka_unit_test_setup_teardown(lock_file_has_mode_0600, dir_begin, dir_end),
		cmocka_unit_test_setup_teardown(another_user_cannot_hold_the_lock, dir_begin,
						dir_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
