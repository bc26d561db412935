/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.c - tells systemd, or another service manager, that the daemon is ready, works, or ends
 * (units and nicd.conf: systemd/).
 */
#include "service.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"

void service_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (n < 2 || n >= sizeof(to.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(to.sun_path, path, n);
	if (*path == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		log_error("cannot tell the service manager %s: %s", state, strerror(errno));
	if (fd >= 0)
		close(fd);
}

uint32_t service_alive_ms(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long n = us ? strtoul(us, NULL, 10) : 0;

	if (pid && strtol(pid, NULL, 10) != (long)getpid())
		return 0;
	if (n == 0)
		return 0;
	n /= 3000;
	return n == 0 ? 1 : n > INT_MAX ? INT_MAX : (uint32_t)n;
}
