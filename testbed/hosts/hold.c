/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.c - cluster-hold: receives every frame of an interface, and sends it back to the same
 * interface after a delay.
 *
 *   cluster-hold INTERFACE DELAY_US JITTER_US MARK
 *
 * wire.sh starts it where the kernel has no netem. Returned frames carry MARK, by which the
 * nftables rules of wire.sh recognize them. Frames keep their virtio header, so the kernel can
 * still add checksums and make segments later. cluster-hold must never change a frame.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MAX (sizeof(struct virtio_net_hdr) + 65536 + 64)
#define SLICE_NS 100000 /* the shortest that Linux has */
#define HELD_MAX 10000  /* frames held at a time; more are lost, as with netem's limit */

struct held {
	struct held *next;
	uint64_t due_ns;
	size_t length;
	uint8_t byte[];
};

/* Sorted by time; frames with the same time keep their order. */
struct queue {
	struct held *first, *last;
	uint32_t n;
};

/* The kernel's struct sched_attr, which glibc before 2.41 does not declare. */
struct slice {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/*
 * Asks for short time slices, at the normal priority: since Linux 6.12 such a process runs as soon
 * as it wakes, also beside programs that poll. Without short slices, a frame that is due waits
 * until the slice of such a program ends, for milliseconds. Older kernels ignore the request.
 */
static void ask_for_short_slices(void)
{
	struct slice s = { .size = sizeof(s), .runtime = SLICE_NS };

	(void)syscall(SYS_sched_setattr, 0, &s, 0);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void queue_add(struct queue *q, struct held *h)
{
	struct held **at = &q->first;

	if (q->last && q->last->due_ns <= h->due_ns)
		at = &q->last->next;
	while (*at && (*at)->due_ns <= h->due_ns)
		at = &(*at)->next;
	h->next = *at;
	*at = h;
	if (!h->next)
		q->last = h;
	q->n++;
}

static struct held *queue_take(struct queue *q)
{
	struct held *h = q->first;

	q->first = h->next;
	if (!q->first)
		q->last = NULL;
	q->n--;
	return h;
}

static int open_interface(const char *name, uint32_t mark)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int on = 1, fd;

	at.sll_ifindex = (int)if_nametoindex(name);
	if (!at.sll_ifindex)
		return -errno;
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

/* Receives all frames that have arrived. The delay is within jitter_ns of delay_ns. */
static void take(int fd, struct queue *q, uint64_t delay_ns, uint64_t jitter_ns)
{
	static uint8_t frame[FRAME_MAX];

	for (;;) {
		ssize_t length = recv(fd, frame, sizeof(frame), MSG_DONTWAIT);
		struct held *h;

		if (length < 0)
			return;
		if (q->n == HELD_MAX)
			continue;
		h = malloc(sizeof(*h) + (size_t)length);
		if (!h)
			continue;
		h->due_ns = now_ns() + delay_ns;
		if (jitter_ns)
			h->due_ns += (uint64_t)random() % (2 * jitter_ns + 1) - jitter_ns;
		h->length = (size_t)length;
		memcpy(h->byte, frame, h->length);
		queue_add(q, h);
	}
}

static void give_back(int fd, struct queue *q)
{
	while (q->first && q->first->due_ns <= now_ns()) {
		struct held *h = queue_take(q);

		if (send(fd, h->byte, h->length, MSG_DONTWAIT) < 0)
			fprintf(stderr, "cluster-hold: a frame of %zu bytes was lost: %s\n",
				h->length, strerror(errno));
		free(h);
	}
}

int main(int argc, char **argv)
{
	struct queue queue = { 0 };
	uint64_t delay_ns, jitter_ns;
	struct pollfd p = { .events = POLLIN };

	if (argc != 5) {
		fprintf(stderr, "usage: cluster-hold INTERFACE DELAY_US JITTER_US MARK\n");
		return 2;
	}
	delay_ns = strtoull(argv[2], NULL, 0) * 1000;
	jitter_ns = strtoull(argv[3], NULL, 0) * 1000;
	if (jitter_ns > delay_ns) {
		fprintf(stderr, "cluster-hold: jitter is more than delay\n");
		return 2;
	}
	p.fd = open_interface(argv[1], (uint32_t)strtoul(argv[4], NULL, 0));
	if (p.fd < 0) {
		fprintf(stderr, "cluster-hold: %s: %s\n", argv[1], strerror(-p.fd));
		return 1;
	}
	srandom((unsigned int)now_ns());
	prctl(PR_SET_TIMERSLACK, 1L);
	ask_for_short_slices();
	for (;;) {
		struct timespec wait = { 0 };

		if (queue.first) {
			uint64_t now = now_ns(), due = queue.first->due_ns;
			uint64_t left = due > now ? due - now : 0;

			wait.tv_sec = (time_t)(left / 1000000000u);
			wait.tv_nsec = (long)(left % 1000000000u);
		}
		ppoll(&p, 1, queue.first ? &wait : NULL, NULL);
		take(p.fd, &queue, delay_ns, jitter_ns);
		give_back(p.fd, &queue);
	}
}
