/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.c - in-process NICs, "host:...": loads their library, or finds the process that shares
 * such a NIC.
 *
 * Called when a port is opened. An in-process NIC is found and polled in another way than a
 * daemon's NIC, but has the same control messages and page. Knows only the library's interface,
 * nbar_hostnic.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"
#include "order.h"

#define LIBRARY "libnbar-hostnic.so.0"

static int host_load(const char *nic, const struct nbar_hostnic_ops **out)
{
	const char *file = secure_getenv("NBAR_HOSTNIC");
	const struct nbar_hostnic_ops *ops;
	void *library;

	file = file && *file ? file : LIBRARY;
	/* If the library is loaded already, dlopen returns it again. */
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return nblib_fail(
			-ELIBACC,
			"NIC %s: a NIC in this process needs a library of nbar: %s: "
			"install it, or set LD_LIBRARY_PATH to its folder or NBAR_HOSTNIC "
			"to the file",
			nic, dlerror());
	ops = dlsym(library, NBAR_HOSTNIC_SYMBOL);
	if (!ops)
		return nblib_fail(-ELIBBAD, "NIC %s: %s is not an nbar library", nic, file);
	if (ops->version != NBAR_HOSTNIC_VERSION)
		return nblib_fail(-ELIBBAD,
				  "NIC %s: %s is of version %u, this program knows version %u: "
				  "install one nbar for both",
				  nic, file, ops->version, NBAR_HOSTNIC_VERSION);
	*out = ops;
	return 0;
}

static int not_ours(const char *name)
{
	return nblib_fail(-EACCES,
			  "NIC %s: its process is not of uid %u, who runs this: a port is shared "
			  "within one user's processes",
			  name, (unsigned)geteuid());
}

/* After the process that made the share has ended, another process may have made a listening socket
 * of the same name. */
static int check_owner(const struct nblib_link *l, const char *name)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	if (getsockopt(l->sock, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid())
		return 0;
	return not_ours(name);
}

/* Connects to the NIC of another process. */
static int connect_socket_id(struct nblib_link *l, const char *name, uint32_t socket_id)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int err;

	snprintf(sun.sun_path, sizeof(sun.sun_path), NBAR_HOSTNIC_DIR "/" NBAR_HOSTNIC_SOCKET,
		 socket_id);
	err = nblib_link_reach(l, &sun, sizeof(sun));
	if (err == EACCES || err == EPERM)
		return not_ours(name);
	if (err == EAGAIN)
		return nblib_fail(-ETIME,
				  "NIC %s: the process that shares it does not answer: is it "
				  "stopped, or kept from the processor?",
				  name);
	if (err == ECONNREFUSED || err == ENOENT)
		return nblib_fail(
			-ECONNREFUSED,
			"NIC %s: the process that shares it has ended, or has another " NBAR_HOSTNIC_DIR
			": start the processes of this host again, "
			"all with the same one",
			name);
	if (err)
		return nblib_fail(-err, "NIC %s: cannot connect to the process that shares it: %s",
				  name, strerror(err));
	return check_owner(l, name);
}

int nblib_host_connect(struct nblib_link *l, const char *name, uint32_t socket_id)
{
	const char *spec = name + sizeof(NBLIB_HOST_PREFIX) - 1;
	bool make = socket_id == NBLIB_SOCKET_ID_MAKE;
	char text[NBAR_HOSTNIC_TEXT];
	int err = host_load(name, &l->ops);

	if (err)
		return err;
	l->in_process = true;
	err = l->ops->open(spec, make, &l->host, text);
	if (err == 0)
		l->socket_id = l->ops->socket_id(l->host);
	/* The NIC is not in this process, or another NIC of this process has the same name. */
	if (socket_id && !make && (err == -ENOENT || (err == 0 && l->socket_id != socket_id))) {
		nblib_host_close(l);
		l->socket_id = socket_id;
		return connect_socket_id(l, name, socket_id);
	}
	if (err == -ENOENT && !make)
		return nblib_fail(
			err,
			"no NIC %s in this process: only the process that has opened such "
			"a NIC can ask it, by the same name",
			name);
	if (err)
		return nblib_fail(err, "NIC %s: %s", name, text);
	l->sock = l->ops->connect(l->host);
	if (l->sock >= 0) {
		nblib_link_limit(l, 0);
		return 0;
	}
	err = l->sock;
	return nblib_fail(err, "NIC %s: no way to its thread: %s", name, strerror(-err));
}

void nblib_host_close(struct nblib_link *l)
{
	if (l->host)
		l->ops->close(l->host);
	l->host = NULL;
}

void nblib_host_poll(const struct nblib_link *l)
{
	if (order_down_read(&l->down) == NBLIB_UP)
		l->ops->poll(l->host);
}
