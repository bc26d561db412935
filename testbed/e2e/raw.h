/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw.h - a client of nbar-nicd without libnbar: it sends any bytes, valid or not. Uses only the
 * ABI header and libc, nothing of libnbar or the firmware.
 */
#ifndef NBAR_TEST_RAW_H
#define NBAR_TEST_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "nbar_abi.h"

#define RAW_NO_REPLY (-10000) /* the daemon closed the connection, or does not answer */

struct raw {
	int fd;
	struct nbar_page *page; /* NULL: no port */
	uint32_t port;
	struct {
		struct nbar_reply head;
		uint8_t body[NBAR_MESSAGE_MAX];
	} reply;
};

/* Connects to RUN_DIR/NIC.sock; later calls wait at most 20 s for a reply. False: it failed. */
int raw_dial(struct raw *r, const char *run_dir, const char *nic);
void raw_close(struct raw *r);

/* Sends these bytes as one message. 0 or negative errno. */
int raw_say(struct raw *r, const void *bytes, size_t n);
/* Asks for the socket of a poller of cell 0. */
int raw_say_events(struct raw *r);

/* Receives a reply and returns its status. RAW_NO_REPLY: there is none, or it is not
 * well-formed. */
int raw_hear(struct raw *r);

/* Sends a correct request. 0 or negative errno. */
int raw_request(struct raw *r, enum nbar_op op, const void *body, size_t n);
/* The same, and receives its reply. */
int raw_ask(struct raw *r, enum nbar_op op, const void *body, size_t n);

/* Opens a port and maps its page. */
int raw_port_open(struct raw *r, uint32_t port);

/* Opens a group with the plan of an algorithm; the reply is in r->reply. */
int raw_group_open(struct raw *r, const char *alg, uint32_t rank, uint32_t size, uint32_t tag);

/* The same, with values of up to value_max bytes. */
int raw_group_open_values(struct raw *r, const char *alg, uint32_t rank, uint32_t size,
			  uint32_t tag, uint32_t value_max);

int raw_group_connect(struct raw *r, uint32_t cell, const struct nbar_endpoint *endpoint,
		      uint32_t n);
int raw_group_close(struct raw *r, uint32_t cell);

/* A counter of the NIC that r is connected to. */
uint64_t raw_counter(struct raw *r, enum nbar_counter which);

/* Like raw_counter, but waits at most 20 s until the counter has reached `least`. */
uint64_t raw_await_counter(struct raw *r, enum nbar_counter which, uint64_t least);

/* Arrives at barrier `epoch` in a cell. */
void raw_post(struct raw *r, uint32_t cell, uint32_t epoch);

/* Waits at most 20 s until the cell has completed `epoch` or failed. Returns the completion
 * word. */
uint64_t raw_await(struct raw *r, uint32_t cell, uint32_t epoch);

/* Starts the daemon of $BUILD with these arguments after --run-dir. Returns its pid when nnic NICs
 * are ready; 0: it did not start. */
pid_t raw_daemon_start(const char *run_dir, uint32_t nnic, const char *const *args);

/* Sends the daemon a signal (0: none) and waits for its end. Returns the status of waitpid. */
int raw_daemon_end(pid_t pid, int sig);

/* One line of TAP; its end, and the exit status of the program. */
__attribute__((format(printf, 2, 3))) bool ok(bool pass, const char *format, ...);
int ok_end(void);

#endif
