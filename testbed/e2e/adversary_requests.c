/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adversary_requests.c - invalid messages, requests at the wrong time, and too many connections.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adversary.h"

/* test_request has the other invalid messages, with their texts. */
static void bad_head(void)
{
	struct nbar_request q = { NBAR_ABI_MAGIC, 99, NBAR_OP_NIC_STAT, sizeof(q), 0 };
	struct raw r;

	dial(&r, "n0");
	raw_say(&r, &q, sizeof(q));
	ok(refused(&r, raw_hear(&r), -EPROTO, "version 99"), "another ABI version");
	ok(raw_ask(&r, NBAR_OP_NIC_STAT, NULL, 0) == 0 && others_work(), "all goes on");
	raw_close(&r);
}

static void noise(void)
{
	uint8_t bytes[512];
	struct raw r;
	uint32_t n = adversary_limits.noise, answered = 0;

	dial(&r, "n0");
	for (uint32_t i = 0; i < n; i++) {
		const struct nbar_request q = {
			.magic = NBAR_ABI_MAGIC,
			.version = NBAR_ABI_VERSION,
			.op = (uint16_t)(adversary_random() % 8),
			.length = (uint32_t)(sizeof(q) + adversary_random() % 120),
		};

		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] =
				(uint8_t)(adversary_random() >> (adversary_random() % 2 ? 24 : 30));
		memcpy(bytes, &q, sizeof(q));
		if (raw_say(&r, bytes, q.length) == 0 && raw_hear(&r) != RAW_NO_REPLY)
			answered++;
	}
	raw_close(&r);
	ok(answered == n, "%u requests of noise: %u answered", n, answered);
	ok(others_work(), "all goes on");
}

static void ports(void)
{
	static struct raw r[NBAR_PORTS_MAX];
	const int most = (int)adversary_limits.ports;
	char pid[32], range[32], all[32];
	struct raw extra;
	int n = 0;

	snprintf(range, sizeof(range), "ports 0 to %d", most - 1);
	snprintf(all, sizeof(all), "all %d ports", most);
	dial(&extra, "n0");
	ok(refused(&extra, raw_group_open(&extra, "auto", 0, 2, 0), -ENXIO, "no port"),
	   "a group before a port");
	ok(refused(&extra, raw_port_open(&extra, NBAR_PORTS_MAX), -ERANGE, range),
	   "a port out of range");
	snprintf(pid, sizeof(pid), "process %d", (int)getpid());
	ok(refused(&extra, raw_port_open(&extra, adversary_good[0].port), -EBUSY, pid),
	   "two clients for one port: the owner is named");
	for (; n < most - 1; n++)
		if (!dial(&r[n], "n0") || raw_port_open(&r[n], NBAR_PORT_ANY) != 0)
			break;
	ok(n == most - 1, "%d ports in all can be open", most);
	ok(refused(&extra, raw_port_open(&extra, NBAR_PORT_ANY), -ENOSPC, all),
	   "one more is refused");
	ok(refused(&r[0], raw_port_open(&r[0], NBAR_PORT_ANY), -EALREADY, "already"),
	   "a second port on one connection");
	ok(others_work(), "all goes on");
	raw_close(&r[0]);
	int rc = RAW_NO_REPLY;

	/* The daemon notices the end of a client with some delay. */
	for (int i = 0; i < 10000 && rc != 0; i++)
		rc = raw_port_open(&extra, NBAR_PORT_ANY);
	ok(rc == 0, "a port given back is free again");
	while (n > 1)
		raw_close(&r[--n]);
	raw_close(&extra);
}

#define NCROWD_MAX (2 * NBAR_PORTS_MAX + NBAR_ATTACHED_MAX + 8)

/* True: the daemon has closed the connection, without a message. */
static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) == 0;
}

/* Idle connections must not block new clients. */
static void crowds(void)
{
	static int fd[NCROWD_MAX];
	const int crowd = (int)adversary_limits.clients + 8; /* more than the NIC accepts */
	struct rlimit files;
	struct raw r, last;
	int n = 0;

	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < (rlim_t)crowd + 64) {
		ok(true, "%d idle connections # SKIP a process may have only %llu descriptors",
		   crowd, (unsigned long long)files.rlim_cur);
		return;
	}
	while (n < crowd && raw_dial(&r, adversary_run_dir, "n0"))
		fd[n++] = r.fd;
	dial(&last, "n0");
	ok(n == crowd && raw_ask(&last, NBAR_OP_NIC_STAT, NULL, 0) == 0,
	   "%d idle connections keep nobody out", n);
	ok(is_closed(fd[0]) && raw_ask(&r, NBAR_OP_NIC_STAT, NULL, 0) == 0,
	   "the one that was idle longest had to go, the newest not");
	raw_close(&last);
	while (n > 0)
		close(fd[--n]);
}

/* A client that does not read must not stop the daemon. */
static void never_reads(void)
{
	const struct nbar_request q = { NBAR_ABI_MAGIC, NBAR_ABI_VERSION, NBAR_OP_NIC_STAT,
					sizeof(q), 0 };
	struct raw r;
	int sent = 0;

	dial(&r, "n0");
	while (sent < 100000 && raw_say(&r, &q, sizeof(q)) == 0)
		sent++;
	ok(sent < 100000, "a client that never reads is dropped (after %d requests)", sent);
	ok(others_work(), "all goes on");
	raw_close(&r);
}

/* A descriptor on its way counts for the user of the daemon until it is read: a client may have
 * one. */
static void unread_descriptors(void)
{
	const struct nbar_req_group_connect connect = { 0 };
	struct nbar_page *page;
	struct raw r;

	dial(&r, "n0");
	ok(raw_port_open(&r, NBAR_PORT_ANY) == 0 && raw_group_open(&r, "pairwise", 0, 1, 0) == 0 &&
		   raw_ask(&r, NBAR_OP_GROUP_CONNECT, &connect, sizeof(connect)) == 0,
	   "a port with a group");
	page = r.page;
	for (int i = 0; i < 3; i++)
		raw_say_events(&r);
	/* The thread of a user serves its connections in turns: after these, it has seen all three.
	 */
	for (int i = 0; i < 10; i++)
		raw_ask(&adversary_good[0], NBAR_OP_NIC_STAT, NULL, 0);
	ok(raw_hear(&r) == 0, "a descriptor for a poller");
	for (int i = 0; i < 2; i++)
		ok(refused(&r, raw_hear(&r), -EINVAL, "is unread on this connection"),
		   "none while one is unread");
	ok(raw_say_events(&r) == 0 && raw_hear(&r) == 0, "another when it is read");
	ok(others_work(), "all goes on");
	r.page = page;
	raw_close(&r);
}

#define NFILE 80 /* more descriptors than the daemon itself has open */

static void no_descriptors(void)
{
	static struct raw r[NFILE];
	struct rlimit usual, few;
	struct ucred daemon;
	socklen_t size = sizeof(daemon);
	int n = 0, rc = 0;

	getsockopt(adversary_good[0].fd, SOL_SOCKET, SO_PEERCRED, &daemon, &size);
	prlimit(daemon.pid, RLIMIT_NOFILE, NULL, &usual);
	few = (struct rlimit){ NFILE, usual.rlim_max };
	prlimit(daemon.pid, RLIMIT_NOFILE, &few, NULL);
	while (n < NFILE && raw_dial(&r[n], adversary_run_dir, "n0"))
		n++;
	ok(n == NFILE && is_closed(r[0].fd) && raw_ask(&r[n - 1], NBAR_OP_NIC_STAT, NULL, 0) == 0,
	   "a daemon without descriptors drops the client that was idle longest");
	while (n > 0)
		raw_close(&r[--n]);
	while (n < NFILE && rc == 0 && dial(&r[n], "n0")) {
		rc = raw_port_open(&r[n], NBAR_PORT_ANY);
		if (rc == RAW_NO_REPLY) /* closed before the request; a message may have come */
			rc = raw_hear(&r[n]);
		n += rc == 0;
	}
	ok(n < NFILE && refused(&r[n], rc, -EMFILE, "ulimit -n"), "if none is idle, it says so");
	raw_close(&r[n]);
	ok(others_work(), "all goes on");
	prlimit(daemon.pid, RLIMIT_NOFILE, &usual, NULL);
	while (n > 0)
		raw_close(&r[--n]);
}

void adversary_requests(void)
{
	bad_head();
	noise();
	ports();
	crowds();
	never_reads();
	if (adversary_limits.daemon) {
		unread_descriptors();
		no_descriptors();
	}
}
