/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote.h - the pages of remote hosts, in a daemon with --attach: loads libnbar-rdma.so, and
 * pushes what the NICs write.
 *
 * Requests make and end the ports; the polling thread pushes, and takes the kicks.
 */
#ifndef NBAR_DAEMON_REMOTE_H
#define NBAR_DAEMON_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth.h"

#define REMOTE_TEXT 256u

struct remote;
struct nicd;
struct nicd_nic;

/* Listens at ADDRESS:PORT, which must be that of an RDMA device. auth: hosts must know this key, if
 * auth->hash is not NULL; it must outlive d. 0, or negative errno after
 * log_error(). */
int remote_open(struct nicd *d, const char *address, const struct wire_auth *auth);
/* Ends it, when no port is left. */
void remote_close(struct nicd *d);

/* NULL: there is no key. */
const struct wire_auth *remote_auth(const struct remote *r);

/* The socket that listens. */
int remote_socket(const struct remote *r);

/* The page of a port gets a copy at a remote host, whose control socket is sock. Its end of the
 * connection is *its; *mine is for the host. 0, or a negative errno with a text. */
int remote_join(struct nicd_nic *n, uint32_t port, int sock, const struct nbar_rdma_end *its,
		struct nbar_rdma_end *mine, char text[REMOTE_TEXT]);
void remote_leave(struct nicd_nic *n, uint32_t port);

/* Pass: the function push of the platform. */
bool remote_push(void *ctx, uint32_t port, const void *at, size_t n, uint32_t cell);

/* Polling thread: the descriptor that becomes readable when a host kicks; takes the kicks. */
int remote_descriptor(const struct remote *r);
void remote_take(struct remote *r);

#endif
