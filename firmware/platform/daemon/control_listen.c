/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_listen.c - how clients connect to a NIC: to a daemon's NIC by its control socket; to an
 * in-process NIC by one end of a socket pair, or, from another process, by its abstract listening
 * socket.
 *
 * Called by the control thread, except control_listen and control_listen_abstract, and
 * control_admit by any.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control_internal.h"
#include "log.h"

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
	    chmod(at->socket.path, config->mode) == 0 && listen(at->fd, SOMAXCONN) == 0)
		return control_watch(at->control, at->fd, at);
	rc = -errno;
	log_error("control socket %s: %s", at->socket.path, strerror(errno));
	return rc;
}

/* The kernel chooses the name, five hex digits in the abstract namespace, so nobody can take it
 * before us, and removes it when this process ends. Most programs share nothing, so an error here
 * stops nothing else. */
void control_listen_abstract(struct control_nic *at)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(sun.sun_family);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unsigned number;

	if (fd < 0)
		return;
	if (bind(fd, (const struct sockaddr *)&sun, size) == 0) {
		size = sizeof(sun);
		if (getsockname(fd, (struct sockaddr *)&sun, &size) == 0 &&
		    sscanf(sun.sun_path + 1, "%5x", &number) == 1 && listen(fd, SOMAXCONN) == 0 &&
		    control_watch(at->control, fd, at) == 0) {
			at->fd = fd;
			at->socket_id = number + 1;
			return;
		}
	}
	close(fd);
}

void control_listeners_close(struct control *k)
{
	for (uint32_t i = 0; i < k->nnic; i++) {
		if (k->nic[i].fd < 0)
			continue;
		rundir_remove(&k->nic[i].socket);
		close(k->nic[i].fd);
		k->nic[i].fd = -1;
	}
}

/* Out of descriptors: refuses the client with a message, using the descriptor that is kept for
 * that. */
static void turn_away(struct control_nic *at)
{
	struct control *k = at->control;
	char text[NBAR_NAME_MAX + 128];
	int spare = k->spare_fd, fd;

	k->spare_fd = -1; /* first: a child of a fork closes the descriptor that is stored here */
	if (spare >= 0)
		close(spare);
	fd = accept4(at->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0) {
		/* The whole system has no descriptor left. The client waits in the queue; do not
		 * spin here. */
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	} else {
		snprintf(text, sizeof(text),
			 "the %s of %s has no file descriptors left; "
			 "restart it with a higher limit (ulimit -n)",
			 k->in_process ? "process" : "daemon", at->nic->device.name);
		nbnic_refuse(-NBAR_EMFILE, text, k->out.byte);
		control_reply_send(k, fd, -1);
		close(fd);
	}
	k->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void control_arrival(struct control_nic *at)
{
	struct control *k = at->control;
	struct control_client *c;
	struct ucred who;
	socklen_t size = sizeof(who);
	int fd;

	fd = accept4(at->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			turn_away(at);
		return;
	}
	c = calloc(1, sizeof(*c));
	/* A socket file has permissions; an abstract socket is for processes of the same user. */
	if (!c || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 ||
	    (k->in_process && who.uid != geteuid()) || control_watch(k, fd, c) < 0) {
		free(c);
		close(fd);
		return;
	}
	control_make_room(at);
	*c = (struct control_client){
		.fd = fd,
		.at = at,
		.by_socket_id = k->in_process,
	};
	control_client_add(c, (uint32_t)who.pid, who.uid);
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
