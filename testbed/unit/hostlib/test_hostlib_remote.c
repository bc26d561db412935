/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_remote.c - the port of a remote NIC: what is pushed, in which order, and what
 * happens while the NIC, or the device, is slow or gone; a second process that attaches to the
 * port. This file replaces libnbar-rdma.so; the test has the NIC's copy of the page, and its end of
 * the control socket.
 *
 * Linked with --wrap for the calls that it replaces.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "nic_end.h"
#include "nbar_extra.h"
#include "order.h"
#include "unit/descriptors.h"

#define NIC "rdma:192.0.2.1:7100/n0"
#define CELL 3u

static struct nbar_page copy; /* of the NIC */
static struct nbar_page *host;
static struct nbar_port *remote;
static struct nbar_group *g;
static struct {
	bool missing;             /* the library */
	int connect, join, start; /* errors */
	int push;                 /* error of one push */
	uint32_t full, unsettled; /* so many pushes are not taken, or not arrived */
	uint32_t pushes, kicks, closed, forked, waits, naps;
	uint32_t settled_after;   /* so many waits, the NIC's word arrives; 0: never */
	uint32_t settled;         /* this word */
	bool gone_after;          /* 300 waits: the connection ends */
	int asks;                 /* after so many waits, the thread takes all asks, and is busy */
	uint32_t asked_until;     /* for so many waits */
	bool asks_late;           /* it takes them while the library asks for their number */
	struct nbar_rdma_ask ask; /* the last one */
	size_t at, n;             /* of the last push */
	const void *futex;
	void (*wake)(void *arg, uint32_t cell);
} fake;

static int fake_connect(const char *address, const char *nic,
			void (*wake)(void *arg, uint32_t cell), struct nbar_rdma **out, int *sock,
			char text[NBAR_RDMA_TEXT])
{
	assert_string_equal(address, "192.0.2.1:7100");
	assert_string_equal(nic, "n0");
	snprintf(text, NBAR_RDMA_TEXT, "the text of the library");
	if (fake.connect)
		return -fake.connect;
	fake.wake = wake;
	*out = (struct nbar_rdma *)&fake;
	*sock = port.link.sock;
	return 0;
}

static void fake_close(struct nbar_rdma *d)
{
	fake.closed++;
}

static void fake_forked(const struct nbar_rdma *d)
{
	fake.forked++;
}

static int fake_join(struct nbar_rdma *d, struct nbar_page *of, void *arg, int asks,
		     struct nbar_rdma_link **out, struct nbar_rdma_end *mine,
		     char text[NBAR_RDMA_TEXT])
{
	assert_ptr_equal(of, ((struct nbar_port *)arg)->page);
	host = of;
	*out = (struct nbar_rdma_link *)&copy;
	*mine = (struct nbar_rdma_end){ .qpn = 5 };
	snprintf(text, NBAR_RDMA_TEXT, "the text of join");
	return -fake.join;
}

static int fake_start(struct nbar_rdma_link *l, const struct nbar_rdma_end *its)
{
	return -fake.start;
}

static int fake_push(struct nbar_rdma_link *l, const void *at, size_t n, uint32_t cell)
{
	fake.at = (size_t)((const char *)at - (const char *)host);
	fake.n = n;
	assert_ptr_equal(l, &copy);
	assert_true(fake.at < sizeof(copy) && n <= sizeof(copy) - fake.at);
	if (fake.full > 0) {
		fake.full--;
		return -EAGAIN;
	}
	if (fake.push)
		return -fake.push;
	memcpy((char *)&copy + fake.at, at, n);
	fake.pushes++;
	fake.kicks += cell != NBAR_RDMA_NO_CELL;
	return 0;
}

static int fake_arrived(struct nbar_rdma_link *l, uint64_t *mark)
{
	if (fake.unsettled == 0)
		return 1;
	fake.unsettled--;
	return 0;
}

static struct nbar_rdma_ops ops = {
	.version = NBAR_RDMA_VERSION,
	.connect = fake_connect,
	.close = fake_close,
	.forked = fake_forked,
	.join = fake_join,
	.start = fake_start,
	.push = fake_push,
	.arrived = fake_arrived,
};

void *__wrap_dlopen(const char *file, int flags)
{
	if (getenv("NBAR_RDMA") && *getenv("NBAR_RDMA"))
		assert_string_equal(file, getenv("NBAR_RDMA"));
	else
		assert_string_equal(file, NBAR_RDMA_LIBRARY);
	return fake.missing ? NULL : &ops;
}

char *__wrap_dlerror(void)
{
	return "no such file";
}

void *__wrap_dlsym(void *library, const char *symbol)
{
	assert_string_equal(symbol, NBAR_RDMA_SYMBOL);
	return ops.version ? library : NULL;
}

/* What the library's thread does. */
static uint32_t take_asks(void)
{
	uint32_t n = 0;

	while (read(remote->link.asks[0], &fake.ask, sizeof(fake.ask)) == sizeof(fake.ask))
		n++;
	return n;
}

int __real_ioctl(int fd, unsigned long request, void *out);
int __wrap_ioctl(int fd, unsigned long request, void *out)
{
	if (fake.asks_late) {
		assert_int_equal(request, FIONREAD);
		take_asks();
		host->asked = fake.waits < fake.asked_until;
	}
	return __real_ioctl(fd, request, out);
}

static void waited(void)
{
	fake.waits++;
	if (fake.asks && fake.waits == (uint32_t)fake.asks) {
		take_asks();
		host->asked = 1;
	}
	if (fake.waits == fake.asked_until)
		host->asked = 0;
	if (fake.waits == fake.settled_after)
		host->settled = fake.settled;
	if (fake.gone_after && fake.waits == 300 && nic_end >= 0) {
		close(nic_end);
		nic_end = -1;
	}
}

int __wrap_sched_yield(void)
{
	waited();
	return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	fake.naps++;
	waited();
	return 0;
}

long __wrap_syscall(long number, ...)
{
	va_list rest;

	va_start(rest, number);
	fake.futex = va_arg(rest, const void *);
	assert_int_equal(va_arg(rest, int), FUTEX_WAKE);
	va_end(rest);
	return 0;
}

static int begin(void **state)
{
	unsetenv("NBAR_RDMA");
	ops.version = NBAR_RDMA_VERSION;
	memset(&fake, 0, sizeof(fake));
	memset(&copy, 0, sizeof(copy));
	set_up(state);
	remote = NULL;
	return 0;
}

/* libnbar closes its end of the control socket. */
static int end(void **state)
{
	if (remote)
		nbar_close(remote);
	else
		close(port.link.sock);
	if (nic_end >= 0)
		close(nic_end);
	return 0;
}

static int open_port(void)
{
	answer_by(NBAR_OP_PORT_OPEN, 1,
		  sizeof(struct nbar_reply) + sizeof(struct nbar_rep_port_open), NULL, 0);
	answer_by(NBAR_OP_PORT_JOIN, 2, sizeof(struct nbar_reply) + sizeof(struct nbar_rdma_end),
		  NULL, 0);
	return nbar_open(NIC, &remote);
}

static int ask_group_at(uint32_t seq, uint32_t cell)
{
	const struct nbar_group_attr attr = {
		.rank = 0, .size = 1, .value_max = 64, .struct_size = sizeof(attr)
	};
	struct nbar_endpoint endpoint;

	answer(NBAR_OP_GROUP_OPEN, seq, 0, cell);
	return nbar_group_open(remote, &attr, &g, &endpoint);
}

static int ask_group(void)
{
	return ask_group_at(3, CELL);
}

static int begin_group(void **state)
{
	const struct nbar_endpoint none = { { 0 } };

	begin(state);
	assert_int_equal(open_port(), 0);
	heard(NBAR_OP_PORT_OPEN, 1);
	heard(NBAR_OP_PORT_JOIN, 2);
	host->settled = 3;
	assert_int_equal(ask_group(), 0);
	heard(NBAR_OP_GROUP_OPEN, 3);
	answer_by(NBAR_OP_GROUP_CONNECT, 4,
		  sizeof(struct nbar_reply) + sizeof(struct nbar_rep_group_connect), NULL, 0);
	assert_int_equal(nbar_group_connect(g, &none), 0);
	heard(NBAR_OP_GROUP_CONNECT, 4);
	fake.pushes = fake.waits = 0;
	return 0;
}

static int end_group(void **state)
{
	answer(NBAR_OP_GROUP_CLOSE, 5, 0, 0);
	return end(state);
}

static void says(int err, int expected, const char *text)
{
	assert_int_equal(err, -expected);
	require(strstr(nbar_error(), text) != NULL, "\"%s\" lacks \"%s\"", nbar_error(), text);
}

static void names(void **state)
{
	static const char *const bad[] = { "rdma:192.0.2.1:7100", "rdma:192.0.2.1:7100/",
					   "rdma:192.0.2.1:7100/:3" };
	char longer[400] = "rdma:";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		says(nbar_open(bad[i], &remote), EINVAL, "not the name of a remote NIC");
	memset(longer + 5, '1', 200);
	strcpy(longer + 205, "/n0");
	says(nbar_open(longer, &remote), EINVAL, "not the name of a remote NIC");
	memset(longer + 5, 0, sizeof(longer) - 5);
	strcpy(longer + 5, "192.0.2.1:7100/");
	memset(longer + 20, 'n', NBAR_NAME_MAX);
	says(nbar_open(longer, &remote), EINVAL, "not the name of a remote NIC");
	says(nbar_open(NIC ":x", &remote), EINVAL, "port");
}

static void what_fails_at_open(void **state)
{
	fake.missing = true;
	says(nbar_open(NIC, &remote), ELIBACC, "no such file");
	setenv("NBAR_RDMA", "/x.so", 1);
	says(nbar_open(NIC, &remote), ELIBACC, "NBAR_RDMA");
	setenv("NBAR_RDMA", "", 1);
	fake.missing = false;
	ops.version = NBAR_RDMA_VERSION + 1;
	says(nbar_open(NIC, &remote), ELIBBAD, "of this version");
	ops.version = 0;
	says(nbar_open(NIC, &remote), ELIBBAD, "of this version");
	ops.version = NBAR_RDMA_VERSION;
	fake.connect = ECONNREFUSED;
	says(nbar_open(NIC, &remote), ECONNREFUSED, "the text of the library");
	assert_int_equal(fake.closed, 0);
}

static void no_page(void **state)
{
	fake.join = ENODEV;
	says(open_port(), ENODEV, "the text of join");
	assert_int_equal(fake.closed, 1);
	port.link.sock = dup(nic_end);
}

static void join_is_refused(void **state)
{
	answer_by(NBAR_OP_PORT_OPEN, 1,
		  sizeof(struct nbar_reply) + sizeof(struct nbar_rep_port_open), NULL, 0);
	answer(NBAR_OP_PORT_JOIN, 2, -NBAR_EIO, 0);
	says(nbar_open(NIC, &remote), EIO, "why");
	assert_int_equal(fake.closed, 1);
	port.link.sock = dup(nic_end);
}

static void no_connection(void **state)
{
	fake.start = EINVAL;
	says(open_port(), EINVAL, "refuses a connection");
	assert_int_equal(fake.closed, 1);
	port.link.sock = dup(nic_end);
}

static void a_post_is_one_push(void **state)
{
	uint32_t ticket;

	for (uint32_t n = 1; n <= 3; n++) {
		assert_int_equal(nbar_post(g, &ticket), 0);
		assert_int_equal(copy.doorbell[CELL].posted, n);
		assert_int_equal(fake.pushes, n);
		host->completion[CELL].word = n;
		assert_int_equal(nbar_test(g, ticket), 1);
	}
	assert_int_equal(fake.kicks, 0);
	host->kick = 1; /* the NIC sleeps: one post wakes it */
	nbar_post(g, &ticket);
	nbar_post(g, &ticket);
	assert_int_equal(fake.kicks, 1);
	assert_int_equal(host->kick, 0);
	heard_nothing();
	host->kick = 1;
	/* A request for a wake: not the post of another thread, which pushes its value first. */
	order_ask(&host->doorbell[CELL].wake_seq);
	host->doorbell[CELL].posted = 77;
	nblib_start(g, 5, true);
	assert_int_equal(copy.doorbell[CELL].posted, 5);
	assert_int_equal(copy.doorbell[CELL].wake_seq, 1);
	host->doorbell[CELL].posted = 5;
	assert_int_equal(fake.kicks, 1);
	assert_int_equal(fake.pushes, 6);
	host->completion[CELL].word = 5;
}

static void values_come_before_the_post(void **state)
{
	struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 8 };
	uint32_t ticket;

	v.of.f64[7] = 7;
	/* The places have no value of an old group. */
	for (uint32_t i = 0; i < NBAR_VALUES_AHEAD; i++)
		assert_int_equal(host->value[0][i].value.op, NBAR_VALUE_RESULT);
	assert_int_equal(nbar_post_value(g, &v, &ticket), 0);
	assert_int_equal(fake.pushes, 2);
	assert_true(copy.value[0][1].value.of.f64[7] == 7);
	host->value[0][1].value.op |= NBAR_VALUE_RESULT;
	host->completion[CELL].word = 1;
	assert_int_equal(nbar_post(g, &ticket), 0); /* without a value */
	assert_int_equal(fake.pushes, 3);
	host->completion[CELL].word = 8; /* the place of barrier 9 has the result of barrier 1 */
	g->posted = 8;
	assert_int_equal(nbar_post(g, &ticket), 0);
	assert_int_equal(fake.pushes, 4);
	host->value[0][2].value = (struct nbar_value){ .op = NBAR_VALUE_RESULT, .epoch = 10 };
	host->completion[CELL].word = 9;
	assert_int_equal(nbar_post(g, &ticket), 0);
	assert_int_equal(fake.pushes, 5);
	host->completion[CELL].word = 10;
}

/* A post waits until the device has room. */
static void a_full_queue(void **state)
{
	fake.full = 3000;
	assert_int_equal(nbar_post(g, NULL), 0);
	assert_int_equal(copy.doorbell[CELL].posted, 1);
	assert_true(fake.waits == 3000 && fake.naps > 1000 && fake.naps < 3000);
	host->completion[CELL].word = 1;
}

static void a_connection_breaks(void **state)
{
	fake.push = ENOTCONN;
	assert_int_equal(nbar_post(g, NULL), 0);
	assert_true(nblib_link_look(&remote->link));
	fake.pushes = 0;
	fake.push = 0;
	nblib_start(g, 2, false);
	nblib_remote_push(remote, host->send, 4);
	assert_int_equal(fake.pushes, 0);
}

/* The device takes no more: the end of the control connection ends the wait. */
static void a_full_queue_of_a_dead_nic(void **state)
{
	fake.full = UINT32_MAX;
	fake.gone_after = true;
	nbar_post(g, NULL);
	assert_true(fake.waits >= 300 && fake.waits < 600);
	fake.unsettled = UINT32_MAX;
	nblib_remote_settle(remote);
}

static void a_group_closes_when_all_has_arrived(void **state)
{
	fake.unsettled = 10;
	answer(NBAR_OP_GROUP_CLOSE, 5, 0, 0);
	nbar_group_close(g);
	heard(NBAR_OP_GROUP_CLOSE, 5);
	assert_int_equal(fake.unsettled, 0);
	assert_int_equal(fake.waits, 10);
}

/* The reply is here, but the completion word is that of the group before. */
static void a_group_opens_when_its_cell_has_begun(void **state)
{
	assert_int_equal(open_port(), 0);
	heard(NBAR_OP_PORT_OPEN, 1);
	heard(NBAR_OP_PORT_JOIN, 2);
	host->completion[CELL].word = 1;
	host->doorbell[CELL] = (struct nbar_doorbell){ 1, 1 };
	host->settled = 2;
	fake.settled = 3;
	fake.settled_after = 2000;
	assert_int_equal(ask_group(), 0);
	assert_int_equal(fake.waits, 2000);
	assert_int_equal(host->doorbell[CELL].posted, 0);
	answer(NBAR_OP_GROUP_CLOSE, 4, 0, 0);
}

/* A NIC that answers, but never pushes. */
static void a_nic_that_pushes_nothing(void **state)
{
	assert_int_equal(open_port(), 0);
	host->settled = 2;
	says(ask_group(), ENETDOWN, "gone");
	assert_in_range(fake.waits, 500000, 600000);
}

static void the_nic_ends_before_the_cell_begins(void **state)
{
	assert_int_equal(open_port(), 0);
	host->settled = 2;
	fake.gone_after = true;
	says(ask_group(), ENETDOWN, "gone");
}

static void signals(void **state)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 2, .alg = "signal" };
	const uint32_t word[NBAR_SIGNAL_WORDS] = { 1, 2, 3, 4, 5 };
	struct nbar_endpoint endpoint[2] = { { { 0 } } };
	struct nbar_signal_in in;
	struct nbar_group *s;

	answer(NBAR_OP_GROUP_OPEN, 5, 0, 4);
	host->settled = 5;
	assert_int_equal(nbar_group_open(remote, &attr, &s, &endpoint[0]), 0);
	answer_by(NBAR_OP_GROUP_CONNECT, 6,
		  sizeof(struct nbar_reply) + sizeof(struct nbar_rep_group_connect), NULL, 0);
	assert_int_equal(nbar_group_connect(s, endpoint), 0);
	fake.pushes = 0;
	assert_int_equal(nbar_signal_send(s, 0, word), 0);
	assert_int_equal(fake.pushes, 2);
	assert_int_equal(fake.at, offsetof(struct nbar_page, send)); /* the last: its number */
	assert_int_equal(fake.n, sizeof(uint32_t));
	assert_memory_equal(&copy.send[0], &host->send[0], sizeof(copy.send[0]));
	host->recv[0] = (struct nbar_signal){ .seq = 1, .cell = 4, .peer = 1 };
	assert_int_equal(nbar_signal_recv(remote, &in), 1);
	assert_int_equal(nbar_signal_recv(remote, &in), 0);
	assert_int_equal(copy.recvs_taken, 1);
	answer(NBAR_OP_GROUP_CLOSE, 7, 0, 0);
	nbar_group_close(g);
	answer(NBAR_OP_GROUP_CLOSE, 8, 0, 0);
}

static void wakes(void **state)
{
	fake.wake(remote, CELL);
	assert_ptr_equal(fake.futex, &host->completion[CELL].wake);
	fake.futex = NULL;
	fake.wake(remote, NBAR_GROUPS_MAX);
	assert_null(fake.futex);
	assert_int_equal(nblib_link_pid(&remote->link), 0);
}

/* Its process has a number on another machine. */
static void a_nic_that_does_not_run(void **state)
{
	char text[200];

	order_stat_write(&g->life_mute, UINT64_C(2000000000));
	assert_true(nbar_nic_why(g, text, sizeof(text)) > 0);
	require(strstr(text, "daemon at 192.0.2.1:7100 get a processor"), "%s", text);
}

/* In a child of fork(), the library's thread does not run. */
static void forked(void **state)
{
	int sock = dup(remote->link.sock), fd = nbar_group_fd(g), end = g->events_end;

	order_down_write(&remote->link.down, NBLIB_FORKED);
	pthread_mutex_lock(&remote->polled_lock); /* another thread of the parent had it */
	nbar_close(remote);
	remote = NULL;
	port.link.sock = sock;
	assert_int_equal(fake.forked, 1);
	assert_int_equal(fake.closed, 0);
	assert_true(fcntl(fd, F_GETFD) < 0 && fcntl(end, F_GETFD) < 0);
}

/* A NIC, or another process, may write anything where results are. */
static void results_are_checked(void **state)
{
	static const uint16_t bad[] = { 0, NBAR_VALUE_MAX / 8 + 1, UINT16_MAX };
	struct nbar_value in = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 1 }, out;
	struct nbar_value *v;
	uint32_t ticket;

	assert_int_equal(nbar_post_value(g, &in, &ticket), 0);
	v = nblib_value_place(g, ticket);
	host->completion[CELL].word = ticket;
	says(nbar_result(g, ticket, &out), EINVAL, "it carried no value");
	v->op |= NBAR_VALUE_RESULT;
	for (uint32_t i = 0; i < 3; i++) {
		v->count = bad[i];
		says(nbar_result(g, ticket, &out), EINVAL, "has no result");
	}
	v->count = 1;
	v->of.f64[0] = 7;
	assert_int_equal(nbar_result(g, ticket, &out), 0);
	assert_true(out.of.f64[0] == 7 && out.op == NBAR_SUM);
	v->epoch++;
	says(nbar_result(g, ticket, &out), EINVAL, "it carried no value");
	in.count = 0;
	assert_int_equal(nbar_allreduce(g, &in, &out), -EINVAL);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Groups with a descriptor: woken by their cell, and by the end of the connection. */
static void groups_are_polled(void **state)
{
	struct nbar_group *h = g;
	uint32_t ticket, n = unit_descriptors();
	int fd, second;

	host->settled = 5;
	assert_int_equal(ask_group_at(5, CELL + 1), 0);
	second = nbar_group_fd(g);
	assert_true(second >= 0 && nbar_group_fd(g) == second);
	assert_int_equal(unit_descriptors(), n + 2);
	fd = nbar_group_fd(h);
	assert_true(fd >= 0 && second != fd);
	assert_int_equal(nbar_post(h, &ticket), 0);
	assert_int_equal(nbar_group_arm(h, ticket), 0);
	assert_int_equal(fake.n, sizeof(uint32_t));
	assert_int_equal(copy.doorbell[CELL].wake_seq, 1);
	fake.wake(remote, CELL + 2);
	assert_false(readable(fd) || readable(second));
	fake.wake(remote, CELL);
	fake.wake(remote, CELL);
	assert_true(readable(fd) && !readable(second));
	assert_int_equal(nbar_group_arm(h, ticket), 0);
	assert_false(readable(fd));
	host->completion[CELL].word = ticket;
	assert_int_equal(nbar_group_arm(h, ticket), 1);
	answer(NBAR_OP_GROUP_CLOSE, 6, 0, 0);
	nbar_group_close(g);
	assert_int_equal(unit_descriptors(), n + 2);
	g = h;
	assert_int_equal(nbar_post(g, &ticket), 0);
	assert_int_equal(nbar_group_arm(g, ticket), 0);
	shutdown(nic_end, SHUT_RDWR);
	fake.wake(remote, NBAR_RDMA_NO_CELL);
	assert_true(readable(fd));
	says(nbar_group_arm(g, ticket), ENETDOWN, "its daemon at");
}

/* The connection ends before the descriptor is made, or there is none. */
static void groups_cannot_be_polled(void **state)
{
	struct rlimit before;
	int lowest = dup(0);

	close(lowest);
	getrlimit(RLIMIT_NOFILE, &before);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)lowest + 1, before.rlim_max });
	says(nbar_group_fd(g), EMFILE, "no descriptor to poll: Too many open files");
	setrlimit(RLIMIT_NOFILE, &before);
	lowest = (int)unit_descriptors();
	shutdown(nic_end, SHUT_RDWR);
	for (int i = 0; i < 2; i++)
		says(nbar_group_fd(g), ENETDOWN, "its daemon at");
	assert_int_equal(unit_descriptors(), lowest);
}

static void no_descriptors(void **state)
{
	struct rlimit before;

	getrlimit(RLIMIT_NOFILE, &before);
	for (rlim_t more = 0; more < 3; more++) {
		uint32_t n = unit_descriptors();
		int lowest = dup(0);

		close(lowest);
		setrlimit(RLIMIT_NOFILE,
			  &(struct rlimit){ (rlim_t)lowest + more, before.rlim_max });
		says(open_port(), EMFILE, "no memory for a page: Too many open files");
		setrlimit(RLIMIT_NOFILE, &before);
		assert_int_equal(unit_descriptors(), n - 1); /* the control socket */
		close(nic_end);
		set_up(state);
	}
	assert_int_equal(fake.closed, 3);
}

/* --- another process: in the test, a second port of this one -----------------------------------
 */

static struct nbar_port *other;
static int its_end;

static int attach(const struct nbar_share *share)
{
	struct {
		struct nbar_reply head;
		struct nbar_rep_port_open opened;
	} reply = {
		.head = { .magic = NBAR_ABI_MAGIC,
			  .version = NBAR_ABI_VERSION,
			  .op = NBAR_OP_PORT_ATTACH,
			  .length = sizeof(reply),
			  .seq = 1 },
		.opened = { .port = remote->number,
			    .page_size = sizeof(struct nbar_page),
			    .nic = "n0" },
	};
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	port.link.sock = sv[0];
	its_end = sv[1];
	assert_int_equal(send(its_end, &reply, sizeof(reply), 0), sizeof(reply));
	return nbar_attach(NIC, share, &other);
}

static void replies(enum nbar_op op, uint32_t seq)
{
	int mine = nic_end;

	nic_end = its_end;
	answer(op, seq, 0, 0);
	nic_end = mine;
}

static void is_asked(size_t at, size_t n, uint32_t cell)
{
	struct nbar_rdma_ask ask;

	assert_int_equal(read(remote->link.asks[0], &ask, sizeof(ask)), sizeof(ask));
	assert_int_equal(ask.at, at);
	assert_int_equal(ask.n, n);
	assert_int_equal(ask.cell, cell);
}

static void post_is_asked(uint32_t posted, uint32_t cell)
{
	struct nbar_rdma_ask ask;

	assert_int_equal(read(remote->link.asks[0], &ask, sizeof(ask)), sizeof(ask));
	assert_int_equal(ask.at, (char *)&g->doorbell->posted - (char *)host);
	assert_true(ask.has_word && ask.word == posted);
	assert_int_equal(ask.cell, cell);
}

static void value_is_asked(uint32_t posted)
{
	is_asked((size_t)((char *)&host->value[0][posted % NBAR_VALUES_AHEAD] - (char *)host),
		 offsetof(struct nbar_value, of) + 8, NBAR_RDMA_NO_CELL);
}

static void fold(struct nbar_value *to, const struct nbar_value *from)
{
	to->of.f64[0] += from->of.f64[0];
}

/* The process that has the connection pushes for the other. */
static void an_attached_process_asks(void **state)
{
	static struct nbar_process_team team;
	const size_t doorbell = offsetof(struct nbar_page, doorbell) + CELL * sizeof(*g->doorbell);
	struct nbar_value v[2] = { { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 1 } };
	struct nbar_share share, again;
	struct nbar_group *h;
	uint32_t ticket;
	char junk[sizeof(fake.ask)] = { 0 };

	v[1] = v[0];
	nbar_group_share(g, &share);
	assert_int_equal(share.pid, getpid());
	assert_int_equal(attach(&share), 0);
	replies(NBAR_OP_GROUP_ATTACH, 2);
	host->value[0][1].value.count = 77; /* a value of the first process stays */
	assert_int_equal(nbar_group_attach(other, &share, &h), 0);
	assert_int_equal(host->value[0][1].value.count, 77);
	/* It shares what the first process has. */
	nbar_group_share(h, &again);
	assert_true(again.pid == share.pid && again.page == share.page);
	assert_true(again.asks == share.asks && again.inode == share.inode);
	assert_int_equal(nbar_process_team_init(&team, 2), 0);
	assert_int_equal(nbar_process_team_post(&team, g, 0, NULL), 0);
	assert_int_equal(fake.pushes, 0);
	assert_int_equal(nbar_process_team_post(&team, h, 1, &ticket), 0);
	assert_int_equal(fake.pushes, 0);
	post_is_asked(1, NBAR_RDMA_NO_CELL);
	host->completion[CELL].word = 1;
	assert_int_equal(nbar_test(h, ticket), 1);
	/* The NIC sleeps. A value comes before its post. */
	host->kick = 1;
	v[0].of.f64[0] = 2;
	v[1].of.f64[0] = 3;
	assert_int_equal(nbar_process_team_post_value(&team, g, 0, v, fold, NULL), 0);
	assert_int_equal(nbar_process_team_post_value(&team, h, 1, v, fold, &ticket), 0);
	assert_true(host->value[0][2].value.of.f64[0] == 5);
	/* The next post must not reach the NIC first, by the process that has the connection. */
	assert_int_equal(nbar_process_team_post_value(&team, h, 1, v, fold, NULL), 0);
	assert_int_equal(nbar_process_team_post_value(&team, g, 0, v, fold, NULL), 0);
	assert_int_equal(fake.pushes, 0);
	value_is_asked(2);
	post_is_asked(2, CELL);
	value_is_asked(3);
	post_is_asked(3, NBAR_RDMA_NO_CELL);
	assert_int_equal(take_asks(), 0);
	/* Nor while the thread has still to push. */
	host->asked = 1;
	assert_int_equal(nbar_process_team_post_value(&team, h, 1, v, fold, NULL), 0);
	assert_int_equal(nbar_process_team_post_value(&team, g, 0, v, fold, NULL), 0);
	assert_int_equal(fake.pushes, 0);
	value_is_asked(4);
	post_is_asked(4, NBAR_RDMA_NO_CELL);
	host->asked = 0;
	assert_int_equal(nbar_process_team_post_value(&team, h, 1, v, fold, NULL), 0);
	assert_int_equal(nbar_process_team_post_value(&team, g, 0, v, fold, NULL), 0);
	assert_int_equal(fake.pushes, 2);
	assert_int_equal(copy.doorbell[CELL].posted, 5);
	host->completion[CELL].word = 5;
	nblib_start(h, 5, true);
	is_asked(doorbell + offsetof(struct nbar_doorbell, wake_seq), sizeof(uint32_t),
		 NBAR_RDMA_NO_CELL);
	/* A pipe without room. */
	while (write(remote->link.asks[1], junk, sizeof(junk)) == sizeof(junk))
		;
	fake.waits = 0;
	fake.asks = 2000;
	assert_int_equal(nbar_process_team_post(&team, g, 0, NULL), 0);
	assert_int_equal(nbar_process_team_post(&team, h, 1, NULL), 0);
	assert_int_equal(fake.waits, 2000);
	post_is_asked(6, NBAR_RDMA_NO_CELL);
	host->completion[CELL].word = 6;
	/* It closes its group when all it has asked for has arrived. */
	for (uint32_t late = 0; late < 2; late++) {
		fake.waits = 0;
		fake.asks = 10;
		fake.asks_late = late;
		fake.asked_until = 20;
		replies(NBAR_OP_GROUP_CLOSE, 3 + 2 * late);
		nbar_group_close(h);
		assert_int_equal(fake.waits, 20);
		assert_true(fake.ask.n == 0 && !fake.ask.has_word);
		replies(NBAR_OP_GROUP_ATTACH, 4 + 2 * late);
		assert_int_equal(nbar_group_attach(other, &share, &h), 0);
	}
	/* So does the other one, and those of a process that has ended must be done, too. */
	fake.asks = 0;
	fake.waits = 0;
	nblib_remote_settle(remote);
	assert_int_equal(fake.waits, 20);
	fake.asks_late = false;
	/* The daemon ends its connection when the first process has ended. */
	close(its_end);
	assert_true(nblib_link_look(&other->link));
	nblib_start(h, 7, false);
	assert_int_equal(take_asks(), 0);
	nbar_close(other);
}

/* Without values, the doorbell goes as it is then. */
static void groups_without_values(void **state)
{
	static struct nbar_process_team team;
	struct nbar_share share;
	struct nbar_group *h;

	g->values = NULL;
	nbar_group_share(g, &share);
	share.value_max = 0;
	assert_int_equal(attach(&share), 0);
	replies(NBAR_OP_GROUP_ATTACH, 2);
	assert_int_equal(nbar_group_attach(other, &share, &h), 0);
	assert_int_equal(nbar_process_team_init(&team, 2), 0);
	assert_int_equal(nbar_process_team_post(&team, g, 0, NULL), 0);
	assert_int_equal(nbar_process_team_post(&team, h, 1, NULL), 0);
	is_asked((size_t)((char *)g->doorbell - (char *)host), sizeof(*g->doorbell),
		 NBAR_RDMA_NO_CELL);
	assert_int_equal(nbar_process_team_post(&team, h, 1, NULL), 0);
	assert_int_equal(nbar_process_team_post(&team, g, 0, NULL), 0);
	assert_int_equal(fake.pushes, 1);
	assert_int_equal(copy.doorbell[CELL].posted, 2);
	host->completion[CELL].word = 2;
	fake.asks = 1;
	replies(NBAR_OP_GROUP_CLOSE, 3);
	fake.asked_until = 2;
	nbar_group_close(h);
	close(its_end);
	nbar_close(other);
}

/* The process that has the connection is stopped: the others' port is lost. */
static void nobody_takes_asks(void **state)
{
	struct nbar_share share;
	struct nbar_group *h;
	char text[64] = { 0 };

	nbar_group_share(g, &share);
	assert_int_equal(attach(&share), 0);
	replies(NBAR_OP_GROUP_ATTACH, 2);
	assert_int_equal(nbar_group_attach(other, &share, &h), 0);
	while (write(remote->link.asks[1], text, sizeof(fake.ask)) == sizeof(fake.ask))
		;
	nbar_group_close(h);
	assert_in_range(fake.waits, 500000, 600000);
	snprintf(text, sizeof(text), "process %d, which opened the port", (int)getpid());
	says(nbar_group_attach(other, &share, &h), ENETDOWN, text);
	take_asks();
	close(its_end);
	nbar_close(other);
}

static void a_share_that_cannot_be_mapped(void **state)
{
	struct nbar_share good, share;
	uint32_t n = unit_descriptors();

	nbar_group_share(g, &good);
	for (uint32_t i = 0; i < 4; i++) {
		share = good;
		if (i == 0)
			share.pid = 0;
		else if (i == 1)
			share.asks = 1000;
		else if (i == 2)
			share.page = 1000;
		else
			share.inode++;
		says(attach(&share), ENOENT,
		     i < 3 ? "cannot map the page of process" : "has not opened port");
		close(its_end);
		assert_int_equal(unit_descriptors(), n);
	}
}

#define REMOTE(test) UNIT_IN(test, begin, end)
#define GROUP(test) UNIT_IN(test, begin_group, end_group)
UNIT_MAIN(NULL, NULL, REMOTE(names), REMOTE(what_fails_at_open), REMOTE(no_page),
	  REMOTE(join_is_refused), REMOTE(no_connection), GROUP(a_post_is_one_push),
	  GROUP(values_come_before_the_post), GROUP(a_full_queue),
	  UNIT_IN(a_connection_breaks, begin_group, end),
	  UNIT_IN(a_full_queue_of_a_dead_nic, begin_group, end),
	  UNIT_IN(a_group_closes_when_all_has_arrived, begin_group, end),
	  REMOTE(a_group_opens_when_its_cell_has_begun), REMOTE(a_nic_that_pushes_nothing),
	  REMOTE(the_nic_ends_before_the_cell_begins), UNIT_IN(signals, begin_group, end),
	  GROUP(wakes), GROUP(results_are_checked), UNIT_IN(groups_are_polled, begin_group, end),
	  UNIT_IN(groups_cannot_be_polled, begin_group, end), GROUP(a_nic_that_does_not_run),
	  UNIT_IN(forked, begin_group, end), REMOTE(no_descriptors),
	  GROUP(an_attached_process_asks), GROUP(groups_without_values), GROUP(nobody_takes_asks),
	  GROUP(a_share_that_cannot_be_mapped))
