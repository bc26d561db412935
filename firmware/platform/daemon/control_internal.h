/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_internal.h - what control.c, control_user.c (users), control_client.c (clients) and
 * control_listen.c (listening sockets) share. Everything here belongs to the control thread.
 */
#ifndef NBAR_DAEMON_CONTROL_INTERNAL_H
#define NBAR_DAEMON_CONTROL_INTERNAL_H

#include <pthread.h>

#include "control.h"
#include "rundir.h"

/* More clients than can own a port or be attached to one, so that a client that only reads
 * statistics always finds room. */
#define CONTROL_CLIENTS_MAX (2 * NBAR_PORTS_MAX + NBAR_ATTACHED_MAX)

enum control_source {
	CONTROL_STOP,
	CONTROL_LISTENER,
	CONTROL_GUEST, /* of control_admit: a client that is in no list yet */
	CONTROL_USER,
	CONTROL_CLIENT,
	CONTROL_WIRE,
	CONTROL_LOOK
};

/* A user with clients at the NICs of a daemon. */
struct control_user {
	enum control_source source; /* first: an epoll event points to it */
	int epoll;                  /* the sockets of its clients; a member of control.epoll */
	struct control *control;
	struct control_user *next;
	uint32_t uid;
	uint32_t nclient;
	uint32_t nfd; /* descriptors of this process that it takes up */
};

struct control_client {
	enum control_source source; /* first: an epoll event points to it */
	int fd;
	struct control_nic *at;
	struct control_client *next;
	struct control_user *user; /* NULL: of an in-process NIC */
	uint32_t nfd;              /* descriptors that it takes up */
	bool by_socket_id; /* of another process, at the in-process NIC of this one: it may only
			      attach */
	struct nbnic_client client;
	uint64_t heard_at; /* control.nheard at its last request */
};

struct control_wire {
	enum control_source source;
	struct wire_base *wire;
};

struct control_nic {
	enum control_source source;
	int fd;
	struct control *control;
	struct nicd_nic *nic;
	struct control_wire from_wire;
	uint32_t nclient;
	struct control_client *client;
	struct rundir_socket socket;
	unsigned socket_id; /* of an in-process NIC: NBAR_HOSTNIC_SOCKET; 0: there is none */
};

struct control {
	enum control_source source; /* of the stop descriptor */
	struct nicd *nicd;
	pthread_t thread;
	int epoll, stop_fd;
	bool in_process; /* in-process NICs: no thread polls them all the time */
	bool (*unused)(void *arg);
	void (*over)(void *arg);
	void *arg;
	struct control_user *user;
	uint32_t user_percent; /* of the descriptors: what one user may have; 0: all */
	uint32_t fds_own;      /* open when the thread started */
	int spare_fd;          /* closed to answer one more client when no descriptors are left */
	uint32_t alive_ms;     /* see control_config */
	enum control_source look; /* of nicd->look_fd: see look.c */
	uint64_t alive_at;
	void (*alive)(void);
	uint64_t nheard;
	uint32_t nnic;
	struct control_nic nic[NBAR_NICS_MAX];
	/* The current request and its reply. */
	union {
		struct nbar_request head;
		uint8_t byte[NBAR_MESSAGE_MAX];
	} in;
	union {
		struct nbar_reply head;
		uint8_t byte[NBAR_MESSAGE_MAX];
	} out;
};

/* control_user.c, the lowest layer. */

/* Events of fd go to source. */
int control_watch(struct control *k, int fd, void *source);
int control_watch_in(int epoll, int fd, void *source);

/* Returns the user with this uid, made if it is new; NULL: no memory or no descriptor.
 * control_user_put frees a user that has no client. */
struct control_user *control_user_get(struct control *k, uint32_t uid);
void control_user_put(struct control_user *u);

/* Notes that a client now takes up nfd descriptors. */
void control_user_count(struct control_client *c, uint32_t nfd);
/* Returns how many more descriptors a user may take up. */
uint32_t control_user_fds_left(const struct control_user *u);

/* control_client.c, above it. */

/* Serves one request of one client of a user. */
void control_user_serve(struct control_user *u);

/* Drop the idle client of a user: it neither has a port nor is attached to one, and its last
 * request is the oldest. The first function does so for the given user. The second selects the user
 * with the most descriptors among those with an idle client at this NIC (NULL: at any NIC). False:
 * no client is idle. */
bool control_user_drop_idle(const struct control_user *u);
bool control_drop_idle(const struct control *k, const struct control_nic *at);

/* A client begins (control_make_room has made room in the list), sends a request, and ends. */
void control_make_room(struct control_nic *at);
void control_client_add(struct control_client *c, uint32_t pid, uint32_t uid);
void control_client_read(struct control_client *c);
void control_client_drop(struct control_client *c);

/* look.c: looks at the processes of the hosts that others wait for. */
void control_look(struct control *k);

/* control_listen.c: makes the socket of a daemon's NIC, or of an in-process NIC if possible;
 * removes all sockets; takes a new client. */
int control_listen(struct control_nic *at, const struct control_config *config);
void control_listen_private(struct control_nic *at);
void control_listeners_close(struct control *k);
void control_arrival(struct control_nic *at);

#endif
