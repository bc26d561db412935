/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_hostnic.h - what libnbar and libnbar-hostnic.so share: an in-process NIC.
 *
 * The NIC is the same soft NIC, with the same control messages and pages, but no processor of its
 * own: threads that wait for it give it theirs, by poll. One thread of its own serves its control
 * sockets, and runs a pass now and then when nobody else does.
 */
#ifndef NBAR_HOSTNIC_H
#define NBAR_HOSTNIC_H

#include <stdint.h>

#define NBAR_HOSTNIC_VERSION 3u
#define NBAR_HOSTNIC_TEXT 512u /* bytes of a message, with its final zero */

/* The listening socket of an in-process NIC, for other processes of its user: a file of mode 0600
 * in a folder where nobody can replace it. Its name is a number, the socket id. */
#define NBAR_HOSTNIC_DIR "/dev/shm"
#define NBAR_HOSTNIC_SOCKET "nbar-%08x.sock"
#define NBAR_HOSTNIC_SOCKET_IDS 0x7fffffffu /* the highest */

struct nbar_hostnic;

struct nbar_hostnic_ops {
	uint32_t version; /* NBAR_HOSTNIC_VERSION */
	/*
	 * The NIC that this process has opened with the very same text, such as "wire=udp"; or,
	 * if there is none and make is not 0, a new one. To be closed as often as opened. Negative
	 * errno: text says why. -ENOENT: there is none.
	 */
	int (*open)(const char *spec, int make, struct nbar_hostnic **out,
		    char text[NBAR_HOSTNIC_TEXT]);
	void (*close)(struct nbar_hostnic *nic);
	/* A control socket to it; or negative errno. */
	int (*connect)(struct nbar_hostnic *nic);
	/* The socket id, by which other processes of the same user connect, as to a control socket.
	 * 0: there is none. */
	uint32_t (*socket_id)(const struct nbar_hostnic *nic);
	/* Looks at doorbells, wire and timers once, unless another thread just does. Never waits,
	 * and makes no system call but the wire's own, and the wake of a sleeper elsewhere. */
	void (*poll)(struct nbar_hostnic *nic);
};

/* The one symbol of the library. */
#define NBAR_HOSTNIC_SYMBOL "nbar_hostnic"
extern const struct nbar_hostnic_ops nbar_hostnic;

#endif
