/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_faults.c - allocations and the most important system calls of the host library fail
 * once, with each of several errors. The library reports the failure, does not hang, and leaves
 * nothing behind.
 *
 * Linked with --wrap for each of these calls. Only calls of the test's own thread fail, not those
 * of the daemon in this program. Of this thread the test also counts allocations and locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"
#include "internal.h"
#include "unit/descriptors.h"
#include "unit/nics.h"

#define LONG_NS UINT64_C(60000000000)

static _Thread_local struct {
	uint32_t left; /* the left-th call from now on fails; 0: no call fails */
	int error;
} fault;

static bool fails(void)
{
	if (fault.left == 0 || --fault.left > 0)
		return false;
	errno = fault.error;
	return true;
}

/* A connection that was reset stays reset. */
static int fault_of(int fd)
{
	if (fault.error == ECONNRESET || fault.error == EPIPE)
		shutdown(fd, SHUT_RDWR);
	errno = fault.error;
	return -1;
}

#define WRAP(type, name, failed, parameters, arguments)              \
	type __real_##name parameters;                               \
	type __wrap_##name parameters                                \
	{                                                            \
		return fails() ? (failed) : __real_##name arguments; \
	}

/* How often the library looks for a late reply (recv with MSG_DONTWAIT) depends on the machine, so
 * these calls never fail here. */
ssize_t __real_recv(int fd, void *to, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
	return !(flags & MSG_DONTWAIT) && fails() ? fault_of(fd) : __real_recv(fd, to, size, flags);
}

/* Of this thread: allocations that are not free, and locks that it holds. */
static _Thread_local int allocated, locked;

static void *counted(void *memory)
{
	allocated += memory != NULL;
	return memory;
}

/* True if this thread has called calloc for more than one object. The calls tested here allocate
 * one object each. */
static _Thread_local bool took_several;

static size_t noted(size_t n)
{
	took_several |= n != 1;
	return n;
}

#define WRAP_ALLOCATION(name, parameters, arguments)                      \
	void *__real_##name parameters;                                   \
	void *__wrap_##name parameters;                                   \
	void *__wrap_##name parameters                                    \
	{                                                                 \
		return fails() ? NULL : counted(__real_##name arguments); \
	}

WRAP_ALLOCATION(malloc, (size_t size), (size))
WRAP_ALLOCATION(calloc, (size_t n, size_t size), (noted(n), size))
WRAP_ALLOCATION(aligned_alloc, (size_t align, size_t size), (align, size))

void __real_free(void *memory);
void __wrap_free(void *memory)
{
	allocated -= memory != NULL;
	__real_free(memory);
}

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	locked++;
	return __real_pthread_mutex_lock(lock);
}

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	locked--;
	return __real_pthread_mutex_unlock(lock);
}

WRAP(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, connect, -1, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))
WRAP(int, getsockopt, (memset(value, 0xff, *size), -1),
     (int fd, int level, int name, void *value, socklen_t *size), (fd, level, name, value, size))
WRAP(ssize_t, sendmsg, fault_of(fd), (int fd, const struct msghdr *msg, int flags),
     (fd, msg, flags))
WRAP(ssize_t, recvmsg, fault_of(fd), (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
WRAP(void *, mmap, MAP_FAILED, (void *at, size_t size, int prot, int flags, int fd, off_t offset),
     (at, size, prot, flags, fd, offset))
/* What one run has opened. */
struct run {
	struct nbar_port *port[3];
	struct nbar_group *group[2], *attached;
};

#define TRY(call)                   \
	do {                        \
		int rc_ = call;     \
		if (rc_ < 0)        \
			return rc_; \
	} while (0)

static int join(struct run *r)
{
	struct nbar_endpoint endpoint[2];

	for (uint32_t i = 0; i < 2; i++) {
		const struct nbar_group_attr attr = { .rank = i, .size = 2, .tag = 1 };

		TRY(nbar_open("n0", &r->port[i]));
		TRY(nbar_group_open(r->port[i], &attr, &r->group[i], &endpoint[i]));
	}
	TRY(nbar_group_connect_peers(r->group[0], &endpoint[1]));
	return nbar_group_connect(r->group[1], endpoint);
}

static int barriers(struct run *r)
{
	uint32_t ticket[2];
	char text[256];

	TRY(nbar_group_fd(r->group[0]));
	for (uint32_t n = 0; n < 2; n++) {
		for (uint32_t i = 0; i < 2; i++)
			TRY(nbar_post(r->group[i], &ticket[i]));
		TRY(nbar_group_arm(r->group[0], ticket[0]));
		for (uint32_t i = 0; i < 2; i++)
			TRY(nbar_wait(r->group[i], ticket[i], LONG_NS));
	}
	TRY(nbar_nic_why(r->group[0], text, sizeof(text)));
	return 0;
}

/* Stops after one group, because the number of lingering groups depends on the machine. */
static int stop(void *arg, const struct nbar_group_info *info)
{
	return 1;
}

static int look(void *arg, const struct nbar_group_info *info, const struct nbar_group_stat *stat)
{
	return 0;
}

static int share_and_look(struct run *r)
{
	struct nbar_rep_nic_stat stat;
	struct nbar_rep_nic_latency latency;
	struct nbar_share share;

	TRY(nbar_nic_stat("n0", &stat));
	TRY(nbar_nic_latency("n0", &latency));
	TRY(nbar_nic_groups("n0", stop, NULL));
	TRY(nbar_nic_group_stats("n0", look, NULL));
	nbar_group_share(r->group[0], &share);
	TRY(nbar_attach("n0", &share, &r->port[2]));
	TRY(nbar_group_attach(r->port[2], &share, &r->attached));
	return nbar_group_abort(r->group[0]);
}

static int run(void)
{
	struct run r = { .port = { NULL } };
	int rc = join(&r);

	if (rc == 0)
		rc = barriers(&r);
	if (rc == 0)
		rc = share_and_look(&r);
	nbar_group_close(r.attached);
	for (uint32_t i = 0; i < 2; i++)
		nbar_group_close(r.group[i]);
	for (uint32_t i = 0; i < 3; i++)
		nbar_close(r.port[i]);
	return rc;
}

/* The daemon, which is in this program, closes its ends a moment later. */
static void nothing_is_left(uint32_t before)
{
	struct nbar_rep_nic_stat stat;

	do {
		breathe();
		require_ok(nbar_nic_stat("n0", &stat));
	} while (stat.ngroup + stat.nport > 0 || unit_descriptors() > before);
}

/* The library has closed none of these descriptors of the program. */
static void others_are_open(const int *others, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		require(fcntl(others[i], F_GETFD) >= 0, "descriptor %d is closed", others[i]);
}

/* Each call of a run fails, one after the other. */
static void fail_each(int error)
{
	const int held = allocated, others[] = { 0, 1, 2, open("/dev/null", O_RDONLY | O_CLOEXEC) };
	uint32_t before, n = 0;

	require_ok(run());
	before = unit_descriptors();
	do {
		int rc;

		fault.left = ++n;
		fault.error = error;
		rc = run();
		require(rc <= 0 && (rc == 0 || *nbar_error()), "call %u, error %d: %d", n, error,
			rc);
		require(allocated == held, "call %u, error %d: %d allocations are left", n, error,
			allocated - held);
		require(locked == 0, "call %u, error %d: %d locks are held", n, error, locked);
	} while (fault.left == 0);
	assert_true(n > 50);
	assert_false(took_several);
	fault.left = 0;
	require_ok(run());
	nothing_is_left(before);
	others_are_open(others, sizeof(others) / sizeof(others[0]));
	close(others[3]);
}

static void calls_are_refused(void **state)
{
	fail_each(ENOMEM);
	fail_each(EACCES);
}

/* EAGAIN: the time limit of the control socket has passed. */
static void calls_take_too_long(void **state)
{
	fail_each(EAGAIN);
}

static void calls_are_interrupted(void **state)
{
	fail_each(EINTR);
}

static void connections_are_reset(void **state)
{
	fail_each(ECONNRESET);
	fail_each(EPIPE);
}

/* The reason why a socket cannot be made reaches the caller. */
static void a_process_without_descriptors_is_told(void **state)
{
	static const int error[] = { EMFILE, ENFILE, ENOMEM };
	struct nbar_rep_nic_stat stat;

	for (size_t i = 0; i < sizeof(error) / sizeof(error[0]); i++) {
		fault.left = 1;
		fault.error = error[i];
		assert_int_equal(nbar_nic_stat("n0", &stat), -error[i]);
		assert_int_equal(fault.left, 0);
	}
}

/* The kernel has no number for a daemon of another PID namespace. Then nbar_nic_stat returns the
 * number that the daemon itself reports. If any other call fails, nbar_nic_stat fails. */
static void a_daemon_may_number_itself(void **state)
{
	struct nbar_rep_nic_stat stat;
	uint32_t n = 0;

	fault.error = EPERM;
	do {
		fault.left = ++n;
		stat.pid = 0;
	} while (nbar_nic_stat("n0", &stat) < 0);
	assert_int_equal(fault.left, 0);
	assert_int_equal(stat.pid, getpid());
}

/* A fork locks the list of ports, and unlocks it in parent and child. The end of a port frees its
 * groups. */
static void a_fork_leaves_no_lock(void **state)
{
	const struct nbar_group_attr attr = { .size = 1 };
	const int held = allocated;
	struct nbar_endpoint endpoint;
	struct nbar_port *port;
	struct nbar_group *g;
	int status;
	pid_t child;

	require_ok(nbar_open("n0", &port));
	require_ok(nbar_group_open(port, &attr, &g, &endpoint));
	assert_int_equal(g->cell, 0);
	assert_int_equal(locked, 0);
	child = fork();
	if (child == 0) {
		nbar_close(port);
		_exit(locked != 0 || allocated != held);
	}
	assert_int_equal(locked, 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	nbar_close(port);
	assert_int_equal(locked, 0);
	assert_int_equal(allocated, held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(calls_are_refused),
		UNIT(calls_take_too_long),
		UNIT(calls_are_interrupted),
		UNIT(connections_are_reset),
		UNIT(a_process_without_descriptors_is_told),
		UNIT(a_daemon_may_number_itself),
		UNIT(a_fork_leaves_no_lock),
	};

	return run_with_nics(1, tests);
}
