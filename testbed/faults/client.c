/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.c - a program that uses most of libnbar. faults.py runs it, and makes one call to libc
 * fail.
 *
 * fail-client [-c] NIC NIC: both members of each group are in this process, in one thread. A round
 * opens ports and groups, runs barriers and closes all. When a call of the library fails, it must
 * leave the descriptors, the signal mask and the memory of the program as they were before the
 * call. The program then prints the error, closes its ports and groups, and repeats the round. The
 * repeated round must succeed and leave nothing behind. Calls to libc fail only in the third round,
 * after two rounds that succeed; with -c, in the first round. Exit status 0, or 1 with the reason
 * on stderr.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nbar_extra.h"

#define LIMIT_NS UINT64_C(20000000000) /* time limit of a wait; it ends long before */
#define WARM 2                         /* rounds before the failure */
#define BARRIERS 3
#define FDS_MAX 1024
#define LOOK_US 10000u
#define LOOKS 2000
#define GROUPS 2 /* pairs of members */

/* In fail.c, which is preloaded: only calls between fail_begin and fail_end count. */
extern void fail_begin(void) __attribute__((weak));
extern void fail_end(void) __attribute__((weak));

static const char *nic[2];

/* Everything that a round has open. */
struct round {
	struct nbar_port *port[2], *attached;
	struct nbar_group *group[GROUPS][2];
};

/* What belongs to the program, and a call that fails must not change. */
struct state {
	int fds;
	sigset_t mask;
	size_t heap;
};

static bool in_process; /* a NIC of this process has memory and descriptors of its own */
static bool cold;       /* the first calls of the library may allocate memory for ever */
static char left[160];  /* what a failed call has left behind */

static int descriptors(void)
{
	struct stat st;
	int n = 0;

	for (int fd = 0; fd < FDS_MAX; fd++)
		n += fstat(fd, &st) == 0;
	return n;
}

static struct state look(void)
{
	struct state s = { .fds = descriptors() };

	pthread_sigmask(SIG_SETMASK, NULL, &s.mask);
	s.heap = mallinfo2().uordblks;
	return s;
}

static void compare(const char *what, const struct state *before)
{
	struct state now = look();
	bool masked = false;

	for (int sig = 1; sig < NSIG; sig++)
		masked |= sigismember(&now.mask, sig) != sigismember(&before->mask, sig);
	if (masked)
		snprintf(left, sizeof(left), "%s has changed the signal mask", what);
	else if (!in_process && now.fds != before->fds)
		snprintf(left, sizeof(left), "%s leaves %d descriptors, not %d", what, now.fds,
			 before->fds);
	else if (!in_process && !cold && now.heap > before->heap)
		snprintf(left, sizeof(left), "%s leaves %zu bytes", what, now.heap - before->heap);
}

static int failed(const char *what, int rc)
{
	printf("failed: %s: %s: %s\n", what, strerror(-rc), nbar_error());
	return rc;
}

/* Checks a call of the library: it must succeed, or leave an error text and nothing else. */
#define TRY(call)                                     \
	do {                                          \
		struct state try_before = look();     \
		int try_rc = (call);                  \
                                                      \
		if (try_rc < 0) {                     \
			compare(#call, &try_before);  \
			return failed(#call, try_rc); \
		}                                     \
	} while (0)

static int open_pair(struct round *r, int pair)
{
	struct nbar_endpoint endpoints[2];

	for (uint32_t i = 0; i < 2; i++) {
		struct nbar_group_attr attr = { .rank = i, .size = 2 };

		TRY(nbar_group_open(r->port[i], &attr, &r->group[pair][i], &endpoints[i]));
	}
	for (int i = 0; i < 2; i++)
		TRY(nbar_group_connect(r->group[pair][i], endpoints));
	return 0;
}

static int barrier(struct nbar_group **pair)
{
	uint32_t ticket[2];

	for (int i = 0; i < 2; i++)
		TRY(nbar_post(pair[i], &ticket[i]));
	for (int i = 0; i < 2; i++)
		TRY(nbar_wait(pair[i], ticket[i], LIMIT_NS));
	return 0;
}

/* A barrier; member 0 waits for its end by poll() on the group's descriptor. */
static int barrier_by_event(struct nbar_group **pair)
{
	struct pollfd news = { .fd = -1, .events = POLLIN };
	uint32_t ticket[2];
	int rc;

	TRY(news.fd = nbar_group_fd(pair[0]));
	TRY(nbar_post(pair[0], &ticket[0]));
	TRY(nbar_group_arm(pair[0], ticket[0]));
	TRY(nbar_post(pair[1], &ticket[1]));
	while ((rc = nbar_group_arm(pair[0], ticket[0])) == 0)
		(void)!poll(&news, 1, 100);
	TRY(rc);
	TRY(nbar_wait(pair[1], ticket[1], LIMIT_NS));
	return 0;
}

static int share(struct round *r)
{
	struct nbar_group *group;
	struct nbar_share s;

	nbar_group_share(r->group[0][0], &s);
	TRY(nbar_attach(nic[0], &s, &r->attached));
	TRY(nbar_group_attach(r->attached, &s, &group));
	return 0;
}

/* A wait ends at its time limit, because member 1 has not arrived; then member 1 arrives. */
static int late(struct nbar_group **pair)
{
	uint32_t ticket[2], missing[2];
	int rc;

	TRY(nbar_post(pair[0], &ticket[0]));
	rc = nbar_wait(pair[0], ticket[0], 1000000);
	if (rc != -ETIME)
		return failed("a wait for a late member", rc);
	TRY(nbar_missing(pair[0], missing, 2));
	TRY(nbar_post(pair[1], &ticket[1]));
	for (int i = 0; i < 2; i++)
		TRY(nbar_wait(pair[i], ticket[i], LIMIT_NS));
	return 0;
}

static int run(struct round *r)
{
	struct nbar_rep_nic_stat stat;

	for (int i = 0; i < 2; i++)
		TRY(nbar_open(nic[i], &r->port[i]));
	for (int pair = 0; pair < GROUPS; pair++) {
		int rc = open_pair(r, pair);

		for (int i = 0; i < BARRIERS && rc == 0; i++)
			rc = barrier(r->group[pair]);
		if (rc < 0)
			return rc;
	}
	if (barrier_by_event(r->group[0]) < 0 || share(r) < 0 || late(r->group[1]) < 0)
		return -1;
	TRY(nbar_nic_stat(nic[0], &stat));
	TRY(nbar_group_abort(r->group[1][0]));
	return 0;
}

static int whole_round(void)
{
	struct round r = { .attached = NULL };
	int rc = run(&r);

	nbar_close(r.attached);
	for (int i = 0; i < 2; i++)
		nbar_close(r.port[i]);
	return rc;
}

/* A NIC in this process ends a little later than its last port. */
static bool none_left(int fds)
{
	for (int i = 0; i < LOOKS && descriptors() > fds; i++)
		usleep(LOOK_US);
	return descriptors() <= fds;
}

static int wrong(const char *what)
{
	fflush(stdout);
	fprintf(stderr, "%s\n", what);
	return 1;
}

int main(int argc, char **argv)
{
	struct state before = look();
	size_t heap;

	cold = argc == 4 && strcmp(argv[1], "-c") == 0;
	if (argc != (cold ? 4 : 3))
		return 2;
	nic[0] = argv[argc - 2];
	nic[1] = argv[argc - 1];
	in_process = strncmp(nic[0], "host:", 5) == 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("begins\n");
	for (int i = 0; !cold && i < WARM; i++)
		if (whole_round() < 0)
			return wrong("a round without a failure has failed");
	heap = mallinfo2().uordblks;
	if (fail_begin)
		fail_begin();
	(void)whole_round();
	if (fail_end)
		fail_end();
	if (*left)
		return wrong(left);
	if (!none_left(before.fds))
		return wrong("the failed round has left a descriptor");
	if (!cold && mallinfo2().uordblks > heap)
		return wrong("the failed round has left memory");
	if (whole_round() < 0)
		return wrong("the round after the failure has failed, too");
	if (!none_left(before.fds))
		return wrong("a descriptor is left");
	if (!cold && mallinfo2().uordblks > heap)
		return wrong("memory is left");
	compare("the program", &before);
	if (strstr(left, "signal mask"))
		return wrong(left);
	/* The same program without a failure has as much in the end. */
	printf("heap: %zu\n", mallinfo2().uordblks);
	return 0;
}
