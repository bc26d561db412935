/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mates - the memory that the ranks of a host share: its descriptor among messages of
 * strangers.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "comm_internal.h"
#include "unit/unit.h"

/* Sockets have names, so tests that run at the same time need different keys. */
#define KEY (UINT64_C(0x123456789abcdef0) ^ (uint64_t)getpid() << 24)

static uid_t user = (uid_t)-1; /* of this process, as the glue sees it; -1: as it is */

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
	return user == (uid_t)-1 ? __real_geteuid() : user;
}

/* A call that succeeds may change errno. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int rc = __real_close(fd);

	errno = EIO;
	return rc;
}

static int usual(void **state)
{
	(void)state;
	user = (uid_t)-1;
	return 0;
}

static uint32_t descriptors(void)
{
	uint32_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Mappings of the memory of a host's ranks. */
static uint32_t mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char text[512];
	uint32_t n = 0;

	assert_non_null(f);
	while (fgets(text, sizeof(text), f))
		n += strstr(text, "memfd:nbar-procs") != NULL;
	fclose(f);
	return n;
}

/* --- memory ------------------------------------------------------------------------------------
 */

static void memory_is_passed(void **state)
{
	struct nbmpi_comm leader = { .rank = 3, .nlocal = 2, .mate = 0 };
	struct nbmpi_comm other = { .rank = 7, .nlocal = 2, .mate = 1 };
	uint32_t before = descriptors();
	int memory = nbmpi_memory_make(2), socket = nbmpi_memory_socket(KEY, 7), got;
	struct stat st;

	(void)state;
	assert_true(memory >= 0 && socket >= 0);
	assert_int_equal(mappings(), 0);
	assert_int_equal(fcntl(memory, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(memory, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	/* Nothing has come yet. */
	assert_int_equal(nbmpi_memory_receive(socket), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(nbmpi_memory_send(memory, KEY, 7), 0);
	got = nbmpi_memory_receive(socket);
	assert_true(got >= 0 && got != memory);
	assert_int_equal(fcntl(got, F_GETFD), FD_CLOEXEC);
	assert_int_equal(nbmpi_memory_join(&leader, memory), 0);
	assert_int_equal(nbmpi_memory_join(&other, got), 0);
	/* Both see the same bytes. */
	assert_int_equal(other.memory->procs.size, 2);
	assert_int_equal(other.memory->mate[0].rank, 3);
	assert_int_equal(other.memory->mate[0].pid, getpid());
	assert_int_equal(leader.memory->mate[1].rank, 7);
	assert_true(leader.memory->mate[1].born > 0);
	assert_int_equal(leader.memory->mate[1].born, leader.memory->mate[0].born);
	/* Another number of ranks. */
	assert_int_equal(fstat(memory, &st), 0);
	struct nbmpi_comm wrong = { .rank = 7, .nlocal = 3 };

	assert_int_equal(nbmpi_memory_join(&wrong, got), -1);
	assert_int_equal(errno, ESTALE);
	assert_null(wrong.memory);
	nbmpi_memory_leave(&leader);
	nbmpi_memory_leave(&other);
	nbmpi_memory_leave(&wrong);
	assert_null(leader.memory);
	assert_int_equal(mappings(), 0);
	close(got);
	close(memory);
	close(socket);
	assert_int_equal(descriptors(), before);
}

/* The ranks of a job may have different builds of nbar. */
static void the_address_is_the_same_in_all_builds(void **state)
{
	int socket = nbmpi_memory_socket(KEY, 7);
	struct sockaddr_un address;
	socklen_t size = sizeof(address);
	char want[sizeof(address.sun_path)] = "";
	int n = snprintf(want + 1, sizeof(want) - 1, "nbar-%016" PRIx64 "-7", KEY);

	(void)state;
	assert_int_equal(getsockname(socket, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(size, offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	assert_memory_equal(address.sun_path, want, 1 + (size_t)n);
	close(socket);
}

static void sockets_have_an_owner(void **state)
{
	uint32_t before = descriptors();
	int memory = nbmpi_memory_make(2), one = nbmpi_memory_socket(KEY, 1), two;

	(void)state;
	/* The same address again; another rank; another set-up. */
	assert_int_equal(nbmpi_memory_socket(KEY, 1), -1);
	assert_int_equal(errno, EADDRINUSE);
	two = nbmpi_memory_socket(KEY + 1, 1);
	assert_true(one >= 0 && two >= 0);
	assert_int_equal(nbmpi_memory_send(memory, KEY, 2), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(nbmpi_memory_send(memory, KEY + 1, 1), 0);
	assert_int_equal(nbmpi_memory_receive(one), -1);
	assert_int_equal(errno, EAGAIN);
	close(one);
	close(two);
	close(memory);
	assert_int_equal(descriptors(), before);
}

static void too_many_ranks(void **state)
{
	uint32_t before = descriptors();
	int memory;

	(void)state;
	assert_int_equal(nbmpi_memory_make(NBAR_PROCESS_TEAM_MAX + 1), -1);
	assert_int_equal(errno, ERANGE);
	memory = nbmpi_memory_make(NBAR_PROCESS_TEAM_MAX);
	assert_true(memory >= 0);
	close(memory);
	assert_int_equal(nbmpi_memory_join(&(struct nbmpi_comm){ .nlocal = 2 }, -1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(descriptors(), before);
}

/* The text of the reason comes from errno. */
static void no_free_descriptor(void **state)
{
	struct rlimit usual_limit, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual_limit), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = usual_limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 3; i++) {
		errno = 0;
		assert_int_equal(i == 0   ? nbmpi_memory_make(2)
				 : i == 1 ? nbmpi_memory_socket(KEY, 1)
					  : nbmpi_memory_send(0, KEY, 1),
				 -1);
		assert_int_equal(errno, EMFILE);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual_limit), 0);
}

/* --- strangers ---------------------------------------------------------------------------------
 */

static int stranger = -1; /* the socket of one */

/* Sends a message with n descriptors and some or no bytes to the socket of a rank, as anybody on
 * this machine may. */
static void stranger_sends(int at, const int *fd, size_t n)
{
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(4 * sizeof(int))];
	} rights = { .byte = { 0 } };
	struct sockaddr_storage to;
	socklen_t size = sizeof(to);
	struct iovec body = { (void *)(uintptr_t) "x", n % 2 };
	struct msghdr msg = { .msg_name = &to, .msg_iov = &body, .msg_iovlen = 1 };
	int from = stranger = socket(AF_UNIX, SOCK_DGRAM, 0);

	assert_int_equal(getsockname(at, (struct sockaddr *)&to, &size), 0);
	msg.msg_namelen = size;
	if (n > 0) {
		struct cmsghdr *c;

		msg.msg_control = &rights;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fd, n * sizeof(int));
	}
	assert_int_equal(sendmsg(from, &msg, 0), body.iov_len);
	close(from);
	stranger = -1;
}

static void messages_without_a_descriptor_are_skipped(void **state)
{
	uint32_t before = descriptors();
	int memory = nbmpi_memory_make(2), socket = nbmpi_memory_socket(KEY, 1), got;
	struct stat mine, received;

	(void)state;
	/* A queue holds about ten of them. */
	for (int i = 0; i < 5; i++)
		stranger_sends(socket, NULL, 0);
	assert_int_equal(nbmpi_memory_send(memory, KEY, 1), 0);
	got = nbmpi_memory_receive(socket);
	assert_true(got >= 0);
	assert_int_equal(fstat(memory, &mine), 0);
	assert_int_equal(fstat(got, &received), 0);
	assert_int_equal(mine.st_ino, received.st_ino);
	close(got);
	close(memory);
	close(socket);
	assert_int_equal(descriptors(), before);
}

/* Of several descriptors one is taken, and all others are closed. */
static void several_descriptors(void **state)
{
	uint32_t before = descriptors();
	int socket = nbmpi_memory_socket(KEY, 1), got;

	(void)state;
	for (size_t n = 1; n <= 3; n++) {
		stranger_sends(socket, (const int[]){ 0, 1, 2, 0 }, n);
		got = nbmpi_memory_receive(socket);
		assert_true(got >= 0);
		close(got);
		assert_int_equal(descriptors(), before + 1);
	}
	close(socket);
}

/* Gives a descriptor that is 0 another number. */
static int not_0(int fd)
{
	int other = fcntl(fd, F_DUPFD_CLOEXEC, 10);

	assert_int_equal(fd, 0);
	assert_true(other > 0);
	close(fd);
	return other;
}

/* If a program has closed its standard input, a new descriptor is 0. */
static void descriptor_0_is_as_good(void **state)
{
	int kept = fcntl(0, F_DUPFD_CLOEXEC, 10), memory, socket, got;

	(void)state;
	close(0);
	memory = not_0(nbmpi_memory_make(2));
	socket = not_0(nbmpi_memory_socket(KEY, 7));
	assert_int_equal(nbmpi_memory_send(memory, KEY, 7), 0);
	close(not_0(nbmpi_memory_receive(socket)));
	/* It is closed after a failure. */
	assert_int_equal(nbmpi_memory_make(NBAR_PROCESS_TEAM_MAX + 1), -1);
	assert_int_equal(nbmpi_memory_socket(KEY, 7), -1);
	assert_int_equal(nbmpi_memory_send(memory, KEY, 8), -1);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	/* The first of two descriptors is closed. */
	stranger_sends(socket, (const int[]){ 1, 2 }, 2);
	got = nbmpi_memory_receive(socket);
	assert_true(got > 0);
	close(got);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	/* So is that of another user. */
	user = 4242;
	assert_int_equal(nbmpi_memory_send(memory, KEY, 7), 0);
	assert_int_equal(nbmpi_memory_receive(socket), -1);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	close(memory);
	close(socket);
	if (kept >= 0)
		assert_int_equal(dup2(kept, 0), 0);
	close(kept);
}

static void other_users(void **state)
{
	uint32_t before = descriptors();
	int memory = nbmpi_memory_make(2), socket = nbmpi_memory_socket(KEY, 1);

	(void)state;
	user = 4242;
	for (int i = 0; i < 3; i++)
		assert_int_equal(nbmpi_memory_send(memory, KEY, 1), 0);
	stranger_sends(socket, NULL, 0);
	assert_int_equal(nbmpi_memory_receive(socket), -1);
	assert_int_equal(errno, EAGAIN);
	close(memory);
	close(socket);
	assert_int_equal(descriptors(), before);
}

static void is_a_byte(const struct msghdr *msg)
{
	assert_int_equal(msg->msg_iovlen, 1);
	assert_int_equal(msg->msg_iov->iov_len, 1);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (fd != stranger)
		is_a_byte(msg);
	return __real_sendmsg(fd, msg, flags);
}

/* Messages that recvmsg makes up, of two parts each; after them EAGAIN. */
struct part {
	int level, type;
	size_t size; /* 0: no such part */
	int data[3];
};
struct made_up {
	struct part part[2];
};
static const struct made_up *made_up;

static ssize_t make_up(struct msghdr *msg)
{
	char *at = msg->msg_control;

	errno = EAGAIN;
	for (const struct part *p = made_up->part; p < made_up->part + 2 && p->size > 0; p++) {
		struct cmsghdr c = { CMSG_LEN(p->size), p->level, p->type };

		memcpy(at, &c, sizeof(c));
		memcpy(at + CMSG_LEN(0), p->data, p->size);
		at += CMSG_SPACE(p->size);
	}
	msg->msg_controllen = (size_t)(at - (char *)msg->msg_control);
	made_up++;
	return msg->msg_controllen > 0 ? 1 : -1;
}

static int received; /* messages of strangers that recvmsg makes up; -1: the real call */
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	is_a_byte(msg);
	if (made_up)
		return make_up(msg);
	if (received < 0)
		return __real_recvmsg(fd, msg, flags);
	received++;
	msg->msg_controllen = 0;
	return 1;
}

static void strangers_do_not_hold_a_rank_for_ever(void **state)
{
	(void)state;
	received = 0;
	assert_int_equal(nbmpi_memory_receive(-1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(received, 16);
	received = -1;
}

/* A descriptor counts only beside a user, and each of both only in its own kind of part. */
static void parts_of_messages(void **state)
{
	const int us = 501, fd = 500; /* the user's number may be that of a descriptor */
	const struct made_up messages[] = {
		{ { { SOL_SOCKET, SCM_CREDENTIALS, 12, { 1, us, 1 } } } },
		{ { { SOL_SOCKET, SCM_RIGHTS, 4, { fd } } } },
		{ { { SOL_SOCKET, SCM_RIGHTS, 12, { fd, us, fd } } } },
		{ { { SOL_SOCKET, SCM_CREDENTIALS, 8, { 1, us } },
		    { SOL_SOCKET, SCM_RIGHTS, 4, { fd } } } },
		{ { { IPPROTO_IP, SCM_CREDENTIALS, 12, { 1, us, 1 } },
		    { SOL_SOCKET, SCM_RIGHTS, 4, { fd } } } },
		{ { { SOL_SOCKET, SCM_CREDENTIALS, 12, { 1, us, 1 } },
		    { IPPROTO_IP, SCM_RIGHTS, 4, { fd } } } },
		{ { { 0, 0, 0, { 0 } } } },
		{ { { SOL_SOCKET, SCM_CREDENTIALS, 12, { 1, us, 1 } },
		    { SOL_SOCKET, SCM_RIGHTS, 4, { fd } } } },
	};

	(void)state;
	_Static_assert(sizeof(struct ucred) == 12, "pid, user, group");
	user = (uid_t)us;
	made_up = messages;
	assert_int_equal(nbmpi_memory_receive(-1), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(nbmpi_memory_receive(-1), fd);
	made_up = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(memory_is_passed, usual),
		cmocka_unit_test_setup(the_address_is_the_same_in_all_builds, usual),
		cmocka_unit_test_setup(sockets_have_an_owner, usual),
		cmocka_unit_test_setup(too_many_ranks, usual),
		cmocka_unit_test_setup(no_free_descriptor, usual),
		cmocka_unit_test_setup(messages_without_a_descriptor_are_skipped, usual),
		cmocka_unit_test_setup(several_descriptors, usual),
		cmocka_unit_test_setup(descriptor_0_is_as_good, usual),
		cmocka_unit_test_setup(other_users, usual),
		cmocka_unit_test_setup(strangers_do_not_hold_a_rank_for_ever, usual),
		cmocka_unit_test_setup(parts_of_messages, usual),
	};

	received = -1;
	return cmocka_run_group_tests_name("mates", tests, NULL, NULL);
}
