/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mates - the memory that the ranks of a host share: its descriptor among messages of
 * strangers; and processes that have ended, are zombies, or cannot be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm_internal.h"
#include "unit/unit.h"

#define KEY UINT64_C(0x123456789abcdef0)
#define RANKS 5u

static uid_t user = (uid_t)-1; /* of this process, as the glue sees it; -1: as it is */

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
	return user == (uid_t)-1 ? __real_geteuid() : user;
}

/* The start time of a process, as text; NULL: the real file. */
static const char *stat_text;
static int stat_error; /* of open; 0: none */
static int read_error;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	if (stat_error) {
		errno = stat_error;
		return -1;
	}
	return __real_open(path, flags, 0600);
}

ssize_t __real_read(int fd, void *out, size_t size);
ssize_t __wrap_read(int fd, void *out, size_t size);
ssize_t __wrap_read(int fd, void *out, size_t size)
{
	if (read_error) {
		errno = read_error;
		return -1;
	}
	if (!stat_text)
		return __real_read(fd, out, size);
	assert_true(strlen(stat_text) <= size);
	memcpy(out, stat_text, strlen(stat_text));
	return (ssize_t)strlen(stat_text);
}

static int usual(void **state)
{
	(void)state;
	stat_text = NULL;
	stat_error = read_error = 0;
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
	close(got);
	close(memory);
	close(socket);
	assert_int_equal(descriptors(), before);
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

/* --- strangers ---------------------------------------------------------------------------------
 */

/* Sends a message with n descriptors to the socket of a rank, as anybody on this machine may. */
static void stranger_sends(int at, const int *fd, size_t n)
{
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(4 * sizeof(int))];
	} rights = { .byte = { 0 } };
	struct sockaddr_storage to;
	socklen_t size = sizeof(to);
	struct iovec body = { (void *)(uintptr_t) "x", 1 };
	struct msghdr msg = { .msg_name = &to, .msg_iov = &body, .msg_iovlen = 1 };
	int from = socket(AF_UNIX, SOCK_DGRAM, 0);

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
	assert_int_equal(sendmsg(from, &msg, 0), 1);
	close(from);
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

static int received; /* messages of strangers that recvmsg makes up; -1: the real call */
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
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

/* --- processes of a host
 * ------------------------------------------------------------------------------
 */

static struct nbmpi_comm *five(void)
{
	static struct nbmpi_comm c;
	int memory = nbmpi_memory_make(RANKS);

	c = (struct nbmpi_comm){ .nlocal = RANKS };
	for (uint32_t i = RANKS; i-- > 0;) {
		if (c.memory)
			nbmpi_memory_leave(&c);
		c.mate = c.rank = i;
		assert_int_equal(nbmpi_memory_join(&c, memory), 0);
	}
	close(memory);
	return &c;
}

static void processes_that_run(void **state)
{
	struct nbmpi_comm *c = five();

	(void)state;
	assert_null(nbmpi_mate_ended(c));
	/* Its own entry does not count, nor that of a process that could not read its own. */
	c->memory->mate[0].born++;
	assert_null(nbmpi_mate_ended(c));
	c->memory->mate[4].born = 0;
	c->memory->mate[4].pid = 1 << 30;
	assert_null(nbmpi_mate_ended(c));
	/* Another process has its number. */
	c->memory->mate[3].born++;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[3]);
	c->memory->mate[1].pid = 1 << 30;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	nbmpi_memory_leave(c);
}

static void zombies(void **state)
{
	struct nbmpi_comm *c = five();
	siginfo_t info;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	c->memory->mate[2].pid = pid;
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[2]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[2]);
	nbmpi_memory_leave(c);
}

/* A line of /proc/PID/stat: state, threads, time of birth. */
static const char *line(char what, int threads, const char *name, int birth)
{
	static char text[400];

	snprintf(text, sizeof(text),
		 "77 (%s) %c 1 77 77 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 %d 0 %d 1000 100 18446744",
		 name, what, threads, birth);
	return text;
}

static void lines_of_processes(void **state)
{
	struct nbmpi_comm *c;

	(void)state;
	stat_text = line('R', 1, "app", 500);
	c = five();
	assert_int_equal(c->memory->mate[1].born, 500);
	assert_null(nbmpi_mate_ended(c));
	stat_text = line('S', 1, "a) Z 1 (x", 500);
	assert_null(nbmpi_mate_ended(c));
	stat_text = line('Z', 2, "app", 500);
	assert_null(nbmpi_mate_ended(c));
	stat_text = line('Z', 1, "app", 500);
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	stat_text = line('R', 1, "app", 501);
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	/* What says nothing is no end. */
	stat_text = "77 (app R 1 2 3";
	assert_null(nbmpi_mate_ended(c));
	stat_text = "77 (app) R 1 77 77 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0";
	assert_null(nbmpi_mate_ended(c));
	stat_text = "";
	assert_null(nbmpi_mate_ended(c));
	read_error = EIO;
	assert_null(nbmpi_mate_ended(c));
	stat_error = EMFILE;
	assert_null(nbmpi_mate_ended(c));
	stat_error = 0;
	read_error = ESRCH;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	stat_error = ENOENT;
	assert_ptr_equal(nbmpi_mate_ended(c), &c->memory->mate[1]);
	nbmpi_memory_leave(c);
}

/* A rank that cannot read its own start is not checked by the others. */
static void a_rank_without_a_start(void **state)
{
	struct nbmpi_comm *c;

	(void)state;
	stat_error = EMFILE;
	c = five();
	assert_int_equal(c->memory->mate[1].born, 0);
	stat_error = ENOENT;
	assert_null(nbmpi_mate_ended(c));
	nbmpi_memory_leave(c);
}

static void nothing_stays_open(void **state)
{
	struct nbmpi_comm *c = five();
	uint32_t before = descriptors();

	(void)state;
	nbmpi_mate_ended(c);
	read_error = ESRCH;
	nbmpi_mate_ended(c);
	read_error = EIO;
	nbmpi_mate_ended(c);
	assert_int_equal(descriptors(), before);
	nbmpi_memory_leave(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(memory_is_passed, usual),
		cmocka_unit_test_setup(sockets_have_an_owner, usual),
		cmocka_unit_test_setup(too_many_ranks, usual),
		cmocka_unit_test_setup(messages_without_a_descriptor_are_skipped, usual),
		cmocka_unit_test_setup(several_descriptors, usual),
		cmocka_unit_test_setup(other_users, usual),
		cmocka_unit_test_setup(strangers_do_not_hold_a_rank_for_ever, usual),
		cmocka_unit_test_setup(processes_that_run, usual),
		cmocka_unit_test_setup(zombies, usual),
		cmocka_unit_test_setup(lines_of_processes, usual),
		cmocka_unit_test_setup(a_rank_without_a_start, usual),
		cmocka_unit_test_setup(nothing_stays_open, usual),
	};

	received = -1;
	return cmocka_run_group_tests_name("mates", tests, NULL, NULL);
}
