/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_daemon.c - what nbar-nicd and nbar-bared share: signals, messages to clients; and what a
 * service manager is told.
 */
#include "unit/unit.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon.h"
#include "logged.h"
#include "service.h"

/* SIGTERM and SIGINT are read; those that would end barriers are ignored. */
static void signals(void **state)
{
	static const int ignored[] = { SIGPIPE, SIGXFSZ, SIGHUP }, read_as[] = { SIGTERM, SIGINT };
	struct signalfd_siginfo info;
	struct sigaction action;
	sigset_t none;
	int fd;

	for (uint32_t i = 0; i < 3; i++)
		signal(ignored[i], SIG_DFL);
	fd = daemon_signals();
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(sigaction(ignored[i], NULL, &action), 0);
		assert_true(action.sa_handler == SIG_IGN);
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(raise(read_as[i]), 0);
		assert_int_equal(read(fd, &info, sizeof(info)), sizeof(info));
		assert_int_equal(info.ssi_signo, read_as[i]);
	}
	assert_int_equal(read(fd, &info, sizeof(info)), -1);
	close(fd);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void listens(void **state)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(sun);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	/* An abstract name that the kernel chooses. */
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sa_family_t)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sun, &size), 0);
	assert_int_equal(daemon_listen(fd), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&sun, size), 0);
	close(client);
	close(fd);
	assert_int_equal(daemon_listen(-1), -1);
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

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_true(daemon_send(pair[0], "one", 4, NULL, 0));
	assert_int_equal(recv(pair[1], text, sizeof(text), 0), 4);
	assert_string_equal(text, "one");
	assert_true(daemon_send(pair[0], "two", 4, &(int){ STDIN_FILENO }, 1));
	msg.msg_control = rights.byte;
	msg.msg_controllen = sizeof(rights.byte);
	assert_int_equal(recvmsg(pair[1], &msg, MSG_CMSG_CLOEXEC), 4);
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	assert_int_equal(close(fd), 0);
	close(pair[1]);
	assert_false(daemon_send(pair[0], "gone", 5, NULL, 0));
	close(pair[0]);
}

/* Signs of life come at a third of the time that the service manager allows. */
static void signs_of_life(void **state)
{
	static const struct {
		const char *us;
		uint32_t ms;
	} row[] = { { "300000", 100 },
		    { "30000000", 10000 },
		    { "3000", 1 },
		    { "6000", 2 },
		    { "1", 1 },
		    { "0", 0 },
		    { "nonsense", 0 },
		    { "6442450941000", INT_MAX },
		    { "18446744073709551615", INT_MAX } };
	char pid[16];

	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
	assert_int_equal(service_alive_ms(), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		setenv("WATCHDOG_USEC", row[i].us, 1);
		assert_int_equal(service_alive_ms(), row[i].ms);
	}
	setenv("WATCHDOG_USEC", "300000", 1);
	setenv("WATCHDOG_PID", "1", 1); /* the signs of another process */
	assert_int_equal(service_alive_ms(), 0);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	assert_int_equal(service_alive_ms(), 100);
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
}

/* Binds a manager's socket to a name of this length: a path, or (@) an abstract name. */
static int manager(char first, size_t length, char *name)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(name, length + 1, "%ctmp/nbar-manager-%d-%0100d", first, (int)getpid(), 0);
	memcpy(sun.sun_path, name, length);
	if (first == '@')
		sun.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&sun,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void told_to_the_manager(void **state)
{
	static const size_t lengths[] = { 40, sizeof(((struct sockaddr_un *)0)->sun_path) - 1 };
	char name[128], got[32] = "";
	int fd;

	for (size_t i = 0; i < 4; i++) {
		fd = manager("/@"[i / 2], lengths[i % 2], name);
		service_notify("READY=1");
		assert_int_equal(recv(fd, got, sizeof(got), 0), 7);
		assert_memory_equal(got, "READY=1", 7);
		logged_is("");
		close(fd);
		service_notify("STOPPING=1");            /* the manager has gone: the call ends */
		assert_int_equal(dup(STDIN_FILENO), fd); /* and leaves no descriptor */
		logged_is("cannot tell the service manager STOPPING=1: Connection refused\n");
		close(fd);
		if (*name == '/')
			unlink(name);
	}
	logged[0] = '\0';
	setenv("NOTIFY_SOCKET", "@x", 1); /* the shortest name: nobody is there */
	service_notify("READY=1");
	logged_is("cannot tell the service manager READY=1: Connection refused\n");
	setenv("NOTIFY_SOCKET", "@", 1);
	service_notify("READY=1");
	logged_is("");
	/* Names that are none are left alone. */
	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[108] = '\0';
	setenv("NOTIFY_SOCKET", name, 1);
	service_notify("READY=1");
	setenv("NOTIFY_SOCKET", "relative", 1);
	service_notify("READY=1");
	logged_is("");
	unsetenv("NOTIFY_SOCKET");
	service_notify("READY=1");
}

UNIT_MAIN(NULL, NULL, UNIT(signals), UNIT(listens), UNIT(sends), UNIT(signs_of_life),
	  UNIT(told_to_the_manager))
