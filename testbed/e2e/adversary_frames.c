/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adversary_frames.c - forged frames. The layouts of firmware/WIRE.md are repeated here, so that a
 * changed layout makes the test fail.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adversary.h"

#define FRAME 48u
enum { TOKEN = 1, PULL, LATER, ABORT, SIGNAL };

static struct sockaddr_in target; /* of the wire of n0 */
static struct sockaddr_in own;    /* of this program */
static int wire;

static void find_target(struct raw *r)
{
	struct nbar_rep_nic_stat stat;

	raw_ask(r, NBAR_OP_NIC_STAT, NULL, 0);
	memcpy(&stat, r->reply.body, sizeof(stat));
	target = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)atoi(strchr(stat.address, ':') + 1)),
	};
	wire = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	own.sin_family = AF_INET;
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)bind(wire, (const struct sockaddr *)&own, sizeof(own));
	(void)getsockname(wire, (struct sockaddr *)&own, &(socklen_t){ sizeof(own) });
}

/* Opens a group of two at n0, whose rank 1 is this program: frames that it sends are those of a
 * member. */
static bool member_begin(struct raw *r, uint32_t tag, struct nbar_endpoint *out)
{
	struct nbar_rep_group_open rep;
	struct nbar_endpoint ours;

	dial(r, "n0");
	if (raw_port_open(r, NBAR_PORT_ANY) != 0 || raw_group_open(r, "pairwise", 0, 2, tag) != 0)
		return false;
	memcpy(&rep, r->reply.body, sizeof(rep));
	*out = ours = rep.endpoint;
	ours.byte[12] = 1; /* the rank */
	memset(ours.byte + 32, 0, 48);
	ours.byte[32] = 4;
	memcpy(ours.byte + 34, &own.sin_port, 2);
	memcpy(ours.byte + 36, &own.sin_addr, 4);
	return raw_group_connect(r, 0, &ours, 1) == 0;
}

static void throw(const void *bytes, size_t n)
{
	(void)sendto(wire, bytes, n, 0, (const struct sockaddr *)&target, sizeof(target));
}

/* Sends the same frame n times, and waits after each frame until the counter rises. True if the
 * counter rises exactly n times. */
static bool counted(struct raw *r, enum nbar_counter which, const void *bytes, size_t size,
		    uint32_t n)
{
	uint64_t before = raw_counter(r, which), now = before;

	for (uint32_t i = 0; i < n; i++) {
		throw(bytes, size);
		now = raw_await_counter(r, which, before + i + 1);
	}
	if (now != before + n)
		printf("# the counter went from %llu to %llu, not up by %u\n",
		       (unsigned long long)before, (unsigned long long)now, n);
	return now == before + n;
}

static void put32(uint8_t *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (8 * i));
}

/* Makes a frame to the member with this endpoint address, with the right handle and cookie. */
static void frame_to(const struct nbar_endpoint *endpoint, uint8_t type, uint32_t src,
		     uint32_t epoch, uint32_t slot, uint8_t frame[FRAME])
{
	memset(frame, 0, FRAME);
	frame[0] = 2;
	frame[1] = type;
	memcpy(frame + 4, endpoint->byte + 8, 4);  /* handle */
	memcpy(frame + 8, endpoint->byte + 24, 8); /* cookie */
	put32(frame + 16, src);
	put32(frame + 20, epoch);
	put32(frame + 24, slot);
	memcpy(frame + 36, endpoint->byte + 8, 4); /* the sender's: see member_begin */
}

/* Datagrams without a whole frame. test_token, test_nic_admin and test_nic_forged have the frames
 * that are refused. */
static void malformed(struct raw *r)
{
	static uint8_t big[2000];
	uint8_t frame[FRAME];

	frame_to(&adversary_endpoint[0], TOKEN, 1, 1, 0, frame);
	ok(counted(r, NBAR_COUNTER_frames_malformed, big, 0, 2), "frame: empty");
	ok(counted(r, NBAR_COUNTER_frames_malformed, frame, FRAME - 1, 2), "frame: cut off");
	ok(counted(r, NBAR_COUNTER_frames_malformed, big, sizeof(big), 2), "frame: long garbage");
	ok(others_work(), "all goes on");
}

/* The attacker knows the cookie, but is no member: it speaks in the name of rank 1. */
static void liars(struct raw *r)
{
	const uint64_t *word = &adversary_good[0].page->completion[0].word;
	uint32_t epoch = (uint32_t)__atomic_load_n(word, __ATOMIC_RELAXED);
	uint8_t frame[FRAME];

	raw_post(&adversary_good[0], 0, epoch + 1);
	for (uint8_t type = TOKEN; type <= SIGNAL; type++) {
		frame_to(&adversary_endpoint[0], type, 1, epoch + 1, 0, frame);
		put32(frame + 28, 1);
		put32(frame + 32, 1);
		ok(counted(r, NBAR_COUNTER_frames_bad, frame, FRAME, 2),
		   "frame: in the name of rank 1, type %u", type);
	}
	ok(__atomic_load_n(word, __ATOMIC_RELAXED) == epoch, "rank 0 still waits for rank 1");
	ok(others_work(), "all goes on");
}

/* Random frames, most with a valid header. Some reach a group of this test, whose barriers may
 * fail. */
static void frame_noise(struct raw *r)
{
	struct nbar_endpoint endpoint;
	struct raw a;
	uint8_t frame[FRAME];

	if (!ok(member_begin(&a, 99, &endpoint), "a victim"))
		return;
	for (int i = 0; i < 20000; i++) {
		frame_to(&endpoint, (uint8_t)(adversary_random() % 7), adversary_random() % 3,
			 adversary_random() % 4, adversary_random() % 3, frame);
		frame[28 + adversary_random() % 20] = (uint8_t)adversary_random();
		if (i % 4 == 0)
			frame[adversary_random() % FRAME] ^= (uint8_t)adversary_random();
		throw(frame, adversary_random() % 8 ? FRAME : adversary_random() % FRAME);
		if (i % 64 == 0)
			raw_post(&a, 0, (uint32_t)i / 64);
	}
	ok(raw_counter(r, NBAR_COUNTER_frames_bad) < UINT64_MAX && others_work(),
	   "20,000 frames of noise, and all goes on");
	raw_close(&a);
}

void adversary_frames(void)
{
	struct raw r;

	dial(&r, "n0");
	find_target(&r);
	malformed(&r);
	liars(&r);
	frame_noise(&r);
	close(wire);
	raw_close(&r);
}
