/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wires.c - the registry of wires: a wire is one file or folder, and one row here.
 *
 * Called when options are read and when a NIC is opened. A wire with an SDK is a shared object,
 * which is loaded when the wires are listed or a NIC names the wire.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "wire_build.h"
#include "wires.h"

extern const struct wire_ops wire_ring_ops, wire_udp_ops, wire_shm_ops;

/* An in-process NIC without wire= takes the last row that fits. */
static struct wire wires[] = {
	{
		.name = "ring",
		.kind = 1,
		.reach = WIRE_REACH_DAEMON,
		.platforms = WIRE_IN_DAEMON,
		.help = "NICs of one daemon",
		.ops = &wire_ring_ops,
	},
	{
		.name = "udp",
		.kind = 3,
		.reach = WIRE_REACH_NETWORK,
		.platforms = WIRE_IN_DAEMON | WIRE_IN_PROCESS,
		.tags = true,
		.help = "UDP by plain sockets",
		.key = {
			{ "bind", "ADDRESS:PORT to receive at (a free port, where the default route leaves)" },
			{ "address", "ADDRESS that peers are told, if bind= is a wildcard" },
		},
		.ops = &wire_udp_ops,
	},
	{
		.name = "dpdk",
		.kind = 2,
		.reach = WIRE_REACH_NETWORK,
		.platforms = WIRE_IN_DAEMON,
		.sdk = "libdpdk-dev",
		.file = WIRE_FILE("dpdk"),
		.package = "nbar-nicd-dpdk",
		.tags = true,
		.help = "Ethernet, by any ethdev of DPDK that the EAL arguments name",
		.key = {
			{ "dev", "NAME of the ethdev, for example net_af_packet0" },
			{ "port", "or its INDEX" },
		},
	},
	{
		.name = "kernel",
		.kind = 2,
		.reach = WIRE_REACH_NETWORK,
		.platforms = WIRE_IN_DAEMON,
		.sdk = "clang and libbpf-dev",
		.file = WIRE_FILE("kernel"),
		.package = "nbar-nicd-kernel",
		.tags = true,
		.help = "Ethernet or UDP, by programs in the kernel; no polling thread",
		.key = {
			{ "dev", "NAME of the network interface" },
			{ "bind", "ADDRESS:PORT: UDP, with NICs on udp (Ethernet)" },
			{ "address", "as on udp" },
		},
	},
	{
		.name = "shm",
		.kind = 5,
		.reach = WIRE_REACH_MACHINE,
		.platforms = WIRE_IN_DAEMON | WIRE_IN_PROCESS,
		.of_user = true,
		.help = "memory shared by daemons and programs of one user on one machine",
		.key = {
			{ "dir", "FOLDER where they meet (/dev/shm/nbar-UID)" },
		},
		.ops = &wire_shm_ops,
	},
	{
		.name = "verbs",
		.kind = 4,
		.reach = WIRE_REACH_NETWORK,
		.platforms = WIRE_IN_DAEMON | WIRE_IN_PROCESS,
		.sdk = "libibverbs-dev",
		.file = WIRE_FILE("verbs"),
		.package = "nbar-nicd-verbs",
		.help = "InfiniBand and RoCE",
		.key = {
			{ "mode", "ud, write, write-rc or write-uc (ud)" },
			{ "device", "NAME of the RDMA device (the first with a port that is up)" },
			{ "port", "N (the first that is up)" },
			{ "gid", "INDEX (RoCE v2 of an IPv4 address)" },
			{ "sl", "service level, 0 to 15 (0)" },
			{ "mtu", "BYTES, a path MTU below the port's" },
			{ "inline", "yes, or no: for devices without inline sends (yes)" },
		},
	},
};
#define NWIRE (sizeof(wires) / sizeof(wires[0]))

/* Loads the file of a wire. Returns NULL, or the reason why it cannot. */
static const char *wires_load(struct wire *row)
{
	/* If the file is loaded already, dlopen returns it again. */
	void *file = dlopen(row->file, RTLD_NOW | RTLD_LOCAL);
	const struct wire_object *o = file ? dlsym(file, WIRE_OBJECT_SYMBOL) : NULL;
	static char why[300];
	Dl_info found = { 0 };

	if (!o)
		return dlerror();
	if (strcmp(o->build, WIRE_BUILD) != 0 || o->nic_size != sizeof(struct nbnic)) {
		dladdr(o, &found);
		snprintf(why, sizeof(why), "%s is of another build of nbar",
			 found.dli_fname ? found.dli_fname : row->file);
		return why;
	}
	*o->log = log_error;
	row->object = o;
	row->ops = o->ops;
	return NULL;
}

static bool is_here(struct wire *row, unsigned platform)
{
	return (row->platforms & platform) && (row->ops || (row->file && !wires_load(row)));
}

const struct wire *wires_next(const struct wire *row, unsigned platform)
{
	for (size_t i = row ? (size_t)(row - wires) + 1 : 0; i < NWIRE; i++)
		if (is_here(&wires[i], platform))
			return &wires[i];
	return NULL;
}

const struct wire *wires_default(void)
{
	const struct wire *w = wires;

	while (strcmp(w->name, NBAR_WIRE_DEFAULT) != 0)
		w++;
	return w;
}

int wires_find(const char *what, const char *name, unsigned platform, const struct wire **out)
{
	struct wire *found = NULL;
	char names[96] = "", hint[96] = "";
	size_t used = 0;

	for (size_t i = 0; i < NWIRE; i++)
		if (strcmp(name, wires[i].name) == 0)
			found = &wires[i];
	if (found && is_here(found, platform)) {
		*out = found;
		return 0;
	}
	if (found && found->file && (found->platforms & platform)) {
		log_error(
			"%s wire=%s: %s; install the Debian package %s, or install %s and build nbar again",
			what, name, wires_load(found), found->package, found->sdk);
		return -EINVAL;
	}
	for (const struct wire *w = wires_next(NULL, platform); w && used < sizeof(names);
	     w = wires_next(w, platform))
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
					 used ? ", " : "", w->name);
	if (found)
		snprintf(hint, sizeof(hint), "; %s is for NICs of %s", name,
			 platform == WIRE_IN_PROCESS ? "a daemon, nbar-nicd"
						     : "a program, named host:...");
	log_error("%s wire=%s: there is no such wire here, but: %s%s", what, name, names, hint);
	return -EINVAL;
}

bool wires_has_key(const struct wire *row, const char *key)
{
	for (uint32_t i = 0; i < WIRE_KEYS_MAX && row->key[i].name; i++)
		if (strcmp(row->key[i].name, key) == 0)
			return true;
	return false;
}

int wires_open(const struct wire *row, const char *nic, wire_option *option, void *args,
	       struct wire_base **out)
{
	int rc = row->ops->open(nic, option, args, out);

	if (rc < 0)
		return rc;
	(*out)->ops = row->ops;
	(*out)->name = row->name;
	if ((*out)->kind == 0)
		(*out)->kind = row->kind;
	return 0;
}

int wires_auth_check(const struct wire *row, const char *nic, const struct wire_auth *auth)
{
	if (!auth->hash || row->tags || row->reach != WIRE_REACH_NETWORK)
		return 0;
	log_error(
		"nic %s: frames on wire %s cannot have tags; run this NIC without a key file, in a "
		"daemon of its own",
		nic, row->name);
	return -EINVAL;
}

void wires_auth(const struct wire *row, const struct wire_auth *auth, struct wire_base *w)
{
	if (auth->hash && row->tags)
		wire_auth_use(w, auth);
}

const char *wires_reach_name(enum wire_reach reach)
{
	switch (reach) {
	case WIRE_REACH_DAEMON:
		return "daemon";
	case WIRE_REACH_MACHINE:
		return "machine";
	case WIRE_REACH_NETWORK:
		return "network";
	}
	return "?";
}
