/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_rdma_host.c - the thread of a remote host: messages between the socket pair and TCP,
 * whole or in parts, with queues that are full; wakes; pushes for other processes; the ends of a
 * connection; failed calls.
 *
 * TCP is real, over the loopback device. The connections of pages are the test's own.
 */
#include "unit/unit.h"

#ifdef WIRES_VERBS
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma/rdma.h"
#include "unit/descriptors.h"

#define LIMIT_MS 10000
#define REPLIES 1000u /* more than a socket pair holds */

static struct ibv_context context;
static struct ibv_comp_channel channel;
static struct nbar_page page;

static struct {
	int hello, open, join, socket, thread, calloc;           /* errors; calloc: the nth call */
	enum { ZERO_NONE, ZERO_TCP, ZERO_BELL, ZERO_PAIR } zero; /* what has the number 0 */
	int tcp, pair, far;                                      /* far: the daemon's side */
	int send;                                                /* error */
	uint32_t part, calls; /* part: bytes that TCP takes or gives at once; 0: all */
	int full;             /* is written to when the pair is full */
	int events, woken[2]; /* pipes of cells */
	uint32_t starts, leaves;
	struct nbar_rdma_link link;
	int asks[2],
		did[2]; /* pipes: other processes write asks; the fake device writes its pushes */
	bool listed, broken;
	uint32_t busy, unsettled; /* so many pushes are not taken, or not arrived */
} fake;

/* --- calls that fail -------------------------------------------------------------------------- */

int __real_poll(struct pollfd *p, nfds_t n, int ms);
ssize_t __real_send(int fd, const void *at, size_t n, int flags);
ssize_t __real_recv(int fd, void *at, size_t n, int flags);
int __real_eventfd(unsigned value, int flags);
int __real_socketpair(int domain, int type, int protocol, int pair[2]);
void *__real_calloc(size_t n, size_t size);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*f)(void *), void *arg);

static bool fails(int error)
{
	errno = error;
	return error != 0;
}

static int as_zero(int fd)
{
	assert_int_equal(dup2(fd, 0), 0);
	close(fd);
	return 0;
}

/* In parts, two of three calls have to be repeated. */
static bool interrupted(void)
{
	const uint32_t n = fake.part ? fake.calls++ % 3 : 2;

	return n < 2 && fails(n ? EAGAIN : EINTR);
}

static size_t part_of(size_t n)
{
	return fake.part && fake.part < n ? fake.part : n;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	if (n > 1 && fake.part && fake.calls++ % 2) {
		errno = EINTR;
		return -1;
	}
	return __real_poll(p, n, ms);
}

ssize_t __wrap_send(int fd, const void *at, size_t n, int flags)
{
	static const uint64_t one = 1;
	ssize_t sent;

	if (fd != fake.tcp && fd != fake.pair)
		return __real_send(fd, at, n, flags);
	if (flags != (MSG_DONTWAIT | MSG_NOSIGNAL))
		abort();
	if (interrupted() || (fd == fake.tcp && fails(fake.send)))
		return -1;
	sent = __real_send(fd, at, fd == fake.tcp ? part_of(n) : n, flags);
	if (fd == fake.pair && sent < 0 && errno == EAGAIN) {
		(void)!write(fake.full, &one, sizeof(one));
		errno = EAGAIN;
	}
	return sent;
}

ssize_t __real_read(int fd, void *at, size_t n);
ssize_t __wrap_read(int fd, void *at, size_t n)
{
	if (fd == fake.asks[0] && !page.asked) /* a process that finds the pipe empty looks there */
		abort();
	return __real_read(fd, at, n);
}

ssize_t __wrap_recv(int fd, void *at, size_t n, int flags)
{
	if (fd != fake.tcp && fd != fake.pair)
		return __real_recv(fd, at, n, flags);
	if (flags != MSG_DONTWAIT)
		abort();
	return interrupted() ? -1 : __real_recv(fd, at, fd == fake.tcp ? part_of(n) : n, flags);
}

int __wrap_eventfd(unsigned value, int flags)
{
	int fd = fails(fake.socket == -1 ? EMFILE : 0) ? -1 : __real_eventfd(value, flags);

	return fake.zero == ZERO_BELL ? as_zero(fd) : fd;
}

int __wrap_socketpair(int domain, int type, int protocol, int pair[2])
{
	if (fails(fake.socket == -2 ? ENFILE : 0))
		return -1;
	assert_int_equal(__real_socketpair(domain, type, protocol, pair), 0);
	if (fake.zero == ZERO_PAIR)
		pair[1] = as_zero(pair[1]);
	fake.pair = pair[1];
	return 0;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fake.calloc && --fake.calloc == 0 ? NULL : __real_calloc(n, size);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	assert_int_equal(sigismember(&now, SIGINT), 1);
	return fake.thread ? fake.thread : __real_pthread_create(t, attr, f, arg);
}

/* --- the other files of the library ----------------------------------------------------------- */

int rdma_hello(const char *address, const char *nic, union rdma_name *own, int *tcp,
	       char text[NBAR_RDMA_TEXT])
{
	union rdma_name to = { .in = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(to.in);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fake.listed);
	assert_string_equal(address, "192.0.2.1:7100");
	assert_string_equal(nic, "n7");
	assert_int_equal(bind(listener, &to.any, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, &to.any, &size), 0);
	*tcp = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(*tcp, &to.any, size), 0);
	fake.far = accept(listener, NULL, NULL);
	close(listener);
	if (fake.zero == ZERO_TCP)
		*tcp = as_zero(*tcp);
	fake.tcp = *tcp;
	snprintf(text, NBAR_RDMA_TEXT, "the text of the hello");
	return fake.hello;
}

/* Before there can be an RDMA device. */
struct ibv_device **verbs_devices(void)
{
	fake.listed = true;
	return NULL;
}

int rdma_device_open(struct nbar_rdma *d, char text[NBAR_RDMA_TEXT])
{
	int pipes[2];

	if (fake.open)
		return fake.open;
	assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
	channel.fd = pipes[0];
	fake.events = pipes[1];
	context = (struct ibv_context){ .cmd_fd = __real_eventfd(0, 0),
					.async_fd = __real_eventfd(0, 0) };
	d->context = &context;
	d->channel = &channel;
	return 0;
}

int rdma_join(struct nbar_rdma *d, struct nbar_page *at, void *arg, struct nbar_rdma_link **out,
	      struct nbar_rdma_end *mine, char text[NBAR_RDMA_TEXT])
{
	assert_ptr_equal(at, &page);
	if (fake.join)
		return fake.join;
	fake.link = (struct nbar_rdma_link){ .device = d, .arg = arg };
	mine->qpn = 77;
	*out = &fake.link;
	return 0;
}

int rdma_start(struct nbar_rdma_link *l, const struct nbar_rdma_end *its)
{
	fake.starts++;
	return its->qpn == 5 ? 0 : -EINVAL;
}

void rdma_leave(struct nbar_rdma_link *l)
{
	if (l != &fake.link)
		abort();
	fake.leaves++;
}

static void did(uint32_t at, uint32_t n, uint32_t cell)
{
	const struct nbar_rdma_ask ask = { at, n, cell, 0, 0 };

	if (write(fake.did[1], &ask, sizeof(ask)) != sizeof(ask))
		abort();
}

int rdma_push(struct nbar_rdma_link *l, const void *at, size_t n, uint32_t cell)
{
	if (l != &fake.link || !page.asked)
		abort();
	if (fake.broken)
		return -ENOTCONN;
	if (fake.busy > 0) {
		fake.busy--;
		return -EAGAIN;
	}
	did((uint32_t)((const uint8_t *)at - (const uint8_t *)&page), (uint32_t)n, cell);
	return 0;
}

int rdma_push_word(struct nbar_rdma_link *l, size_t at, uint32_t word, uint32_t cell)
{
	if (l != &fake.link || !page.asked)
		abort();
	did((uint32_t)at, word, cell);
	return 0;
}

int rdma_arrived(struct nbar_rdma_link *l, uint64_t *mark)
{
	if (fake.broken)
		return -ENOTCONN;
	if (*mark != (fake.unsettled % 3 ? 5 : NBAR_RDMA_NO_MARK) || !page.asked)
		abort();
	*mark = --fake.unsettled % 3 ? 5 : NBAR_RDMA_NO_MARK;
	if (fake.unsettled % 3)
		return 0;
	did(0, 0, NBAR_RDMA_NO_CELL);
	*mark = 7;
	return 1;
}

void rdma_heard(struct nbar_rdma *d, void (*heard)(void *arg, uint32_t cell, void *more),
		void *more)
{
	uint32_t cell;

	if (read(d->channel->fd, &cell, sizeof(cell)) == sizeof(cell))
		heard(fake.link.arg, cell, more);
}

/* --- tests ------------------------------------------------------------------------------------ */

static char text[NBAR_RDMA_TEXT];
static struct nbar_rdma *device;
static int sock;
static uint32_t before; /* descriptors */

static int begin(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.tcp = fake.pair = fake.far = fake.events = -1;
	fake.full = __real_eventfd(0, 0);
	assert_int_equal(pipe(fake.woken), 0);
	assert_int_equal(pipe(fake.did), 0);
	assert_int_equal(pipe2(fake.asks, O_NONBLOCK), 0);
	page.asked = 0;
	before = unit_descriptors();
	return 0;
}

static int end(void **state)
{
	close(fake.full);
	close(fake.woken[0]);
	close(fake.woken[1]);
	for (int i = 0; i < 2; i++) {
		close(fake.did[i]);
		close(fake.asks[i]);
	}
	return 0;
}

static void wakes(void *arg, uint32_t cell)
{
	if (arg != &fake || write(fake.woken[1], &cell, sizeof(cell)) != sizeof(cell))
		abort();
}

static int connects(void)
{
	device = NULL;
	sock = -1;
	fake.tcp = fake.pair = fake.far = -1;
	return rdma_connect("192.0.2.1:7100", "n7", wakes, &device, &sock, text);
}

static int joins(void)
{
	struct nbar_rdma_link *l = NULL;
	struct nbar_rdma_end mine = { .qpn = 0 };
	int rc = rdma_host_join(device, &page, &fake, fake.asks[0], &l, &mine, text);

	assert_true(rc < 0 || (l == &fake.link && mine.qpn == 77));
	return rc;
}

static void leaves_nothing(void)
{
	close(sock);
	close(fake.far);
	if (device->context) {
		close(channel.fd);
		close(fake.events);
		close(context.cmd_fd);
		close(context.async_fd);
	}
	free(device);
	assert_int_equal(unit_descriptors(), before);
}

static void closes(void)
{
	rdma_host_end(device);
	leaves_nothing();
}

/* Waits until there is something to read. */
static void waits(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
}

static void has_ended(int fd)
{
	char byte;

	waits(fd);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

union message {
	struct nbar_request head;
	uint8_t byte[NBAR_MESSAGE_MAX];
};

static uint32_t makes(union message *m, uint32_t length, uint32_t seq)
{
	memset(m, (int)seq + 1, sizeof(*m));
	m->head = (struct nbar_request){ .length = length, .seq = seq };
	return length;
}

/* One message at the socket of libnbar. */
static void is_replied(uint32_t length, uint32_t seq)
{
	static union message got, want;

	waits(sock);
	assert_int_equal(recv(sock, &got, sizeof(got), 0), makes(&want, length, seq));
	assert_memory_equal(&got, &want, length);
}

static void replies(uint32_t length, uint32_t seq)
{
	static union message m;

	assert_int_equal(send(fake.far, &m, makes(&m, length, seq), 0), length);
}

static void requests(uint32_t length, uint32_t seq)
{
	static union message got, want;

	assert_int_equal(send(sock, &want, makes(&want, length, seq), 0), length);
	for (uint32_t have = 0; have < length;) {
		ssize_t n;

		waits(fake.far);
		n = recv(fake.far, got.byte + have, length - have, 0);
		assert_in_range(n, 1, length - have);
		have += (uint32_t)n;
	}
	assert_memory_equal(&got, &want, length);
}

static void messages_go_both_ways(void **state)
{
	static const uint32_t length[] = { sizeof(struct nbar_request), 17, 100, NBAR_MESSAGE_MAX };
	static const uint32_t part[] = { 0, 5, 7, sizeof(struct nbar_request) };

	for (uint32_t i = 0; i < 4; i++) {
		fake.part = part[i];
		assert_int_equal(connects(), 0);
		for (uint32_t n = 0; n < 4; n++) {
			requests(length[n], n);
			replies(length[n], 10 + n);
			replies(length[3 - n], 20 + n);
			is_replied(length[n], 10 + n);
			is_replied(length[3 - n], 20 + n);
		}
		closes();
	}
}

/* What libnbar does not read stays in TCP, and requests still go out. */
static void a_full_pair(void **state)
{
	assert_int_equal(connects(), 0);
	for (uint32_t i = 0; i < REPLIES; i++)
		replies(64, i);
	waits(fake.full);
	requests(64, 1);
	for (uint32_t i = 0; i < REPLIES; i++)
		is_replied(64, i);
	closes();
}

static void libnbar_ends(void **state)
{
	assert_int_equal(connects(), 0);
	requests(64, 1);
	shutdown(sock, SHUT_WR);
	has_ended(fake.far);
	replies(64, 2); /* the last reply still comes */
	is_replied(64, 2);
	shutdown(fake.far, SHUT_WR);
	has_ended(sock);
	closes();
	/* It is gone before the reply. */
	assert_int_equal(connects(), 0);
	close(sock);
	has_ended(fake.far);
	replies(64, 3);
	sock = -1;
	closes();
}

static void the_other_side_ends(void **state)
{
	static const uint32_t length[] = { 0, sizeof(struct nbar_request) - 1, NBAR_MESSAGE_MAX + 1,
					   UINT32_MAX };
	struct nbar_request head = { .length = 0 };

	assert_int_equal(connects(), 0);
	replies(64, 1);
	assert_int_equal(send(fake.far, &head, 3, 0), 3);
	shutdown(fake.far, SHUT_WR);
	is_replied(64, 1);
	has_ended(sock);
	has_ended(fake.far);
	closes();
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(connects(), 0);
		head.length = length[i];
		assert_int_equal(send(fake.far, &head, sizeof(head), 0), sizeof(head));
		has_ended(sock);
		has_ended(fake.far);
		closes();
	}
	fake.send = EPIPE;
	assert_int_equal(connects(), 0);
	assert_int_equal(send(sock, &head, sizeof(head), 0), sizeof(head));
	has_ended(sock);
	has_ended(fake.far);
	closes();
}

static void hears(uint32_t cell)
{
	assert_int_equal(write(fake.events, &cell, sizeof(cell)), sizeof(cell));
}

static void is_woken(uint32_t expected)
{
	uint32_t cell;

	waits(fake.woken[0]);
	assert_int_equal(read(fake.woken[0], &cell, sizeof(cell)), sizeof(cell));
	assert_int_equal(cell, expected);
}

static void threads_are_woken(void **state)
{
	assert_int_equal(connects(), 0);
	assert_int_equal(joins(), 0);
	for (uint32_t i = 0; i < 3; i++) {
		hears(i);
		is_woken(i);
		requests(64, i);
	}
	hears(NBAR_RDMA_NO_CELL);
	has_ended(sock);
	has_ended(fake.far);
	is_woken(NBAR_RDMA_NO_CELL); /* those who poll */
	assert_int_equal(fake.leaves, 0);
	closes();
	assert_int_equal(fake.leaves, 1);
}

static void asks(uint32_t at, uint32_t n, uint32_t cell)
{
	const struct nbar_rdma_ask ask = { at, n, cell, 0, 0 };

	assert_int_equal(write(fake.asks[1], &ask, sizeof(ask)), sizeof(ask));
}

static void asks_word(uint32_t at, uint32_t word)
{
	const struct nbar_rdma_ask ask = { .at = at, .cell = 5, .has_word = 1, .word = word };

	assert_int_equal(write(fake.asks[1], &ask, sizeof(ask)), sizeof(ask));
}

static void is_done(uint32_t at, uint32_t n, uint32_t cell)
{
	struct nbar_rdma_ask ask;

	waits(fake.did[0]);
	assert_int_equal(read(fake.did[0], &ask, sizeof(ask)), sizeof(ask));
	require(ask.at == at && ask.n == n && ask.cell == cell, "%u %u %u", ask.at, ask.n,
		ask.cell);
}

static void pushes_for_other_processes(void **state)
{
	const uint32_t last = sizeof(page);

	/* Those of each ask that waits come in one turn, and in the next. */
	for (uint32_t i = 0; i < 200; i++)
		asks(i, 8, i % 2 ? i : NBAR_RDMA_NO_CELL);
	fake.busy = 5;
	assert_int_equal(connects(), 0);
	assert_int_equal(joins(), 0);
	for (uint32_t i = 0; i < 200; i++)
		is_done(i, 8, i % 2 ? i : NBAR_RDMA_NO_CELL);
	/* What the page does not have is not pushed. */
	asks(last + 1, 1, NBAR_RDMA_NO_CELL);
	asks(UINT32_MAX, 2, NBAR_RDMA_NO_CELL);
	asks(last - 1, 2, NBAR_RDMA_NO_CELL);
	asks(0, UINT32_MAX, NBAR_RDMA_NO_CELL);
	asks(0, 1, NBAR_GROUPS_MAX);
	asks(last - 1, 1, NBAR_GROUPS_MAX - 1);
	is_done(last - 1, 1, NBAR_GROUPS_MAX - 1);
	/* A word of the ask's own. */
	asks_word(last - 3, 77);
	asks_word(last - 4, 78);
	is_done(last - 4, 78, 5);
	/* One that wants all pushes to have arrived: each has a mark of its own. */
	fake.unsettled = 6;
	asks(0, 0, NBAR_RDMA_NO_CELL);
	asks(0, 0, NBAR_RDMA_NO_CELL);
	asks(4, 4, 1);
	is_done(0, 0, NBAR_RDMA_NO_CELL);
	is_done(0, 0, NBAR_RDMA_NO_CELL);
	is_done(4, 4, 1);
	while (__atomic_load_n(&page.asked, __ATOMIC_ACQUIRE))
		sched_yield();
	/* Messages go on beside it. */
	requests(64, 1);
	closes();
}

/* Nobody but the thread hears of a push that fails. */
static void an_ask_that_fails(void **state)
{
	for (uint32_t n = 0; n < 2; n++) {
		fake.broken = true;
		asks(0, n, NBAR_RDMA_NO_CELL);
		assert_int_equal(connects(), 0);
		assert_int_equal(joins(), 0);
		has_ended(sock);
		has_ended(fake.far);
		closes();
	}
}

/* The thread ends though an ask cannot be done. */
static void an_ask_is_left(void **state)
{
	fake.busy = UINT32_MAX;
	asks(0, 8, 1);
	assert_int_equal(connects(), 0);
	assert_int_equal(joins(), 0);
	requests(64, 1);
	hears(NBAR_RDMA_NO_CELL);
	has_ended(sock);
	closes();
}

/* The thread ends though nothing comes. */
static void the_end(void **state)
{
	assert_int_equal(connects(), 0);
	assert_int_equal(joins(), 0);
	rdma_host_end(device);
	assert_int_equal(fake.leaves, 1);
	has_ended(sock);
	has_ended(fake.far);
	leaves_nothing();
}

/* A page is connected only to the machine at the other end of TCP. */
static void the_gid_is_that_of_the_peer(void **state)
{
	struct nbar_rdma_end its = { .qpn = 5, .gid = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 } };

	assert_int_equal(connects(), 0);
	assert_int_equal(joins(), 0);
	for (uint32_t i = 0; i < 16; i++) {
		its.gid[i] ^= 1;
		assert_int_equal(rdma_host_start(&fake.link, &its), -EADDRNOTAVAIL);
		its.gid[i] ^= 1;
	}
	assert_int_equal(fake.starts, 0);
	assert_int_equal(rdma_host_start(&fake.link, &its), 0);
	its.qpn = 6;
	assert_int_equal(rdma_host_start(&fake.link, &its), -EINVAL);
	assert_int_equal(fake.starts, 2);
	closes();
}

static void fails_as(int want, const char *says)
{
	sigset_t set;

	assert_int_equal(connects(), want);
	assert_string_equal(text, says);
	assert_true(!device && sock == -1);
	if (fake.far >= 0)
		close(fake.far);
	assert_int_equal(unit_descriptors(), before);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	assert_int_equal(sigismember(&set, SIGINT), 0);
}

static void calls_that_fail(void **state)
{
	for (fake.calloc = 1; fake.calloc <= 2;) {
		int nth = fake.calloc;

		fails_as(-ENOMEM, "no memory");
		fake.calloc = nth + 1;
	}
	fake.calloc = 0;
	fake.hello = -EACCES;
	fails_as(-EACCES, "the text of the hello");
	fake.hello = 0;
	fake.socket = -1;
	fails_as(-EMFILE, "no file descriptor: Too many open files");
	fake.socket = -2;
	fails_as(-ENFILE, "no file descriptor: Too many open files in system");
	fake.socket = 0;
	fake.thread = EAGAIN;
	fails_as(-EAGAIN, "no thread: Resource temporarily unavailable");
	fake.thread = 0;
	/* A port that cannot be opened: the connection goes on. */
	assert_int_equal(connects(), 0);
	fake.open = -ENODEV;
	assert_int_equal(joins(), -ENODEV);
	fake.open = 0;
	fake.join = -ENOMEM;
	assert_int_equal(joins(), -ENOMEM);
	requests(64, 1);
	closes();
	assert_int_equal(fake.leaves, 0);
}

/* A program without standard input has descriptors of this number. */
static void the_descriptor_0(void **state)
{
	int saved = fcntl(0, F_DUPFD_CLOEXEC, 3);

	assert_true(saved > 0);
	for (uint32_t i = ZERO_TCP; i <= ZERO_PAIR; i++) {
		close(0);
		before = unit_descriptors();
		/* Here others are not to get the number. */
		assert_int_equal(open("/dev/null", O_RDONLY), 0);
		fake.zero = i;
		assert_int_equal(connects(), 0);
		requests(64, 1);
		replies(64, 2);
		is_replied(64, 2);
		closes();
		assert_int_equal(dup2(saved, 0), 0);
	}
	close(saved);
}

static void a_child_closes_what_it_has_got(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		pid_t child;
		int status;

		assert_int_equal(connects(), 0);
		if (i == 1)
			assert_int_equal(joins(), 0);
		child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			rdma_host_forked(device);
			close(sock);
			close(fake.far);
			if (i == 1)
				close(fake.events);
			_exit(unit_descriptors() == before ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		requests(64, 1);
		closes();
	}
}

#define TEST(name) UNIT_IN(name, begin, end)

UNIT_MAIN(NULL, NULL, TEST(messages_go_both_ways), TEST(a_full_pair), TEST(libnbar_ends),
	  TEST(the_other_side_ends), TEST(threads_are_woken), TEST(pushes_for_other_processes),
	  TEST(an_ask_is_left), TEST(an_ask_that_fails), TEST(the_end),
	  TEST(the_gid_is_that_of_the_peer), TEST(calls_that_fail), TEST(the_descriptor_0),
	  TEST(a_child_closes_what_it_has_got))
#else
int main(void)
{
	puts("1..1\nok 1 - the thread of remote hosts # SKIP this build has none: apt-get install libibverbs-dev");
	return 0;
}
#endif
