/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rundir.c - the run directory and its lock.
 *
 * Called once, at start. The lock is a flock() on a file, so it ends with the process, even if the
 * process is killed. The file stays: removing it would let two daemons lock two files of the same
 * name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "nbar_host.h"
#include "nbar_trace.h"
#include "rundir.h"

#define LOCK_NAME "nicd.lock"
#define OTHER_DIR "give another one with --run-dir"

int rundir_default(char *path, size_t size)
{
	int n = nbar_run_dir(path, size);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* A user who may write to the directory could replace our socket by his own. */
static int check_owner(const char *path, int dir)
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
	rc = check_owner(path, dir);
	if (rc < 0) {
		close(dir);
		return rc;
	}
	return dir;
}

static int take_lock(const char *path, int dir)
{
	char pid[16] = "";
	int lock = openat(dir, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644), rc;
	ssize_t n;

	if (lock < 0) {
		rc = -errno;
		log_error("%s/" LOCK_NAME ": %s", path, strerror(errno));
		return rc;
	}
	if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
		n = pread(lock, pid, sizeof(pid) - 1, 0);
		log_error("another daemon of nbar, process %d, runs on %s; stop it, or " OTHER_DIR,
			  n > 0 ? atoi(pid) : 0, path);
		close(lock);
		return -EBUSY;
	}
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(lock, 0) < 0 || pwrite(lock, pid, (size_t)n, 0) != n) {
		log_error("%s/" LOCK_NAME ": %s", path, strerror(errno));
		close(lock);
		return -EIO;
	}
	return lock;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), k = strlen(end);

	return n > k && strcmp(name + n - k, end) == 0;
}

/* We hold the lock, so no socket and no trace in this directory belongs to a running daemon. */
static void remove_stale(int dir)
{
	DIR *d = fdopendir(dup(dir));

	if (!d)
		return;
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		struct stat st;

		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if ((ends_with(e->d_name, ".sock") && S_ISSOCK(st.st_mode)) ||
		    (ends_with(e->d_name, NBAR_TRACE_SUFFIX) && S_ISREG(st.st_mode)))
			unlinkat(dir, e->d_name, 0);
	}
	closedir(d);
}

int rundir_take(const char *path)
{
	int dir = open_dir(path), lock;

	if (dir < 0)
		return dir;
	lock = take_lock(path, dir);
	if (lock >= 0)
		remove_stale(dir);
	close(dir);
	return lock;
}
