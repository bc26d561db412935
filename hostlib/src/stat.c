/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.c - counters and groups of a NIC, for monitors. Needs no port.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

int nbar_nic_stat(const char *nic, struct nbar_rep_nic_stat *out)
{
	struct nbar_rep_nic_stat reply;
	struct nblib_call call = {
		.op = NBAR_OP_NIC_STAT,
		.fixed = { &reply, sizeof(reply) },
	};
	struct nblib_link link;
	uint32_t port;
	int err = nblib_link_open(&link, nic, 0, &port);

	if (err < 0)
		return err;
	err = nblib_link_call(&link, &call);
	nblib_link_close(&link);
	if (err < 0)
		return err;
	reply.nic[sizeof(reply.nic) - 1] = 0;
	reply.wire[sizeof(reply.wire) - 1] = 0;
	reply.address[sizeof(reply.address) - 1] = 0;
	*out = reply;
	return 0;
}

/* Requests one message of infos after the other, until the NIC has sent all. */
static int visit_groups(struct nblib_link *link, void *room,
			int (*visit)(void *arg, const struct nbar_group_info *info), void *arg)
{
	struct nbar_req_group_stat request = { .first = 0 };
	struct nbar_rep_group_stat reply;
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_STAT,
		.body = { { &request, sizeof(request) } },
		.fixed = { &reply, sizeof(reply) },
		.rest = { room, NBAR_MESSAGE_MAX },
	};

	do {
		struct nbar_group_info *info = room;
		int err = nblib_link_call(link, &call);

		if (err < 0)
			return err;
		if (call.nrest != (uint64_t)reply.ninfo * sizeof(*info) ||
		    (reply.next != 0 && reply.next <= request.first))
			return nblib_fail(-EPROTO, "NIC %s: its list of groups makes no sense",
					  link->nic);
		for (uint32_t i = 0; i < reply.ninfo; i++) {
			if (info[i].index > UINT16_MAX) /* handles hold it in 16 bits */
				return nblib_fail(-EPROTO,
						  "NIC %s: its list of groups makes no sense",
						  link->nic);
			info[i].alg[sizeof(info[i].alg) - 1] = 0;
			if (info[i].nstragglers > NBAR_STRAGGLERS_MAX)
				info[i].nstragglers = NBAR_STRAGGLERS_MAX;
			err = visit(arg, &info[i]);
			if (err != 0)
				return err;
		}
		request.first = reply.next;
	} while (reply.next != 0);
	return 0;
}

int nbar_nic_groups(const char *nic, int (*visit)(void *arg, const struct nbar_group_info *info),
		    void *arg)
{
	struct nblib_link link;
	uint32_t port;
	void *room = malloc(NBAR_MESSAGE_MAX);
	int err;

	if (!room)
		return nblib_fail(-ENOMEM, "no memory for a message");
	err = nblib_link_open(&link, nic, 0, &port);
	if (err == 0) {
		err = visit_groups(&link, room, visit, arg);
		nblib_link_close(&link);
	}
	free(room);
	return err;
}
