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

#include "logged.h"
#include "nbar_trace.h"
#include "rundir.h"

#define NOBODY 65534u

static char dir[32];
static int lowest; /* descriptor that is free at the start of a test */
static long euid_is = -1;
static enum { NOTHING, FSTAT, FCHMOD, FTRUNCATE, PWRITE } fails;

uid_t __real_geteuid(void);
int __real_fstat(int fd, struct stat *st);
int __real_fchmod(int fd, mode_t mode);
int __real_ftruncate(int fd, off_t bytes);
ssize_t __real_pwrite(int fd, const void *from, size_t n, off_t at);

static int failure(void)
{
	errno = EIO;
	return -1;
}

uid_t __wrap_geteuid(void)
{
	return euid_is < 0 ? __real_geteuid() : (uid_t)euid_is;
}

int __wrap_fstat(int fd, struct stat *st)
{
	return fails == FSTAT ? failure() : __real_fstat(fd, st);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	return fails == FCHMOD ? failure() : __real_fchmod(fd, mode);
}

int __wrap_ftruncate(int fd, off_t bytes)
{
	return fails == FTRUNCATE ? failure() : __real_ftruncate(fd, bytes);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at)
{
	return fails == PWRITE ? failure() : __real_pwrite(fd, from, n, at);
}

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
	fails = NOTHING;
	euid_is = -1;
	logged[0] = '\0';
	lowest = dup(STDIN_FILENO);
	close(lowest);
	strcpy(dir, "/tmp/nbar-rundir-XXXXXX");
	return mkdtemp(dir) && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int dir_end(void **state)
{
	static const char *const names[] = { "nicd.lock",  "n0.sock",   "n1.sock",
					     "other.sock", "away.sock", "n1.trace" };

	fails = NOTHING;
	assert_int_equal(dup(STDIN_FILENO), lowest); /* no descriptor is left open */
	close(lowest);
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

#define OTHER_DIR "give another one with --run-dir"

/* Refused with this message, with the directory in place of %s. */
static void refused(int error, const char *path, const char *message)
{
	assert_int_equal(rundir_take(path), error);
	logged_is(message);
}

static void bad_directories(void **state)
{
	char want[512], link[48], file[48];

	refused(-ENOENT, "/nowhere/nbar",
		"run directory /nowhere/nbar: cannot make it: No such file or directory; make it "
		"yourself, or " OTHER_DIR "\n");
	snprintf(link, sizeof(link), "%s", in_dir("n0.sock"));
	snprintf(file, sizeof(file), "%s", in_dir("n1.sock"));
	assert_int_equal(symlink(dir, link), 0);
	close(open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	snprintf(want, sizeof(want),
		 "run directory %s: a link or a file, not a directory; " OTHER_DIR "\n", link);
	refused(-ENOTDIR, link, want);
	snprintf(want, sizeof(want),
		 "run directory %s: a link or a file, not a directory; " OTHER_DIR "\n", file);
	refused(-ENOTDIR, file, want);
	for (uint32_t bit = 020; bit; bit = bit == 020 ? 02 : 0) {
		assert_int_equal(chmod(dir, 0755 | bit), 0);
		snprintf(want, sizeof(want),
			 "run directory %s: others may write to it (mode %04o) and put sockets of "
			 "their own there; " OTHER_DIR "\n",
			 dir, 0755 | bit);
		refused(-EPERM, dir, want);
	}
	assert_int_equal(chmod(dir, 0755), 0);
	euid_is = (long)geteuid() + 1;
	snprintf(want, sizeof(want),
		 "run directory %s belongs to uid %ld, not to uid %ld who runs this; " OTHER_DIR
		 "\n",
		 dir, euid_is - 1, euid_is);
	refused(-EPERM, dir, want);
	euid_is = -1;
	fails = FSTAT;
	snprintf(want, sizeof(want), "run directory %s: Input/output error\n", dir);
	refused(-EIO, dir, want);
}

/* In /tmp anybody can guess names: a directory there is for its user alone. */
static void modes_of_directories(void **state)
{
	const mode_t mask = umask(022);
	char path[64];
	struct stat st;

	for (uint32_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s%s/sub", i ? "/" : "", dir);
		errno = EPERM; /* of an earlier call */
		close(rundir_take(path));
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, i ? 0755 : 0700);
		unlink(in_dir("sub/nicd.lock"));
		rmdir(path);
	}
	umask(mask);
}

static void bad_lock_files(void **state)
{
	int lock = rundir_take(dir);
	char want[512];

	assert_true(lock >= 0);
	snprintf(want, sizeof(want),
		 "another daemon of nbar, process %d, runs on %s; stop it, or " OTHER_DIR "\n",
		 (int)getpid(), dir);
	refused(-EBUSY, dir, want);
	assert_int_equal(ftruncate(lock, 0), 0);
	snprintf(want, sizeof(want),
		 "another daemon of nbar, process 0, runs on %s; stop it, or " OTHER_DIR "\n", dir);
	refused(-EBUSY, dir, want);
	close(lock);
	snprintf(want, sizeof(want), "%s/nicd.lock: Input/output error\n", dir);
	for (fails = FCHMOD; fails <= PWRITE; fails++)
		refused(-EIO, dir, want);
	fails = NOTHING;
	unlink(in_dir("nicd.lock"));
	assert_int_equal(symlink("/dev/null", in_dir("nicd.lock")), 0);
	snprintf(want, sizeof(want), "%s/nicd.lock: Too many levels of symbolic links\n", dir);
	refused(-ELOOP, dir, want);
}

static void lock_is(int lock, const char *want)
{
	char text[256] = "";

	assert_true(pread(lock, text, sizeof(text) - 1, 0) >= 0);
	assert_string_equal(text, want);
}

/* The lock file: the process, then each socket with its inode. A daemon that is killed leaves two
 * sockets and a trace; the next removes all three. */
static void list_of_sockets(void **state)
{
	const uint32_t magic = NBAR_TRACE_MAGIC;
	int lock = rundir_take(dir), fd[2], trace;
	struct rundir_socket s[2];
	char want[256];

	snprintf(want, sizeof(want), "%d\n", (int)getpid());
	lock_is(lock, want);
	for (uint32_t i = 0; i < 2; i++) {
		fd[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		assert_int_equal(rundir_bind(dir, i ? "n1" : "n0", fd[i], &s[i]), 0);
		assert_string_equal(s[i].path, in_dir(i ? "n1.sock" : "n0.sock"));
		assert_true(s[i].inode != 0);
	}
	snprintf(want, sizeof(want), "%d\nn0.sock %020llu\nn1.sock %020llu\n", (int)getpid(),
		 (unsigned long long)s[0].inode, (unsigned long long)s[1].inode);
	lock_is(lock, want);
	assert_true(rundir_socket_is_stale(s[0].path, s[0].inode));
	assert_true(rundir_socket_is_stale(s[0].path, 0));
	assert_false(rundir_socket_is_stale(s[0].path, s[1].inode));
	assert_false(rundir_socket_is_stale(in_dir("nicd.lock"), 0));
	trace = open(in_dir("n1.trace"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(trace, &magic, sizeof(magic)), sizeof(magic));
	close(trace);
	close(fd[0]);
	close(fd[1]);
	close(lock);
	lock = rundir_take(dir);
	assert_false(exists("n0.sock") || exists("n1.sock") || exists("n1.trace"));
	snprintf(want, sizeof(want), "%d\n", (int)getpid());
	lock_is(lock, want);
	close(lock);
	logged_is("");
}

static void bad_sockets(void **state)
{
	int lock = rundir_take(dir), fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char want[512], longest[256];
	struct rundir_socket s;

	memset(longest, 'x', sizeof(longest));
	snprintf(longest + sizeof(s.path) - strlen("/n0.sock"), 2, "%s", "");
	snprintf(
		want, sizeof(want),
		"run directory %s is too long a name: a socket's path has at most 107 bytes; give a "
		"shorter one with --run-dir\n",
		longest);
	assert_int_equal(rundir_bind(longest, "n0", fd, &s), -ENAMETOOLONG);
	logged_is(want);
	longest[strlen(longest) - 1] = '\0'; /* fits; no such directory */
	assert_int_equal(rundir_bind(longest, "n0", fd, &s), -ENOENT);
	assert_non_null(strstr(logged, ": No such file or directory\n"));
	logged[0] = '\0';
	snprintf(want, sizeof(want), "control socket %s: Bad file descriptor\n", in_dir("n0.sock"));
	assert_int_equal(rundir_bind(dir, "n0", -1, &s), -EBADF);
	logged_is(want);
	snprintf(want, sizeof(want), "control socket %s: Input/output error\n", in_dir("n0.sock"));
	fails = PWRITE;
	assert_int_equal(rundir_bind(dir, "n0", fd, &s), -EIO);
	logged_is(want);
	fails = NOTHING;
	close(service("n0.sock", false));
	snprintf(
		want, sizeof(want),
		"control socket %s: this file exists, and no daemon of nbar has listed it in "
		"%s/nicd.lock; remove it if no program uses it, give the NIC another name, or " OTHER_DIR
		"\n",
		in_dir("n0.sock"), dir);
	assert_int_equal(rundir_bind(dir, "n0", fd, &s), -EADDRINUSE);
	logged_is(want);
	assert_true(s.inode == 0);
	unlink(in_dir("n0.sock"));
	assert_int_equal(rundir_socket_note(&s), -ENOENT);
	close(lock);
	unlink(in_dir("nicd.lock"));
	assert_int_equal(symlink("/dev/null", in_dir("nicd.lock")), 0);
	snprintf(want, sizeof(want), "control socket %s: Too many levels of symbolic links\n",
		 in_dir("n0.sock"));
	assert_int_equal(rundir_bind(dir, "n0", fd, &s), -ELOOP);
	logged_is(want);
	unlink(in_dir("nicd.lock"));
	assert_int_equal(rundir_bind(dir, "n0", fd, &s), 0); /* without a lock file */
	rundir_remove(&s);
	assert_true(s.inode == 0 && !exists("n0.sock"));
	rundir_remove(&s);
	close(fd);
	logged_is("");
}

/* A socket on which somebody listens is not stale, whatever its kind. */
static void live_sockets(void **state)
{
	static const int types[] = { SOCK_SEQPACKET, SOCK_STREAM };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	strcpy(sun.sun_path, in_dir("n0.sock"));
	for (uint32_t i = 0; i < 2; i++) {
		int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);

		assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
		assert_int_equal(listen(fd, 1), 0);
		errno = ECONNREFUSED; /* of an earlier call */
		assert_false(rundir_socket_is_stale(sun.sun_path, 0));
		close(fd);
		unlink(sun.sun_path);
	}
}

/* Descriptor 0 is as good as any. */
static void closed_stdin(void **state)
{
	int saved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10), lock, fd;
	struct rundir_socket s;
	char want[256];

	lock = rundir_take(dir);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	close(STDIN_FILENO);
	assert_int_equal(rundir_bind(dir, "n0", fd, &s), 0);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) < 0); /* closed again */
	snprintf(want, sizeof(want), "%d\nn0.sock %020llu\n", (int)getpid(),
		 (unsigned long long)s.inode);
	lock_is(lock, want);
	assert_true(rundir_socket_is_stale(s.path, s.inode));
	close(fd);
	close(lock);
	lock = rundir_take(dir);
	assert_true(lock > 0 && !exists("n0.sock"));
	close(lock);
	assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO); /* 0 was free again */
	close(saved);
	logged_is("");
}

static void default_directory(void **state)
{
	char path[8];

	setenv("NBAR_RUN_DIR", "1234567", 1);
	assert_int_equal(rundir_default(path, sizeof(path)), 0);
	assert_string_equal(path, "1234567");
	setenv("NBAR_RUN_DIR", "12345678", 1);
	assert_int_equal(rundir_default(path, sizeof(path)), -ENAMETOOLONG);
	unsetenv("NBAR_RUN_DIR");
}

UNIT_MAIN(NULL, NULL, UNIT_IN(only_listed_sockets_are_removed, dir_begin, dir_end),
	  UNIT_IN(listed_name_is_not_enough, dir_begin, dir_end),
	  UNIT_IN(live_socket_stays, dir_begin, dir_end),
	  UNIT_IN(killed_while_binding, dir_begin, dir_end),
	  UNIT_IN(taken_name_is_refused, dir_begin, dir_end),
	  UNIT_IN(end_removes_only_its_own, dir_begin, dir_end),
	  UNIT_IN(lock_file_has_mode_0600, dir_begin, dir_end),
	  UNIT_IN(bad_directories, dir_begin, dir_end),
	  UNIT_IN(modes_of_directories, dir_begin, dir_end),
	  UNIT_IN(bad_lock_files, dir_begin, dir_end), UNIT_IN(list_of_sockets, dir_begin, dir_end),
	  UNIT_IN(bad_sockets, dir_begin, dir_end), UNIT_IN(live_sockets, dir_begin, dir_end),
	  UNIT_IN(closed_stdin, dir_begin, dir_end), UNIT_IN(default_directory, dir_begin, dir_end),
	  UNIT_IN(another_user_cannot_hold_the_lock, dir_begin, dir_end))
