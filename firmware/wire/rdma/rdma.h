/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma.h - what the files of libnbar-rdma.so share; no other file includes it. See nbar_rdma.h.
 */
#ifndef NBAR_WIRE_RDMA_H
#define NBAR_WIRE_RDMA_H

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "nbar_rdma.h"

#define RDMA_WRITES 256u          /* pushes that may be on their way */
#define RDMA_WRITES_SIGNALLED 16u /* one of so many reports its completion */
#define RDMA_RECVS 512u           /* pushes with a cell that may wait here */
#define RDMA_INLINE 64u           /* a completion is one cache line */

union rdma_name {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct nbar_rdma {
	union rdma_name name; /* of this side; its IP address is the GID */
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	uint8_t port, gid_index, mtu;
	uint8_t gid[16];
	struct rdma_host *host; /* NULL: of a daemon */
};

struct nbar_rdma_link {
	struct nbar_rdma *device;
	void *arg;
	uint8_t *page;
	struct ibv_pd *pd; /* of this page alone: no other host can write to it */
	struct ibv_mr *mr;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct nbar_rdma_end mine, its;
	pthread_mutex_t lock; /* of what follows */
	uint64_t posted, done;
	uint64_t asked; /* the last push that reports its completion */
	bool running, broken;
};

/* device.c: reads ADDRESS:PORT. 0 or -EINVAL with a text. */
int rdma_name_read(const char *text, union rdma_name *out, char why[NBAR_RDMA_TEXT]);
socklen_t rdma_name_size(const union rdma_name *n);
/* Opens the device whose GID is the address d->name. */
int rdma_device_open(struct nbar_rdma *d, char text[NBAR_RDMA_TEXT]);
void rdma_device_close(struct nbar_rdma *d);

/* link.c: see nbar_rdma_ops. */
int rdma_join(struct nbar_rdma *d, struct nbar_page *page, void *arg, struct nbar_rdma_link **out,
	      struct nbar_rdma_end *mine, char text[NBAR_RDMA_TEXT]);
int rdma_start(struct nbar_rdma_link *l, const struct nbar_rdma_end *its);
void rdma_leave(struct nbar_rdma_link *l);
int rdma_push(struct nbar_rdma_link *l, const void *at, size_t n, uint32_t cell);
/* As rdma_push, with a word in place of that of the page. */
int rdma_push_word(struct nbar_rdma_link *l, size_t at, uint32_t word, uint32_t cell);
int rdma_arrived(struct nbar_rdma_link *l, uint64_t *mark);
/* Calls heard for each push with a cell that has come, and with NBAR_RDMA_NO_CELL for a link that
 * is broken. */
void rdma_heard(struct nbar_rdma *d, void (*heard)(void *arg, uint32_t cell, void *more),
		void *more);

/* hello.c: connects to a NIC of a daemon. *own: our own address. *tcp: for the caller to close,
 * even after an error; or -1. 0, or a negative errno with a text. */
int rdma_hello(const char *address, const char *nic, union rdma_name *own, int *tcp,
	       char text[NBAR_RDMA_TEXT]);

/* host.c */
int rdma_connect(const char *address, const char *nic, void (*wake)(void *arg, uint32_t cell),
		 struct nbar_rdma **out, int *sock, char text[NBAR_RDMA_TEXT]);
int rdma_host_join(struct nbar_rdma *d, struct nbar_page *page, void *arg, int asks,
		   struct nbar_rdma_link **out, struct nbar_rdma_end *mine,
		   char text[NBAR_RDMA_TEXT]);
int rdma_host_start(struct nbar_rdma_link *l, const struct nbar_rdma_end *its);
void rdma_host_end(struct nbar_rdma *d);
void rdma_host_forked(const struct nbar_rdma *d);

#endif
