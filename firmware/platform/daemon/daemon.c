/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon.c - what nbar-nicd and nbar-bared share: see daemon.h.
 */
#include "daemon.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

int daemon_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* A log or trace that is longer than RLIMIT_FSIZE permits must not end barriers. */
	signal(SIGXFSZ, SIG_IGN);
	/* There is no configuration to reload, and the end of a terminal must not end barriers. */
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

int daemon_listen(int fd)
{
	const int none = 0;

	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
	return listen(fd, SOMAXCONN);
}

bool daemon_send(int to, const void *message, size_t length, const int *fd, size_t nfd)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)message, .iov_len = length };
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(DAEMON_FDS_MAX * sizeof(int))];
	} rights = { .byte = { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfd > 0) {
		msg.msg_control = rights.byte;
		msg.msg_controllen = CMSG_SPACE(nfd * sizeof(int));
		struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);

		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfd * sizeof(int));
		memcpy(CMSG_DATA(cm), fd, nfd * sizeof(int));
	}
	return sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length;
}
