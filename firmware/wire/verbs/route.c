/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.c - connects a queue pair to another. See route.h.
 *
 * Called by threads of requests, because all this takes system calls.
 */
#include "route.h"

#include <errno.h>
#include <sys/random.h>

#define RETRIES 7
/* If the other end takes no writes that carry a number, the connection fails after 0.3 s. */
#define RNR_RETRIES 6 /* 7: for ever */
#define RNR_TIMER 24  /* 41 ms */

int verbs_route_begin(struct ibv_qp *qp, uint8_t port, uint32_t *psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = port,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	if (getrandom(psn, sizeof(*psn), 0) != sizeof(*psn))
		return -EIO;
	*psn &= 0xffffff;
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
		       ? -errno
		       : 0;
}

int verbs_route_start(struct ibv_qp *qp, const struct verbs_route *r)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = r->mtu,
		.dest_qp_num = r->qpn,
		.rq_psn = r->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = r->path,
	};
	const int more_rtr = r->reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0;
	const int more_rts = r->reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						   IBV_QP_MAX_QP_RD_ATOMIC
					 : 0;

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | more_rtr))
		return -errno;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = r->timeout,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_RETRIES,
		.sq_psn = r->own_psn,
		.max_rd_atomic = 1,
	};
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | more_rts) ? -errno : 0;
}
