/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_control_user.c - users of a daemon: their share of the descriptors, the order of their
 * turns, and the new clients that the daemon refuses. Limits, errors and naps are the test's own.
 */
#include "unit/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control_internal.h"

static struct rlimit limit;
static uint32_t naps, accepts_that_fail;
static uint64_t napped_ns;
static void (*at_nap)(void);

int __wrap_getrlimit(__rlimit_resource_t which, struct rlimit *out)
{
	assert_int_equal(which, RLIMIT_NOFILE);
	*out = limit;
	return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *rest)
{
	naps++;
	napped_ns += (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
	if (at_nap)
		at_nap();
	return 0;
}

int __real_accept4(int fd, struct sockaddr *addr, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *size, int flags)
{
	if (accepts_that_fail > 0) {
		accepts_that_fail--;
		errno = EMFILE;
		return -1;
	}
	return __real_accept4(fd, addr, size, flags);
}

/* Two NICs; the second user is that of this process. No user has a thread: the test plays it. */
static struct control k;
static struct nicd_nic nic[2];
static struct control_user user[2];
static struct sockaddr_un name;
static socklen_t name_size;

static int begin(void **state)
{
	memset(&k, 0, sizeof(k));
	memset(nic, 0, sizeof(nic));
	memset(user, 0, sizeof(user));
	limit = (struct rlimit){ .rlim_cur = 110, .rlim_max = 4096 };
	naps = accepts_that_fail = 0;
	napped_ns = 0;
	at_nap = NULL;
	pthread_mutex_init(&k.lock, NULL);
	pthread_cond_init(&k.turn_changed, NULL);
	k.epoll = epoll_create1(EPOLL_CLOEXEC);
	k.spare_fd = dup(STDIN_FILENO);
	k.user_percent = 50;
	k.fds_own = 10;
	k.nnic = 2;
	k.user = &user[0];
	user[0].next = &user[1];
	for (uint32_t i = 0; i < 2; i++) {
		snprintf(nic[i].device.name, sizeof(nic[i].device.name), "n%u", i);
		k.nic[i] = (struct control_nic){ .control = &k, .nic = &nic[i], .fd = -1 };
		user[i].control = &k;
		user[i].uid = geteuid() + 1 - i;
		user[i].epoll = epoll_create1(EPOLL_CLOEXEC);
		user[i].waker.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	}
	name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	name_size = sizeof(name);
	k.nic[0].fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(k.nic[0].fd, (struct sockaddr *)&name, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(k.nic[0].fd, 8), 0);
	assert_int_equal(getsockname(k.nic[0].fd, (struct sockaddr *)&name, &name_size), 0);
	control_turn_take(&k);
	return 0;
}

/* As the thread of the user, but without the turn. */
static void close_all(struct control_user *u)
{
	for (struct control_client *c; (c = u->closing);) {
		u->closing = c->next;
		u->nclosing--;
		u->nfd--;
		close(c->fd);
		free(c->refusal);
		free(c);
	}
}

static int end(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		while (k.nic[i].client)
			control_client_drop(k.nic[i].client);
		close_all(&user[0]);
		close_all(&user[1]);
	}
	for (uint32_t i = 0; i < 2; i++) {
		close(user[i].epoll);
		close(user[i].waker.fd);
	}
	close(k.nic[0].fd);
	close(k.epoll);
	close(k.spare_fd);
	control_turn_give(&k);
	pthread_cond_destroy(&k.turn_changed);
	pthread_mutex_destroy(&k.lock);
	return 0;
}

/* --- shares ---------------------------------------------------------------------------------- */

static uint32_t left(uint32_t percent, uint64_t most, uint32_t nfd)
{
	k.user_percent = percent;
	limit.rlim_cur = most;
	user[1].nfd = nfd;
	return control_user_fds_left(&user[1]);
}

static void a_user_has_a_share(void **state)
{
	assert_int_equal(left(50, 110, 20), 30);
	assert_int_equal(left(50, 110, 49), 1);
	assert_int_equal(left(50, 110, 50), 0);
	assert_int_equal(left(50, 110, 51), 0);
	assert_int_equal(left(33, 110, 0), 33);
	assert_int_equal(left(1, 109, 0), 0); /* rounded down */
	assert_int_equal(left(99, 110, 0), 99);
	assert_int_equal(left(50, 10, 0), 0); /* the process needs them all */
	assert_int_equal(left(50, 9, 0), 0);
	assert_int_equal(left(99, UINT64_C(0x80000000), 0), 2126008801);
	/* No share: all is permitted. */
	assert_int_equal(left(100, 110, 7), UINT32_MAX - 7);
	assert_int_equal(left(0, 110, 7), UINT32_MAX - 7);
	assert_int_equal(left(50, RLIM_INFINITY, 7), UINT32_MAX - 7);
	/* The descriptors of one user are not those of another. */
	user[0].nfd = 1000;
	assert_int_equal(left(50, 110, 20), 30);
}

/* Sockets that are still to be closed count neither for the user nor without end. */
static void closing_sockets_do_not_count(void **state)
{
	user[1].nclosing = 5;
	assert_int_equal(left(50, 110, 20), 35);
	user[1].nclosing = 63;
	assert_int_equal(left(50, 110, 70), 43);
	user[1].nclosing = 64;
	assert_int_equal(left(50, 110, 70), 0);
	user[0].nclosing = 64;
	user[1].nclosing = 0;
	assert_int_equal(left(50, 110, 20), 30);
}

static void descriptors_are_counted(void **state)
{
	struct control_client c[2] = { { .user = &user[1] }, { .user = &user[1] } }, none = { 0 };

	control_user_count(&c[0], 3);
	control_user_count(&c[1], 2);
	assert_int_equal(user[1].nfd, 5);
	control_user_count(&c[0], 1);
	control_user_count(&c[0], 1);
	assert_int_equal(user[1].nfd, 3);
	assert_int_equal(user[0].nfd, 0);
	control_user_count(&none, 9); /* of an in-process NIC */
	assert_int_equal(none.nfd, 0);
}

static void a_dropped_client_waits_for_its_thread(void **state)
{
	struct control_client c[2] = { { .user = &user[1] }, { .user = &user[1] } };
	uint64_t n = 0;

	control_user_close(&user[1], &c[0]);
	control_user_close(&user[1], &c[1]);
	assert_true(c[0].dropped && c[1].dropped);
	assert_int_equal(user[1].nclosing, 2);
	assert_ptr_equal(user[1].closing, &c[1]);
	assert_ptr_equal(c[1].next, &c[0]);
	assert_null(c[0].next);
	assert_int_equal(read(user[1].waker.fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(n, 2); /* woken each time */
	assert_int_equal(read(user[0].waker.fd, &n, sizeof(n)), -1);
	user[1].closing = NULL;
}

/* --- turns ----------------------------------------------------------------------------------- */

static char order[8];

static void *asks_for_the_turn(void *arg)
{
	control_turn_take(&k);
	order[strlen(order)] = *(const char *)arg;
	control_turn_give(&k);
	return NULL;
}

static void until_asked(uint64_t n)
{
	for (uint64_t asked = 0; asked != n;) {
		pthread_mutex_lock(&k.lock);
		asked = k.turn_next;
		pthread_mutex_unlock(&k.lock);
		sched_yield();
	}
}

/* Who gives the turn and asks again comes behind all who wait. */
static void turns_go_round(void **state)
{
	pthread_t id[3];

	memset(order, 0, sizeof(order));
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&id[i], NULL, asks_for_the_turn, &"abc"[i]), 0);
		until_asked(2 + i);
	}
	assert_string_equal(order, "");
	control_turn_give(&k);
	control_turn_take(&k);
	assert_string_equal(order, "abc");
	for (uint32_t i = 0; i < 3; i++)
		pthread_join(id[i], NULL);
	assert_int_equal(k.turn, 4);
	assert_int_equal(k.turn_next, 5);
}

/* --- new clients ----------------------------------------------------------------------------- */

/* A client connects to n0. */
static void arrives(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&name, name_size), 0);
	control_arrival(&k.nic[0]);
	close(fd);
}

static void refused(const char *want)
{
	char text[300];

	arrives();
	assert_non_null(user[1].closing);
	assert_non_null(user[1].closing->refusal);
	assert_int_equal(user[1].closing->refusal->status, -NBAR_EMFILE);
	snprintf(text, sizeof(text), want, (unsigned)geteuid());
	assert_string_equal(user[1].closing->refusal->text, text);
}

static void the_share_is_full(void **state)
{
	user[1].nfd = 49;
	arrives();
	assert_int_equal(user[1].nclient, 1);
	assert_int_equal(user[1].nfd, 50);
	assert_int_equal(k.nic[0].nclient, 1);
	k.nic[0].client->busy = true; /* no client is idle */
	refused("uid %u has all 50 file descriptors that one user may have at the daemon of n0; "
		"close ports, or restart it with a larger --user-percent or a higher limit (ulimit "
		"-n)");
	assert_int_equal(user[1].nfd, 51); /* and the socket that carries the refusal */
	assert_int_equal(user[1].nclosing, 1);
	assert_int_equal(user[1].nclient, 1);
	assert_int_equal(user[0].nfd + user[0].nclosing, 0);
	assert_int_equal(naps, 0);
}

/* The client whose last request is the oldest goes, at whichever NIC. */
static void an_idle_client_makes_room(void **state)
{
	static const uint64_t heard[] = { 5, 2, 7 };
	struct control_client *c[3];

	user[1].nfd = 47;
	for (uint32_t i = 0; i < 3; i++) {
		c[i] = calloc(1, sizeof(*c[i]));
		assert_non_null(c[i]);
		c[i]->at = &k.nic[i % 2];
		c[i]->user = &user[1];
		c[i]->fd = dup(STDIN_FILENO);
		control_client_add(c[i], 1, geteuid());
		c[i]->heard_at = heard[i];
	}
	c[0]->heard_at = 1;
	c[0]->busy = true;
	assert_int_equal(user[1].nfd, 50);
	arrives();
	assert_ptr_equal(user[1].closing, c[1]);
	assert_null(c[1]->next);
	assert_null(c[1]->refusal);
	assert_int_equal(k.nic[1].nclient, 0);
	assert_int_equal(k.nic[0].nclient, 3);
	assert_int_equal(user[1].nclient, 3);
	/* Beside an idle client of another user. */
	c[2]->busy = k.nic[0].client->busy = true;
	c[1] = calloc(1, sizeof(*c[1]));
	assert_non_null(c[1]);
	c[1]->at = &k.nic[1];
	c[1]->user = &user[0];
	c[1]->fd = dup(STDIN_FILENO);
	control_client_add(c[1], 1, geteuid() + 1);
	refused("uid %u has all 51 file descriptors that one user may have at the daemon of n0; "
		"close ports, or restart it with a larger --user-percent or a higher limit (ulimit "
		"-n)");
	assert_int_equal(user[0].nclient, 1);
}

static void closes_all_at_the_third(void)
{
	if (naps == 3)
		user[1].nclosing = user[1].nfd = 0;
}

/* A user whose sockets are not closed waits 50 ms once, and then not again. */
static void too_many_are_being_closed(void **state)
{
	user[1].nclosing = user[1].nfd = 63;
	arrives();
	assert_int_equal(user[1].nclient, 1);
	assert_int_equal(naps, 0);
	user[1].nclosing = user[1].nfd = 64;
	at_nap = closes_all_at_the_third;
	arrives();
	assert_int_equal(user[1].nclient, 2);
	assert_int_equal(naps, 3);
	assert_int_equal(napped_ns, 3000000);
	at_nap = NULL;
	user[1].nnap = 0;
	user[1].nclosing = 64;
	user[1].nfd = 70;
	refused("the daemon of n0 is still closing 64 connections of uid %u, because a process of "
		"this user delays it; try again");
	assert_int_equal(naps, 53);
	refused("the daemon of n0 is still closing 65 connections of uid %u, because a process of "
		"this user delays it; try again");
	assert_int_equal(naps, 53);
	assert_int_equal(user[1].nclient, 2); /* an idle client would free nothing */
}

/* The second call must not close what has the number of the socket by then. */
static void listeners_close_once(void **state)
{
	int fd = k.nic[0].fd;

	control_listeners_close(&k);
	assert_int_equal(k.nic[0].fd, -1);
	assert_int_equal(dup(STDIN_FILENO), fd);
	control_listeners_close(&k);
	assert_int_equal(close(fd), 0);
}

/* --- the process has no descriptor ------------------------------------------------------------ */

/* The reply to a client for which accept() fails `fails` times. */
static void turned_away(uint32_t fails, const char *want)
{
	struct nbar_reply reply = { 0 };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	accepts_that_fail = fails;
	assert_int_equal(connect(fd, (struct sockaddr *)&name, name_size), 0);
	while (accepts_that_fail > 0)
		control_arrival(&k.nic[0]);
	assert_int_equal(recv(fd, &reply, sizeof(reply), MSG_DONTWAIT), sizeof(reply));
	assert_int_equal(reply.status, -NBAR_EMFILE);
	assert_string_equal(reply.text, want);
	assert_true(k.spare_fd >= 0);
	close(fd);
}

static void no_descriptor_is_left(void **state)
{
	turned_away(1, "the daemon of n0 has no file descriptors left; restart it with a higher "
		       "limit (ulimit -n)");
	assert_int_equal(naps, 0);
	k.in_process = true;
	turned_away(1, "the process of n0 has no file descriptors left; restart it with a higher "
		       "limit (ulimit -n)");
	k.in_process = false;
	/* A socket of any user is to be closed: waits for it, 49 ms at most. */
	user[1].nclosing = 1;
	turned_away(50, "the daemon of n0 has no file descriptors left; restart it with a higher "
			"limit (ulimit -n)");
	assert_int_equal(naps, 49);
	assert_int_equal(napped_ns, 49000000);
	/* Each client anew, and whichever user it is. */
	user[0].nclosing = 1;
	user[1].nclosing = 0;
	turned_away(50, "the daemon of n0 has no file descriptors left; restart it with a higher "
			"limit (ulimit -n)");
	assert_int_equal(naps, 98);
	user[0].nclosing = 0;
	/* Not even for an instant: the client waits in the queue. */
	accepts_that_fail = 2;
	arrives();
	assert_int_equal(naps, 99);
	assert_int_equal(napped_ns, 108000000);
}

/* Of the user with the most descriptors. */
static void the_richest_user_gives(void **state)
{
	struct control_client *c[2];

	for (uint32_t i = 0; i < 2; i++) {
		c[i] = calloc(1, sizeof(*c[i]));
		assert_non_null(c[i]);
		c[i]->at = &k.nic[1];
		c[i]->user = &user[i];
		c[i]->fd = dup(STDIN_FILENO);
		control_client_add(c[i], 1, user[i].uid);
	}
	user[1].nfd = 2;
	accepts_that_fail = 1;
	arrives();
	assert_ptr_equal(user[1].closing, c[1]);
	assert_null(user[0].closing);
	assert_int_equal(user[0].nclient, 1);
}

#define TEST(name) UNIT_IN(name, begin, end)

UNIT_MAIN(NULL, NULL, TEST(a_user_has_a_share), TEST(closing_sockets_do_not_count),
	  TEST(descriptors_are_counted), TEST(a_dropped_client_waits_for_its_thread),
	  TEST(turns_go_round), TEST(the_share_is_full), TEST(an_idle_client_makes_room),
	  TEST(too_many_are_being_closed), TEST(listeners_close_once), TEST(no_descriptor_is_left),
	  TEST(the_richest_user_gives))
