/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.c - counters and groups of a NIC, for monitors. Needs no port.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

/* Sends one request to a NIC, without a port. *pid: the process that answers. */
static int stat_ask(const char *nic, struct nblib_call *call, uint32_t *pid)
{
	struct nblib_link link;
	uint32_t port;
	int err = nblib_link_open(&link, nic, 0, &port);

	if (err)
		return err;
	err = nblib_link_call(&link, call);
	*pid = nblib_link_pid(&link);
	nblib_link_close(&link);
	return err;
}

int nbar_nic_stat(const char *nic, struct nbar_rep_nic_stat *out)
{
	struct nbar_rep_nic_stat reply;
	struct nblib_call call = {
		.op = NBAR_OP_NIC_STAT,
		.fixed = { &reply, sizeof(reply) },
	};
	uint32_t pid;
	int err = stat_ask(nic, &call, &pid);

	if (err)
		return err;
	if (pid != 0) /* the daemon may number itself in a PID namespace of its own */
		reply.pid = pid;
	reply.nic[sizeof(reply.nic) - 1] = 0;
	reply.wire[sizeof(reply.wire) - 1] = 0;
	reply.address[sizeof(reply.address) - 1] = 0;
	reply.address_why[sizeof(reply.address_why) - 1] = 0;
	*out = reply;
	return 0;
}

int nbar_nic_latency(const char *nic, struct nbar_rep_nic_latency *out)
{
	struct nbar_rep_nic_latency reply;
	struct nblib_call call = {
		.op = NBAR_OP_NIC_LATENCY,
		.fixed = { &reply, sizeof(reply) },
	};
	uint32_t pid;
	int err = stat_ask(nic, &call, &pid);

	if (err == 0)
		*out = reply;
	return err;
}

struct visitor {
	int (*group)(void *arg, const struct nbar_group_info *info);
	int (*stat)(void *arg, const struct nbar_group_info *info,
		    const struct nbar_group_stat *stat);
	void *arg;
};

static int visit_one(struct nblib_link *link, const struct visitor *v,
		     const struct nbar_group_info *info)
{
	struct nbar_group_stat stat;
	bool has = false;

	if (v->group)
		return v->group(v->arg, info);
	if (info->life != NBAR_LIFE_LINGER) {
		uint32_t index;
		int err = nblib_stat_group(link, info->port, info->cell, &index, &stat);

		if (err && err != -ENOENT && err != -EOPNOTSUPP)
			return err;
		/* The cell may have another group now. */
		has = err == 0 && index == info->index;
	}
	return v->stat(v->arg, info, has ? &stat : NULL);
}

static int bad_list(const struct nblib_link *link)
{
	return nblib_fail(-EPROTO,
			  "NIC %s: its list of groups makes no sense: install the same nbar for "
			  "both",
			  link->nic);
}

/* Requests messages of infos, one after the other, until the NIC has sent all infos. */
static int visit_groups(struct nblib_link *link, void *room, const struct visitor *visitor)
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

		if (err)
			return err;
		if (call.nrest != (uint64_t)reply.ninfo * sizeof(*info) ||
		    (reply.next != 0 && reply.next <= request.first))
			return bad_list(link);
		for (uint32_t i = 0; i < reply.ninfo; i++) {
			if (info[i].index > UINT16_MAX) /* a handle holds the index in 16 bits */
				return bad_list(link);
			info[i].alg[sizeof(info[i].alg) - 1] = 0;
			if (info[i].nstragglers > NBAR_STRAGGLERS_MAX)
				info[i].nstragglers = NBAR_STRAGGLERS_MAX;
			err = visit_one(link, visitor, &info[i]);
			if (err != 0)
				return err;
		}
		request.first = reply.next;
	} while (reply.next != 0);
	return 0;
}

static int stat_visit(const char *nic, const struct visitor *visitor)
{
	struct nblib_link link;
	uint32_t port;
	void *room = malloc(NBAR_MESSAGE_MAX);
	int err;

	if (!room)
		return nblib_fail(-ENOMEM, "no memory for a message");
	err = nblib_link_open(&link, nic, 0, &port);
	if (err == 0) {
		err = visit_groups(&link, room, visitor);
		nblib_link_close(&link);
	}
	free(room);
	return err;
}

int nbar_nic_groups(const char *nic, int (*group)(void *arg, const struct nbar_group_info *info),
		    void *arg)
{
	return stat_visit(nic, &(const struct visitor){ .group = group, .arg = arg });
}

int nbar_nic_group_stats(const char *nic,
			 int (*stat)(void *arg, const struct nbar_group_info *info,
				     const struct nbar_group_stat *stat),
			 void *arg)
{
	return stat_visit(nic, &(const struct visitor){ .stat = stat, .arg = arg });
}
