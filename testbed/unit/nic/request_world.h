/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_world.h - a NIC for tests of requests: its platform and its wire fail on demand, and two
 * clients send requests. For tests only; there is one world at a time.
 */
#ifndef TESTBED_REQUEST_WORLD_H
#define TESTBED_REQUEST_WORLD_H

#include "request.h"
#include "unit/unit.h"

/* A platform and a wire that fail on demand. */
struct request_world {
	struct wire_base wire;
	struct nbnic_device device;
	struct nbnic_client client, other;
	uint32_t blocks; /* blocks of memory that the NIC holds */
	uint32_t allocs; /* allocations that still succeed */
	bool no_random, events;
	uint32_t hide;   /* n: the n-th exclusive call from now finds no group in cell 0; 0: none */
	uint32_t traced; /* trace events so far */
	uint32_t looks;  /* looks at the processes of hosts so far */
	int page_error, events_error;
	uint32_t peers, peers_left; /* peers that the wire has begun; peers that it still takes */
	struct nbar_page copy;      /* of the remote host that is w.client */
	uint32_t pushes;
	uint64_t now;
	uint64_t in[NBAR_MESSAGE_MAX / 8];
	union {
		struct nbar_reply head;
		uint64_t word[NBAR_MESSAGE_MAX / 8];
	} out;
};
extern struct request_world w;

/* Before each test: makes a NIC with two clients. After each test: no memory or peer of these
 * clients may be left. */
int request_world_setup(void **state);
int request_world_teardown(void **state);
#define REQUEST_TEST(f) UNIT_IN(f, request_world_setup, request_world_teardown)

/* Sends a request and returns the status of the reply; checks the head of the reply. */
int request(struct nbnic_client *c, uint16_t op, const void *body, size_t length);

/* Sends a request and checks that the NIC refuses it: with this error, with a text that begins with
 * `words`, and with a reply that is only a head. */
#define refuses(c, op, body, size, error, words)                                          \
	do {                                                                              \
		assert_int_equal(request(c, op, body, size), -(error));                   \
		require(!strncmp(w.out.head.text, words, strlen(words)), "'%s' for '%s'", \
			w.out.head.text, words);                                          \
		assert_int_equal(w.out.head.length, sizeof(w.out.head));                  \
		assert_false((c)->gives_page || (c)->gives_events);                       \
	} while (0)

/* The body of the last reply. */
const void *body(void);

void port_open(struct nbnic_client *c, uint32_t port);

/* group(): a request to open a group. group_open() opens it for w.client. */
struct nbar_req_group_open group(const char *alg, uint32_t rank, uint32_t size);
struct nbar_rep_group_open group_open(const char *alg, uint32_t rank, uint32_t size);

#endif
