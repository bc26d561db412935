/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_listen.c - how clients connect to a NIC: to a daemon's NIC by its control socket; to an
 * in-process NIC by one end of a socket pair, or, from another process, by its private listening
 * socket.
 *
 * Called by the control thread. Any thread may call control_admit; control_listen and
 * control_listen_private run before there is a control thread.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control_internal.h"
#include "daemon.h"
#include "log.h"
#include "nbar_hostnic.h"
#include "remote.h"

#define ID_BITS 9u /* low bits of a socket id, random; the other bits are the process id */
#define NAMES_TRIED 16
/* Times that the control thread waits 1 ms for sockets that another thread closes: until it drops
 * the next client, and until it refuses clients of a user whose sockets are still not closed. */
#define NAPS_MAX 50u
#define LOOKS_MAX 4096u /* entries of the folder that the search for old sockets reads */
_Static_assert(NBAR_HOSTNIC_SOCKET_IDS >> ID_BITS >= (1u << 22) - 1, "Linux's highest process");

int control_listen(struct control_nic *at, const struct control_config *config)
{
	int rc;

	at->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (at->fd < 0) {
		rc = -errno;
		log_error("control socket of %s: %s", at->nic->device.name, strerror(-rc));
		return rc;
	}
	rc = rundir_bind(config->run_dir, at->nic->device.name, at->fd, &at->socket);
	if (rc < 0)
		return rc;
	/* Nobody can connect before listen(), so the permissions are right from the start. */
	if ((config->group == (gid_t)-1 || chown(at->socket.path, (uid_t)-1, config->group) == 0) &&
	    chmod(at->socket.path, config->mode) == 0 && daemon_listen(at->fd) == 0 &&
	    control_watch(at->control, at->fd, at) == 0)
		return 0;
	rc = -errno;
	log_error("control socket %s: %s", at->socket.path, strerror(errno));
	return rc;
}

/* The path of the listening socket with this id. */
static void path_of(unsigned id, struct rundir_socket *out)
{
	snprintf(out->path, sizeof(out->path), NBAR_HOSTNIC_DIR "/" NBAR_HOSTNIC_SOCKET, id);
}

/* Removes the sockets of killed processes of this user. */
static void remove_left_behind(void)
{
	DIR *d = opendir(NBAR_HOSTNIC_DIR);
	struct rundir_socket s;
	unsigned id = 0, n = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e && n < LOOKS_MAX; e = readdir(d), n++) {
		/* If the name has no id, that of the last one is not its name. */
		(void)sscanf(e->d_name, NBAR_HOSTNIC_SOCKET, &id);
		path_of(id, &s);
		if (strcmp(s.path + sizeof(NBAR_HOSTNIC_DIR), e->d_name) == 0 &&
		    kill((pid_t)(id >> ID_BITS), 0) < 0 && errno == ESRCH &&
		    rundir_socket_is_stale(s.path, 0))
			unlink(s.path);
	}
	if (d)
		closedir(d);
}

/* Binds to a free name, and returns its id; 0: no name was free. Nobody can connect before
 * listen(), so the permissions are right from the start. */
static unsigned bind_private(int fd, struct rundir_socket *s)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	unsigned id, draw = 0;

	for (int i = 0; i < NAMES_TRIED; i++) {
		if (getrandom(&draw, sizeof(draw), 0) != sizeof(draw))
			return 0;
		id = (unsigned)getpid() << ID_BITS | (draw & ((1u << ID_BITS) - 1));
		path_of(id, s);
		memcpy(sun.sun_path, s->path, sizeof(sun.sun_path));
		if (bind(fd, (const struct sockaddr *)&sun, sizeof(sun)) == 0)
			return rundir_socket_note(s) == 0 && chmod(s->path, 0600) == 0 ? id : 0;
		if (errno != EADDRINUSE)
			return 0;
	}
	return 0;
}

/* Makes a socket to which only this user may connect: other users cannot even fill its queue. Most
 * programs do not share their NIC, so an error here stops nothing else. */
void control_listen_private(struct control_nic *at)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unsigned id;

	if (fd < 0)
		return;
	remove_left_behind();
	id = bind_private(fd, &at->socket);
	if (id && daemon_listen(fd) == 0 && control_watch(at->control, fd, at) == 0) {
		at->fd = fd;
		at->socket_id = id;
		return;
	}
	rundir_remove(&at->socket);
	close(fd);
}

/* Lets another thread close the socket. The kernel closes what is in its queue, too. */
static void close_elsewhere(struct control *k, int fd)
{
	struct control_client *c = k->nobody ? calloc(1, sizeof(*c)) : NULL;

	if (!c) {
		close(fd);
		return;
	}
	c->fd = fd;
	k->nobody->nfd++;
	control_user_close(k->nobody, c);
}

void control_listeners_close(struct control *k)
{
	for (uint32_t i = 0; i < k->nnic; i++) {
		if (k->nic[i].fd < 0)
			continue;
		rundir_remove(&k->nic[i].socket);
		close_elsewhere(k, k->nic[i].fd);
		k->nic[i].fd = -1;
	}
}

/* Waits without the turn. */
static void listen_nap(struct control *k, long ns)
{
	control_turn_give(k);
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
	control_turn_take(k);
}

/* Refuses a new client with a message, when no descriptor is left and no client is idle: closes the
 * spare descriptor to accept the connection. */
static void turn_away(struct control_nic *at, int listener)
{
	struct control *k = at->control;
	struct control_client *c = calloc(1, sizeof(*c));
	char text[NBAR_NAME_MAX + 128];
	int spare = k->spare_fd, fd;

	k->spare_fd = -1; /* before close(), as a child of fork() closes what spare_fd names */
	close(spare);
	fd = c ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
	if (fd < 0) {
		/* The whole system has no descriptor left. The client waits in the queue; do not
		 * spin here. */
		free(c);
		listen_nap(k, 10000000);
	} else {
		snprintf(text, sizeof(text),
			 "the %s of %s has no file descriptors left; "
			 "restart it with a higher limit (ulimit -n)",
			 k->in_process ? "process" : "daemon", at->nic->device.name);
		c->fd = fd;
		c->at = at;
		control_client_refuse(c, -NBAR_EMFILE, text);
	}
	k->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Number of sockets that threads of users have still to close. */
static uint32_t closing(const struct control *k)
{
	uint32_t n = k->nobody ? k->nobody->nclosing : 0;

	for (const struct control_user *u = k->user; u; u = u->next)
		n += u->nclosing;
	return n;
}

/* Makes room for a new client of a user: closes an idle client of that user if necessary. False:
 * there is no room, and the client has been refused. */
static bool user_has_room(struct control_nic *at, struct control_client *c)
{
	struct control_user *u = c->user;
	char text[NBAR_NAME_MAX + 192];

	if (control_user_fds_left(u) > 0 ||
	    (u->nclosing < CONTROL_CLOSING_MAX && control_user_drop_idle(u)))
		return true;
	if (u->nclosing >= CONTROL_CLOSING_MAX)
		snprintf(text, sizeof(text),
			 "the daemon of %s is still closing %u connections of uid %u, because a "
			 "process of this user delays it; try again",
			 at->nic->device.name, u->nclosing, u->uid);
	else
		snprintf(text, sizeof(text),
			 "uid %u has all %u file descriptors that one user may have at the daemon "
			 "of %s; close ports, or restart it with a larger --user-percent or a "
			 "higher limit (ulimit -n)",
			 u->uid, u->nfd, at->nic->device.name);
	control_client_refuse(c, -NBAR_EMFILE, text);
	return false;
}

/* Returns the user of a new client, as control_user_get does. After a burst of clients that end,
 * the thread of the user has much to close: waits for it a while, without the turn. */
static struct control_user *user_of(struct control *k, uint32_t uid)
{
	struct control_user *u = control_user_get(k, uid);

	while (u && u->nclosing >= CONTROL_CLOSING_MAX && u->nnap < NAPS_MAX) {
		u->nnap++;
		listen_nap(k, 1000000);
		u = control_user_get(k, uid); /* its thread may have freed it */
	}
	return u;
}

/* Takes a client that connects by c->fd, or refuses it. */
static void listen_admit(struct control_nic *at, struct control_client *c, const struct ucred *who)
{
	struct control *k = at->control;

	c->at = at;
	c->by_socket_id = k->in_process;
	if (!k->in_process) {
		c->user = user_of(k, who->uid);
		if (!c->user) {
			control_client_refuse(
				c, -NBAR_EMFILE,
				"the daemon has no file descriptor, no thread or no memory for one "
				"more user; restart it with higher limits (ulimit -n, ulimit -u)");
			return;
		}
		if (!user_has_room(at, c))
			return;
	}
	control_make_room(at);
	control_client_add(c, (uint32_t)who->pid, who->uid);
	if (control_watch_in(c->user ? c->user->epoll : k->epoll, c->fd, c) < 0)
		control_client_drop(c);
}

/* Accepts a connection of a host of this NIC. Without a descriptor, makes room or turns a host
 * away, and returns a negative errno: the caller tries again when the listener has an event. */
static int listen_accept(struct control_nic *at, int listener)
{
	struct control *k = at->control;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		return fd;
	if (errno != EMFILE && errno != ENFILE)
		return -errno;
	/* A thread closes a dropped client soon, or a client delays it. */
	if (closing(k) > 0 && ++k->nnap < NAPS_MAX) {
		listen_nap(k, 1000000);
		return -EMFILE;
	}
	k->nnap = 0;
	if (closing(k) >= CONTROL_CLOSING_MAX || !control_drop_idle(k, NULL))
		turn_away(at, listener);
	return -EMFILE;
}

/* Takes one client. False: there is none, or no descriptor. */
static bool listen_arrival(struct control_nic *at)
{
	struct control *k = at->control;
	struct control_client *c;
	struct ucred who;
	socklen_t size = sizeof(who);
	int fd = listen_accept(at, at->fd);

	if (fd < 0)
		return false;
	c = calloc(1, sizeof(*c));
	/* Only the user of this process may use its in-process NIC; root can connect, too. */
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 ||
	    (k->in_process && who.uid != geteuid())) {
		free(c);
		close_elsewhere(k, fd);
		return true;
	}
	c->fd = fd;
	listen_admit(at, c, &who);
	return true;
}

void control_remote_arrival(struct control *k)
{
	const struct ucred who = { .pid = 0, .uid = CONTROL_UID_REMOTE };
	int fd = listen_accept(&k->nic[0], remote_socket(k->nicd->remote));
	struct control_client *c;

	if (fd < 0)
		return;
	c = calloc(1, sizeof(*c));
	if (c)
		c->fd = fd;
	if (!c || !control_remote_begin(c)) {
		free(c);
		close(fd);
		return;
	}
	listen_admit(&k->nic[0], c, &who);
}

/* Without a descriptor, accept() fails even if nobody waits. */
static bool somebody_waits(const struct control_nic *at)
{
	struct pollfd p = { .fd = at->fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

void control_arrival(struct control_nic *at)
{
	for (uint32_t i = 1; listen_arrival(at) && i < CONTROL_BURST && somebody_waits(at); i++)
		continue;
}

int control_admit(struct control *k, int fd)
{
	struct control_client *c = calloc(1, sizeof(*c));
	int rc = c ? 0 : -ENOMEM;

	if (rc < 0)
		return rc;
	*c = (struct control_client){
		.source = CONTROL_GUEST,
		.fd = fd,
		.at = &k->nic[0],
	};
	rc = control_watch(k, fd, c);
	if (rc < 0)
		free(c);
	return rc;
}
