/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostnic.h - what the files of libnbar-hostnic.so share.
 */
#ifndef NBAR_INPROC_HOSTNIC_H
#define NBAR_INPROC_HOSTNIC_H

#include <sched.h>

#include "auth.h"
#include "settings.h"

struct hostnic_spec {
	struct settings set;
	struct wire_auth auth; /* auth.hash is NULL: no key */
	cpu_set_t cpu;         /* with set.cpu: the control thread runs on it only */
};

/* hostnic_spec.c: reads a text and opens the wire that it names. 0, or negative errno after
 * log_error(). */
int hostnic_spec_open(const char *text, struct hostnic_spec *out, struct wire_base **wire);

/* hostnic_log.c: until hostnic_log_end, the messages of this thread (log_error) go into text. */
void hostnic_log_begin(char *text, size_t size);

/* rc: the result. If it is negative and there was no message, text becomes that of strerror(). */
void hostnic_log_end(int rc);

#endif
