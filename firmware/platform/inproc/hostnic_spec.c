/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostnic_spec.c - the description of an in-process NIC: the keys of --nic, keys for options of the
 * daemon, and the defaults.
 *
 * Called when a NIC is opened.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostnic.h"
#include "log.h"
#include "spec.h"
#include "wires.h"

#define WHAT "host"
/* The control thread runs a pass every CONTROL_PASS_MS: a budget must be many times as long. */
#define BUDGET_MIN_MS 200u
#define WIRES_TRIED_MAX 8u

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

/* Reads the processor of the control thread. This thread must be permitted to run there. */
static int read_cpu(const struct spec *s, struct hostnic_spec *out)
{
	uint64_t cpu = CPU_SETSIZE;
	cpu_set_t before;
	int rc = spec_number(WHAT, s, "cpu", 0, CPU_SETSIZE - 1, &cpu);

	if (rc < 0 || cpu == CPU_SETSIZE)
		return rc;
	CPU_ZERO(&out->cpu);
	CPU_SET((size_t)cpu, &out->cpu);
	out->has_cpu = true;
	/* Binds this thread to the core for a moment: the kernel says whether that is permitted. */
	if (sched_getaffinity(0, sizeof(before), &before) < 0)
		return 0;
	rc = sched_setaffinity(0, sizeof(out->cpu), &out->cpu) < 0 ? -errno : 0;
	sched_setaffinity(0, sizeof(before), &before);
	if (rc < 0)
		log_error(WHAT " cpu=%u: this process cannot use that processor: %s", (unsigned)cpu,
			  strerror(-rc));
	return rc;
}

/* Reads everything but the wire. */
static int read_spec(const char *text, struct spec *s, struct hostnic_spec *out)
{
	const char *name, *tune, *key_file;
	int rc = spec_parse(WHAT, text, s);

	if (rc == 0)
		rc = times(s, &out->config);
	if (rc == 0)
		rc = read_cpu(s, out);
	if (rc < 0)
		return rc;
	name = spec_value(s, "name");
	tune = spec_value(s, "tune");
	rc = name ? spec_name(WHAT, name) : 0;
	if (rc < 0)
		return rc;
	snprintf(out->name, sizeof(out->name), "%s", name ? name : "host");
	key_file = spec_value(s, "key-file");
	rc = tune ? tune_load(tune, &out->tune) : 0;
	return rc == 0 && key_file ? wire_auth_load(WHAT " key-file", key_file, &out->auth) : rc;
}

static const char *const keys[] = { "name", "wire", "pull-us",  "budget-ms",
				    "tune", "cpu",  "key-file", NULL };

static int open_wire(const struct wire *wire, struct spec *s, const struct hostnic_spec *nic,
		     struct wire_base **out)
{
	int rc = spec_check(WHAT, s, wire, keys);

	if (rc == 0)
		rc = wires_auth_check(wire, nic->name, &nic->auth);
	if (rc == 0)
		rc = wires_open(wire, nic->name, spec_value, s, out);
	if (rc == 0)
		wires_auth(wire, &nic->auth, *out);
	return rc;
}

/* Opens the last wire in the registry that leads to other machines, has the keys, and can be
 * opened. */
static int open_best(struct spec *s, const struct hostnic_spec *nic, struct wire_base **out)
{
	const struct wire *fits[WIRES_TRIED_MAX], *any = NULL;
	uint32_t n = 0;
	int rc = -EINVAL;

	for (const struct wire *w = wires_next(NULL, WIRE_IN_PROCESS); w;
	     w = wires_next(w, WIRE_IN_PROCESS)) {
		if (w->reach != WIRE_REACH_NETWORK)
			continue;
		any = w;
		if (n < WIRES_TRIED_MAX && spec_fits(s, w, keys))
			fits[n++] = w;
	}
	if (n == 0)
		return spec_check(WHAT, s, any, keys);
	while (n > 0 && rc < 0)
		rc = open_wire(fits[--n], s, nic, out);
	return rc;
}

int hostnic_spec_open(const char *text, struct hostnic_spec *out, struct wire_base **wire)
{
	struct spec s;
	const struct wire *named;
	const char *name;
	int rc = read_spec(text, &s, out);

	if (rc < 0)
		return rc;
	name = spec_value(&s, "wire");
	if (!name)
		return open_best(&s, out, wire);
	rc = wires_find(WHAT, name, WIRE_IN_PROCESS, &named);
	return rc < 0 ? rc : open_wire(named, &s, out, wire);
}
