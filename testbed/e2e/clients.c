/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clients.c - one client cannot stop the others: what a client may do to its own sockets delays no
 * request and no barrier of another client, nor the end of the daemon.
 *
 * Each attack would hold an unprotected daemon longer than raw.c waits for a reply. Asserts order,
 * no times.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#define LINGER_S 300
#define WEAPONS 4

static char run_dir[] = "/tmp/nbar-clients-XXXXXX";
static unsigned ntest, nfailed;

__attribute__((format(printf, 2, 3))) static bool ok(bool pass, const char *format, ...)
{
	va_list args;

	printf("%sok %u - ", pass ? "" : "not ", ++ntest);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	nfailed += !pass;
	return pass;
}

static void ends_well(pid_t pid)
{
	int status = raw_daemon_end(pid, SIGTERM);

	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the daemon ends well");
}

/* --- descriptors that a client sends -----------------------------------------------------------
 */

/* Returns a TCP socket whose last close() sleeps until *far has read everything or LINGER_S is
 * over. */
static int lingering_socket(int *far)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char block[1 << 16];

	if (bind(listener, (struct sockaddr *)&at, size) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &size) < 0 ||
	    connect(fd, (struct sockaddr *)&at, size) < 0)
		return -1;
	*far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	while (send(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		continue;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

/* Sends a request with a lingering socket, and closes its own copy. 0 or negative errno. */
static int say_with_weapon(struct raw *r, int *far)
{
	const struct nbar_request ask = { .magic = NBAR_ABI_MAGIC,
					  .version = NBAR_ABI_VERSION,
					  .op = NBAR_OP_NIC_STAT,
					  .length = sizeof(ask) };
	struct iovec body = { (void *)(uintptr_t)&ask, sizeof(ask) };
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(sizeof(int))];
	} rights = { .byte = { 0 } };
	struct msghdr msg = { .msg_iov = &body,
			      .msg_iovlen = 1,
			      .msg_control = &rights,
			      .msg_controllen = sizeof(rights) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = lingering_socket(far), rc;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	rc = sendmsg(r->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
	if (rc < 0) {
		/* The kernel has refused; this close must not sleep either. */
		const struct linger none = { .l_onoff = 0 };

		setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	}
	close(fd);
	return rc;
}

/* True if the daemon has closed none of the sockets, or nobody could send it any. */
static bool served(void)
{
	struct raw r;
	bool done = raw_dial(&r, run_dir, "n0") && raw_ask(&r, NBAR_OP_NIC_STAT, NULL, 0) == 0;

	if (done)
		raw_close(&r);
	return done;
}

/* how: 0: the daemon reads the message; 1: it closes a connection with unread messages; 2: the
 * same at its end. */
static void rights(int how, const char *what)
{
	static const char *const args[] = { "--nics", "1", "--idle", "sleep", NULL };
	pid_t pid = raw_daemon_start(run_dir, 1, args);
	struct raw r[WEAPONS];
	int far[WEAPONS], refused = 0;

	if (!ok(pid != 0, "a daemon: %s", what))
		return;
	for (int i = 0; i < WEAPONS; i++)
		if (!raw_dial(&r[i], run_dir, "n0") || raw_ask(&r[i], NBAR_OP_NIC_STAT, NULL, 0))
			return;
	/* Otherwise the last close could be that of this process. */
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	for (int i = 0; i < WEAPONS; i++) {
		if (how == 1) /* an empty message ends a connection */
			send(r[i].fd, "", 0, MSG_NOSIGNAL);
		refused += say_with_weapon(&r[i], &far[i]) == -EPERM;
	}
	if (how == 2)
		kill(pid, SIGTERM);
	kill(pid, SIGCONT);
	if (how < 2)
		ok(served(),
		   "a bystander is served beside lingering sockets (the kernel refuses %d of %d)",
		   refused, WEAPONS);
	ends_well(pid);
	for (int i = 0; i < WEAPONS; i++) {
		raw_close(&r[i]);
		close(far[i]);
	}
}

static void all_rights(void)
{
	rights(0, "it reads messages with descriptors");
	rights(1, "it ends connections with such messages");
	rights(2, "it ends, and has not read them");
}

int main(void)
{
	char lock[128];

	if (!mkdtemp(run_dir))
		return 1;
	all_rights();
	snprintf(lock, sizeof(lock), "%s/nicd.lock", run_dir);
	unlink(lock);
	rmdir(run_dir);
	printf("1..%u\n", ntest);
	return nfailed > 0;
}
