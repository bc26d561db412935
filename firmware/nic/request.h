/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h - what the files request*.c share; no other file includes it.
 *
 * All of it runs on the side of requests. Functions named run_* are handed to nbnic_request_call,
 * which keeps them apart from the pass; each is bounded. Each value of a request is checked before
 * its use. A refusal names the fault and the remedy.
 */
#ifndef NBNIC_REQUEST_H
#define NBNIC_REQUEST_H

#include "device.h"

/* The request at hand and its reply. */
struct nbnic_request {
	struct nbnic_client *client;
	struct nbnic_device *device;
	const void *body;
	uint32_t length; /* of the body */
	struct nbar_reply *reply;
};

/* Turns the reply into a refusal, with a text for users (format: see text.h). Returns error, which
 * the caller returns as the status of the reply. */
__attribute__((format(printf, 3, 4))) int nbnic_request_fail(struct nbnic_request *r, int error,
							     const char *format, ...);

/* Adds size zero bytes to the reply and returns their address. */
void *nbnic_request_reply(struct nbnic_request *r, size_t size);

/* Runs fn(arg, now) apart from the pass, then frees what groups have released. */
void nbnic_request_call(struct nbnic_device *d, nbnic_fn *fn, void *arg);

/* The port is that of a remote host: tells it that the request `seq` is done. */
void nbnic_request_settle(struct nbnic_client *c, uint32_t seq);

/* One for each op. Returns the status of the reply: 0, or what nbnic_request_fail returned. */
int nbnic_request_port_open(struct nbnic_request *r);
int nbnic_request_port_attach(struct nbnic_request *r);
int nbnic_request_group_open(struct nbnic_request *r);
int nbnic_request_group_connect(struct nbnic_request *r);
int nbnic_request_group_close(struct nbnic_request *r);
int nbnic_request_group_attach(struct nbnic_request *r);
int nbnic_request_group_detach(struct nbnic_request *r);
int nbnic_request_group_events(struct nbnic_request *r);
int nbnic_request_group_abort(struct nbnic_request *r);
int nbnic_request_group_reach(struct nbnic_request *r);
int nbnic_request_nic_stat(struct nbnic_request *r);
int nbnic_request_group_stat(struct nbnic_request *r);
int nbnic_request_nic_latency(struct nbnic_request *r);
int nbnic_request_group_latency(struct nbnic_request *r);

/* Check whether the user of the request may have one more port, one more attached process, or one
 * more group of this size. 0, or the refusal. */
int nbnic_user_check_port(struct nbnic_request *r);
int nbnic_user_check_attach(struct nbnic_request *r, const struct nbnic_client *owner);
int nbnic_user_check_group(struct nbnic_request *r, size_t bytes);

/* Returns the index of the user's account, or of a free account, which then belongs to the user.
 * NBNIC_USERS_MAX: all accounts have ports. Only within platform->exclusive. */
uint32_t nbnic_user_find(struct nbnic_device *d, uint32_t uid);

/* Whether an attached client holds a cell. */
bool nbnic_client_holds(const struct nbnic_client *c, uint32_t cell);

/* Writes the reply to a client that has opened the port of owner, or attached to it. */
void nbnic_request_port_reply(struct nbnic_request *r, const struct nbnic_client *owner);

/* Closes the port of a client. The members that wait for its groups get the cause. */
void nbnic_client_port_close(struct nbnic_client *c, uint8_t cause);

/* An attached client ends, and the groups that it still holds fail for this cause. */
void nbnic_client_detach(struct nbnic_client *c, uint8_t cause);

/* Detaches all clients that are attached to the port of c. */
void nbnic_client_detach_all(struct nbnic_client *c);

#endif
