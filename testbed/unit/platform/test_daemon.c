/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_daemon.c - what nbar-nicd and nbar-bared share: values of options, and messages to clients.
 */
#include "unit/unit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon.h"

static void numbers(void **state)
{
	static const char *const bad[] = { "", "x", "1x", "-1", "9", "21", "99999999999999999999" };
	unsigned long n = 0;

	(void)state;
	assert_int_equal(daemon_number("n", "10", 10, 10, 20, &n), -1);
	assert_int_equal(n, 10);
	assert_int_equal(daemon_number("n", "20", 10, 10, 20, &n), -1);
	assert_int_equal(n, 20);
	assert_int_equal(daemon_number("mode", "0660", 8, 0, 0777, &n), -1);
	assert_int_equal(n, 0660);
	n = 5;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(daemon_number("n", bad[i], 10, 10, 20, &n), EXIT_USAGE);
	assert_int_equal(daemon_number("mode", "0668", 8, 0, 0777, &n), EXIT_USAGE);
	assert_int_equal(n, 5);
}

static void texts(void **state)
{
	char out[4] = "old";

	(void)state;
	assert_int_equal(daemon_text("t", "", out, sizeof(out)), EXIT_USAGE);
	assert_int_equal(daemon_text("t", "four", out, sizeof(out)), EXIT_USAGE);
	assert_string_equal(out, "old");
	assert_int_equal(daemon_text("t", "new", out, sizeof(out)), -1);
	assert_string_equal(out, "new");
}

static void groups(void **state)
{
	gid_t g = 7;

	(void)state;
	assert_int_equal(daemon_group("no-such-group", &g), EXIT_USAGE);
	assert_int_equal(daemon_group("", &g), EXIT_USAGE);
	assert_int_equal(daemon_group("4294967295", &g), EXIT_USAGE); /* it means: no change */
	assert_int_equal(g, 7);
	assert_int_equal(daemon_group("root", &g), -1);
	assert_int_equal(g, 0);
	assert_int_equal(daemon_group("54321", &g), -1);
	assert_int_equal(g, 54321);
}

static void sends(void **state)
{
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(sizeof(int))];
	} rights;
	char text[8] = "";
	struct iovec iov = { text, sizeof(text) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int pair[2], fd;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_true(daemon_send(pair[0], "one", 4, -1));
	assert_int_equal(recv(pair[1], text, sizeof(text), 0), 4);
	assert_string_equal(text, "one");
	assert_true(daemon_send(pair[0], "two", 4, STDIN_FILENO));
	msg.msg_control = rights.byte;
	msg.msg_controllen = sizeof(rights.byte);
	assert_int_equal(recvmsg(pair[1], &msg, MSG_CMSG_CLOEXEC), 4);
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	assert_int_equal(close(fd), 0);
	close(pair[1]);
	assert_false(daemon_send(pair[0], "gone", 5, -1));
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(texts),
		cmocka_unit_test(groups),
		cmocka_unit_test(sends),
	};

	return cmocka_run_group_tests_name("daemon", tests, NULL, NULL);
}
