/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mode.c - selects how tokens go on the wire "verbs": as mode= says, or as suits the device.
 *
 * Called when a NIC is opened.
 */
#include <errno.h>
#include <string.h>

#include "log.h"
#include "verbs.h"

#define NO_VENDOR 0xffffffu

static const char *const mode_name[] = {
	[VERBS_UD] = "ud",
	[VERBS_WRITE_RC] = "write-rc",
	[VERBS_WRITE_UC] = "write-uc",
};

const char *verbs_mode_name(const struct verbs_wire *w)
{
	return mode_name[w->self.mode];
}

/* Resolves WRITE to write-rc; but for soft RoCE (vendor id 0 or NO_VENDOR) to write-uc, because
 * there, software makes each acknowledgement, which costs as much as the write. */
int verbs_mode_resolve(struct verbs_wire *w)
{
	struct ibv_device_attr attr;
	int err;

	if (w->self.mode != VERBS_WRITE)
		return 0;
	err = ibv_query_device(w->context, &attr);
	if (err)
		return verbs_error(w, "sure what it is (mode=write-rc does without)", err);
	w->self.mode = attr.vendor_id == 0 || attr.vendor_id == NO_VENDOR ? VERBS_WRITE_UC
									  : VERBS_WRITE_RC;
	return 0;
}

int verbs_mode_read(struct verbs_wire *w, const char *text)
{
	if (text && strcmp(text, "write") == 0) {
		w->self.mode = VERBS_WRITE;
		return 0;
	}
	for (uint8_t m = VERBS_UD; m <= VERBS_WRITE_UC; m++) {
		if (strcmp(text ? text : "ud", mode_name[m]) == 0) {
			w->self.mode = m;
			return 0;
		}
	}
	log_error("nic %s: mode=%s: it is ud, write, write-rc or write-uc", w->nic, text);
	return -EINVAL;
}
