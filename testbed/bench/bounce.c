/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bounce.c - what the kernel's network path costs without the engine: the time of a frame from one
 * tcx program to the other, of many that follow each other, and of a send() whose frame reaches the
 * other host's program, which drops it: a barrier of two hosts takes no less. It sends by a packet
 * socket, and by a UDP socket, as hosts do that may have no packet socket. See kernel.sh.
 *
 * bounce INTERFACE PID OBJECT: prints the medians of these, in us. The other host is the network
 * namespace of the process, with an interface of the same name. OBJECT: bounce.bpf.c.
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bounce.h"

#define CHUNKS 101
#define TURNS 1001u /* odd: the frame ends where it began */
#define SENDS 200u
#define FROM_TCX_IN 46 /* BPF_TCX_INGRESS; the next is BPF_TCX_EGRESS */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double middle(double v[CHUNKS])
{
	qsort(v, CHUNKS, sizeof(v[0]), by_size);
	return v[CHUNKS / 2];
}

/* Attaches the program here, and returns a socket, and the address of the interface. */
static int bounce_begin(const char *name, int program, void *mac)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(BOUNCE_TYPE) };
	struct timeval patience = { .tv_sec = 10 };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	struct ifreq hw = { 0 };

	snprintf(hw.ifr_name, sizeof(hw.ifr_name), "%s", name);
	at.sll_ifindex = (int)if_nametoindex(name);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || ioctl(fd, SIOCGIFHWADDR, &hw) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    bpf_link_create(program, at.sll_ifindex, (enum bpf_attach_type)FROM_TCX_IN, NULL) < 0)
		err(1, "%s", name);
	memcpy(mac, hw.ifr_hwaddr.sa_data, 6);
	return fd;
}

/* A socket whose packets a program turns into frames: see start_socket of the wire kernel. */
static int post_begin(const char *name, int program)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(34997),
				  .sin_addr.s_addr = htonl(0xe0000074) };
	const int no = 0, yes = 1, mark = BOUNCE_MARK, by = (int)if_nametoindex(name);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &by, sizeof(by)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0 ||
	    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &no, sizeof(no)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &yes, sizeof(yes)) < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    bpf_link_create(program, by, (enum bpf_attach_type)(FROM_TCX_IN + 1), NULL) < 0)
		err(1, "%s", name);
	return fd;
}

/* Prints the time of a send(). */
static void sends(int fd, const void *from, size_t size)
{
	double took[CHUNKS];

	for (int i = 0; i < CHUNKS; i++) {
		const uint64_t begin = now_ns();

		for (uint32_t n = 0; n < SENDS; n++)
			if (send(fd, from, size, 0) < 0)
				err(1, "send");
		took[i] = (double)(now_ns() - begin) / SENDS;
	}
	printf(" %.3f", middle(took) / 1000);
}

int main(int argc, char **argv)
{
	struct bounce_frame f = { .type = htons(BOUNCE_TYPE), .left = BOUNCE_DROP };
	double went[CHUNKS];
	struct bpf_object *object;
	char path[64];
	int fd, udp, program;

	if (argc != 4)
		errx(2, "usage: bounce INTERFACE PID OBJECT");
	object = bpf_object__open(argv[3]);
	if (!object || bpf_object__load(object) < 0)
		err(1, "%s", argv[3]);
	program = bpf_program__fd(bpf_object__find_program_by_name(object, "bounce"));
	fd = bounce_begin(argv[1], program, f.from);
	udp = post_begin(argv[1],
			 bpf_program__fd(bpf_object__find_program_by_name(object, "post")));
	snprintf(path, sizeof(path), "/proc/%s/ns/net", argv[2]);
	if (setns(open(path, O_RDONLY), CLONE_NEWNET) < 0)
		err(1, "%s", path);
	bounce_begin(argv[1], program, f.to);
	for (int i = 0; i < CHUNKS; i++) {
		struct bounce_frame back = f;

		back.left = TURNS;
		if (send(fd, &back, sizeof(back), 0) < 0 ||
		    recv(fd, &back, sizeof(back), 0) != sizeof(back))
			err(1, "the frame does not come back");
		went[i] = (double)(back.last - back.first) / TURNS;
	}
	printf("%.3f", middle(went) / 1000);
	sends(fd, &f, sizeof(f));
	sends(udp, &f, 20);
	puts("");
	return 0;
}
