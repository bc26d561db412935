/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_rdma.h - what libnbar, the daemon and libnbar-rdma.so share: ports of remote hosts.
 *
 * A remote host shares no memory with its NIC. Each side has a copy of the page: it writes its own
 * words there, and pushes them into the copy of the other side, by RDMA writes on one reliable
 * connection. The control messages go over TCP; a remote host gets them by a socket pair, like
 * messages of any other NIC.
 */
#ifndef NBAR_RDMA_H
#define NBAR_RDMA_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "nbar_abi.h"

#define NBAR_RDMA_VERSION 2u
#define NBAR_RDMA_SILENCE_S 8 /* the other side of the TCP connection is dead after so long */
#define NBAR_RDMA_TEXT 256u   /* bytes of a message, with its final zero */
#define NBAR_RDMA_NO_CELL 0xffffffffu /* a push that wakes nobody */
#define NBAR_RDMA_NO_MARK UINT64_MAX

struct nbar_rdma;      /* a port of an RDMA device, and what belongs to it */
struct nbar_rdma_link; /* a page with two copies */

/* Processes of a remote host that share a port also share its copy of the page. One of them has the
 * connection. The others write this into its pipe: push n bytes of the page, from `at` on; cell as
 * for a push. n 0: wait until all pushes have arrived. */
struct nbar_rdma_ask {
	uint32_t at, n, cell;
	/* Not 0: push `word` to `at`, whatever the page has there by then: the post of a later
	 * barrier, whose value comes behind this ask. */
	uint32_t has_word, word;
};

/* Each function that returns an int returns 0 or more, or a negative errno. Those with a text put
 * the reason there. */
struct nbar_rdma_ops {
	uint32_t version; /* NBAR_RDMA_VERSION */

	/* NIC: opens the RDMA device that has this address (ADDRESS:PORT). *sock listens there. */
	int (*listen)(const char *address, struct nbar_rdma **out, int *sock,
		      char text[NBAR_RDMA_TEXT]);
	/* Host: connects to this NIC of a daemon. *sock: the control socket, for the caller to
	 * close. wake(cell) is called by a thread of the library; after join also with
	 * NBAR_RDMA_NO_CELL, when the link has ended. */
	int (*connect)(const char *address, const char *nic, void (*wake)(void *arg, uint32_t cell),
		       struct nbar_rdma **out, int *sock, char text[NBAR_RDMA_TEXT]);
	/* Host: also ends the link. NIC: call it after all links have ended. */
	void (*close)(struct nbar_rdma *d);
	/* Host, in a child of fork(): closes the descriptors of the parent. */
	void (*forked)(const struct nbar_rdma *d);

	/* Registers a page, and makes its queue pair. *mine is for the other side, whose *its is
	 * for start. arg: for the functions that take the wakes. asks, of a host: the end of a
	 * pipe that its caller closes after the link has ended; from there a thread of the library
	 * takes struct nbar_rdma_ask. While it has one, page->asked is 1. */
	int (*join)(struct nbar_rdma *d, struct nbar_page *page, void *arg, int asks,
		    struct nbar_rdma_link **out, struct nbar_rdma_end *mine,
		    char text[NBAR_RDMA_TEXT]);
	/* Host: -EADDRNOTAVAIL if *its is not of the machine to which connect has connected. */
	int (*start)(struct nbar_rdma_link *l, const struct nbar_rdma_end *its);
	void (*leave)(struct nbar_rdma_link *l);

	/* Pushes n bytes of the page. cell: the other side hears of it; or NBAR_RDMA_NO_CELL. Any
	 * thread; never waits. Pushes arrive in order. -EAGAIN: too many are on their way;
	 * -ENOTCONN: the connection is broken. */
	int (*push)(struct nbar_rdma_link *l, const void *at, size_t n, uint32_t cell);
	/* Whether all pushes before the first call with this *mark have arrived: 1 or 0, or
	 * -ENOTCONN. *mark is NBAR_RDMA_NO_MARK at first. */
	int (*arrived)(struct nbar_rdma_link *l, uint64_t *mark);

	/* NIC: the descriptor becomes readable when a push with a cell comes; take then calls
	 * heard(arg) for each, with the arg of join. */
	int (*descriptor)(const struct nbar_rdma *d);
	void (*take)(struct nbar_rdma *d, void (*heard)(void *arg));
};

/* The GID of an IP address. */
static inline void nbar_rdma_gid(const struct sockaddr *name, uint8_t gid[16])
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };

	memset(gid, 0, 16);
	if (name->sa_family == AF_INET6) {
		memcpy(gid, &((const struct sockaddr_in6 *)(const void *)name)->sin6_addr, 16);
	} else if (name->sa_family == AF_INET) {
		memcpy(gid, v4, sizeof(v4));
		memcpy(gid + sizeof(v4),
		       &((const struct sockaddr_in *)(const void *)name)->sin_addr, 4);
	}
}

/* Each side connects its queue pair only to the machine with which it talks by TCP: nobody makes it
 * send to another. True: this GID is that machine's. */
static inline bool nbar_rdma_gid_is_of(const uint8_t gid[16], int tcp)
{
	union {
		struct sockaddr any;
		struct sockaddr_in6 in6;
	} name;
	socklen_t size = sizeof(name);
	uint8_t its[16];

	if (getpeername(tcp, &name.any, &size) < 0)
		return false;
	nbar_rdma_gid(&name.any, its);
	return memcmp(its, gid, sizeof(its)) == 0;
}

#define NBAR_RDMA_LIBRARY "libnbar-rdma.so.0"
/* The one symbol of the library. */
#define NBAR_RDMA_SYMBOL "nbar_rdma"
extern const struct nbar_rdma_ops nbar_rdma;

#endif
