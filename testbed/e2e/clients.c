/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clients.c - one client cannot stop the others: what a client may do to its own sockets delays no
 * request and no barrier of another client, nor the end of the daemon.
 *
 * A lingering socket would hold an unprotected daemon longer than raw.c waits for a reply. A crowd
 * of pollers makes each message to a socket slow: the test measures how slow, and expects the least
 * of some delays of a bystander to be below that. The attacker is another user if the test runs as
 * root.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "raw.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#define LINGER_S 300
#define WEAPONS 4
#define CROWD 40     /* threads that poll one socket ... */
#define LISTED 15000 /* ... which each of them lists this often */
#define STRANGER 65534u
#define ROUNDS 5

static char run_dir[] = "/tmp/nbar-clients-XXXXXX";

/* Connects as the attacker. */
static bool dial_attacker(struct raw *r)
{
	bool root = geteuid() == 0, done;

	if (root && seteuid(STRANGER) < 0)
		return false;
	done = raw_dial(r, run_dir, "n0");
	return (!root || seteuid(0) == 0) && done;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void stop(pid_t pid)
{
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
}

static void ends_well(pid_t pid)
{
	int status = raw_daemon_end(pid, SIGTERM);

	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the daemon ends well");
}

/* --- descriptors that a client sends -----------------------------------------------------------
 */

/* Returns a TCP socket whose last close() sleeps until *far has read everything or LINGER_S is
 * over. */
static int lingering_socket(int *far)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char block[1 << 16];

	if (bind(listener, (struct sockaddr *)&at, size) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &size) < 0 ||
	    connect(fd, (struct sockaddr *)&at, size) < 0)
		return -1;
	*far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	while (send(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		continue;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

/* Sends a request with a lingering socket, and closes its own copy. 0 or negative errno. */
static int say_with_weapon(struct raw *r, int *far)
{
	const struct nbar_request ask = { .magic = NBAR_ABI_MAGIC,
					  .version = NBAR_ABI_VERSION,
					  .op = NBAR_OP_NIC_STAT,
					  .length = sizeof(ask) };
	struct iovec body = { (void *)(uintptr_t)&ask, sizeof(ask) };
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(sizeof(int))];
	} rights = { .byte = { 0 } };
	struct msghdr msg = { .msg_iov = &body,
			      .msg_iovlen = 1,
			      .msg_control = &rights,
			      .msg_controllen = sizeof(rights) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = lingering_socket(far), rc;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	rc = sendmsg(r->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
	if (rc < 0) {
		/* The kernel has refused; this close must not sleep either. */
		const struct linger none = { .l_onoff = 0 };

		setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	}
	close(fd);
	return rc;
}

/* True if the daemon has closed none of the sockets, or nobody could send it any. */
static bool served(void)
{
	struct raw r;
	bool done = raw_dial(&r, run_dir, "n0") && raw_ask(&r, NBAR_OP_NIC_STAT, NULL, 0) == 0;

	if (done)
		raw_close(&r);
	return done;
}

static const char *const args[] = { "--nics", "1", "--idle", "yield", "--mode", "0666", NULL };

/* how: 0: the daemon reads the message; 1: it closes a connection with unread messages; 2: the
 * same at its end. */
static void rights(int how, const char *what)
{
	pid_t pid = raw_daemon_start(run_dir, 1, args);
	struct raw r[WEAPONS];
	int far[WEAPONS], refused = 0;

	if (!ok(pid != 0, "a daemon: %s", what))
		return;
	for (int i = 0; i < WEAPONS; i++)
		if (!dial_attacker(&r[i]) || raw_ask(&r[i], NBAR_OP_NIC_STAT, NULL, 0))
			return;
	stop(pid); /* otherwise the last close could be that of this process */
	for (int i = 0; i < WEAPONS; i++) {
		if (how == 1) /* an empty message ends a connection */
			send(r[i].fd, "", 0, MSG_NOSIGNAL);
		refused += say_with_weapon(&r[i], &far[i]) == -EPERM;
	}
	if (how == 2)
		kill(pid, SIGTERM);
	kill(pid, SIGCONT);
	if (how < 2)
		ok(served(),
		   "a bystander is served beside lingering sockets (the kernel refuses %d of %d)",
		   refused, WEAPONS);
	ends_well(pid);
	for (int i = 0; i < WEAPONS; i++) {
		raw_close(&r[i]);
		close(far[i]);
	}
}

static void all_rights(void)
{
	rights(0, "it reads messages with descriptors");
	rights(1, "it ends connections with such messages");
	rights(2, "it ends, and has not read them");
}

/* --- crowds that wait for a socket --------------------------------------------------------------
 */

static int crowd_fd;
static unsigned crowd_in; /* atomic: threads that are about to poll */
static bool crowd_over;   /* atomic */

static void *poll_main(void *arg)
{
	struct pollfd *list = malloc(LISTED * sizeof(*list));

	for (int i = 0; list && i < LISTED; i++)
		list[i] = (struct pollfd){ .fd = crowd_fd, .events = POLLIN };
	__atomic_fetch_add(&crowd_in, 1, __ATOMIC_RELAXED);
	while (list && !__atomic_load_n(&crowd_over, __ATOMIC_RELAXED))
		if (poll(list, LISTED, 100) > 0)
			usleep(1000);
	free(list);
	return NULL;
}

static pthread_t crowd[CROWD];

/* Makes a crowd that polls this socket. */
static void crowd_begin(int fd)
{
	crowd_fd = fd;
	crowd_over = false;
	crowd_in = 0;
	for (int i = 0; i < CROWD; i++)
		if (pthread_create(&crowd[i], NULL, poll_main, NULL) != 0)
			exit(1);
	while (__atomic_load_n(&crowd_in, __ATOMIC_RELAXED) < CROWD)
		usleep(1000);
	usleep(50000);
}

static void crowd_end(void)
{
	__atomic_store_n(&crowd_over, true, __ATOMIC_RELAXED);
	for (int i = 0; i < CROWD; i++)
		pthread_join(crowd[i], NULL);
}

/* Returns how long a message to a socket with such a crowd takes. */
static uint64_t price(void)
{
	uint64_t least = UINT64_MAX;
	char byte;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) < 0)
		exit(1);
	crowd_begin(fd[1]);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin = now_ns(), took;

		if (send(fd[0], "", 1, 0) != 1)
			exit(1);
		took = now_ns() - begin;
		least = took < least ? took : least;
		if (recv(fd[1], &byte, 1, 0) != 1)
			exit(1);
		usleep(300000);
	}
	crowd_end();
	close(fd[0]);
	close(fd[1]);
	return least;
}

/* A reply to a client with a crowd; a bystander asks at the same time. Returns its least delay. */
static uint64_t beside_slow_replies(pid_t pid)
{
	const struct nbar_request ask = { .magic = NBAR_ABI_MAGIC,
					  .version = NBAR_ABI_VERSION,
					  .op = NBAR_OP_NIC_STAT,
					  .length = sizeof(ask) };
	uint64_t least = UINT64_MAX;
	struct raw bad, good;

	if (!dial_attacker(&bad) || raw_ask(&bad, NBAR_OP_NIC_STAT, NULL, 0) ||
	    !raw_dial(&good, run_dir, "n0") || raw_ask(&good, NBAR_OP_NIC_STAT, NULL, 0))
		return least;
	crowd_begin(bad.fd);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin;

		stop(pid);
		if (raw_say(&bad, &ask, sizeof(ask)) || raw_say(&good, &ask, sizeof(ask)))
			break;
		kill(pid, SIGCONT);
		begin = now_ns();
		if (raw_hear(&good) != 0)
			break;
		begin = now_ns() - begin;
		least = begin < least ? begin : least;
		raw_hear(&bad);
		usleep(300000);
	}
	crowd_end();
	raw_close(&bad);
	raw_close(&good);
	return least;
}

/* A port with a group of one member. */
static bool member(struct raw *r, bool attacker)
{
	const struct nbar_req_group_connect connect = { 0 };

	return (attacker ? dial_attacker(r) : raw_dial(r, run_dir, "n0")) &&
	       raw_port_open(r, NBAR_PORT_ANY) == 0 &&
	       raw_group_open(r, "pairwise", 0, 1, 0) == 0 &&
	       raw_ask(r, NBAR_OP_GROUP_CONNECT, &connect, sizeof(connect)) == 0;
}

/* Returns the socket for a poller of cell 0. */
static int events_of(struct raw *r)
{
	union {
		struct cmsghdr align;
		char byte[CMSG_SPACE(sizeof(int))];
	} rights = { .byte = { 0 } };
	struct iovec body = { &r->reply, sizeof(r->reply) };
	struct msghdr msg = { .msg_iov = &body,
			      .msg_iovlen = 1,
			      .msg_control = &rights,
			      .msg_controllen = sizeof(rights) };
	int fd = -1;

	if (raw_say_events(r) == 0 && recvmsg(r->fd, &msg, MSG_CMSG_CLOEXEC) > 0 &&
	    CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* The NIC wakes a poller with a crowd; a bystander has a barrier at the same time. */
static uint64_t beside_slow_wakes(pid_t pid)
{
	uint64_t least = UINT64_MAX;
	struct raw bad, good;
	char byte;
	int fd;

	if (!member(&bad, true) || !member(&good, false))
		return least;
	fd = events_of(&bad);
	if (fd < 0)
		return least;
	crowd_begin(fd);
	for (uint32_t epoch = 1; epoch <= ROUNDS; epoch++) {
		uint64_t begin;

		stop(pid);
		__atomic_fetch_add(&bad.page->doorbell[0].wake_seq, 1, __ATOMIC_RELAXED);
		raw_post(&bad, 0, epoch);
		raw_post(&good, 0, epoch);
		kill(pid, SIGCONT);
		begin = now_ns();
		if ((uint32_t)raw_await(&good, 0, epoch) != epoch)
			break;
		begin = now_ns() - begin;
		least = begin < least ? begin : least;
		/* The wake comes, late or not. */
		if (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 20000) != 1)
			break;
		while (recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
			continue;
		usleep(300000);
	}
	crowd_end();
	close(fd);
	raw_close(&bad);
	raw_close(&good);
	return least;
}

/* Compares the bystander's delay with the price of a message to a crowd: again if it is greater,
 * because another program may have had the processors. */
static bool costs_less(uint64_t (*delay)(pid_t), pid_t pid, uint64_t *took)
{
	for (int i = 0; i < 5; i++) {
		uint64_t cost = price();

		*took = delay(pid);
		if (*took < cost)
			return true;
	}
	return false;
}

static void crowds(void)
{
	struct rlimit files;
	pid_t pid;
	uint64_t cost, delay;
	bool less;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	cost = files.rlim_cur > LISTED ? price() : 0;
	if (geteuid() != 0 || cost < 20000000) {
		ok(true,
		   "crowds # SKIP this needs root, %u descriptors, and a machine on which they "
		   "cost something (%.1f ms)",
		   LISTED, (double)cost / 1e6);
		return;
	}
	pid = raw_daemon_start(run_dir, 1, args);
	if (!ok(pid != 0, "a daemon; a message to a crowd takes %.1f ms", (double)cost / 1e6))
		return;
	less = costs_less(beside_slow_replies, pid, &delay);
	ok(less, "a bystander's request beside a reply to a crowd: %.1f ms", (double)delay / 1e6);
	less = costs_less(beside_slow_wakes, pid, &delay);
	ok(less, "a bystander's barrier beside a wake of a crowd: %.1f ms", (double)delay / 1e6);
	ends_well(pid);
}

/* From here on, this process and its daemons run as on a kernel that is older than SO_PASSRIGHTS.
 */
static bool old_kernel(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_setsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PASSRIGHTS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(void)
{
	char lock[128];

	if (!mkdtemp(run_dir) || chmod(run_dir, 0755) < 0)
		return 1;
	all_rights();
	crowds();
	if (geteuid() == 0 && old_kernel())
		all_rights();
	else
		ok(true, "on an older kernel # SKIP this needs root and seccomp");
	snprintf(lock, sizeof(lock), "%s/nicd.lock", run_dir);
	unlink(lock);
	rmdir(run_dir);
	return ok_end();
}
