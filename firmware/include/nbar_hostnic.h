/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_hostnic.h - what libnbar and libnbar-hostnic.so share: an in-process NIC.
 *
 * An in-process NIC is the soft NIC of the daemon, with the same control messages and pages, but
 * without a processor of its own: the threads that wait for it run its passes, by poll. Another
 * thread serves its control sockets, and runs a pass now and then while no other thread does.
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
	 * Sets *out to the NIC that this process has opened with the very same spec, such as
	 * "wire=udp". If there is no such NIC: makes one if `make` is not 0, else returns -ENOENT.
	 * Close a NIC as often as you open it. Returns 0, or a negative errno with the reason in
	 * `text`.
	 */
	int (*open)(const char *spec, int make, struct nbar_hostnic **out,
		    char text[NBAR_HOSTNIC_TEXT]);
	void (*close)(struct nbar_hostnic *nic);
	/* Returns a control socket to the NIC, or a negative errno. */
	int (*connect)(struct nbar_hostnic *nic);
	/* Returns the socket id, by which other processes of the same user connect; 0: the NIC has
	 * no socket id. */
	uint32_t (*socket_id)(const struct nbar_hostnic *nic);
	/* Looks at doorbells, wire and timers once, unless another thread does so at this moment.
	 * Never waits. Makes only the system calls of the wire, and those that wake a sleeper. */
	void (*poll)(struct nbar_hostnic *nic);
};

/* The one symbol of the library. */
#define NBAR_HOSTNIC_SYMBOL "nbar_hostnic"
extern const struct nbar_hostnic_ops nbar_hostnic;

#endif
