/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_file.h - how daemons, libraries and tools read a file that a user names, and reserve one of
 * their own. Needs _GNU_SOURCE; not installed.
 *
 * The name may be that of a pipe that nobody writes to, of a device without an end, or of a file
 * that another process extends or cuts meanwhile. So only regular files are read, with read() and
 * not through a mapping, to their end, and no more bytes than the caller permits.
 */
#ifndef NBAR_FILE_H
#define NBAR_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Opens a regular file for reading. Returns a descriptor, and the present size; or negative errno;
 * -EINVAL: the file is not regular. */
static inline int nbar_file_open(const char *path, uint64_t *size)
{
	/* O_NONBLOCK: do not wait for the writer of a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int rc;

	if (fd < 0)
		return -errno;
	rc = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (rc < 0)
		close(fd);
	*size = rc < 0 ? 0 : (uint64_t)st.st_size;
	return rc < 0 ? rc : fd;
}

/* Makes room for more bytes, but for at most max + 1: the last one shows that the file is too
 * long. */
static inline int nbar_file_grow(char **text, size_t *room, size_t max)
{
	size_t more = *room ? 2 * *room : 16384;
	char *at;

	if (*room > max)
		return -EFBIG;
	if (more > max)
		more = max + 1;
	at = realloc(*text, more + 1);
	if (!at)
		return -ENOMEM;
	*text = at;
	*room = more;
	return 0;
}

/* Reads a whole regular file of at most max bytes. 0: *text has its *length bytes and a zero behind
 * them; the caller frees *text. Otherwise negative errno: -EINVAL as nbar_file_open; -EFBIG: the
 * file is longer. */
static inline int nbar_file_read(const char *path, size_t max, char **text, size_t *length)
{
	uint64_t size = 0;
	int fd = nbar_file_open(path, &size), rc = fd < 0 ? fd : size > max ? -EFBIG : 0;
	size_t room = 0, n = 0;
	ssize_t got = 1;

	*text = NULL;
	*length = 0;
	while (rc == 0 && got > 0) {
		if (n == room)
			rc = nbar_file_grow(text, &room, max);
		if (rc < 0)
			break;
		got = read(fd, *text + n, room - n);
		if (got > 0)
			n += (size_t)got;
		else if (got < 0)
			rc = -errno;
	}
	if (fd >= 0)
		close(fd);
	if (rc < 0) {
		free(*text);
		*text = NULL;
		return rc;
	}
	(*text)[n] = '\0';
	*length = n;
	return 0;
}

/* Gives a new file this length, with memory behind it, in a process that is not ours: the kernel
 * answers a length beyond RLIMIT_FSIZE with SIGXFSZ, which would end the program. Returns 0 or
 * negative errno; -EFBIG: that limit. */
static inline int nbar_file_reserve(int fd, off_t bytes)
{
	const struct timespec now = { 0, 0 };
	sigset_t limit, old;
	int rc;

	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &limit, &old); /* of this thread alone */
	rc = -posix_fallocate(fd, 0, bytes);
	if (rc == -EFBIG && !sigismember(&old, SIGXFSZ))
		(void)sigtimedwait(&limit, NULL, &now);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return rc;
}

/* Writes why nbar_file_read has failed with this limit. Returns out. */
static inline const char *nbar_file_reason(int rc, size_t max, char *out, size_t size)
{
	if (rc == -EINVAL)
		snprintf(out, size, "this is not a regular file");
	else if (rc == -EFBIG)
		snprintf(out, size, "the file has more than %zu bytes, the limit", max);
	else
		snprintf(out, size, "%s", strerror(-rc));
	return out;
}

#endif
