/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_world.h - two NICs with their control thread and the threads of users, all played by the
 * test, in one thread: a thread runs until it would wait for an event. The clock is the test's own,
 * calls fail on demand, and descriptors and blocks of memory are counted.
 */
#ifndef NBAR_TEST_CONTROL_WORLD_H
#define NBAR_TEST_CONTROL_WORLD_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "control_internal.h"
#include "daemon.h"
#include "logged.h"

#define THREADS_MAX 16u
#define NOT_A_UID 123456u

static struct world {
	struct nicd nicd;
	struct control *control;
	struct control_config config;
	struct wire_base wire[2];
	uint32_t serves[2]; /* calls of the serve() of a wire */
	char run_dir[32];
	int lock, stop_fd;
	uint64_t clock, reads;   /* of the clock: ns, and how often the mailbox has read it */
	int64_t blocks;          /* of memory that are in use */
	uint32_t calls, fail_at; /* calls that can fail so far; the number of the call that fails,
				    0: none */
	uint32_t zero_at;        /* the one whose descriptor is 0 */
	uint32_t fds;            /* that were open before this world */
	uint32_t alive, naps;
	uint64_t napped_ns;
	void (*at_nap)(void);
	uint32_t uid; /* of the clients that connect */
	struct rlimit limit;
	uint32_t memfds_fail; /* memfd_create fails so often */
	uint32_t send_fails;  /* sendmsg with a descriptor fails so often */
	int send_error;

	uint32_t nthread;
	struct {
		void *(*main)(void *);
		void *arg;
		char name[16];
		bool detached, over;
		size_t stack;
		cpu_set_t cpus;
	} thread[THREADS_MAX];
	jmp_buf suspended;
	bool running;
	uint32_t waits, timeouts; /* for events; and how many more end without one */
	bool interrupted;         /* the last wait */
	int wait_ms;              /* the timeout of the last */
	bool locked;              /* the lock of the turn */
	int attrs;                /* of threads that are to be made */
	uint32_t signals;         /* of ends of threads */
	struct timespec wait_end; /* until when the end of threads was waited for */
} world;

static uint32_t entries(const char *path)
{
	DIR *d = opendir(path);
	uint32_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

/* --- calls --------------------------------------------------------------------------------- */

static bool call_fails(int error)
{
	if (!world.running || ++world.calls != world.fail_at)
		return false;
	errno = error;
	return true;
}

/* The descriptor of a call: 0 is one like all others. */
static int descriptor(int fd)
{
	if (!world.running || world.calls != world.zero_at || fd < 0)
		return fd;
	dup2(fd, 0);
	close(fd);
	return 0;
}

#define FALLIBLE(type, name, parameters, arguments, error, failed) \
	type __real_##name parameters;                             \
	type __wrap_##name parameters                              \
	{                                                          \
		if (call_fails(error))                             \
			return failed;                             \
		return __real_##name arguments;                    \
	}

static bool memory_fails(void)
{
	if (world.memfds_fail == 0)
		return false;
	world.memfds_fail--;
	errno = EMFILE;
	return true;
}

#define DESCRIPTOR(name, parameters, arguments)                       \
	int __real_##name parameters;                                 \
	int __wrap_##name parameters                                  \
	{                                                             \
		bool memory = strcmp(#name, "memfd_create") == 0;     \
                                                                      \
		if (call_fails(EMFILE) || (memory && memory_fails())) \
			return -1;                                    \
		return descriptor(__real_##name arguments);           \
	}

DESCRIPTOR(epoll_create1, (int flags), (flags))
DESCRIPTOR(eventfd, (unsigned n, int flags), (n, flags))
DESCRIPTOR(socket, (int family, int type, int protocol), (family, type, protocol))
DESCRIPTOR(accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags),
	   (fd, from, size, flags))
DESCRIPTOR(memfd_create, (const char *name, unsigned flags), (name, flags))
FALLIBLE(int, listen, (int fd, int n), (fd, n), EADDRINUSE, -1)
FALLIBLE(int, chmod, (const char *path, mode_t mode), (path, mode), EPERM, -1)
FALLIBLE(int, epoll_ctl, (int epoll, int op, int fd, struct epoll_event *ev), (epoll, op, fd, ev),
	 EPERM, -1)

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	void *block = call_fails(ENOMEM) ? NULL : __real_calloc(n, size);

	world.blocks += block != NULL;
	return block;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	void *block = call_fails(ENOMEM) ? NULL : __real_malloc(size);

	world.blocks += block != NULL;
	return block;
}

void __real_free(void *block);
void __wrap_free(void *block)
{
	world.blocks -= block != NULL;
	__real_free(block);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	assert_int_equal(id, CLOCK_MONOTONIC);
	*out = (struct timespec){ (time_t)(world.clock / 1000000000),
				  (long)(world.clock % 1000000000) };
	return 0;
}

static uint64_t mailbox_clock(void)
{
	world.reads++;
	return world.clock;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *rest)
{
	assert_int_equal(world.control->turn, world.control->turn_next);
	world.naps++;
	world.napped_ns += (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
	if (world.at_nap)
		world.at_nap();
	return 0;
}

int __wrap_getrlimit(__rlimit_resource_t which, struct rlimit *out)
{
	assert_int_equal(which, RLIMIT_NOFILE);
	*out = world.limit;
	return 0;
}

int __real_getsockopt(int fd, int level, int option, void *out, socklen_t *size);
int __wrap_getsockopt(int fd, int level, int option, void *out, socklen_t *size)
{
	bool fails = call_fails(EIO);
	int rc = __real_getsockopt(fd, level, option, out, size);

	if (option == SO_PEERCRED)
		((struct ucred *)out)->uid = fails ? NOT_A_UID : world.uid;
	return fails ? -1 : rc;
}

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen > 0 && world.send_fails > 0) {
		world.send_fails--;
		errno = world.send_error;
		return -1;
	}
	return __real_sendmsg(fd, msg, flags);
}

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	if (world.control && lock == &world.control->lock) {
		assert_false(world.locked);
		world.locked = true;
	}
	return __real_pthread_mutex_lock(lock);
}

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	if (world.control && lock == &world.control->lock) {
		assert_true(world.locked);
		world.locked = false;
	}
	return __real_pthread_mutex_unlock(lock);
}

/* --- threads ------------------------------------------------------------------------------- */

int __real_pthread_attr_init(pthread_attr_t *attr);
int __wrap_pthread_attr_init(pthread_attr_t *attr)
{
	world.attrs++; /* POSIX lets it be destroyed even if this fails, and glibc, too */
	(void)__real_pthread_attr_init(attr);
	return call_fails(ENOMEM) ? ENOMEM : 0;
}

int __real_pthread_attr_destroy(pthread_attr_t *attr);
int __wrap_pthread_attr_destroy(pthread_attr_t *attr)
{
	world.attrs--;
	return __real_pthread_attr_destroy(attr);
}

int __real_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	world.signals++;
	return __real_pthread_cond_signal(cond);
}

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*main)(void *),
			  void *arg)
{
	uint32_t i = world.nthread;
	int detached;

	if (call_fails(EPERM))
		return EPERM;
	assert_true(i < THREADS_MAX);
	memset(&world.thread[i], 0, sizeof(world.thread[i]));
	world.thread[i].main = main;
	world.thread[i].arg = arg;
	pthread_attr_getdetachstate(attr, &detached);
	world.thread[i].detached = detached == PTHREAD_CREATE_DETACHED;
	pthread_attr_getstacksize(attr, &world.thread[i].stack);
	pthread_attr_getaffinity_np(attr, sizeof(cpu_set_t), &world.thread[i].cpus);
	*id = ++world.nthread;
	return 0;
}

int __wrap_pthread_setname_np(pthread_t id, const char *name)
{
	snprintf(world.thread[id - 1].name, sizeof(world.thread[id - 1].name), "%s", name);
	return 0;
}

int __wrap_pthread_join(pthread_t id, void **result)
{
	assert_true(world.thread[id - 1].over);
	return 0;
}

int __real_epoll_wait(int epoll, struct epoll_event *ev, int max, int ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *ev, int max, int ms)
{
	int n = __real_epoll_wait(epoll, ev, max, 0);

	assert_int_equal(max, 1);
	if (world.control) /* whoever waits does not have the turn */
		assert_int_equal(world.control->turn, world.control->turn_next);
	world.waits++;
	world.wait_ms = ms;
	if (n != 0)
		return n;
	*ev = (struct epoll_event){ 0 };
	if (world.timeouts > 0) {
		world.timeouts--;
		return 0;
	}
	if (world.interrupted)
		longjmp(world.suspended, 1);
	world.interrupted = true;
	errno = EINTR;
	return -1;
}

/* Runs a thread until it waits in vain. True: it has ended. */
static bool runs(uint32_t i)
{
	static uint32_t at;

	at = i;
	if (world.thread[i].over)
		return true;
	world.running = true;
	world.interrupted = false;
	if (setjmp(world.suspended) == 0) {
		world.thread[at].main(world.thread[at].arg);
		world.thread[at].over = true;
	}
	world.running = false;
	if (world.thread[at].detached && !world.thread[at].over)
		assert_int_equal(world.wait_ms, -1);
	return world.thread[at].over;
}

/* The thread with this number among those of the name. */
static uint32_t thread_of(const char *name, uint32_t n)
{
	for (uint32_t i = 0; i < world.nthread; i++)
		if (strcmp(world.thread[i].name, name) == 0 && n-- == 0)
			return i;
	fail_msg("there is no thread %s", name);
	return 0;
}

static bool control_runs(void)
{
	return runs(thread_of(CONTROL_THREAD_NAME, 0));
}

static void users_run(void)
{
	for (uint32_t i = 0; i < world.nthread; i++)
		if (world.thread[i].detached)
			runs(i);
}

static void all_run(void)
{
	control_runs();
	users_run();
}

static bool users_delayed;

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t id,
				  const struct timespec *end)
{
	assert_int_equal(id, CLOCK_MONOTONIC);
	world.wait_end = *end;
	if (users_delayed)
		return ETIMEDOUT;
	for (uint32_t i = 0; i < world.nthread; i++) {
		uint32_t before = world.signals;

		if (!world.thread[i].detached || world.thread[i].over)
			continue;
		pthread_mutex_unlock(lock);
		assert_true(runs(i));
		assert_int_equal(world.signals, before + 1);
		pthread_mutex_lock(lock);
		return 0; /* one at a time */
	}
	return ETIMEDOUT;
}

/* --- NICs ---------------------------------------------------------------------------------- */

static void wire_close(struct wire_base *w)
{
	close(w->fd);
}

static unsigned wire_poll(struct wire_base *w, struct nbnic *nic, uint64_t now, unsigned budget)
{
	return 0;
}

static bool wire_transmit(struct wire_base *w, const struct nbnic_addr *to,
			  const struct nbfw_token *t)
{
	return true;
}

static void wire_serve(struct wire_base *w)
{
	uint64_t n;

	world.serves[w - world.wire]++;
	assert_int_equal(read(w->fd, &n, sizeof(n)), sizeof(n));
}

static void write_to(int fd)
{
	const uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

static void show_alive(void)
{
	world.alive++;
}

/* A world without a control thread. */
static void world_begin(void)
{
	static const struct wire_ops ops = {
		.close = wire_close,
		.poll = wire_poll,
		.transmit = wire_transmit,
	}, ops_with_serve = {
		.close = wire_close,
		.poll = wire_poll,
		.transmit = wire_transmit,
		.serve = wire_serve,
	};
	const struct nbnic_config config = {
		.pull_ns = NBNIC_PULL_NS_DEFAULT,
		.budget_ns = NBNIC_BUDGET_NS_DEFAULT,
		.user_percent = 50,
	};

	memset(&world, 0, sizeof(world));
	world.fds = entries("/proc/self/fd");
	users_delayed = false;
	logged[0] = '\0';
	world.clock = UINT64_C(5000000000);
	world.uid = geteuid();
	world.limit = (struct rlimit){ 1024, 4096 };
	world.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	strcpy(world.run_dir, "/tmp/nbar-control-XXXXXX");
	assert_non_null(mkdtemp(world.run_dir));
	world.lock = rundir_take(world.run_dir);
	assert_true(world.lock >= 0);
	nicd_init(&world.nicd, &config);
	mailbox_share(&world.nicd.mailbox, mailbox_clock);
	for (uint32_t i = 0; i < 2; i++) {
		world.wire[i] = (struct wire_base){
			.ops = i == 0 ? &ops : &ops_with_serve,
			.name = "none",
			.kind = WIRE_KIND_TEST,
			.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		};
		assert_int_equal(nicd_add(&world.nicd, i == 0 ? "n0" : "n1", &world.wire[i]), 0);
	}
	world.config = (struct control_config){
		.run_dir = world.run_dir,
		.mode = 0640,
		.group = (gid_t)-1,
		.stop_fd = world.stop_fd,
		.alive = show_alive,
	};
}

static int control_begins(void)
{
	int rc;

	world.running = true;
	rc = control_start(&world.nicd, &world.config, &world.control);
	world.running = false;
	return rc;
}

/* What is left when the control thread has ended. */
static void world_end(void)
{
	char lock[64];

	assert_int_equal(world.nicd.look_fd, -1);
	nicd_fini(&world.nicd);
	close(world.lock);
	close(world.stop_fd);
	snprintf(lock, sizeof(lock), "%s/nicd.lock", world.run_dir);
	assert_int_equal(entries(world.run_dir), 1);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(rmdir(world.run_dir), 0);
	assert_int_equal(world.blocks, 0);
	assert_int_equal(world.attrs, 0);
	assert_int_equal(entries("/proc/self/fd"), world.fds);
}

static void daemon_ends(void)
{
	write_to(world.stop_fd);
	assert_true(control_runs());
	control_end(world.control);
	world_end();
}

/* --- clients ------------------------------------------------------------------------------- */

static int connects_to(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = __real_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return fd;
}

static int connects(uint32_t nic)
{
	return connects_to(control_path(world.control, nic));
}

/* A client sends a request with a body of n bytes. Returns its number. */
static uint32_t asks(int fd, uint16_t op, const void *body, size_t n)
{
	static uint32_t seq;
	uint8_t byte[256];
	const struct nbar_request head = {
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = op,
		.length = (uint32_t)(sizeof(head) + n),
		.seq = ++seq,
	};

	memcpy(byte, &head, sizeof(head));
	if (n > 0)
		memcpy(byte + sizeof(head), body, n);
	send(fd, byte, head.length, MSG_NOSIGNAL);
	return seq;
}

#define NO_REPLY 1 /* a status: the connection is open, and silent */
#define ENDED 2    /* a status: the connection has ended */

static union {
	struct nbar_reply head;
	struct {
		struct nbar_reply head;
		struct nbar_rep_port_open port;
	} open;
	struct {
		struct nbar_reply head;
		struct nbar_rep_group_open group;
	} group;
	uint8_t byte[8192];
} reply;

/* Reads a reply. Returns its status; got: the descriptors that came with it, -1: none. */
static int answered_fds(int fd, int got[DAEMON_FDS_MAX])
{
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(DAEMON_FDS_MAX * sizeof(int))];
	} rights;
	struct iovec iov = { &reply, sizeof(reply) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = rights.byte,
			      .msg_controllen = sizeof(rights.byte) };
	ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	memset(got, 0xff, DAEMON_FDS_MAX * sizeof(*got));
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? NO_REPLY : ENDED;
	if (c)
		memcpy(got, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return reply.head.status;
}

/* The same of a reply with one descriptor at most. */
static int answered_fd(int fd, int *got)
{
	int all[DAEMON_FDS_MAX], status = answered_fds(fd, all);

	assert_int_equal(all[1], -1);
	*got = all[0];
	return status;
}

static int answered(int fd)
{
	int got, status = answered_fd(fd, &got);

	if (got >= 0)
		close(got);
	return status;
}

#endif
