/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * daemon.c - what nbar-nicd and nbar-bared share: see daemon.h.
 */
#include "daemon.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "log.h"

int daemon_number(const char *option, const char *text, int base, unsigned long low,
		  unsigned long high, unsigned long *out)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, base);
	if (errno || end == text || *end || *text == '-' || n < low || n > high) {
		log_error(base == 8 ? "--%s %s: not an octal number from %lo to %lo"
				    : "--%s %s: not a number from %lu to %lu",
			  option, text, low, high);
		return EXIT_USAGE;
	}
	*out = n;
	return -1;
}

int daemon_text(const char *option, const char *text, char *out, size_t size)
{
	if (*text && strlen(text) < size) {
		strcpy(out, text);
		return -1;
	}
	log_error("--%s: the value must have 1 to %zu bytes", option, size - 1);
	return EXIT_USAGE;
}

int daemon_group(const char *text, gid_t *out)
{
	const struct group *g = getgrnam(text);
	unsigned long n = g ? g->gr_gid : 0;

	if (!g && (*text < '0' || *text > '9')) {
		log_error("--group %s: there is no such group", text);
		return EXIT_USAGE;
	}
	if (!g && daemon_number("group", text, 10, 0, 0xfffffffeul, &n) != -1)
		return EXIT_USAGE;
	*out = (gid_t)n;
	return -1;
}

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

bool daemon_send(int to, const void *message, size_t length, int fd)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)message, .iov_len = length };
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(sizeof(int))];
	} rights = { .byte = { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		msg.msg_control = rights.byte;
		msg.msg_controllen = sizeof(rights.byte);
		struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);

		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &fd, sizeof(int));
	}
	return sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}
