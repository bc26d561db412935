/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bared.h - the control BAR: what the host process nbar-bared and the image share.
 *
 * Both sides are one release and trust each other, as a driver and the firmware of its device do;
 * clients never see this memory. Three things are in it: the configuration (the host process writes
 * it before the start), one call at a time (a message in, a reply out), and counters of wakes.
 *
 * A call: the host process fills in `call` and `in`, then adds 1 to call.seq and rings the bell,
 * one byte on the UART. The NIC answers in `answer` and `out`, stores call.seq in answer.seq and
 * rings back. A wake: the NIC adds 1 to woken[port][cell] and rings; the host process compares this
 * number with the number that it saw last. So no side has a queue that could overflow, and the next
 * byte repairs the loss of a byte.
 */
#ifndef BARED_H
#define BARED_H

#include <stdint.h>

#include "nbar_abi.h"

#define BARED_MAGIC 0x4252424eu /* "NBRB" as bytes in memory */
#define BARED_VERSION 1u
#define BARED_PORTS_MAX 8u    /* page BARs, one PCI device each */
#define BARED_CLIENTS_MAX 32u /* connections that the NIC knows at a time */
#define BARED_CELLS 64u       /* cells a port that can be woken; the image has fewer groups */
#define BARED_RANDOM 8u       /* random words that come with each call */

/* PCI devices on bus 0 of the machine: the control BAR, then the pages. */
#define BARED_PCI_CONTROL 1u
#define BARED_PCI_PAGE 2u

/* BARs have sizes that are powers of two. */
#define BARED_CONTROL_BYTES 262144u
#define BARED_PAGE_BYTES 262144u

enum bared_state {
	BARED_STARTING = 0,
	BARED_READY = 1,
	BARED_FAILED = 2, /* text says why; the machine halts */
	BARED_STOPPED = 3 /* after BARED_STOP; the machine halts */
};

enum bared_op {
	BARED_CLIENT_BEGIN = 1, /* status 0, or -NBAR_ENOMEM */
	BARED_CLIENT_END = 2,
	BARED_REQUEST = 3, /* in: a message of the control socket; out: its reply */
	BARED_STOP = 4     /* all groups end as NIC_DOWN; the machine halts a little later */
};

struct bared_call {
	uint32_t seq;
	uint32_t op;        /* enum bared_op */
	uint32_t client;    /* below BARED_CLIENTS_MAX; the host process gives out the numbers */
	uint32_t length;    /* of the message in `in` ... */
	uint32_t truncated; /* ... 1: the message was longer */
	uint32_t pid, uid;  /* BARED_CLIENT_BEGIN: credentials, as the kernel told them */
	uint32_t reserved;
	uint64_t random[BARED_RANDOM]; /* fresh with each call */
};

struct bared_answer {
	uint32_t seq;
	int32_t status;
	uint32_t length; /* of the reply in `out` */
	uint32_t page;   /* 1 + the port whose page goes with the reply; 0: none */
};

struct bared_control {
	/* The host process, before the start. */
	uint32_t magic, version;
	uint32_t nport; /* page BARs */
	uint32_t pid;   /* of the host process */
	uint64_t pull_ns, budget_ns;
	char name[NBAR_NAME_MAX];
	/* The NIC. */
	uint32_t state; /* enum bared_state; written after text */
	uint32_t reserved;
	char text[112]; /* BARED_READY: its address; BARED_FAILED: why */
	struct bared_call call;
	struct bared_answer answer;
	uint32_t woken[BARED_PORTS_MAX][BARED_CELLS];
	_Alignas(64) uint8_t in[NBAR_MESSAGE_MAX];
	_Alignas(64) uint8_t out[NBAR_MESSAGE_MAX];
};
_Static_assert(sizeof(struct bared_control) <= BARED_CONTROL_BYTES, "the control BAR has room");
_Static_assert(sizeof(struct nbar_page) <= BARED_PAGE_BYTES, "a page BAR has room");

#endif
