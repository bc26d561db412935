/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lent.h - what the daemon and its programs in the kernel share.
 *
 * The daemon lends a group to the programs: they step its state for each token and each post, until
 * the daemon takes it back for rare work. Either the daemon or the programs own the state.
 */
#ifndef KERNEL_LENT_H
#define KERNEL_LENT_H

#include <linux/bpf.h>

#include "engine.h"
#include "plan.h"
#include "token.h"
#include "value.h"

#define KERNEL_GROUPS 1024u       /* handles with a larger index stay with the daemon */
#define KERNEL_VALUES 256u        /* so do those with values */
#define KERNEL_ETHER 14u          /* bytes of headers before a frame of kind 2, ... */
#define KERNEL_UDP4 42u           /* ... and of kind 3: with IPv4 and UDP, ... */
#define KERNEL_UDP6 62u           /* ... or with IPv6 */
#define KERNEL_UDP_PORT 34997u    /* where start sockets send to, ... */
#define KERNEL_UDP_TO 0xe0000073u /* ... and the group, local to the link: it needs no route */
#define KERNEL_MARK 0x2b3d1173u   /* of all that start sockets send: hosts cannot change it */

/* A state in the kernel: struct nbfw_state, whose bits have NBFW_FIXED_WORDS words there. */
#define KERNEL_STATE_SIZE (24u + 4 * NBFW_FIXED_WORDS)

enum { KERNEL_WAKE = 1, KERNEL_TAKE, KERNEL_TIMEOUT }; /* what the daemon shall do: nbnic_want */

struct kernel_counts {
	uint32_t completed, sent, received, duplicate, stale, bad;
};

/* Where these are in a datagram: its addresses, of `ip` bytes each, ports, and sum. */
#define KERNEL_AT_IP(headers, ip) ((headers)-8 - 2 * (ip))
#define KERNEL_AT_PORT(headers) ((headers)-8)
#define KERNEL_AT_SUM(headers) ((headers)-2)
#define KERNEL_IP4 4u
#define KERNEL_IP6 16u

/* As a NIC of kind 3 has it at the begin of its address. */
struct kernel_address {
	uint16_t version, port;
	uint32_t ip[4];
};

/* Bytes: the programs take values of whole words, of which the sum of a datagram is made. */
#define KERNEL_VALUE_UNIT 4u

/* This NIC, and the cookie of its socket. */
struct kernel_self {
	struct kernel_address at;
	uint64_t cookie;
};

/* The headers of a frame of the daemon, and when it left. */
struct kernel_route {
	uint64_t time;
	uint8_t header[KERNEL_UDP6 + 2]; /* no padding follows */
};

/* A send of the plan: its frame, all but the epoch. */
struct kernel_send {
	uint32_t sum; /* kind 3: of the frame with its pseudo-header, not inverted */
	uint8_t step; /* of the plan */
	uint8_t pad;
	/* Here, all words that follow its first 2 bytes are aligned. */
	uint8_t frame[KERNEL_UDP6 + NBFW_FRAME_SIZE];
};

struct kernel_group {
	struct bpf_spin_lock lock; /* of all that changes while the group is lent */
	uint32_t lent;
	struct bpf_timer timer;
	uint64_t first_ns; /* without progress for this time, the daemon takes the group back */
	uint64_t cookie;
	uint32_t handle, port, cell;
	uint32_t values;  /* 0: its barriers carry none; or 1 + where the host finds results */
	uint32_t posted;  /* as the host has told */
	uint32_t sleeper; /* the host wants a wake when the barrier completes */
	uint32_t ticking; /* the timer runs; it has seen ... */
	uint32_t tick_epoch, tick_step;
	struct kernel_counts counts;
	/* Begin of the address of the NIC that fills each slot, ... */
	_Alignas(8) uint8_t source[NBFW_FIXED_SLOTS][sizeof(struct kernel_address)];
	uint32_t sender[NBFW_FIXED_SLOTS]; /* ... and its member */
	struct kernel_send send[NBFW_FIXED_SENDS];
	struct nbfw_fixed_plan plan;
	_Alignas(8) uint8_t state[KERNEL_STATE_SIZE];
};

/* Bytes of struct nbfw_values there. */
#define KERNEL_VALUES_SIZE (offsetof(struct nbfw_values, memory) + NBFW_FIXED_MEMORY)

/* The packet by which the daemon lends and takes: the program `hand` turns a request into a reply.
 */
struct kernel_hand {
	uint8_t ether[16];
	uint32_t index;
	uint32_t lend; /* 1: takes `state`; 0: gives it back */
	uint64_t first_ns, left_ns;
	uint32_t sleeper;
	struct kernel_counts counts;
	_Alignas(8) uint8_t state[KERNEL_STATE_SIZE];
};

#endif
