/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rundir.c - the run directory and its lock.
 *
 * Called at start and at end. The lock is a flock() on a file, so it ends with the process, even if
 * the process is killed. The file stays: removing it would let two daemons lock two files of the
 * same name. Only the daemon's user may open it. Otherwise anybody could hold the lock and keep a
 * daemon from starting.
 *
 * The folder may hold sockets of other services. The lock file therefore lists the sockets of the
 * daemon; no other socket is ever removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "nbar_abi.h"
#include "nbar_host.h"
#include "rundir.h"
#include "trace_ring.h"

#define LOCK_NAME "nicd.lock"
#define OTHER_DIR "give another one with --run-dir"

/* The lock file: a line with the pid, then a line for each socket: its name, and its inode in this
 * many digits. */
#define INODE_DIGITS 20
#define LIST_MAX (16 + NBAR_NICS_MAX * (NBAR_NAME_MAX + 8 + INODE_DIGITS))

int rundir_default(char *path, size_t size)
{
	int n = nbar_run_dir(path, size);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* A user who may write to the directory could replace our socket by his own. */
static int rundir_check_owner(const char *path, int dir)
{
	struct stat st;

	if (fstat(dir, &st) < 0) {
		log_error("run directory %s: %s", path, strerror(errno));
		return -EIO;
	}
	if (st.st_uid != geteuid()) {
		log_error(
			"run directory %s belongs to uid %u, not to uid %u who runs this; " OTHER_DIR,
			path, (unsigned)st.st_uid, (unsigned)geteuid());
		return -EPERM;
	}
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		log_error("run directory %s: others may write to it (mode %04o) and put sockets of "
			  "their own there; " OTHER_DIR,
			  path, (unsigned)(st.st_mode & 07777));
		return -EPERM;
	}
	return 0;
}

static int open_dir(const char *path)
{
	/* Anybody can guess names in /tmp, so a directory there is for its user only. */
	mode_t mode = strncmp(path, "/tmp/", 5) == 0 ? 0700 : 0755;
	int dir, rc;

	if (mkdir(path, mode) < 0 && errno != EEXIST) {
		rc = -errno;
		log_error("run directory %s: cannot make it: %s; make it yourself, or " OTHER_DIR,
			  path, strerror(errno));
		return rc;
	}
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0) {
		rc = -errno;
		log_error("run directory %s: %s; " OTHER_DIR, path,
			  errno == ELOOP || errno == ENOTDIR ? "a link or a file, not a directory"
							     : strerror(errno));
		return rc;
	}
	rc = rundir_check_owner(path, dir);
	if (rc < 0) {
		close(dir);
		return rc;
	}
	return dir;
}

/* True if no process accepts connections on this socket any more. */
static bool is_dead(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool dead = false;

	if (fd < 0)
		return false;
	if (strlen(path) < sizeof(sun.sun_path)) {
		strcpy(sun.sun_path, path);
		dead = connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0 &&
		       errno == ECONNREFUSED;
	}
	close(fd);
	return dead;
}

static bool is_ours(const char *path, uint64_t inode)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid() &&
	       (inode == 0 || st.st_ino == inode);
}

bool rundir_socket_is_stale(const char *path, uint64_t inode)
{
	return is_ours(path, inode) && is_dead(path);
}

/* Removes the sockets in the list of a killed daemon, and the traces of their NICs. The inode is 0
 * if the daemon was killed after it had listed the name and before it knew the inode. We hold the
 * lock, so the daemon has ended. */
static void remove_stale(const char *run_dir, char *list)
{
	char *save, path[sizeof(((struct rundir_socket *)0)->path)];

	(void)strtok_r(list, "\n", &save); /* the pid */
	for (char *line; (line = strtok_r(NULL, "\n", &save)) != NULL;) {
		char *digits = strchr(line, ' ');

		if (!digits || strchr(line, '/'))
			continue;
		*digits++ = '\0';
		int n = snprintf(path, sizeof(path), "%s/%s", run_dir, line);

		if (n > 0 && (size_t)n < sizeof(path) &&
		    rundir_socket_is_stale(path, strtoull(digits, NULL, 10))) {
			unlink(path);
			trace_ring_remove_stale(run_dir, line);
		}
	}
}

static int open_lock(const char *path, int dir)
{
	int lock = openat(dir, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), rc;

	/* An older version let other users open the file. */
	if (lock >= 0 && fchmod(lock, 0600) == 0)
		return lock;
	rc = -errno;
	log_error("%s/" LOCK_NAME ": %s", path, strerror(errno));
	if (lock >= 0)
		close(lock);
	return rc;
}

static int take_lock(const char *path, int dir)
{
	char list[LIST_MAX + 1] = "", pid[16];
	int lock = open_lock(path, dir);
	int n;

	if (lock < 0)
		return lock;
	(void)!pread(lock, list, LIST_MAX, 0);
	if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
		log_error("another daemon of nbar, process %d, runs on %s; stop it, or " OTHER_DIR,
			  atoi(list), path);
		close(lock);
		return -EBUSY;
	}
	/* Read again: the last daemon may have written to the file before it ended. */
	memset(list, 0, sizeof(list));
	if (pread(lock, list, LIST_MAX, 0) > 0)
		remove_stale(path, list);
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(lock, 0) < 0 || pwrite(lock, pid, (size_t)n, 0) != n) {
		log_error("%s/" LOCK_NAME ": %s", path, strerror(errno));
		close(lock);
		return -EIO;
	}
	return lock;
}

int rundir_take(const char *path)
{
	int dir = open_dir(path), lock;

	if (dir < 0)
		return dir;
	lock = take_lock(path, dir);
	close(dir);
	return lock;
}

/* Writes the line of a socket at `at` in the lock file. lock -1: no lock file, as in some tests. */
static int list_write(int lock, off_t at, const char *nic, uint64_t inode)
{
	char line[NBAR_NAME_MAX + INODE_DIGITS + 8];
	int n = snprintf(line, sizeof(line), "%s.sock %0*llu\n", nic, INODE_DIGITS,
			 (unsigned long long)inode);

	return lock < 0 || pwrite(lock, line, (size_t)n, at) == n ? 0 : -EIO;
}

/* Lists the name first: so the next daemon knows the name whenever this process is killed. */
static int bind_listed(int lock, const char *nic, int fd, struct rundir_socket *s)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	off_t at = lock < 0 ? 0 : lseek(lock, 0, SEEK_END);
	struct stat st;

	memcpy(sun.sun_path, s->path, sizeof(sun.sun_path));
	if (lstat(s->path, &st) == 0)
		return -EADDRINUSE;
	if (at < 0 || list_write(lock, at, nic, 0) < 0)
		return -EIO;
	if (bind(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0 || rundir_socket_note(s) < 0)
		return -errno;
	return list_write(lock, at, nic, s->inode);
}

int rundir_bind(const char *run_dir, const char *nic, int fd, struct rundir_socket *out)
{
	char name[sizeof(out->path) + sizeof("/" LOCK_NAME)];
	int n = snprintf(out->path, sizeof(out->path), "%s/%s.sock", run_dir, nic), lock, rc;

	out->inode = 0;
	if (n < 0 || (size_t)n >= sizeof(out->path)) {
		log_error("run directory %s is too long a name: a socket's path has at most %zu "
			  "bytes; give a shorter one with --run-dir",
			  run_dir, sizeof(out->path) - 1);
		return -ENAMETOOLONG;
	}
	snprintf(name, sizeof(name), "%s/" LOCK_NAME, run_dir);
	lock = open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	rc = lock < 0 && errno != ENOENT ? -errno : bind_listed(lock, nic, fd, out);
	if (lock >= 0)
		close(lock);
	if (rc == -EADDRINUSE)
		log_error(
			"control socket %s: this file exists, and no daemon of nbar has listed "
			"it in %s/" LOCK_NAME
			"; remove it if no program uses it, give the NIC another name, or " OTHER_DIR,
			out->path, run_dir);
	else if (rc < 0)
		log_error("control socket %s: %s", out->path, strerror(-rc));
	return rc;
}

int rundir_socket_note(struct rundir_socket *s)
{
	struct stat st;

	if (lstat(s->path, &st) < 0)
		return -errno;
	s->inode = st.st_ino;
	return 0;
}

void rundir_remove(struct rundir_socket *s)
{
	if (s->inode != 0 && is_ours(s->path, s->inode))
		unlink(s->path);
	s->inode = 0;
}
