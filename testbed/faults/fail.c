/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fail.c - a library to preload: it makes one call of a program to libc fail, as if a resource was
 * missing.
 *
 * Used by faults.py, for unchanged programs of this tree. A call site is a function of libc with
 * the address of its caller. Environment:
 *
 *   FAIL_FILE=FILE  counts of calls by site, for all processes of a run; FILE must be empty at
 * first FAIL_IN=NAME    only programs of this name FAIL_MODULE=M   only calls from files (program,
 * library) whose name begins with M FAIL_WAIT=1     only calls between fail_begin() and fail_end()
 *   FAIL_EACH=N     nothing fails; FILE.sites gets a line "FUNCTION ERRORS SITE CALL" for each of
 *                   the first N calls of each site
 *
 *   FAIL_SITE=SITE FAIL_CALL=N FAIL_ERROR=I
 *                   the N-th call of SITE fails, with error I of the list of its function;
 *                   FILE.fired then exists
 *
 * This library must not allocate memory. A call that does not fail goes to the next definition of
 * its function (dlsym, RTLD_NEXT), or to the kernel.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SITES_MAX 4096u /* entries of the table of sites; a power of two */
#define SITE_TEXT 160

struct site {
	uint64_t key; /* hash of the site; 0: free. Set once, by compare-and-exchange */
	uint32_t calls;
	uint32_t reserved;
};

static struct site *table; /* shared by all processes of the run; NULL: calls here do not count */
static const char *file, *module, *wanted;
static uint32_t each, wanted_call, wanted_error;
static bool waits;           /* until fail_begin(): no call counts */
static __thread bool inside; /* this library itself makes the call: it does not count */

static uint32_t number(const char *name)
{
	const char *text = getenv(name);

	return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *in = getenv("FAIL_IN");
	void *map;
	long fd;

	file = getenv("FAIL_FILE");
	module = getenv("FAIL_MODULE");
	wanted = getenv("FAIL_SITE");
	each = number("FAIL_EACH");
	wanted_call = number("FAIL_CALL");
	wanted_error = number("FAIL_ERROR");
	waits = getenv("FAIL_WAIT");
	if (!file || (in && strcmp(in, program_invocation_short_name) != 0))
		return;
	fd = syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || syscall(SYS_ftruncate, fd, SITES_MAX * sizeof(*table)) < 0)
		_exit(99);
	map = (void *)syscall(SYS_mmap, NULL, SITES_MAX * sizeof(*table), PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, 0L);
	syscall(SYS_close, fd);
	if (map == MAP_FAILED)
		_exit(99);
	table = map;
}

void fail_begin(void);
void fail_begin(void)
{
	waits = false;
}

void fail_end(void);
void fail_end(void)
{
	waits = true;
}

static void append(const char *suffix, const char *line)
{
	char path[512];
	long fd;

	snprintf(path, sizeof(path), "%s%s", file, suffix);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		_exit(99);
	(void)!syscall(SYS_write, fd, line, strlen(line));
	syscall(SYS_close, fd);
}

/* Sets out to FUNCTION@FILE+OFFSET. False: calls from the caller's module do not count. */
static bool site_name(const char *function, const void *caller, char *out)
{
	struct dl_find_object at;
	const char *name;

	if (_dl_find_object((void *)(uintptr_t)caller, &at) != 0)
		return false;
	name = at.dlfo_link_map->l_name;
	if (!name || !*name)
		name = program_invocation_short_name;
	if (strrchr(name, '/'))
		name = strrchr(name, '/') + 1;
	if (module && strncmp(name, module, strlen(module)) != 0)
		return false;
	snprintf(out, SITE_TEXT, "%s@%.80s+0x%lx", function, name,
		 (unsigned long)((uintptr_t)caller - at.dlfo_link_map->l_addr));
	return true;
}

static uint64_t hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h | 1;
}

/* Counts this call. Returns its number at its site, from 1. */
static uint32_t count(const char *site)
{
	uint64_t key = hash(site);

	for (uint32_t i = 0; i < SITES_MAX; i++) {
		struct site *s = &table[(key + i) & (SITES_MAX - 1)];
		uint64_t old = 0;

		__atomic_compare_exchange_n(&s->key, &old, key, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
		if (old == 0 || old == key)
			return __atomic_add_fetch(&s->calls, 1, __ATOMIC_RELAXED);
	}
	_exit(99);
}

/* Returns 0 if the call must not fail, else its errno. */
static int fails(const char *function, const void *caller, const int *errors, uint32_t nerror)
{
	char site[SITE_TEXT], line[SITE_TEXT + 64];
	int saved = errno, result = 0;
	uint32_t n;

	if (!table || inside || waits)
		return 0;
	inside = true;
	if (site_name(function, caller, site)) {
		n = wanted && strcmp(site, wanted) != 0 ? 0 : count(site);
		if (n > 0 && n <= each) {
			snprintf(line, sizeof(line), "%s %u %s %u\n", function, nerror, site, n);
			append(".sites", line);
		}
		if (wanted && n == wanted_call && wanted_error < nerror) {
			result = errors[wanted_error];
			append(".fired", site);
		}
	}
	inside = false;
	errno = saved;
	return result;
}

/* The same for a function with this list of errors. */
#define FAILS(function, ...)                                                       \
	fails(function, __builtin_return_address(0), (const int[]){ __VA_ARGS__ }, \
	      sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

/* A function that returns `bad` and sets errno. */
#define REPLACE(type, name, bad, parameters, arguments, ...) \
	type name parameters                                 \
	{                                                    \
		static type(*next) parameters;               \
		int err = FAILS(#name, __VA_ARGS__);         \
                                                             \
		if (err) {                                   \
			errno = err;                         \
			return bad;                          \
		}                                            \
		if (!next)                                   \
			*(void **)&next = next_of(#name);    \
		return next arguments;                       \
	}

/* A function that returns an errno. */
#define REPLACE_CODE(name, parameters, arguments, ...)    \
	int name parameters                               \
	{                                                 \
		static int(*next) parameters;             \
		int err = FAILS(#name, __VA_ARGS__);      \
                                                          \
		if (err)                                  \
			return err;                       \
		if (!next)                                \
			*(void **)&next = next_of(#name); \
		return next arguments;                    \
	}

static void *next_of(const char *name)
{
	bool was = inside;
	void *next;

	inside = true;
	next = dlsym(RTLD_NEXT, name);
	inside = was;
	if (!next)
		_exit(99);
	return next;
}

/* --- memory: by glibc's internal names, because dlsym() itself allocates ---------------------- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);

#define NO_MEMORY(name, call)      \
	if (FAILS(name, ENOMEM)) { \
		errno = ENOMEM;    \
		return NULL;       \
	}                          \
	return call

void *malloc(size_t size)
{
	NO_MEMORY("malloc", __libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	NO_MEMORY("calloc", __libc_calloc(n, size));
}

void *realloc(void *block, size_t size)
{
	NO_MEMORY("realloc", __libc_realloc(block, size));
}

REPLACE(void *, mmap, MAP_FAILED,
	(void *at, size_t size, int protection, int flags, int fd, off_t offset),
	(at, size, protection, flags, fd, offset), ENOMEM)
REPLACE(int, memfd_create, -1, (const char *name, unsigned flags), (name, flags), EMFILE, ENOMEM)
REPLACE_CODE(pthread_create,
	     (pthread_t * thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg),
	     (thread, attr, start, arg), EAGAIN)
REPLACE(pid_t, fork, -1, (void), (), EAGAIN)

/* --- files ------------------------------------------------------------------------------------ */

/* Whether open() has a mode. */
static bool makes(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

#define OPEN(name, parameters, dir)                                      \
	int name parameters                                              \
	{                                                                \
		int err = FAILS(#name, EMFILE, ENOMEM);                  \
		mode_t mode = 0;                                         \
		va_list args;                                            \
                                                                         \
		if (err) {                                               \
			errno = err;                                     \
			return -1;                                       \
		}                                                        \
		va_start(args, flags);                                   \
		if (makes(flags))                                        \
			mode = va_arg(args, mode_t);                     \
		va_end(args);                                            \
		return (int)syscall(SYS_openat, dir, path, flags, mode); \
	}

OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int dir, const char *path, int flags, ...), dir)

int fcntl(int fd, int command, ...)
{
	int err = FAILS("fcntl", EINVAL);
	va_list args;
	long value;

	if (err) {
		errno = err;
		return -1;
	}
	va_start(args, command);
	value = va_arg(args, long);
	va_end(args);
	return (int)syscall(SYS_fcntl, fd, command, value);
}

REPLACE(FILE *, fopen, NULL, (const char *path, const char *mode), (path, mode), EMFILE, ENOMEM)
REPLACE(FILE *, fdopen, NULL, (int fd, const char *mode), (fd, mode), ENOMEM)
REPLACE(DIR *, opendir, NULL, (const char *path), (path), EMFILE)
REPLACE(ssize_t, read, -1, (int fd, void *to, size_t size), (fd, to, size), EINTR, EIO)
REPLACE(ssize_t, pread, -1, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), EIO)
REPLACE(ssize_t, write, -1, (int fd, const void *from, size_t size), (fd, from, size), ENOSPC,
	EINTR)
REPLACE(ssize_t, pwrite, -1, (int fd, const void *from, size_t size, off_t at),
	(fd, from, size, at), ENOSPC)
REPLACE(int, fflush, EOF, (FILE * f), (f), ENOSPC)
REPLACE(int, ftruncate, -1, (int fd, off_t size), (fd, size), ENOSPC, EINTR)
REPLACE(int, fdatasync, -1, (int fd), (fd), EIO)
REPLACE(int, rename, -1, (const char *from, const char *to), (from, to), ENOSPC)
REPLACE(int, mkdir, -1, (const char *path, mode_t mode), (path, mode), ENOSPC)
REPLACE(int, chmod, -1, (const char *path, mode_t mode), (path, mode), EPERM)
REPLACE(int, fchmod, -1, (int fd, mode_t mode), (fd, mode), EPERM)
REPLACE(int, flock, -1, (int fd, int operation), (fd, operation), ENOLCK)
REPLACE(int, dup2, -1, (int from, int to), (from, to), EMFILE)
REPLACE(int, pipe2, -1, (int fd[2], int flags), (fd, flags), EMFILE)

/* --- sockets and events ----------------------------------------------------------------------- */

REPLACE(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol), EMFILE,
	ENOBUFS)
REPLACE(int, socketpair, -1, (int domain, int type, int protocol, int fd[2]),
	(domain, type, protocol, fd), EMFILE)
REPLACE(int, bind, -1, (int fd, __CONST_SOCKADDR_ARG at, socklen_t size), (fd, at, size), ENOMEM)
REPLACE(int, listen, -1, (int fd, int n), (fd, n), EADDRINUSE)
REPLACE(int, accept4, -1, (int fd, __SOCKADDR_ARG from, socklen_t *size, int flags),
	(fd, from, size, flags), EMFILE, EINTR, ENOMEM)
REPLACE(int, connect, -1, (int fd, __CONST_SOCKADDR_ARG to, socklen_t size), (fd, to, size), EAGAIN,
	EINTR)
REPLACE(int, setsockopt, -1, (int fd, int level, int option, const void *value, socklen_t size),
	(fd, level, option, value, size), ENOMEM)
REPLACE(int, getsockopt, -1,
	(int fd, int level, int option, void *restrict value, socklen_t *restrict size),
	(fd, level, option, value, size), ENOBUFS)
REPLACE(int, getsockname, -1, (int fd, __SOCKADDR_ARG at, socklen_t *size), (fd, at, size), ENOBUFS)
REPLACE(ssize_t, send, -1, (int fd, const void *from, size_t size, int flags),
	(fd, from, size, flags), ENOBUFS, EINTR)
REPLACE(ssize_t, sendto, -1,
	(int fd, const void *from, size_t size, int flags, __CONST_SOCKADDR_ARG to, socklen_t n),
	(fd, from, size, flags, to, n), ENOBUFS)
REPLACE(ssize_t, sendmsg, -1, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags),
	ENOBUFS, EINTR)
REPLACE(int, sendmmsg, -1, (int fd, struct mmsghdr *msg, unsigned n, int flags),
	(fd, msg, n, flags), ENOBUFS, EAGAIN)
REPLACE(ssize_t, recv, -1, (int fd, void *to, size_t size, int flags), (fd, to, size, flags), EINTR,
	ENOMEM)
REPLACE(ssize_t, recvmsg, -1, (int fd, struct msghdr *msg, int flags), (fd, msg, flags), EINTR,
	ENOMEM)
REPLACE(int, recvmmsg, -1,
	(int fd, struct mmsghdr *msg, unsigned n, int flags, struct timespec *limit),
	(fd, msg, n, flags, limit), EINTR, ENOMEM)
REPLACE(int, poll, -1, (struct pollfd * fd, nfds_t n, int ms), (fd, n, ms), EINTR, ENOMEM)
REPLACE(int, epoll_create1, -1, (int flags), (flags), EMFILE)
REPLACE(int, epoll_ctl, -1, (int epoll, int operation, int fd, struct epoll_event *event),
	(epoll, operation, fd, event), ENOSPC)
REPLACE(int, epoll_wait, -1, (int epoll, struct epoll_event *event, int n, int ms),
	(epoll, event, n, ms), EINTR)
REPLACE(int, eventfd, -1, (unsigned n, int flags), (n, flags), EMFILE)
REPLACE(int, signalfd, -1, (int fd, const sigset_t *set, int flags), (fd, set, flags), EMFILE)

/* --- the rest --------------------------------------------------------------------------------- */

REPLACE(pid_t, waitpid, -1, (pid_t pid, int *status, int options), (pid, status, options), EINTR)
REPLACE(ssize_t, getrandom, -1, (void *to, size_t size, unsigned flags), (to, size, flags), EAGAIN)
