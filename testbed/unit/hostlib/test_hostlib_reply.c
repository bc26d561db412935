/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_reply.c - daemons with invalid replies: the host library reports an error and does
 * not crash.
 *
 * Linked with --wrap for readlink, which tells what a descriptor is: a test may lack the right to
 * make a map of the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/unit.h"
#include "unit/descriptors.h"
#include "internal.h"

/* A daemon that answers each request with the next of these replies, and then closes the
 * connection. */
struct answer {
	struct nbar_reply head;
	union {
		struct nbar_rep_port_open port;
		struct nbar_rep_group_open group;
		struct nbar_rep_group_connect connect;
		struct nbar_rep_nic_stat stat;
		struct nbar_rep_group_stat groups;
		struct {
			struct nbar_rep_group_latency head;
			struct nbar_last last[2];
		} latency;
		uint32_t word[200];
	} body;
	size_t length; /* 0: no reply; close */
	int fd;        /* -1: none */
	int more[2];   /* descriptors behind it; -1: none */
};

static char path[64];
static int listener = -1;
static pthread_t thread;
static struct answer answer[12];
static uint32_t nanswer;
static uint32_t first[12]; /* first entry of the statistic that the request asks for, by answer */
static uint32_t at_start;  /* open descriptors */

static bool frees_stdin; /* before a reply with a descriptor */

static const char *is; /* what the descriptors are; NULL: what the kernel says */

ssize_t __real_readlink(const char *path, char *out, size_t size);
ssize_t __wrap_readlink(const char *at, char *out, size_t size)
{
	size_t n = is ? strlen(is) : 0;

	if (!is)
		return __real_readlink(at, out, size);
	memcpy(out, is, n < size ? n : size);
	return (ssize_t)(n < size ? n : size);
}

/* What the daemon does with a request. */
static enum { READS, LEAVES_UNREAD, DOES_NOT_WAIT } manner;

/* request: the request to answer; NULL: the daemon has read no request. */
static void answer_one(int fd, struct answer *a, const struct nbar_request *request)
{
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(3 * sizeof(int))];
	} rights = { .byte = { 0 } };
	const int fd3[] = { a->fd, a->more[0], a->more[1] };
	const size_t nfd = fd3[1] < 0 ? 1 : fd3[2] < 0 ? 2 : 3;
	char message[sizeof(a->head) + sizeof(a->body)];
	struct iovec iov = { message, a->length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	a->head.seq += request ? request->seq : 0;
	memcpy(message, &a->head, sizeof(a->head));
	memcpy(message + sizeof(a->head), &a->body, sizeof(a->body));
	if (a->fd >= 0 && frees_stdin)
		close(STDIN_FILENO);
	if (a->fd >= 0) {
		msg.msg_control = &rights;
		msg.msg_controllen = CMSG_SPACE(nfd * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfd * sizeof(int));
		memcpy(CMSG_DATA(c), fd3, nfd * sizeof(int));
	}
	(void)!sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static void *daemon_main(void *arg)
{
	union {
		struct nbar_request head;
		struct {
			struct nbar_request head;
			struct nbar_req_group_latency body;
		} latency;
		char byte[NBAR_MESSAGE_MAX];
	} request;
	int fd = accept(listener, NULL, NULL);
	struct pollfd request_there = { .fd = fd, .events = POLLIN };
	uint32_t n = 0;

	if (manner == LEAVES_UNREAD)
		poll(&request_there, 1, -1);
	if (manner != READS)
		answer_one(fd, &answer[n], NULL);
	while (manner == READS && recv(fd, &request, sizeof(request), 0) > 0 && n < nanswer &&
	       answer[n].length) {
		first[n] = request.latency.body.first;
		answer_one(fd, &answer[n++], &request.head);
	}
	close(fd);
	return arg;
}

/* A good answer, for tests to spoil. */
static struct answer *say(enum nbar_op op, size_t body)
{
	struct answer *a = &answer[nanswer++];

	*a = (struct answer){
		.head = {
			.magic = NBAR_ABI_MAGIC,
			.version = NBAR_ABI_VERSION,
			.op = (uint16_t)op,
			.length = (uint32_t)(sizeof(a->head) + body),
		},
		.length = sizeof(a->head) + body,
		.fd = -1,
		.more = { -1, -1 },
	};
	return a;
}

static int page_fd(size_t size, int seals, uint32_t version)
{
	const uint32_t head[] = { NBAR_ABI_MAGIC, version };
	int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* The daemon sends a name without an end; messages show this one. */
#define NIC_NAME "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
_Static_assert(sizeof(NIC_NAME) == NBAR_NAME_MAX, "the longest name");

static struct answer *say_port(void)
{
	struct answer *a = say(NBAR_OP_PORT_OPEN, sizeof(a->body.port));

	a->body.port = (struct nbar_rep_port_open){ .page_size = sizeof(struct nbar_page) };
	memset(a->body.port.nic, NIC_NAME[0], sizeof(a->body.port.nic));
	a->fd = page_fd(sizeof(struct nbar_page), F_SEAL_SHRINK, NBAR_ABI_VERSION);
	return a;
}

static void daemon_start(void)
{
	assert_int_equal(pthread_create(&thread, NULL, daemon_main, NULL), 0);
}

static void daemon_end(void)
{
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < nanswer; i++) {
		const int fd[] = { answer[i].fd, answer[i].more[0], answer[i].more[1] };

		for (uint32_t n = 0; n < 3; n++)
			if (fd[n] >= 0)
				close(fd[n]);
	}
	nanswer = 0;
}

/* The call gets the prepared replies. */
#define GETS(call, rc) (daemon_start(), assert_int_equal(call, rc), daemon_end())

/* Calls nbar_open with the prepared replies. */
static void expect_open(int error, const char *text)
{
	struct nbar_port *port = NULL;
	int rc;

	daemon_start();
	rc = nbar_open(path, &port);
	require(rc == error, "returned %d: %s", rc, nbar_error());
	if (rc == 0)
		nbar_close(port);
	else
		require(strstr(nbar_error(), text), "\"%s\" is not in: %s", text, nbar_error());
	daemon_end();
}

static void a_good_answer_opens(void **state)
{
	say_port();
	expect_open(0, "");
}

static void replies_are_checked(void **state)
{
	say_port()->head.magic ^= 1;
	expect_open(-EPROTO, "NIC fake: what answers at /tmp/nbar-reply-");
	say_port()->head.version = NBAR_ABI_VERSION + 1;
	expect_open(-EPROTO, "version 4 of the host interface, this program 3");
	say_port()->head.op = NBAR_OP_GROUP_OPEN;
	expect_open(-EPROTO, "makes no sense");
	say_port()->head.seq = 1; /* the number of the next request */
	expect_open(-EPROTO, "makes no sense");
	say_port()->head.status = 1;
	expect_open(-EPROTO, "makes no sense");
	say_port()->head.length++;
	expect_open(-EPROTO, "makes no sense");
	say_port()->length = 7;
	expect_open(-EPROTO, "no NIC of nbar");
	say_port()->length = 100;
	expect_open(-EPROTO, "makes no sense");
	say_port()->length--;
	expect_open(-EPROTO, "makes no sense");
	struct answer *a = say_port();

	a->length = offsetof(struct nbar_reply, text); /* the head of any version has no less */
	a->head.version++;
	expect_open(-EPROTO, "version 4 of the host interface, this program 3");
	a = say_port();
	a->length = ++a->head.length;
	expect_open(-EPROTO, "makes no sense");
	say_port()->length = 0;
	expect_open(-ENETDOWN, "is gone");
}

static void a_refusal_is_passed_on(void **state)
{
	static const int error[] = { ENOSPC, EPERM };
	struct answer *a = say(NBAR_OP_PORT_OPEN, 0);

	a->head.status = -EBUSY;
	strcpy(a->head.text, "no room in the inn");
	expect_open(-EBUSY, "no room in the inn");
	a = say(NBAR_OP_PORT_OPEN, 0);
	a->head.status = -EBUSY;
	memset(a->head.text, 'x', sizeof(a->head.text)); /* without an end */
	expect_open(-EBUSY, "xxx");
	assert_int_equal(strlen(nbar_error()), strlen("NIC fake: ") + sizeof(a->head.text) - 1);
	/* An error with a page: the page is not leaked. */
	for (size_t i = 0; i < sizeof(error) / sizeof(error[0]); i++) {
		a = say_port();
		a->length = a->head.length = sizeof(a->head);
		a->head.status = -error[i];
		expect_open(-error[i], "");
	}
}

/* A program may have closed its standard input. The descriptors of the page and of the socket are
 * closed, whatever their numbers. */
static void a_descriptor_may_be_0(void **state)
{
	int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	bool closed = true;

	if (kept < 0)
		skip();
	for (int is_page = 0; is_page <= 1; is_page++) {
		frees_stdin = is_page;
		say_port();
		if (!is_page)
			close(STDIN_FILENO);
		expect_open(0, "");
		closed = closed && fcntl(STDIN_FILENO, F_GETFD) < 0;
		frees_stdin = false;
		dup2(kept, STDIN_FILENO);
	}
	close(kept);
	assert_true(closed);
}

/* A daemon without free descriptors reports this and closes the connection, whatever the client has
 * sent. */
static void a_refused_client_gets_the_reason(void **state)
{
	for (manner = DOES_NOT_WAIT; manner != READS; manner--) {
		struct answer *a = say((enum nbar_op)0, 0);

		a->head.status = -EMFILE;
		strcpy(a->head.text, "the inn is full");
		expect_open(-EMFILE, "the inn is full");
	}
}

static void pages_are_checked(void **state)
{
	static const struct {
		size_t size;
		int seals;
		uint32_t version;
		const char *text;
	} bad[] = {
		{ sizeof(struct nbar_page), 0, NBAR_ABI_VERSION, "not sealed" },
		{ sizeof(struct nbar_page), F_SEAL_GROW, NBAR_ABI_VERSION, "not sealed" },
		{ sizeof(struct nbar_page) - 1, F_SEAL_SHRINK, NBAR_ABI_VERSION, "bytes" },
		{ sizeof(struct nbar_page), F_SEAL_SHRINK, 99,
		  "of version 99, this program knows" },
	};
	char file[] = "/tmp/nbar-reply-XXXXXX";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct answer *a = say_port();

		close(a->fd);
		a->fd = page_fd(bad[i].size, bad[i].seals, bad[i].version);
		expect_open(-EPROTO, bad[i].text);
	}
	say_port()->body.port.page_size++;
	expect_open(-EPROTO, "bytes");
	struct answer *a = say_port();

	close(a->fd);
	a->fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	expect_open(-EPROTO, "bytes");
	a = say_port(); /* a file of this size is no sealed memory */
	close(a->fd);
	a->fd = mkostemp(file, O_CLOEXEC);
	unlink(file);
	assert_int_equal(ftruncate(a->fd, sizeof(struct nbar_page)), 0);
	expect_open(-EPROTO, "not sealed");
	a = say_port();
	assert_int_equal(pwrite(a->fd, "no page", 4, 0), 4);
	expect_open(-EPROTO, "install the same nbar for both");
	a = say_port();
	close(a->fd);
	a->fd = -1;
	expect_open(-EPROTO, "no memory");
}

#define KERNEL_MAP "anon_inode:bpf-map"

/* A NIC in the kernel's network path passes the place of its completions and a start socket, too.
 */
static struct answer *say_kernel_port(void)
{
	struct answer *a = say_port();

	a->more[0] = page_fd(sizeof(struct nbar_page), 0, 0);
	a->more[1] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return a;
}

static void completions_beside_the_page_are_mapped(void **state)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 1 };
	const uint64_t one = 1;
	struct nbar_endpoint endpoint;
	struct nbar_port *port;
	struct nbar_group *g;
	struct answer *a = say_kernel_port();
	int status = -1, start;
	pid_t child;

	say(NBAR_OP_GROUP_OPEN, sizeof(answer[1].body.group))->body.group.cell = 5;
	is = KERNEL_MAP;
	daemon_start();
	assert_int_equal(nbar_open(path, &port), 0);
	assert_true(port->has_start);
	start = port->start;
	assert_int_equal(nbar_group_open(port, &attr, &g, &endpoint), 0);
	assert_ptr_equal(g->completion, &port->results->completion[5]);
	assert_int_equal(pwrite(a->more[0], &one, sizeof(one), 5 * sizeof(*g->completion)),
			 sizeof(one));
	assert_int_equal(g->completion->word, 1);
	/* The child of a fork has none of it. */
	child = fork();
	if (child == 0) {
		bool gone = fcntl(start, F_GETFD) < 0 && g->completion->word == 0;

		g->completion->word = 2;
		dup2(STDERR_FILENO, start); /* the number has another use by now */
		nbar_close(port);
		_exit(!gone || fcntl(start, F_GETFD) < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(g->completion->word, 1);
	assert_true(fcntl(start, F_GETFD) >= 0);
	nbar_close(port);
	assert_true(fcntl(start, F_GETFD) < 0);
	daemon_end();
	is = NULL;
}

/* Any other file could shrink while it is mapped. */
static void completions_are_checked(void **state)
{
	static const char *const others[] = { NULL, "anon_inode:bpf-ma", KERNEL_MAP "s",
					      "anon_inode:bpf-mop" };
	static const char why[] = "NIC " NIC_NAME ": it passed no map of the kernel";
	struct answer *a;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		say_kernel_port();
		is = others[i];
		expect_open(-EPROTO, why);
	}
	is = KERNEL_MAP;
	a = say_kernel_port(); /* without a start socket */
	close(a->more[1]);
	a->more[1] = -1;
	expect_open(-EPROTO, why);
	a = say_kernel_port();
	close(a->more[0]);
	a->more[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	expect_open(-ENODEV, "NIC " NIC_NAME ": cannot map its completions: No such device");
	say_kernel_port()->body.port.page_size++; /* all three are closed */
	expect_open(-EPROTO, "bytes");
	a = say_kernel_port();
	a->length = a->head.length = sizeof(a->head);
	a->head.status = -ENOSPC;
	expect_open(-ENOSPC, "");
	is = NULL;
}

static void groups_are_checked(void **state)
{
	static const struct {
		uint32_t cell, npeer, peer;
		size_t extra;
		const char *text;
	} bad[] = {
		/* no such cell */
		{ NBAR_GROUPS_MAX, 1, 0, 4,
		  "NIC " NIC_NAME ": its reply about the new group makes no" },
		/* a peer of itself */
		{ 0, 1, 1, 4, "NIC " NIC_NAME ": names rank 1 as a peer of rank 1 of 2" },
		/* a rank beyond the size */
		{ 0, 1, 2, 4, "NIC " NIC_NAME ": names rank 2 as a peer of rank 1 of 2" },
		{ 0, 2, 0, 4, "makes no sense" },  /* fewer peers than announced */
		{ 0, 0, 0, 4, "makes no sense" },  /* more */
		{ 0, 3, 0, 12, "makes no sense" }, /* more than there are ranks */
	};
	const struct nbar_group_attr attr = { .rank = 1, .size = 2 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct nbar_port *port;
		struct nbar_group *g = NULL;
		struct nbar_endpoint endpoint;
		struct answer *a;

		say_port();
		a = say(NBAR_OP_GROUP_OPEN, sizeof(a->body.group) + bad[i].extra);
		a->body.group.cell = bad[i].cell;
		a->body.group.npeer = bad[i].npeer;
		a->body.word[sizeof(a->body.group) / 4] = bad[i].peer;
		daemon_start();
		assert_int_equal(nbar_open(path, &port), 0);
		require(nbar_group_open(port, &attr, &g, &endpoint) == -EPROTO, "case %u",
			(unsigned)i);
		require(strstr(nbar_error(), bad[i].text), "\"%s\" is not in: %s", bad[i].text,
			nbar_error());
		assert_null(g);
		nbar_close(port);
		daemon_end();
	}
}

static void a_connect_that_lacks_peers_is_an_error(void **state)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 1 };
	struct nbar_port *port;
	struct nbar_group *g;
	struct nbar_endpoint endpoint;

	say_port();
	say(NBAR_OP_GROUP_OPEN, sizeof(answer[1].body.group));
	say(NBAR_OP_GROUP_CONNECT, sizeof(answer[2].body.connect))->body.connect.missing = 3;
	daemon_start();
	assert_int_equal(nbar_open(path, &port), 0);
	assert_int_equal(nbar_group_open(port, &attr, &g, &endpoint), 0);
	assert_int_equal(nbar_group_connect(g, &endpoint), -EPROTO);
	assert_int_equal(nbar_post(g, NULL), -ENOTCONN);
	nbar_close(port); /* the daemon has closed the connection by now */
	daemon_end();
}

static int visit(void *arg, const struct nbar_group_info *info)
{
	uint32_t *n = arg;

	*n += strlen(info->alg) == sizeof(info->alg) - 1 &&
	      info->nstragglers <= NBAR_STRAGGLERS_MAX;
	return 0;
}

static struct nbar_group_info *info_of(struct answer *a)
{
	return (void *)(&a->body.groups + 1);
}

static void statistics_are_checked(void **state)
{
	struct nbar_rep_nic_stat stat;
	struct answer *a = say(NBAR_OP_NIC_STAT, sizeof(a->body.stat));
	uint32_t n = 0;

	memset(&a->body.stat, 'x', sizeof(a->body.stat));
	daemon_start();
	assert_int_equal(nbar_nic_stat(path, &stat), 0);
	assert_int_equal(strlen(stat.nic), sizeof(stat.nic) - 1);
	assert_int_equal(strlen(stat.wire), sizeof(stat.wire) - 1);
	assert_int_equal(strlen(stat.address), sizeof(stat.address) - 1);
	assert_int_equal(stat.pid, getpid()); /* this process listens, whatever the reply says */
	daemon_end();

	a = say(NBAR_OP_GROUP_STAT, sizeof(a->body.groups) + sizeof(struct nbar_group_info));
	memset(&a->body, 'x', sizeof(a->body));
	a->body.groups.ninfo = 1;
	a->body.groups.next = 5;
	info_of(a)->index = 65535;
	a = say(NBAR_OP_GROUP_STAT, sizeof(a->body.groups));
	a->body.groups.next = 5; /* entry 5 again: without a check the list would never end */
	GETS(nbar_nic_groups(path, visit, &n), -EPROTO);
	assert_int_equal(n, 1);

	a = say(NBAR_OP_GROUP_STAT, sizeof(a->body.groups) + sizeof(struct nbar_group_info));
	a->body.groups.ninfo = 1;
	info_of(a)->index = 65536; /* no NIC has so many */
	GETS(nbar_nic_groups(path, visit, &n), -EPROTO);
	assert_int_equal(n, 1);

	say(NBAR_OP_GROUP_STAT, sizeof(a->body.groups))->body.groups.ninfo = 1;
	GETS(nbar_nic_groups(path, visit, &n), -EPROTO);
	assert_non_null(strstr(nbar_error(), "NIC fake: its list of groups makes no sense"));

	say(NBAR_OP_GROUP_STAT, 0)->head.status = -NBAR_EPERM;
	GETS(nbar_nic_groups(path, visit, &n), -EPERM);
}

/* One of several messages with the statistic of a group. */
static struct answer *say_latency(uint32_t n, uint32_t next)
{
	struct answer *a = say(NBAR_OP_GROUP_LATENCY,
			       sizeof(a->body.latency.head) + n * sizeof(struct nbar_last));

	a->body.latency.head = (struct nbar_rep_group_latency){ .nlast = n, .next = next };
	return a;
}

static void say_one_group(void)
{
	struct answer *a =
		say(NBAR_OP_GROUP_STAT, sizeof(a->body.groups) + sizeof(struct nbar_group_info));

	a->body.groups.ninfo = 1;
}

static int keep(void *arg, const struct nbar_group_info *info, const struct nbar_group_stat *stat)
{
	*(struct nbar_group_stat *)arg = stat ? *stat : (struct nbar_group_stat){ .nrank = 99 };
	return 0;
}

static void latency_is_checked(void **state)
{
	struct nbar_rep_nic_latency latency;
	struct nbar_group_stat stat = { 0 };
	struct answer *a;

	/* A NIC that keeps no latencies. */
	say(NBAR_OP_NIC_LATENCY, 0)->head.status = -NBAR_EOPNOTSUPP;
	GETS(nbar_nic_latency(path, &latency), -EOPNOTSUPP);
	say_one_group();
	say(NBAR_OP_GROUP_LATENCY, 0)->head.status = -NBAR_EOPNOTSUPP;
	GETS(nbar_nic_group_stats(path, keep, &stat), 0);
	assert_int_equal(stat.nrank, 99);
	say_one_group();
	say(NBAR_OP_GROUP_LATENCY, 0)->head.status = -NBAR_EPERM;
	GETS(nbar_nic_group_stats(path, keep, &stat), -EPERM);
	/* The library adds up the entries of a rank; the greatest sum comes first. */
	say_one_group();
	a = say_latency(2, 7);
	a->body.latency.last[0] = (struct nbar_last){ 5, 0, 1, 60, 40 };
	a->body.latency.last[1] = (struct nbar_last){ 3, 0, 4, 110, 80 };
	a = say_latency(2, 0);
	a->body.latency.last[0] = (struct nbar_last){ 5, 0, 2, 50, 60 };
	a->body.latency.last[1] = (struct nbar_last){ 7, 0, 3, 200, 190 };
	GETS(nbar_nic_group_stats(path, keep, &stat), 0);
	assert_int_equal(stat.barriers, 10);
	assert_int_equal(stat.ns, 420);
	assert_int_equal(stat.nlast, 3);
	assert_int_equal(stat.nrank, 3);
	assert_int_equal(stat.last[0].rank, 7);
	assert_int_equal(stat.last[1].rank, 3); /* of equal sums, the lower rank comes first */
	assert_int_equal(stat.last[2].rank, 5);
	assert_int_equal(stat.last[2].barriers, 3);
	assert_int_equal(stat.last[2].ns, 110);
	assert_int_equal(stat.last[2].most_ns, 60);
	/* A list that never ends, and a list whose length is not the announced one. */
	say_one_group();
	say_latency(1, 1);
	say_latency(1, 1);
	GETS(nbar_nic_group_stats(path, keep, &stat), -EPROTO);
	say_one_group();
	say_latency(1, 0)->body.latency.head.nlast = 2;
	GETS(nbar_nic_group_stats(path, keep, &stat), -EPROTO);
}

/* An entry of this rank's group with this index, and the next entry to ask for. */
static void say_part(uint32_t index, uint32_t rank, uint32_t next, uint32_t barriers)
{
	struct answer *a = say_latency(1, next);

	a->body.latency.head.index = index;
	a->body.latency.head.rank = rank;
	a->body.latency.last[0] = (struct nbar_last){ .rank = 9, .barriers = barriers };
}

/* A cell may get another group between two messages: the library does not add up entries of two
 * groups. */
static void a_statistic_is_of_one_group(void **state)
{
	static const uint32_t expected[] = { 0, 4, 0, 5, 0, 6 };
	struct nbar_group_stat stat = { 0 };

	say_one_group();
	info_of(&answer[0])->index = 8;
	say_part(7, 0, 4, 100);
	say_part(8, 0, 0, 200); /* another index */
	say_part(8, 1, 5, 300);
	say_part(8, 0, 0, 400); /* the same index, another rank */
	say_part(8, 0, 6, 1);
	say_part(8, 0, 0, 2);
	GETS(nbar_nic_group_stats(path, keep, &stat), 0);
	assert_int_equal(stat.barriers, 3);
	assert_int_equal(stat.nrank, 1);
	assert_memory_equal(&first[1], expected, sizeof(expected));
	/* A cell that changes all the time has no statistic. */
	say_one_group();
	info_of(&answer[0])->index = 8;
	info_of(&answer[0])->port = 4;
	info_of(&answer[0])->cell = 3;
	for (uint32_t i = 0; i < 4; i++) {
		say_part(8, 0, 1, 1);
		say_part(7, 0, 2, 1);
	}
	GETS(nbar_nic_group_stats(path, keep, &stat), 0);
	assert_int_equal(stat.nrank, 99);
	assert_non_null(strstr(nbar_error(), "cell 3 of port 4 had several"));
	assert_int_equal(first[7], 0);
	assert_int_equal(first[8], 1);
	/* The cell had another group from the start. A closed group has no statistic, so the
	 * library does not ask. */
	say_one_group();
	info_of(&answer[0])->index = 8;
	say_part(7, 0, 0, 1);
	daemon_start();
	stat.nrank = 0;
	assert_int_equal(nbar_nic_group_stats(path, keep, &stat), 0);
	daemon_end();
	assert_int_equal(stat.nrank, 99);
	say_one_group();
	info_of(&answer[0])->life = NBAR_LIFE_LINGER;
	daemon_start();
	stat.nrank = 0;
	assert_int_equal(nbar_nic_group_stats(path, keep, &stat), 0);
	daemon_end();
	assert_int_equal(stat.nrank, 99);
}

static void no_descriptor_was_leaked(void **state)
{
	assert_int_equal(unit_descriptors(), at_start);
}

static void no_page_is_mapped(void **state)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[256];
	uint32_t pages = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		pages += strstr(line, "memfd:test") != NULL;
	fclose(maps);
	assert_int_equal(pages, 0);
}

static int start(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/nbar-reply-XXXXXX";

	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/fake.sock", dir);
	strcpy(addr.sun_path, path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	at_start = unit_descriptors();
	return bind(listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	       listen(listener, 5) < 0;
}

static int stop(void **state)
{
	close(listener);
	unlink(path);
	*strrchr(path, '/') = 0;
	return rmdir(path);
}

UNIT_MAIN(start, stop, UNIT(a_good_answer_opens), UNIT(replies_are_checked),
	  UNIT(a_refusal_is_passed_on), UNIT(a_descriptor_may_be_0),
	  UNIT(a_refused_client_gets_the_reason), UNIT(pages_are_checked),
	  UNIT(completions_beside_the_page_are_mapped), UNIT(completions_are_checked),
	  UNIT(groups_are_checked), UNIT(a_connect_that_lacks_peers_is_an_error),
	  UNIT(statistics_are_checked), UNIT(latency_is_checked), UNIT(a_statistic_is_of_one_group),
	  UNIT(no_descriptor_was_leaked), UNIT(no_page_is_mapped))
