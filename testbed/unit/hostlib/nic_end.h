/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_end.h - a port of libnbar. The test has the NIC's end of its control socket.
 *
 * Used by test_hostlib_late, test_hostlib_link, test_hostlib_fd and test_hostlib_requests, which
 * are linked with --wrap for the calls that fail here. A request waits for a moment, not for 30 s.
 */
#ifndef TESTBED_NIC_END_H
#define TESTBED_NIC_END_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "unit/unit.h"
#include "internal.h"

#define PATIENCE_US 2000

static struct nbar_page page;
static struct nbar_port port;
static int nic_end;

struct request {
	struct nbar_request head;
	uint32_t cell; /* the first word of a request, which is a cell in many requests */
	char rest[8192];
};

/* How many of the library's next calls fail, by type of call. */
static struct {
	uint32_t peeks, reads, events, receives, sends;
	int error;          /* of calls other than sends */
	int send_error;     /* of sends */
	void (*wait)(void); /* called once, when the library begins to wait for a reply */
} fails;

static bool fail_now(uint32_t *left, int error)
{
	if (*left == 0)
		return false;
	--*left;
	errno = error;
	return true;
}

static bool is_link(int fd)
{
	return fd == port.link.sock;
}

ssize_t __real_recv(int fd, void *to, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
	uint32_t *left = !is_link(fd)       ? &fails.events
			 : flags & MSG_PEEK ? &fails.peeks
					    : &fails.reads;

	if (is_link(fd) && !(flags & MSG_DONTWAIT) && fails.wait) {
		void (*wait)(void) = fails.wait;

		fails.wait = NULL;
		wait();
	}
	if (fd != nic_end && fail_now(left, fails.error))
		return -1;
	return __real_recv(fd, to, size, flags);
}

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return fail_now(&fails.receives, fails.error) ? -1 : __real_recvmsg(fd, msg, flags);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return is_link(fd) && fail_now(&fails.sends, fails.send_error)
		       ? -1
		       : __real_sendmsg(fd, msg, flags);
}

static inline int set_up(void **state)
{
	const struct timeval patience = { .tv_usec = PATIENCE_US };
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
	memset(&page, 0, sizeof(page));
	memset(&fails, 0, sizeof(fails));
	fails.error = ECONNRESET;
	nic_end = sv[1];
	port = (struct nbar_port){ .link = { .sock = sv[0], .nic = "n0" }, .page = &page };
	return 0;
}

static inline int tear_down(void **state)
{
	memset(&fails, 0, sizeof(fails));
	for (uint32_t cell = 0; cell < NBAR_GROUPS_MAX; cell++)
		nbar_group_close(port.group[cell]);
	close(port.link.sock);
	if (nic_end >= 0)
		close(nic_end);
	return 0;
}

/* Reads the next request, which must have this op and number. */
static inline struct request heard(enum nbar_op op, uint32_t seq)
{
	struct request r = { .head = { .magic = 0 } };

	require(recv(nic_end, &r, sizeof(r), MSG_DONTWAIT) > 0, "op %u is missing", (unsigned)op);
	require(r.head.op == op && r.head.seq == seq, "op %u, number %u", r.head.op, r.head.seq);
	return r;
}

static inline void heard_nothing(void)
{
	char byte;

	assert_int_equal(recv(nic_end, &byte, 1, MSG_DONTWAIT), -1);
}

/* The NIC answers a request. cell: the cell of an opened group, which has no peers. */
static inline void answer(enum nbar_op op, uint32_t seq, int status, uint32_t cell)
{
	struct {
		struct nbar_reply head;
		struct nbar_rep_group_open opened;
	} reply = { .opened = { .cell = cell } };
	size_t length =
		op == NBAR_OP_GROUP_OPEN && status == 0 ? sizeof(reply) : sizeof(reply.head);

	reply.head = (struct nbar_reply){
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = (uint16_t)op,
		.length = (uint32_t)length,
		.status = status,
		.text = "why",
		.seq = seq,
	};
	assert_int_equal(send(nic_end, &reply, length, 0), length);
}

/* A reply of `length` bytes with n descriptors. The bytes after the head are zeros. */
static inline void answer_status_by(enum nbar_op op, uint32_t seq, int status, size_t length,
				    const int *fd, size_t n)
{
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(5 * sizeof(int))];
	} rights = { .byte = { 0 } };
	union {
		struct nbar_reply head;
		char byte[1024];
	} reply = { .byte = { 0 } };
	struct iovec iov = { &reply, length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	reply.head.magic = NBAR_ABI_MAGIC;
	reply.head.version = NBAR_ABI_VERSION;
	reply.head.op = (uint16_t)op;
	reply.head.length = (uint32_t)length;
	reply.head.seq = seq;
	reply.head.status = status;
	if (n > 0) {
		msg.msg_control = &rights;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	}
	assert_int_equal(sendmsg(nic_end, &msg, 0), length);
}

static inline void answer_by(enum nbar_op op, uint32_t seq, size_t length, const int *fd, size_t n)
{
	answer_status_by(op, seq, 0, length, fd, n);
}

static inline struct nblib_call abort_call(void)
{
	static struct nbar_req_group_abort request;

	return (struct nblib_call){ .op = NBAR_OP_GROUP_ABORT,
				    .body = { { &request, sizeof(request) } } };
}

static inline int open_group(struct nbar_group **out)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 1 };
	struct nbar_endpoint endpoint;

	return nbar_group_open(&port, &attr, out, &endpoint);
}

static inline void open_groups(struct nbar_group **g, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		answer(NBAR_OP_GROUP_OPEN, i + 1, 0, i);
		assert_int_equal(open_group(&g[i]), 0);
		heard(NBAR_OP_GROUP_OPEN, i + 1);
	}
}

#endif
