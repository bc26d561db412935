/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_internal.h - what control.c (sockets, clients) and request*.c (what they ask for) share.
 * Everything here belongs to the control thread.
 */
#ifndef NBAR_PORT_CONTROL_INTERNAL_H
#define NBAR_PORT_CONTROL_INTERNAL_H

#include <pthread.h>
#include <sys/un.h>

#include "control.h"

/* Room for more than can have or be attached to a port: who only looks at statistics always finds
 * some. */
#define CONTROL_CLIENTS_MAX (2 * NBAR_PORTS_MAX + NBAR_ATTACHED_MAX)

enum control_source {
	CONTROL_STOP,
	CONTROL_LISTENER,
	CONTROL_GUEST, /* of control_admit: a client that is in no list yet */
	CONTROL_CLIENT,
	CONTROL_WIRE
};

struct control_client {
	enum control_source source; /* first: what an epoll event points to */
	int fd;
	struct control_nic *at;
	struct control_client *next;
	struct port *port;  /* NULL: none open. Only number, pid and uid are ours to read. */
	bool by_door;       /* another process's, at a NIC inside this one: it may attach */
	uint32_t ngroup;    /* open on it */
	uint64_t secret[2]; /* of it */
	struct control_client *owner; /* NULL: not attached. Whose port it is attached to ... */
	uint64_t held[NBAR_GROUPS_MAX / 64]; /* ... and to which cells, a bit each */
	uint32_t pid, uid;
	uint64_t heard_at; /* control.nheard when it last said something */
};

struct control_wire {
	enum control_source source;
	struct wire_base *wire;
};

struct control_nic {
	enum control_source source;
	int fd;
	struct control *control;
	struct nicd_nic *nic; /* only name and wire are ours to read, all else by control_call */
	struct control_wire from_wire;
	uint32_t nclient, nattached;
	struct control_client *client;
	struct control_client *owner[NBAR_PORTS_MAX];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	unsigned door; /* of a NIC of the process's own: 1 + the number that is its socket's name */
};

struct control {
	enum control_source source; /* of the stop descriptor */
	struct nicd *nicd;
	const struct tune *tune;
	pthread_t thread;
	int epoll, stop_fd;
	bool stopped;
	bool own; /* the NICs are polled by who has time */
	bool (*unused)(void *arg);
	void (*over)(void *arg);
	void *arg;
	int spare_fd; /* given up to answer one more client when there are no descriptors left */
	uint64_t nheard;
	uint32_t nblock; /* blocks of groups that the NICs have */
	uint32_t ngroup; /* open groups: all other blocks linger and will be released */
	uint32_t nnic;
	struct control_nic nic[NBAR_NICS_MAX];
	/* The request at hand and its reply. */
	union {
		struct nbar_request head;
		uint8_t byte[NBAR_MESSAGE_MAX];
	} in;
	union {
		struct nbar_reply head;
		uint8_t byte[NBAR_MESSAGE_MAX];
	} out;
	int out_fd; /* goes along as SCM_RIGHTS; -1: none */
};

/* Has fn(arg, now) run by the polling thread, and frees what the NICs have released. */
void control_call(struct control *k, mailbox_fn *fn, void *arg);

/* control.c: events of fd go to source; a client comes into the list, for which there is room; it
 * is sent the reply at hand (false: it is gone, or does not read what it is sent). */
int control_watch(struct control *k, int fd, void *source);
void control_make_room(struct control_nic *at);
void control_client_add(struct control_client *c);
bool control_client_send(struct control_client *c);

/* control_listen.c: makes the socket of a NIC, or, if it can, of one of the process's own; removes
 * all; somebody is at one. */
int control_listen(struct control_nic *at, const struct control_config *config);
void control_door(struct control_nic *at);
void control_listeners_close(struct control *k);
void control_arrival(struct control_nic *at);

/* Answers the request of length bytes in control.in (if truncated, its beginning): writes
 * control.out and out_fd. */
void request_answer(struct control_client *c, size_t length, bool truncated);

/* Parts of request_answer: each returns 0 or what request_fail returned. */
int request_group_open(struct control_client *c, const void *body, size_t length);
int request_group_connect(struct control_client *c, const void *body, size_t length);
int request_group_close(struct control_client *c, const void *body);
int request_group_stat(struct control_client *c, const void *body);

/* Polling thread: the group in a cell of a port, or NULL. */
static inline struct nbnic_group *request_group_in(const struct port *p, uint32_t cell)
{
	return cell < NBAR_GROUPS_MAX ? p->group[cell] : NULL;
}

/* Makes the reply one of failure, for people too: what, where, and what to do next. */
__attribute__((format(printf, 3, 4))) int request_fail(struct control *k, int error,
						       const char *format, ...);

/* Adds size zero bytes to the reply and returns where. */
void *request_reply(struct control *k, size_t size);

int request_port_attach(struct control_client *c, const void *body);
int request_group_attach(struct control_client *c, const void *body);

/* What the owner of a port gets when it has opened it, and what one does who attaches. */
void request_port_reply(struct control_client *c, const struct control_client *owner);

/* An attached client closes a group for itself. */
int request_group_let_go(struct control_client *c, const void *body);

/* An attached client ends, and the groups that it still holds with it. */
void request_detach(struct control_client *c);

/* Whoever is attached to the port of c no longer is. */
void request_detach_all(struct control_client *c);

/* Closes the port of a client: cause is for those who wait for its groups. */
void request_port_close(struct control_client *c, uint8_t cause);

#endif
