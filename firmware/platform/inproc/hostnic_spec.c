/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostnic_spec.c - what a NIC in a program is: the keys of --nic, and those that are options of the
 * daemon; and what it is if nothing is said.
 *
 * Called when a NIC is opened.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostnic.h"
#include "log.h"
#include "spec.h"

#define WHAT "host"
/* The control thread looks every CONTROL_TURN_MS: a budget must have room for many such looks. */
#define BUDGET_MIN_MS 200u

static const struct wire_ops *const wires[] = {
	&wire_udp_ops,
#ifdef NBAR_VERBS
	&wire_verbs_ops,
#endif
};
#define NWIRE (sizeof(wires) / sizeof(wires[0]))

/* The options of a wire, and what it is bound to if they do not say. */
struct wanted {
	struct spec spec;
	char bind[INET_ADDRSTRLEN + 8];
};

/* An IPv4 address of this machine: that of the first interface that others can reach. */
static void bind_default(char *out, size_t size)
{
	struct ifaddrs *list = NULL;
	char ip[INET_ADDRSTRLEN] = "127.0.0.1";
	bool found = false;

	if (getifaddrs(&list) < 0)
		list = NULL;
	for (struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
		const struct sockaddr_in *in = (const void *)i->ifa_addr;

		found = in && in->sin_family == AF_INET && (i->ifa_flags & IFF_RUNNING) &&
			!(i->ifa_flags & IFF_LOOPBACK);
		if (found)
			inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
	}
	if (list)
		freeifaddrs(list);
	snprintf(out, size, "%s:0", ip);
}

static const char *value_of(void *args, const char *key)
{
	struct wanted *w = args;
	const char *value = spec_value(&w->spec, key);

	return !value && strcmp(key, "bind") == 0 ? w->bind : value;
}

static int times(const struct spec *s, struct nbnic_config *out)
{
	uint64_t pull_us = NBNIC_PULL_NS_DEFAULT / 1000,
		 budget_ms = NBNIC_BUDGET_NS_DEFAULT / 1000000;

	if (spec_number(WHAT, s, "pull-us", 1, 60000000, &pull_us) < 0 ||
	    spec_number(WHAT, s, "budget-ms", BUDGET_MIN_MS, 86400000, &budget_ms) < 0)
		return -EINVAL;
	out->pull_ns = pull_us * UINT64_C(1000);
	out->budget_ns = budget_ms * UINT64_C(1000000);
	if (out->budget_ns >= NBFW_WINDOW * out->pull_ns)
		return 0;
	log_error(WHAT " budget-ms must be at least %u times pull-us", NBFW_WINDOW);
	return -EINVAL;
}

/* Everything but the wire. */
static int read_spec(const char *text, struct wanted *w, struct hostnic_spec *out)
{
	const char *name, *tune;
	int rc = spec_parse(WHAT, text, &w->spec);

	if (rc == 0)
		rc = times(&w->spec, &out->config);
	if (rc < 0)
		return rc;
	name = spec_value(&w->spec, "name");
	tune = spec_value(&w->spec, "tune");
	rc = name ? spec_name(WHAT, name) : 0;
	if (rc < 0)
		return rc;
	snprintf(out->name, sizeof(out->name), "%s", name ? name : "host");
	return tune ? tune_load(tune, &out->tune) : 0;
}

static const char *const keys[] = { "name", "wire", "pull-us", "budget-ms", "tune", NULL };

static int open_wire(const struct wire_ops *ops, struct wanted *w, const char *name,
		     struct wire_base **out)
{
	int rc = spec_check(WHAT, &w->spec, ops, keys);

	return rc < 0 ? rc : ops->open(name, value_of, w, out);
}

/* The best that there is: the last in the list that the keys fit, and that opens. */
static int open_best(struct wanted *w, const char *name, struct wire_base **out)
{
	const struct wire_ops *tried = NULL;
	int rc = -EINVAL;

	for (size_t i = NWIRE; i-- > 0 && rc < 0;) {
		if (!spec_fits(&w->spec, wires[i], keys))
			continue;
		tried = wires[i];
		rc = open_wire(tried, w, name, out);
	}
	return tried ? rc : spec_check(WHAT, &w->spec, wires[NWIRE - 1], keys);
}

int hostnic_spec_open(const char *text, struct hostnic_spec *out, struct wire_base **wire)
{
	struct wanted w;
	const struct wire_ops *ops;
	const char *name;
	int rc = read_spec(text, &w, out);

	if (rc < 0)
		return rc;
	bind_default(w.bind, sizeof(w.bind));
	name = spec_value(&w.spec, "wire");
	if (!name)
		return open_best(&w, out->name, wire);
	rc = spec_wire(WHAT, name, wires, NWIRE, &ops);
	return rc < 0 ? rc : open_wire(ops, &w, out->name, wire);
}
