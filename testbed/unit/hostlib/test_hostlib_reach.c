/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_reach.c - nbar_group_reach: with NICs of a daemon over a wire in memory, and with
 * in-process NICs over udp and shm; lost frames, a NIC that is gone, and the texts, which have the
 * addresses of both NICs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "unit/hostlib/cluster.h"
#include "unit/inproc.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

static const struct nbnic_config config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					    .budget_ns = 500 * MS };

/* Of this thread alone: a minute passes before each look at the clock. */
static _Thread_local uint64_t pauses, looks;
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	int rc = __real_clock_gettime(clock, out);

	out->tv_sec += (time_t)(60 * pauses * looks++);
	return rc;
}

static void expect(int err, int want, const char *text)
{
	require(err == want && strstr(nbar_error(), text), "%d, %s", err, nbar_error());
}

/* The seconds that a request of this port waits for its reply. */
static long patience_s(const struct nbar_port *port)
{
	struct timeval limit;
	socklen_t size = sizeof(limit);

	assert_int_equal(getsockopt(port->link.sock, SOL_SOCKET, SO_RCVTIMEO, &limit, &size), 0);
	return limit.tv_sec;
}

static void daemon_nics(void **state)
{
	struct inproc *p = inproc_start(3, &config);
	struct cluster c;
	uint32_t ticket;

	cluster_open(&c, 6, 3, "dissemination:2");
	expect(nbar_group_reach(c.g[0], SECOND), -ENOTCONN, "not connected");
	require_ok(nbar_group_connect(c.g[0], c.endpoint));
	/* The other members have not connected yet. */
	require_ok(nbar_group_reach(c.g[0], 10 * SECOND));
	for (uint32_t r = 1; r < c.size; r++)
		require_ok(nbar_group_connect(c.g[r], c.endpoint));
	inproc_set_loss(p, 30);
	for (uint32_t r = 0; r < c.size; r++)
		require_ok(nbar_group_reach(c.g[r], 30 * SECOND));
	require_ok(nbar_group_reach(c.g[0], 0)); /* once answered, it needs no time */
	inproc_set_loss(p, 100);
	nbar_post(c.g[0], &ticket);
	expect(nbar_wait(c.g[0], ticket, 20 * SECOND), -EHOSTUNREACH, "(loop:");
	/* It asked for the address with little patience; later requests have their own again. */
	assert_int_equal(patience_s(c.port[0]), 30);
	/* The text stays the same. */
	expect(nbar_test(c.g[0], ticket), -EHOSTUNREACH, "(loop:");
	cluster_end(&c);
	inproc_stop(p);
}

/* No frame arrives: the text has both addresses. */
static void nothing_arrives(void **state)
{
	struct inproc *p = inproc_start(2, &config);
	struct cluster c;

	inproc_set_loss(p, 100);
	cluster_start(&c, 2, 2, "dissemination:1");
	/* While it stood still, it could hear nobody. */
	pauses = 1;
	expect(nbar_group_reach(c.g[0], 8 * SECOND), -EHOSTUNREACH, "for 8.0 s");
	pauses = 0;
	expect(nbar_group_reach(c.g[0], 20 * MS), -EHOSTUNREACH,
	       "the NIC of rank 1, loop:1, has not answered the NIC of this host, loop:0, for 0.");
	expect(-1, -1, "(no frame of it arrives here; 1 of 1 peers are missing): look");
	inproc_set_loss(p, 0);
	require_ok(nbar_group_reach(c.g[0], 10 * SECOND));
	cluster_end(&c);
	inproc_stop(p);
}

/* A group of messages and a group of one have no peer to ask; a NIC that has ended gives an
 * answer. */
static void nobody_to_ask(void **state)
{
	struct inproc *p = inproc_start(2, &config);
	struct nbar_group_attr attr = { .rank = 0, .size = 2, .alg = "signal" };
	struct nbar_endpoint endpoint;
	struct nbar_group *g, *one;
	struct nbar_port *port;

	require_ok(nbar_open("n0", &port));
	require_ok(nbar_group_open(port, &attr, &g, &endpoint));
	expect(nbar_group_reach(g, SECOND), -EINVAL, "only the process that opened a group");
	attr = (struct nbar_group_attr){ .rank = 0, .size = 1 };
	require_ok(nbar_group_open(port, &attr, &one, &endpoint));
	require_ok(nbar_group_connect(one, &endpoint));
	require_ok(nbar_group_reach(one, 0));
	inproc_stop(p);
	expect(nbar_group_reach(one, SECOND), -ENETDOWN, "NIC n0 is gone");
	nbar_close(port);
}

/* Two in-process NICs of this program, on this wire. */
static void open_pair(const char *wire, struct cluster *c)
{
	c->size = 2;
	for (uint32_t r = 0; r < 2; r++) {
		const struct nbar_group_attr attr = { .rank = r, .size = 2, .tag = 7 };
		char name[80];

		snprintf(name, sizeof(name), "host:%s,name=r%u,budget-ms=300", wire, r);
		require_ok(nbar_open(name, &c->port[r]));
		require_ok(nbar_group_open(c->port[r], &attr, &c->g[r], &c->endpoint[r]));
	}
}

static void in_process(const char *wire)
{
	struct cluster c;

	open_pair(wire, &c);
	for (uint32_t r = 0; r < 2; r++)
		require_ok(nbar_group_connect(c.g[r], c.endpoint));
	for (uint32_t r = 0; r < 2; r++)
		require_ok(nbar_group_reach(c.g[r], 20 * SECOND));
	cluster_end(&c);
}

static void in_process_udp(void **state)
{
	struct cluster c;
	uint32_t ticket;

	in_process("wire=udp,bind=127.0.0.1:0");
	/* The address in the endpoint address is one where nobody is. */
	open_pair("wire=udp,bind=127.0.0.1:0", &c);
	c.endpoint[1].byte[32 + 2] = 0;
	c.endpoint[1].byte[32 + 3] = 9;
	require_ok(nbar_group_connect(c.g[0], c.endpoint));
	expect(nbar_group_reach(c.g[0], 20 * MS), -EHOSTUNREACH,
	       "the NIC of rank 1, 127.0.0.1:9, has not answered the NIC of this host, 127.0.0.1:");
	nbar_post(c.g[0], &ticket);
	expect(nbar_wait(c.g[0], ticket, 20 * SECOND), -EHOSTUNREACH,
	       "the NIC of rank 1 (127.0.0.1:9) does not answer: look");
	cluster_end(&c);
}

static void in_process_shm(void **state)
{
	char wire[64], folder[] = "/tmp/nbar-reach-XXXXXX";

	assert_non_null(mkdtemp(folder));
	snprintf(wire, sizeof(wire), "wire=shm,dir=%s", folder);
	in_process(wire);
	/* The NICs end, and remove their files, a budget after their last ports. */
	for (int i = 0; i < 3000 && rmdir(folder) < 0; i++)
		usleep(10000);
	assert_int_equal(access(folder, F_OK), -1);
}

UNIT_MAIN(NULL, NULL, UNIT(daemon_nics), UNIT(nothing_arrives), UNIT(nobody_to_ask),
	  UNIT(in_process_udp), UNIT(in_process_shm))
