/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rcvbuf.c - a library to preload into a daemon under test: its setsockopt() limits receive buffers
 * to the default limit of Linux, on every machine and for root, too.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STOCK_RMEM_MAX 212992

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	int bytes;

	if (level == SOL_SOCKET && (name == SO_RCVBUF || name == SO_RCVBUFFORCE) &&
	    length == sizeof(bytes)) {
		memcpy(&bytes, value, sizeof(bytes));
		bytes = bytes < STOCK_RMEM_MAX ? bytes : STOCK_RMEM_MAX;
		return (int)syscall(SYS_setsockopt, fd, level, SO_RCVBUF, &bytes, sizeof(bytes));
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, length);
}
