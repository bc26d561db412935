/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request_user.c - the accounts of users: each user has at most its quota of a NIC
 * (--user-percent), so that no user keeps another user out.
 *
 * Called by the other request*.c. An account is free when its user has no port and no lingering
 * group; the table is bounded by NBNIC_USERS_MAX. If no account is free, one without a port is
 * freed: users who are gone keep nobody out.
 */
#include "request.h"

_Static_assert(NBNIC_HANDLES / NBNIC_USERS_MAX <= 64, "groups forgotten in one pass");

/* percent of n, at least 1. n is below 2^25. */
static uint32_t part(uint32_t n, uint32_t percent)
{
	uint32_t most = n * percent / 100;

	return most ? most : 1;
}

void nbnic_users_init(struct nbnic_device *d, uint32_t percent)
{
	/* A user who may have all of the NIC needs no limit besides those of the NIC. */
	d->user_max = (struct nbnic_user){
		.nport = UINT32_MAX,
		.nattached = UINT32_MAX,
		.ngroup = UINT32_MAX,
		.bytes = UINT64_MAX,
	};
	if (percent == 0 || percent >= 100)
		return;
	d->user_max.nport = part(NBNIC_PORTS_MAX, percent);
	d->user_max.nattached = part(NBNIC_ATTACHED_MAX, percent);
	d->user_max.ngroup = part(NBNIC_GROUPS_MAX, percent);
	/* In steps of 64 KiB, because a NIC need not have a division of 64 bits. */
	d->user_max.bytes = (uint64_t)part((uint32_t)(d->open_bytes_max >> 16), percent) << 16;
}

/* Frees the account without a port that has the fewest lingering groups: at most an equal part of
 * NBNIC_HANDLES. Returns its index; NBNIC_USERS_MAX: all have ports. */
static uint32_t forget_gone_user(struct nbnic_device *d)
{
	uint32_t least = NBNIC_USERS_MAX;

	for (uint32_t i = 0; i < NBNIC_USERS_MAX; i++)
		if (d->user[i].nport == 0 &&
		    (least == NBNIC_USERS_MAX || d->nic.user[i].n < d->nic.user[least].n))
			least = i;
	if (least < NBNIC_USERS_MAX)
		nbnic_group_forget_user(&d->nic, least);
	return least;
}

uint32_t nbnic_user_find(struct nbnic_device *d, uint32_t uid)
{
	uint32_t found = NBNIC_USERS_MAX;

	for (uint32_t i = 0; i < NBNIC_USERS_MAX; i++) {
		bool is_free = (d->user[i].nport | d->nic.user[i].n) == 0;

		if (!is_free && d->user[i].uid == uid)
			return i;
		if (is_free && found == NBNIC_USERS_MAX)
			found = i;
	}
	if (found == NBNIC_USERS_MAX)
		found = forget_gone_user(d);
	if (found < NBNIC_USERS_MAX)
		d->user[found].uid = uid;
	return found;
}

static void run_count(void *arg, uint64_t now)
{
	struct nbnic_device *d = arg;

	(void)now;
	nbnic_count(&d->nic, NBAR_COUNTER_quota_refused);
}

/* 0 if has + more is within most; otherwise the refusal. */
static int user_check(struct nbnic_request *r, const char *what, uint32_t has, uint32_t more,
		      uint32_t most)
{
	if ((uint64_t)has + more <= most)
		return 0;
	nbnic_request_call(r->device, run_count, r->device);
	return nbnic_request_fail(r, -NBAR_ENOSPC,
				  "uid %u has %u %s of %s, and one user may have %u; close some, "
				  "use another NIC, or start this one with a larger "
				  "--user-percent",
				  r->client->uid, has, what, r->device->name, most);
}

int nbnic_user_check_port(struct nbnic_request *r)
{
	const struct nbnic_device *d = r->device;

	for (uint32_t i = 0; i < NBNIC_USERS_MAX; i++)
		if (d->user[i].nport && d->user[i].uid == r->client->uid)
			return user_check(r, "ports", d->user[i].nport, 1, d->user_max.nport);
	return 0;
}

int nbnic_user_check_attach(struct nbnic_request *r, const struct nbnic_client *owner)
{
	const struct nbnic_device *d = r->device;

	return user_check(r, "processes attached to ports", d->user[owner->user].nattached, 1,
			  d->user_max.nattached);
}

int nbnic_user_check_group(struct nbnic_request *r, size_t bytes)
{
	const struct nbnic_device *d = r->device;
	const struct nbnic_user *u = &d->user[r->client->user];
	int rc = user_check(r, "groups", u->ngroup, 1, d->user_max.ngroup);

	if (rc)
		return rc;
	return user_check(r, "KiB of groups", (uint32_t)(u->bytes >> 10),
			  (uint32_t)((bytes + 1023) >> 10), (uint32_t)(d->user_max.bytes >> 10));
}
