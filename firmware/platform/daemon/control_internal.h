/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_internal.h - what control.c, control_user.c (users), control_client.c (clients),
 * control_thread.c (threads of users) and control_listen.c (listening sockets) share.
 *
 * A daemon has a thread for each user that has clients. It alone receives, sends and closes on the
 * sockets of these clients: how long that takes is the choice of the client, who may wait for a
 * socket in thousands of places, or send descriptors whose last close sleeps. All else belongs to
 * the thread that has the turn. Threads get the turn in the order in which they ask for it.
 */
#ifndef NBAR_DAEMON_CONTROL_INTERNAL_H
#define NBAR_DAEMON_CONTROL_INTERNAL_H

#include <pthread.h>
#include <sys/socket.h>

#include "control.h"
#include "rundir.h"

/* More clients than can own a port or be attached to one, so that a client that only reads
 * statistics always finds room. */
#define CONTROL_CLIENTS_MAX (2 * NBAR_PORTS_MAX + NBAR_ATTACHED_MAX)

#define CONTROL_UID_REMOTE 0xfffffffeu /* the user of all remote hosts: no process has it */

enum control_source {
	CONTROL_STOP,
	CONTROL_LISTENER,
	CONTROL_GUEST, /* of control_admit: a client that is in no list yet */
	CONTROL_CLIENT,
	CONTROL_WIRE,
	CONTROL_LOOK,
	CONTROL_REMOTE /* a remote host connects */
};

/* A user may have this many clients more than its share while its thread closes their sockets. */
#define CONTROL_CLOSING_MAX 64u

#define CONTROL_BURST 64u /* clients that the control thread takes in one turn */

/* A request and its reply. */
struct control_room {
	union {
		struct nbar_request head;
		uint8_t byte[NBAR_MESSAGE_MAX];
	} in;
	union {
		struct nbar_reply head;
		uint8_t byte[NBAR_MESSAGE_MAX];
	} out;
};

/* A user with clients at the NICs of a daemon, and its thread. */
struct control_user {
	int epoll; /* the sockets of its clients, and waker.fd */
	struct control *control;
	struct control_user *next;
	uint32_t uid;
	uint32_t nclient;
	uint32_t nfd; /* descriptors of this process that it takes up */
	uint32_t nclosing;
	uint32_t nnap;                  /* waits of the control thread since nclosing was 0 */
	struct control_client *closing; /* dropped clients, for the thread to close */
	struct waker waker;             /* its thread wakes the hosts of its ports */
	struct control_room room;       /* of its thread */
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
	bool busy;         /* its thread has a request of it: it is not idle */
	bool dropped;      /* only its socket is left */
	bool owes;         /* it has been sent a descriptor, and may not have read it */
	struct control_remote *remote; /* malloc; NULL: a client of this machine */
	struct control_nic *goes_to;   /* the NIC that a remote host has just named; else NULL */
	struct nbar_reply *refusal;    /* to be sent before its socket is closed; NULL: none */
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
	void (*ended)(void *arg);
	void *arg;
	struct control_user *user;
	struct control_user *nobody; /* closes what no user has, or more than its user may have */
	uint32_t nnap;               /* for a descriptor of a dropped client */
	uint32_t nuser;              /* threads of users, `nobody` included */
	bool over;                   /* the NICs are stopped: threads only close sockets */
	pthread_mutex_t lock;        /* of the turn */
	pthread_cond_t turn_changed, user_ended;
	uint64_t turn, turn_next;
	uint32_t user_percent; /* of the descriptors: what one user may have; 0: all */
	uint32_t fds_own;      /* open when the thread started */
	int spare_fd;          /* closed to answer one more client when no descriptors are left */
	uint32_t alive_ms;     /* see control_config */
	enum control_source look; /* of nicd->look_fd: see look.c */
	enum control_source remote;
	uint64_t alive_at;
	void (*alive)(void);
	uint64_t nheard;
	uint32_t nnic;
	struct control_nic nic[NBAR_NICS_MAX];
	struct control_room room; /* of the control thread */
};

/* control_user.c, the lowest layer. */

/* Events of fd go to source. */
int control_watch(struct control *k, int fd, void *source);
int control_watch_in(int epoll, int fd, void *source);

/* A thread takes the turn before it uses a NIC or a list, and never waits for a client meanwhile.
 */
void control_turn_take(struct control *k);
void control_turn_give(struct control *k);

/* Lets the thread of a user close the socket of a client that is in no list, and free it. */
void control_user_close(struct control_user *u, struct control_client *c);

/* Lets the thread of a user look for wakes to do, and for sockets to close. */
void control_user_wake(struct control_user *u);

/* Notes that a client now takes up nfd descriptors. */
void control_user_count(struct control_client *c, uint32_t nfd);
/* Returns how many more descriptors a user may take up. */
uint32_t control_user_fds_left(const struct control_user *u);

/* control_client.c, above it. */

/* Drop the idle client of a user: it neither has a port nor is attached to one, and its last
 * request is the oldest. Remote hosts that have not proven themselves go first. The first function
 * does so for the given user. The second selects the user with the most descriptors among those
 * with an idle client at this NIC (NULL: at any NIC). False: no client is idle. */
bool control_user_drop_idle(const struct control_user *u);
bool control_drop_idle(const struct control *k, const struct control_nic *at);

/* A client begins (control_make_room has made room in the list), sends a request, and ends.
 * control_client_read returns false if it has dropped the client. */
void control_make_room(struct control_nic *at);
void control_client_add(struct control_client *c, uint32_t pid, uint32_t uid);
bool control_client_read(struct control_client *c, struct control_room *room);
void control_client_refuse(struct control_client *c, int status, const char *text);
void control_client_drop(struct control_client *c);

/* control_thread.c, above it. */

/* Returns the user with this uid, made with its thread if it is new; NULL: no memory, no thread or
 * no descriptor. The thread frees a user that has no client. */
struct control_user *control_user_get(struct control *k, uint32_t uid);
/* The same, in no list. */
struct control_user *control_user_new(struct control *k, uint32_t uid);

/* Waits for the end of all threads of users, but not for those that a client delays. False: some
 * are left. */
bool control_users_end(struct control *k);

/* look.c: looks at the processes of the hosts that others wait for. */
void control_look(struct control *k);

/* control_remote.c: begins a remote host, which has connected (false: no memory). Reads its next
 * message; the result is that of recv, with EAGAIN while the message is not whole. Answers what
 * only remote hosts request, and refuses what they may not (true). Until a host has proven itself,
 * it costs its socket, its memory, and two short requests: the polling thread does not wake. A
 * client of this machine is proven. */
bool control_remote_begin(struct control_client *c);
bool control_remote_is_proven(const struct control_client *c);
bool control_remote_is_over(const struct control_client *c); /* its last reply has been made */
ssize_t control_remote_receive(struct control_client *c, struct control_room *room);
bool control_remote_request(struct control_client *c, struct control_room *room);

/* control_listen.c: makes the socket of a daemon's NIC, or of an in-process NIC if possible;
 * removes all sockets; takes a new client; takes a remote host. */
int control_listen(struct control_nic *at, const struct control_config *config);
void control_listen_private(struct control_nic *at);
void control_listeners_close(struct control *k);
void control_arrival(struct control_nic *at);
void control_remote_arrival(struct control *k);

#endif
