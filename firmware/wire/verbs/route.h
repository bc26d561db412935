/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.h - lists devices, and connects a queue pair to another: for the connections of the wire
 * "verbs", and for the pages of remote hosts.
 */
#ifndef NBAR_WIRE_VERBS_ROUTE_H
#define NBAR_WIRE_VERBS_ROUTE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* Returns all devices, and NULL behind them; or NULL and errno. Any thread; nobody frees the list.
 * Once there is a device, the list is not read again, and later devices are not in it: libibverbs
 * looks into each provider for a new list, and crashes if the program has unloaded one since (Open
 * MPI loads and unloads libfabric, with libefa). So call it as soon as libibverbs is loaded. */
struct ibv_device **verbs_devices(void);

struct verbs_route {
	struct ibv_ah_attr path;
	uint32_t qpn, psn; /* of the other queue pair */
	uint32_t own_psn;
	uint8_t mtu; /* enum ibv_mtu */
	bool reliable;
	uint8_t timeout; /* the other end counts as dead after 8 tries, 4.096 us << timeout apart */
};

/* Brings a queue pair from RESET to INIT, in which it can be connected; draws its packet sequence
 * number. The other end may write. 0, or negative errno. */
int verbs_route_begin(struct ibv_qp *qp, uint8_t port, uint32_t *psn);

/* Connects it. 0, or negative errno. */
int verbs_route_start(struct ibv_qp *qp, const struct verbs_route *r);

#endif
