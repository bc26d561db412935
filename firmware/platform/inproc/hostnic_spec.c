/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostnic_spec.c - the description of an in-process NIC: settings, and keys of the wire.
 *
 * Called when a NIC is opened.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hostnic.h"
#include "log.h"
#include "spec.h"
#include "wires.h"

#define WHAT "host"
#define WIRES_TRIED_MAX 8u

/* This thread must be permitted to run where the control thread will. */
static int check_cpu(struct hostnic_spec *out)
{
	const uint32_t cpu = out->set.cpu;
	cpu_set_t before;
	int rc;

	CPU_ZERO(&out->cpu);
	if (cpu == SETTINGS_UNSET)
		return 0;
	CPU_SET(cpu, &out->cpu);
	/* Binds this thread to the core for a moment: the kernel says whether that is permitted. */
	if (sched_getaffinity(0, sizeof(before), &before) < 0)
		return 0;
	rc = sched_setaffinity(0, sizeof(out->cpu), &out->cpu) < 0 ? -errno : 0;
	sched_setaffinity(0, sizeof(before), &before);
	if (rc < 0)
		log_error(WHAT " cpu=%u: this process cannot use that processor: %s", cpu,
			  strerror(-rc));
	return rc;
}

/* settings_reader.own */
static int own_take(void *arg, const struct setting *s, const char *text)
{
	struct hostnic_spec *out = arg;

	if (s->type == SETTING_KEY_FILE)
		return wire_auth_load(WHAT " key-file", text, &out->auth);
	return 0; /* wire: see hostnic_spec_open */
}

/* Reads everything but the wire and its keys. */
static int read_spec(const char *text, struct spec *s, struct hostnic_spec *out)
{
	const struct settings_reader r = { SETTING_PROCESS, &out->set, own_take, out };
	char label[SPEC_TEXT_MAX + sizeof(WHAT)];
	int rc = spec_parse(WHAT, text, s);

	settings_default(SETTING_PROCESS, &out->set);
	for (uint32_t i = 0; i < s->n && rc == 0; i++) {
		const char *key = s->text + s->pair[i].key, *value = s->text + s->pair[i].value;
		const struct setting *row = settings_find(SETTING_PROCESS, key);

		snprintf(label, sizeof(label), WHAT " %s=%s", key, value);
		rc = row ? settings_read(&r, row, label, value) : 0;
	}
	if (rc == 0)
		rc = settings_check(&out->set);
	return rc == 0 ? check_cpu(out) : rc;
}

static int open_wire(const struct wire *wire, struct spec *s, const struct hostnic_spec *nic,
		     struct wire_base **out)
{
	int rc = spec_check(WHAT, s, wire, SETTING_PROCESS);

	if (rc == 0)
		rc = wires_auth_check(wire, nic->set.name, &nic->auth);
	if (rc == 0)
		rc = wires_open(wire, nic->set.name, spec_value, s, out);
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
		if (n < WIRES_TRIED_MAX && spec_fits(s, w, SETTING_PROCESS))
			fits[n++] = w;
	}
	if (n == 0)
		return spec_check(WHAT, s, any, SETTING_PROCESS);
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
