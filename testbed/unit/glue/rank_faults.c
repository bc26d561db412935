/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_faults.c - system calls and allocations of the glue and of libnbar, counted, and failing on
 * demand. Linked with --wrap for each of them.
 *
 * Nothing fails in the process of the NICs.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "ranks.h"

static struct {
	uint32_t left;
	const char *name, *failed;
	int error;
	bool always;
} fault;
static int64_t blocks, mutexes; /* atomic */
static int64_t ahead_ns;        /* atomic: of the clock of the test */
uint64_t yield_takes;
_Thread_local struct calls calls;
bool makers_wait;
uint32_t slept_early;
static uint32_t sleeps; /* atomic: of all threads */

void faults_set(uint32_t n, const char *name, int error)
{
	fault.left = n;
	fault.name = name;
	fault.error = error;
	fault.failed = NULL;
	fault.always = false;
}

void faults_always(const char *name, int error)
{
	faults_set(1, name, error);
	fault.always = true;
}

const char *faults_end(void)
{
	fault.left = 0;
	return fault.failed;
}

int64_t blocks_in_use(void)
{
	return __atomic_load_n(&blocks, __ATOMIC_RELAXED);
}

int64_t mutexes_in_use(void)
{
	return __atomic_load_n(&mutexes, __ATOMIC_RELAXED);
}

static bool fails(const char *name)
{
	if (fault.left == 0 || (fault.name && strcmp(fault.name, name) != 0) || --fault.left > 0)
		return false;
	fault.left = fault.always;
	fault.failed = name;
	/* What the other ranks wait for now may never come. */
	if (ranks)
		__atomic_store_n(&ranks->hurry, true, __ATOMIC_RELAXED);
	errno = fault.error;
	return true;
}

/* --- memory ------------------------------------------------------------------------------------
 */

uint8_t blocks_behind = 0x7f; /* wrong in most places */

/* Bytes behind each block. */
#if defined(__has_feature)
#define CLANG_ASAN __has_feature(address_sanitizer)
#else
#define CLANG_ASAN 0
#endif
#if defined(__SANITIZE_ADDRESS__) || CLANG_ASAN
#define BEHIND 0 /* the sanitizer finds a read there */
#else
#define BEHIND 64
#endif

/* The last bytes of a block. */
struct tail {
	uint64_t magic;
	size_t size;
	uint8_t behind; /* each byte between the block and this tail */
};
#define TAIL UINT64_C(0x7461696c7461696c)

static char *tail_of(void *block)
{
	return (char *)block + malloc_usable_size(block) - sizeof(struct tail);
}

static void *counted(void *block, size_t size)
{
	struct tail tail = { TAIL, size, blocks_behind };
	char *end = (char *)block + size;

	if (!block)
		return NULL;
	__atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED);
	if (BEHIND) {
		memset(end, blocks_behind, (size_t)(tail_of(block) - end));
		memcpy(tail_of(block), &tail, sizeof(tail));
	}
	return block;
}

/* A block of the C library's own has no tail. */
static void expect_unhurt(void *block)
{
	struct tail tail = { .magic = 0 };

	if (BEHIND && malloc_usable_size(block) > BEHIND)
		memcpy(&tail, tail_of(block), sizeof(tail));
	if (tail.magic != TAIL)
		return;
	/* The C library may use this block next, without a tail. */
	memset(tail_of(block), 0, sizeof(tail.magic));
	for (const char *at = (char *)block + tail.size; at < tail_of(block); at++)
		expect((uint8_t)*at == tail.behind, "something was written behind %zu bytes",
		       tail.size);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void __real_free(void *block);

void *__wrap_malloc(size_t size)
{
	return fails("malloc") ? NULL : counted(__real_malloc(size + BEHIND), size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (fails("calloc") || __builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return counted(__real_calloc(1, bytes + BEHIND), bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	size_t room = (size + BEHIND + align - 1) / align * align;

	return fails("aligned_alloc") ? NULL : counted(__real_aligned_alloc(align, room), size);
}

void __wrap_free(void *block)
{
	if (block) {
		__atomic_fetch_sub(&blocks, 1, __ATOMIC_RELAXED);
		expect_unhurt(block);
	}
	__real_free(block);
}

/* --- system calls ------------------------------------------------------------------------------
 */

#define WRAP(type, name, failed, parameters, arguments)                   \
	type __real_##name parameters;                                    \
	type __wrap_##name parameters                                     \
	{                                                                 \
		return fails(#name) ? (failed) : __real_##name arguments; \
	}

WRAP(int, open, -1, (const char *path, int flags, mode_t mode), (path, flags, mode))
WRAP(int, posix_fallocate, fault.error, (int fd, off_t at, off_t size), (fd, at, size))
WRAP(void *, mmap, MAP_FAILED, (void *at, size_t size, int prot, int flags, int fd, off_t offset),
     (at, size, prot, flags, fd, offset))
WRAP(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, connect, -1, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))
/* A rank waits until the kernel has gathered enough randomness. */
ssize_t __real_getrandom(void *to, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags)
{
	expect(flags == 0, "flags %u", flags);
	return fails("getrandom") ? -1 : __real_getrandom(to, size, flags);
}

/* A connection that was reset stays reset. */
static int fault_of(int fd)
{
	if (fault.error == ECONNRESET)
		shutdown(fd, SHUT_RDWR);
	errno = fault.error;
	return -1;
}

WRAP(ssize_t, sendmsg, fault_of(fd), (int fd, const struct msghdr *msg, int flags),
     (fd, msg, flags))
WRAP(ssize_t, recvmsg, fault_of(fd), (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
WRAP(int, fstat, -1, (int fd, struct stat *out), (fd, out))
/* A thread of the glue inherits the signals of its maker. */
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	sigset_t blocked;
	uint32_t before;
	int rc;

	if (fails("pthread_create"))
		return EAGAIN;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	calls.exposed += !sigismember(&blocked, SIGUSR1) || !sigismember(&blocked, SIGTERM);
	before = __atomic_load_n(&sleeps, __ATOMIC_RELAXED);
	rc = __real_pthread_create(id, attr, run, arg);
	calls.threads += rc == 0;
	if (makers_wait) {
		usleep(20000);
		slept_early += __atomic_load_n(&sleeps, __ATOMIC_RELAXED) - before;
	}
	return rc;
}

int __real_pthread_join(pthread_t id, void **result);
int __wrap_pthread_join(pthread_t id, void **result)
{
	calls.threads--;
	return __real_pthread_join(id, result);
}

/* --- locks -------------------------------------------------------------------------------------
 */

int __real_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr);
int __real_pthread_mutex_destroy(pthread_mutex_t *m);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_trylock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);

int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	__atomic_fetch_add(&mutexes, 1, __ATOMIC_RELAXED);
	return __real_pthread_mutex_init(m, attr);
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *m)
{
	__atomic_fetch_sub(&mutexes, 1, __ATOMIC_RELAXED);
	return __real_pthread_mutex_destroy(m);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	calls.held++;
	return __real_pthread_mutex_lock(m);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
	int rc = __real_pthread_mutex_trylock(m);

	calls.held += rc == 0;
	return rc;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	expect(calls.held-- > 0, "it does not hold the lock");
	return __real_pthread_mutex_unlock(m);
}

/* --- time --------------------------------------------------------------------------------------
 */

void clock_advance(double s)
{
	__atomic_fetch_add(&ahead_ns, (int64_t)(s * 1e9), __ATOMIC_RELAXED);
}

void clock_restore(void)
{
	__atomic_store_n(&ahead_ns, 0, __ATOMIC_RELAXED);
}

double clock_ahead(void)
{
	return (double)__atomic_load_n(&ahead_ns, __ATOMIC_RELAXED) / 1e9;
}

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	int rc = __real_clock_gettime(clock, out);

	if (yield_takes)
		*out = (struct timespec){ .tv_nsec = (long)(calls.yields * yield_takes) };

	int64_t ns = out->tv_nsec + __atomic_load_n(&ahead_ns, __ATOMIC_RELAXED);

	out->tv_sec += ns / 1000000000;
	out->tv_nsec = ns % 1000000000;
	return rc;
}

bool yields_are_counted;

int __real_sched_yield(void);
int __wrap_sched_yield(void)
{
	calls.yields++;
	return yields_are_counted ? 0 : __real_sched_yield();
}

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	calls.sleeps++;
	__atomic_fetch_add(&sleeps, 1, __ATOMIC_RELAXED);
	calls.slept_ns += (uint64_t)time->tv_nsec;
	if (ranks && __atomic_load_n(&ranks->hurry, __ATOMIC_RELAXED))
		clock_advance((HURRY_FOLD - 1) * (double)time->tv_nsec / 1e9);
	return __real_nanosleep(time, left);
}
