/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object.c - libnbar-wire-verbs.so, which daemons and in-process NICs load.
 */
#include "object.h"
#include "verbs.h"
#include "wire_build.h"

__attribute__((visibility("default"))) const struct wire_object nbar_wire = {
	.build = WIRE_BUILD,
	.nic_size = sizeof(struct nbnic),
	.ops = &wire_verbs_ops,
	.log = &wire_object_log,
};
