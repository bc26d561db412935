/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.c - NICs inside this process, "host:...": loads the library that they are in.
 *
 * Called when a port is opened. Everything but finding and polling such a NIC is as with a
 * daemon's: control messages, and a page. Knows nothing of what is in the library but
 * nbar_hostnic.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "order.h"

#define LIBRARY "libnbar-hostnic.so.0"

static int load(const char *nic, const struct nbar_hostnic_ops **out)
{
	const char *file = secure_getenv("NBAR_HOSTNIC");
	const struct nbar_hostnic_ops *ops;
	void *library;

	file = file && *file ? file : LIBRARY;
	/* Once loaded, this finds it again. */
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return nblib_fail(
			-ELIBACC,
			"NIC %s: a NIC in this process needs a library of nbar: %s: "
			"install it, or set LD_LIBRARY_PATH to its folder or NBAR_HOSTNIC "
			"to the file",
			nic, dlerror());
	ops = dlsym(library, NBAR_HOSTNIC_SYMBOL);
	if (!ops || ops->version != NBAR_HOSTNIC_VERSION)
		return nblib_fail(-ELIBBAD,
				  "NIC %s: %s is of another version: install one nbar for both",
				  nic, file);
	*out = ops;
	return 0;
}

int nblib_host_connect(struct nblib_link *l, const char *name, bool make)
{
	const char *spec = name + sizeof(NBLIB_HOST_PREFIX) - 1;
	char text[NBAR_HOSTNIC_TEXT];
	int err = load(name, &l->ops);

	if (err < 0)
		return err;
	err = l->ops->open(spec, make, &l->host, text);
	if (err == -ENOENT && !make)
		return nblib_fail(
			err,
			"no NIC %s in this process: only the process that has opened such "
			"a NIC can ask it, by the same name",
			name);
	if (err < 0)
		return nblib_fail(err, "NIC %s: %s", name, text);
	l->sock = l->ops->connect(l->host);
	if (l->sock >= 0)
		return 0;
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
