/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair_neighbour.c - a process without any NIC, which works on the processor of the bystander's
 * host.
 *
 * The benchmark uses it as a reference for attacks by requests: the daemon's control thread runs on
 * the same processor, and takes time and cache from the host as this process does.
 */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fair.h"

#define BLOCK_BYTES (512u * 1024u) /* about the memory of a group with 4,096 peers */
#define REPLY_BYTES 16384u         /* the ranks of these peers, in the reply to a request */

static struct {
	pid_t pid;
	int fd;
	bool is_pending;
} neighbour;

/* Fills a block with copies of each request, twice; then answers the request. */
__attribute__((noreturn)) static void work(int fd)
{
	static uint8_t request[NBAR_MESSAGE_MAX], block[BLOCK_BYTES];
	ssize_t n;

	while ((n = recv(fd, request, sizeof(request), 0)) > 0) {
		for (uint32_t i = 0; i < 2; i++)
			for (size_t at = 0; at + (size_t)n <= sizeof(block); at += (size_t)n)
				memcpy(block + at, request, (size_t)n);
		if (send(fd, block, REPLY_BYTES, MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

static bool begin(struct fair *f, uint32_t n)
{
	const int bytes = 2 * NBAR_MESSAGE_MAX;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) < 0)
		return false;
	for (uint32_t i = 0; i < 2; i++)
		setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	neighbour.pid = fork();
	if (neighbour.pid < 0) {
		close(fd[0]);
		close(fd[1]);
		return false;
	}
	if (neighbour.pid == 0) {
		close(fd[0]);
		work(fd[1]);
	}
	close(fd[1]);
	neighbour.fd = fd[0];
	neighbour.is_pending = false;
	return true;
}

static void pass(struct fair *f)
{
	static uint8_t message[NBAR_MESSAGE_MAX];

	if (neighbour.is_pending &&
	    recv(neighbour.fd, message, sizeof(message), MSG_DONTWAIT) > 0) {
		neighbour.is_pending = false;
		f->replies++;
	}
	if (!neighbour.is_pending)
		neighbour.is_pending =
			send(neighbour.fd, message, sizeof(message), MSG_DONTWAIT) > 0;
}

void fair_neighbour_end(void)
{
	close(neighbour.fd);
	kill(neighbour.pid, SIGKILL);
	waitpid(neighbour.pid, NULL, 0);
}

const struct fair_attack fair_neighbour = {
	.name = "neighbour",
	.text = "a process without any NIC works on the processor of the bystander's host",
	.wire = FAIR_RING,
	.test_wire = FAIR_RING,
	.begin = begin,
	.pass = pass,
	.sign = NBAR_COUNTER_END,
};
