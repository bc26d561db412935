/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_open.c - opens the control socket of a NIC by the NIC's name (or that in NBAR_NIC), and
 * closes it.
 *
 * Called by the slow path (open, close, statistics). link.c handles the socket itself, and host.c
 * the in-process NICs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "internal.h"
#include "nbar_host.h"

#define END_S 1 /* time limit for the daemon's answer to a close */

static int parse_port(const char *name, const char *text, uint32_t *out)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end)
		return nblib_fail(-EINVAL,
				  "\"%s\": after the colon comes the number of a port, as in n0:3",
				  name);
	if (port >= NBAR_PORTS_MAX)
		return nblib_fail(-EINVAL, "\"%s\": a NIC has ports 0 to %u", name,
				  NBAR_PORTS_MAX - 1);
	*out = (uint32_t)port;
	return 0;
}

/* Parses "n0", "n0:3" or a path: gives the name and path of the socket, and the port. */
static int parse_name(struct nblib_link *l, const char *name, uint32_t *port)
{
	size_t length = strcspn(name, ":");
	char dir[sizeof(l->path)];
	int n;

	if (strchr(name, '/')) {
		const char *file = strrchr(name, '/') + 1;

		snprintf(l->nic, sizeof(l->nic), "%.*s", (int)strcspn(file, "."), file);
		n = snprintf(l->path, sizeof(l->path), "%s", name);
	} else {
		if (length == 0 || length >= sizeof(l->nic))
			return nblib_fail(-EINVAL,
					  "\"%s\" is not a NIC name: it has 1 to %zu characters, "
					  "as in n0",
					  name, sizeof(l->nic) - 1);
		if (name[length] && parse_port(name, name + length + 1, port))
			return -EINVAL;
		snprintf(l->nic, sizeof(l->nic), "%.*s", (int)length, name);
		/* A directory that is cut short makes a path that is too long, too. */
		nbar_run_dir_find(dir, sizeof(dir));
		n = snprintf(l->path, sizeof(l->path), "%s/%s.sock", dir, l->nic);
	}
	if (n < 0 || (size_t)n >= sizeof(l->path))
		return nblib_fail(-EINVAL,
				  "the path of NIC %s's control socket is too long (%zu bytes at "
				  "most): choose a shorter run directory",
				  l->nic, sizeof(l->path) - 1);
	return 0;
}

/* Splits "rdma:ADDRESS:PORT/n0" or "rdma:ADDRESS:PORT/n0:3", and connects. */
static int connect_remote(struct nblib_link *l, const char *name, uint32_t *port)
{
	const char *nic = strchr(name, '/');
	size_t length = nic ? strcspn(++nic, ":") : 0;
	char address[sizeof(l->path)];

	if (length == 0 || length >= sizeof(l->nic) || (size_t)(nic - name) > sizeof(address))
		return nblib_fail(-EINVAL,
				  "\"%s\" is not the name of a remote NIC, as in "
				  "rdma:192.0.2.1:7100/n0",
				  name);
	if (nic[length] && parse_port(name, nic + length + 1, port))
		return -EINVAL;
	snprintf(l->nic, sizeof(l->nic), "%.*s", (int)length, nic);
	snprintf(address, sizeof(address), "%.*s", (int)(nic - name - 1), name);
	snprintf(l->path, sizeof(l->path), "%s", address + sizeof(NBAR_REMOTE_PREFIX) - 1);
	return nblib_remote_connect(l, address);
}

static int connect_failed(const struct nblib_link *l, int err)
{
	if (err == ENOENT || err == ENOTDIR)
		return nblib_fail(-ENOENT,
				  "no NIC %s at %s: start one with `nbar-nicd --nic "
				  "name=%s`, or set NBAR_RUN_DIR to its run directory",
				  l->nic, l->path, l->nic);
	if (err == ECONNREFUSED)
		return nblib_fail(-err,
				  "NIC %s: nobody listens at %s, its daemon has ended: start it "
				  "again with `nbar-nicd --nic name=%s`",
				  l->nic, l->path, l->nic);
	if (err == EACCES || err == EPERM)
		return nblib_fail(
			-EACCES,
			"NIC %s: no permission for %s: ask its owner for access, or start "
			"a daemon of your own",
			l->nic, l->path);
	if (err == EPROTOTYPE || err == EAGAIN)
		return nblib_fail(err == EAGAIN ? -ECONNREFUSED : -EPROTO, "NIC %s: %s at %s",
				  l->nic,
				  err == EAGAIN ? "its daemon does not accept anybody"
						: "what listens is no NIC of nbar",
				  l->path);
	return nblib_fail(-err, "NIC %s: cannot connect to %s: %s", l->nic, l->path, strerror(err));
}

/* Any user can create a directory in /tmp. So the process that listens in the default run directory
 * of this user must belong to this user, or to root. */
static int link_check_owner(const struct nblib_link *l)
{
	struct ucred who;
	socklen_t size = sizeof(who);
	char dir[32];
	int n = snprintf(dir, sizeof(dir), "/tmp/nbar-%u/", (unsigned)geteuid());

	if (strncmp(l->path, dir, (size_t)n) != 0)
		return 0;
	if (getsockopt(l->sock, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
		return nblib_fail(-errno, "NIC %s: cannot tell who listens at %s: %s", l->nic,
				  l->path, strerror(errno));
	if (who.uid == 0 || who.uid == geteuid())
		return 0;
	return nblib_fail(-EACCES,
			  "NIC %s: %s belongs to uid %u, not to uid %u who runs this: start a "
			  "daemon of your own in another directory, and set NBAR_RUN_DIR to it",
			  l->nic, l->path, (unsigned)who.uid, (unsigned)geteuid());
}

static int connect_daemon(struct nblib_link *l)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int err;

	memcpy(addr.sun_path, l->path, sizeof(l->path));
	err = nblib_link_reach(l, &addr, sizeof(addr));
	return err ? connect_failed(l, err) : link_check_owner(l);
}

int nblib_link_open(struct nblib_link *l, const char *name, uint32_t socket_id, uint32_t *port)
{
	int err;

	*l = (struct nblib_link){
		.sock = -1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.page_fd = -1,
		.asks = { -1, -1 },
	};
	if (!name) {
		name = secure_getenv("NBAR_NIC");
		if (name && !*name)
			name = NULL;
	}
	if (name && strncmp(name, NBLIB_HOST_PREFIX, sizeof(NBLIB_HOST_PREFIX) - 1) == 0) {
		snprintf(l->nic, sizeof(l->nic), "%.31s", name);
		snprintf(l->path, sizeof(l->path), "%.100s", name);
		err = nblib_host_connect(l, name, socket_id);
	} else if (name && strncmp(name, NBAR_REMOTE_PREFIX, sizeof(NBAR_REMOTE_PREFIX) - 1) == 0) {
		err = connect_remote(l, name, port);
	} else {
		err = parse_name(l, name ? name : "n0", port);
		if (err == 0)
			err = connect_daemon(l);
	}
	if (err)
		nblib_link_close(l);
	return err;
}

void nblib_link_close(struct nblib_link *l)
{
	if (l->sock >= 0)
		close(l->sock);
	l->sock = -1;
	nblib_host_close(l);
	nblib_remote_close(l);
}

void nblib_link_end(struct nblib_link *l)
{
	const struct timeval limit = { .tv_sec = END_S };
	char byte[64];
	ssize_t n;

	/* After a fork there is no socket. If the link is lost, recv returns at once. */
	if (shutdown(l->sock, SHUT_WR) == 0) {
		setsockopt(l->sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		do
			n = recv(l->sock, byte, sizeof(byte), 0);
		while (n > 0 || (n < 0 && errno == EINTR));
	}
	nblib_link_close(l);
}
