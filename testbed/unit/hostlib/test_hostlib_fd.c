/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_fd.c - descriptors that come with replies of the daemon: the library closes
 * descriptors that it did not request. If it cannot take a descriptor, it names the limit that is
 * reached. It reads the socket of a group's events in portions.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

#include "nic_end.h"
#include "unit/descriptors.h"

static void descriptors_that_nobody_wanted_are_closed(void **state)
{
	const int one = 1, none = 0, fd[3] = { nic_end, nic_end, nic_end };
	const size_t opened = sizeof(struct nbar_reply) + sizeof(struct nbar_rep_group_open);
	struct nblib_call call = abort_call();
	struct nbar_group *g;
	uint32_t before = unit_descriptors();

	/* This message carries the sender's credentials, and no descriptor. */
	assert_int_equal(setsockopt(port.link.sock, SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)), 0);
	answer_by(NBAR_OP_GROUP_OPEN, 1, opened, NULL, 0);
	assert_int_equal(open_group(&g), 0);
	assert_int_equal(setsockopt(port.link.sock, SOL_SOCKET, SO_PASSCRED, &none, sizeof(none)),
			 0);
	answer_by(NBAR_OP_GROUP_ABORT, 2, sizeof(struct nbar_reply), fd, 3);
	assert_int_equal(nblib_link_call(&port.link, &call), 0);
	answer_by(NBAR_OP_GROUP_EVENTS, 3, sizeof(struct nbar_reply), NULL, 0);
	assert_int_equal(nbar_group_fd(g), -EPROTO);
	assert_non_null(strstr(nbar_error(), "passed no descriptor"));
	assert_int_equal(unit_descriptors(), before);
	answer_by(NBAR_OP_GROUP_EVENTS, 4, sizeof(struct nbar_reply), fd, 3);
	assert_true(nbar_group_fd(g) >= 0);
	assert_int_equal(unit_descriptors(), before + 1);
}

static void without_room_for_a_descriptor(void **state)
{
	struct rlimit limit, full;
	struct nbar_group *g;
	int rc;

	open_groups(&g, 1);
	answer_by(NBAR_OP_GROUP_EVENTS, 2, sizeof(struct nbar_reply), &nic_end, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	full = limit;
	full.rlim_cur = (rlim_t)unit_lowest_free();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	rc = nbar_group_fd(g);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(rc, -EMFILE);
	assert_non_null(strstr(nbar_error(), "no file descriptor left"));
	answer_by(NBAR_OP_GROUP_EVENTS, 3, sizeof(struct nbar_reply), &nic_end, 1);
	assert_true(nbar_group_fd(g) >= 0);
}

static struct nbar_group *open_another(uint32_t cell)
{
	struct nbar_group *g;

	answer(NBAR_OP_GROUP_OPEN, port.link.seq + 1, 0, cell);
	assert_int_equal(open_group(&g), 0);
	return g;
}

/* Runs a test twice: second in a program that has closed its standard input, so that the next
 * descriptor is 0. passed: what the NIC passes. */
/* The limit with which this process can open n descriptors more. */
static rlim_t limit_for(uint32_t n)
{
	int fd = unit_lowest_free();

	for (; n > 0; fd++)
		n -= fcntl(fd, F_GETFD) < 0;
	return (rlim_t)fd;
}

/* A reply with three descriptors, of which this process has room for some: it gets all or none. */
static void several_descriptors_come_together(void **state)
{
	const int sent[5] = { nic_end, nic_end, nic_end, nic_end, nic_end };
	const uint32_t before = unit_descriptors();
	struct nblib_call call = abort_call();
	struct rlimit limit, full;
	int fd[3];

	call.fd = fd;
	call.nfd = 3;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	full = limit;
	for (uint32_t room = 0; room <= 3; room++) {
		int rc;

		answer_by(NBAR_OP_GROUP_ABORT, room + 1, sizeof(struct nbar_reply), sent, 3);
		full.rlim_cur = limit_for(room);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
		rc = nblib_link_call(&port.link, &call);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		require(rc == (room < 3 ? -EMFILE : 0), "room for %u: %d", room, rc);
		for (uint32_t i = 0; i < 3; i++)
			require((fd[i] >= 0) == (room == 3), "room for %u: [%u] %d", room, i,
				fd[i]);
		require(unit_descriptors() == before + (room < 3 ? 0 : 3), "room for %u: leaks",
			room);
	}
	for (uint32_t n = 1; n <= 5; n++) {
		for (uint32_t i = 0; i < 3; i++)
			if (fd[i] >= 0)
				close(fd[i]);
		answer_by(NBAR_OP_GROUP_ABORT, n + 4, sizeof(struct nbar_reply), sent, n);
		assert_int_equal(nblib_link_call(&port.link, &call), 0);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(fd[i] >= 0, i < n);
		assert_int_equal(unit_descriptors(), before + (n < 3 ? n : 3));
	}
	/* A refusal with descriptors. */
	for (uint32_t i = 0; i < 3; i++)
		close(fd[i]);
	for (uint32_t n = 1; n <= 3; n++) {
		answer_status_by(NBAR_OP_GROUP_ABORT, n + 9, -NBAR_EPERM, sizeof(struct nbar_reply),
				 sent, n);
		assert_int_equal(nblib_link_call(&port.link, &call), -EPERM);
		assert_int_equal(fd[0], -1);
		assert_int_equal(unit_descriptors(), before);
	}
}

static void with_and_without_stdin(void (*test)(struct nbar_group *g, int passed))
{
	int kept = dup(0), lowest;

	assert_true(kept > 0);
	for (uint32_t i = 0; i < 2; i++) {
		int sv[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
		if (i == 1)
			close(0);
		lowest = unit_lowest_free();
		test(open_another(i), sv[0]);
		nbar_group_close(port.group[i]);
		assert_int_equal(unit_lowest_free(), lowest); /* of the group, none is left */
		close(sv[0]);
		close(sv[1]);
	}
	assert_int_equal(dup2(kept, 0), 0);
	close(kept);
}

static void refuse_events(struct nbar_group *g, int passed)
{
	static const int error[] = { EPERM, ENOSPC };
	const size_t length = sizeof(struct nbar_reply);
	const int many[5] = { passed, passed, passed, passed, passed };
	int lowest = unit_lowest_free();

	for (uint32_t i = 0; i < 2; i++) {
		answer_status_by(NBAR_OP_GROUP_EVENTS, port.link.seq + 1, -error[i], length,
				 &passed, 1);
		assert_int_equal(nbar_group_fd(g), -error[i]);
		assert_int_equal(unit_lowest_free(), lowest);
	}
	/* The message has more descriptors than the library has room for. */
	answer_by(NBAR_OP_GROUP_EVENTS, port.link.seq + 1, length, many, 5);
	for (uint32_t i = 0; i < 2; i++) /* the second call needs no answer */
		assert_int_equal(nbar_group_fd(g), lowest);
}

/* The NIC refuses, and passes a descriptor. The library closes it, and asks again at the next call.
 */
static void a_refusal_leaves_no_descriptor(void **state)
{
	with_and_without_stdin(refuse_events);
}

static void abort_while_polled(struct nbar_group *g, int passed)
{
	struct pollfd p = { .events = POLLIN };

	g->runs = g->connected = true;
	answer_by(NBAR_OP_GROUP_EVENTS, port.link.seq + 1, sizeof(struct nbar_reply), &passed, 1);
	p.fd = nbar_group_fd(g);
	assert_int_equal(nbar_post(g, NULL), 0);
	assert_int_equal(nbar_group_arm(g, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(nbar_group_abort(g), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	answer(NBAR_OP_GROUP_ABORT, port.link.seq, 0, 0);
}

/* The threads of this process that poll see an abort, although the NIC has not yet answered. */
static void an_abort_wakes_poll_at_once(void **state)
{
	with_and_without_stdin(abort_while_polled);
}

/* Messages of the NIC about a group. */
static void events_are_taken_in_portions(void **state)
{
	int sv[2], n = 0;
	struct nbar_group *g;
	char byte;

	open_groups(&g, 1);
	g->runs = g->connected = true;
	assert_int_equal(nbar_post(g, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	answer_by(NBAR_OP_GROUP_EVENTS, 2, sizeof(struct nbar_reply), sv, 1);
	assert_true(nbar_group_fd(g) >= 0);
	close(sv[0]);
	for (int i = 0; i < 70; i++)
		assert_int_equal(send(sv[1], "!", 1, 0), 1);
	fails.events = 1;
	fails.error = EINTR;
	assert_int_equal(nbar_group_arm(g, 1), 0);
	assert_int_equal(fails.events, 0);
	while (recv(nbar_group_fd(g), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1 &&
	       recv(nbar_group_fd(g), &byte, 1, MSG_DONTWAIT) == 1)
		n++;
	assert_int_equal(n, 7);
	/* Without further messages, it reads no further. */
	fails.events = 2;
	fails.error = EAGAIN;
	assert_int_equal(nbar_group_arm(g, 1), 0);
	assert_int_equal(fails.events, 1);
	/* The NIC has closed its end of the socket, but still runs. Then the NIC ends, too. */
	fails.events = 1;
	fails.error = ECONNRESET;
	assert_int_equal(nbar_group_arm(g, 1), 0);
	close(sv[1]);
	assert_int_equal(nbar_group_arm(g, 1), 0);
	close(nic_end);
	nic_end = -1;
	assert_int_equal(nbar_group_arm(g, 1), -ENETDOWN);
	port.link.down = NBLIB_UP;
	fails.events = 1;
	assert_int_equal(nbar_group_arm(g, 1), -ENETDOWN);
}

#define FD(test) UNIT_IN(test, set_up, tear_down)
UNIT_MAIN(NULL, NULL, FD(descriptors_that_nobody_wanted_are_closed),
	  FD(without_room_for_a_descriptor), FD(several_descriptors_come_together),
	  FD(a_refusal_leaves_no_descriptor), FD(an_abort_wakes_poll_at_once),
	  FD(events_are_taken_in_portions))
