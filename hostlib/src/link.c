/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - the control socket of a NIC: make it, limit its waits, and check whether the NIC runs.
 *
 * Called by link_open.c and host.c when a port is opened, and by waiting threads that check whether
 * the daemon still runs. Requests are in link_call.c.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "internal.h"
#include "order.h"

#define ANSWER_S 30 /* how long a request waits for its reply */

void nblib_link_limit(const struct nblib_link *l, uint32_t ms)
{
	const struct timeval limit = { .tv_sec = ms ? ms / 1000 : ANSWER_S,
				       .tv_usec = ms % 1000 * 1000 };

	setsockopt(l->sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(l->sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

int nblib_link_reach(struct nblib_link *l, const struct sockaddr_un *to, size_t size)
{
	l->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (l->sock < 0)
		return errno;
	nblib_link_limit(l, 0); /* limits connect, too: the process that listens may never accept */
	while (connect(l->sock, (const struct sockaddr *)to, (socklen_t)size) < 0)
		if (errno != EINTR)
			return errno;
	return 0;
}

uint32_t nblib_link_pid(const struct nblib_link *l)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	/* The kernel gives 0 for a process that this PID namespace does not number. */
	if (l->remote || getsockopt(l->sock, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return 0;
	return (uint32_t)peer.pid;
}

const char *nblib_link_server(const struct nblib_link *l)
{
	return l->in_process ? "program" : "daemon";
}

int nblib_link_lost(const struct nblib_link *l)
{
	if (order_down_read(&l->down) == NBLIB_FORKED)
		return nblib_fail(-ENETDOWN,
				  "NIC %s: this port was opened before a fork and stays with the "
				  "parent: open one in the child",
				  l->nic);
	if (l->host)
		return nblib_fail(-ENETDOWN,
				  "NIC %s in this process does not answer, or has ended: does its "
				  "thread get a processor? Open ports and groups anew",
				  l->nic);
	if (l->in_process)
		return nblib_fail(-ENETDOWN,
				  "NIC %s is gone: the process that shared it has ended, or does "
				  "not answer: open ports and groups anew",
				  l->nic);
	if (l->attached)
		return nblib_fail(
			-ENETDOWN,
			"NIC %s is gone: process %u, which opened the port, or the daemon "
			"at %s ended or does not answer: open ports and groups anew",
			l->nic, l->opener.pid, l->path);
	return nblib_fail(
		-ENETDOWN,
		"NIC %s is gone: its daemon at %s ended or does not answer: start it again, "
		"then open ports and groups anew",
		l->nic, l->path);
}

/* Without a lock: a message of this kind has no reply, and is whole. If the socket has no room, the
 * NIC has requests of this process to read, which wake it too. */
void nblib_link_kick(const struct nblib_link *l)
{
	const struct nbar_request kick = {
		.magic = NBAR_ABI_MAGIC,
		.version = NBAR_ABI_VERSION,
		.op = NBAR_OP_KICK,
		.length = sizeof(kick),
	};

	if (order_down_read(&l->down) == NBLIB_UP)
		(void)!send(l->sock, &kick, sizeof(kick), MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool nblib_link_look(struct nblib_link *l)
{
	struct pollfd end = { .fd = l->sock, .events = POLLRDHUP };

	if (order_down_read(&l->down) != NBLIB_UP)
		return true;
	/* Poll, and do not read: the socket may hold a reply for a thread that opens or closes a
	 * group, or a late reply that no thread reads for hours. */
	if (poll(&end, 1, 0) <= 0)
		return false;
	order_down_write(&l->down, NBLIB_GONE);
	return true;
}
