/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.c - a barrier in an event loop, which names the ranks that are late and gives up on them.
 *
 * Usage: events NIC. One process has both members of a group. Rank 1 posts half a second late.
 * Build it by: cc events.c $(pkg-config --cflags --libs nbar) -o events
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include <nbar.h>

#define LATE_MS 500
#define LONG_MS 60000 /* a barrier never takes so long */
#define LOOK_MS 100   /* how often the loop names the missing ranks */
#define LIMIT_MS 1000

static struct nbar_port *port[2];
static struct nbar_group *group[2];

static int open_both(const char *nic)
{
	struct nbar_endpoint endpoint[2];

	for (unsigned i = 0; i < 2; i++) {
		struct nbar_group_attr attr = { .rank = i, .size = 2 };

		if (nbar_open(nic, &port[i]) < 0 ||
		    nbar_group_open(port[i], &attr, &group[i], &endpoint[i]) < 0)
			return -1;
	}
	for (unsigned i = 0; i < 2; i++)
		if (nbar_group_connect(group[i], endpoint) < 0)
			return -1;
	return 0;
}

static void name_missing(void)
{
	uint32_t rank[8];
	int n = nbar_missing(group[0], rank, 8);

	for (int i = 0; i < n && i < 8; i++)
		printf("waiting for rank %u\n", rank[i]);
}

/* Returns 1 when the barrier is complete, or the error of nbar_test. post_ms: when rank 1 posts;
 * limit_ms: when the program gives up. */
static int events_loop(uint32_t ticket, int post_ms, int limit_ms)
{
	struct pollfd p = { .fd = nbar_group_fd(group[0]), .events = POLLIN };
	int rc, passed_ms = 0;

	if (p.fd < 0)
		return p.fd;
	while ((rc = nbar_group_arm(group[0], ticket)) == 0) {
		/* Here a program also polls its other descriptors. */
		if (poll(&p, 1, LOOK_MS) != 0)
			continue;
		passed_ms += LOOK_MS;
		name_missing();
		if (passed_ms == post_ms && nbar_post(group[1], NULL) < 0)
			return -1;
		if (passed_ms >= limit_ms)
			nbar_group_abort(group[0]);
	}
	return rc;
}

int main(int argc, char **argv)
{
	uint32_t ticket;

	if (argc != 2 || open_both(argv[1]) < 0) {
		fprintf(stderr, "events: %s\n", argc == 2 ? nbar_error() : "usage: events NIC");
		return 1;
	}
	if (nbar_post(group[0], &ticket) < 0 || events_loop(ticket, LATE_MS, LONG_MS) != 1) {
		fprintf(stderr, "events: %s\n", nbar_error());
		return 1;
	}
	printf("complete\n");
	/* Now rank 1 never posts. After the abort, both ranks have an error. */
	if (nbar_post(group[0], &ticket) < 0 || events_loop(ticket, -1, LIMIT_MS) != -ECANCELED) {
		fprintf(stderr, "events: %s\n", nbar_error());
		return 1;
	}
	printf("given up: %s\n", nbar_error());
	nbar_close(port[0]);
	nbar_close(port[1]);
	return 0;
}
