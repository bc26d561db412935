/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slow.c - a NIC that takes long, for any reason: preloaded, it makes each frame over UDP wait.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS 20000000

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
	       socklen_t length)
{
	const struct timespec wait = { .tv_nsec = WAIT_NS };

	if (to && to->sa_family == AF_INET)
		nanosleep(&wait, NULL);
	return syscall(SYS_sendto, fd, data, size, flags, to, length);
}
