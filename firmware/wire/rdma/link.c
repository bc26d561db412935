/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - a page with two copies: pushes words of one copy into the other, by RDMA writes.
 *
 * push, arrived and heard are called by any thread, and never wait for the other side. The words of
 * a push that is not inline are read later: so only values are not inline, which change only after
 * the other side has answered.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma.h"
#include "verbs/route.h"

#define EVENTS_A_CALL 8u
#define TIMEOUT 17 /* the other side counts as dead after about 4 s */

static bool post_recv(struct nbar_rdma_link *l)
{
	struct ibv_recv_wr wr = { .num_sge = 0 }, *bad;

	return ibv_post_recv(l->qp, &wr, &bad) == 0;
}

static int link_queues_make(struct nbar_rdma_link *l)
{
	struct nbar_rdma *d = l->device;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = RDMA_WRITES,
			.max_recv_wr = RDMA_RECVS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = RDMA_INLINE,
		},
	};
	int rc;

	/* All pushes may fail at once, and each failure is a completion. */
	init.send_cq = l->send_cq = ibv_create_cq(d->context, 4 * RDMA_WRITES, NULL, NULL, 0);
	if (l->send_cq)
		init.recv_cq = l->recv_cq =
			ibv_create_cq(d->context, 2 * RDMA_RECVS, l, d->channel, 0);
	if (l->recv_cq)
		l->qp = ibv_create_qp(l->pd, &init);
	if (!l->qp)
		return -errno;
	rc = verbs_route_begin(l->qp, d->port, &l->mine.psn);
	for (uint32_t i = 0; rc == 0 && i < RDMA_RECVS; i++)
		rc = post_recv(l) ? 0 : -EIO;
	return rc == 0 && ibv_req_notify_cq(l->recv_cq, 0) ? -EIO : rc;
}

int rdma_join(struct nbar_rdma *d, struct nbar_page *page, void *arg, struct nbar_rdma_link **out,
	      struct nbar_rdma_end *mine, char text[NBAR_RDMA_TEXT])
{
	struct nbar_rdma_link *l = calloc(1, sizeof(*l));
	int rc = -ENOMEM;

	if (l) {
		l->device = d;
		l->arg = arg;
		l->page = (void *)page;
		pthread_mutex_init(&l->lock, NULL);
		l->pd = ibv_alloc_pd(d->context);
		if (l->pd)
			l->mr = ibv_reg_mr(l->pd, page, sizeof(*page),
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		rc = l->mr ? link_queues_make(l) : -errno;
	}
	if (rc < 0) {
		snprintf(text, NBAR_RDMA_TEXT, "%s: cannot make a connection for a port: %s%s",
			 ibv_get_device_name(d->context->device), strerror(-rc),
			 rc == -ENOMEM ? "; may this process lock too little memory (ulimit -l)?"
				       : "");
		if (l)
			rdma_leave(l);
		return rc;
	}
	l->mine.page = (uintptr_t)page;
	l->mine.qpn = l->qp->qp_num;
	l->mine.rkey = l->mr->rkey;
	l->mine.mtu = d->mtu;
	memcpy(l->mine.gid, d->gid, sizeof(l->mine.gid));
	*mine = l->mine;
	*out = l;
	return 0;
}

int rdma_start(struct nbar_rdma_link *l, const struct nbar_rdma_end *its)
{
	const struct nbar_rdma *d = l->device;
	struct verbs_route route = {
		.path = {
			.is_global = 1,
			.grh = { .sgid_index = d->gid_index, .hop_limit = 64 },
			.port_num = d->port,
		},
		.qpn = its->qpn,
		.psn = its->psn & 0xffffff,
		.own_psn = l->mine.psn,
		.mtu = d->mtu,
		.reliable = true,
		.timeout = TIMEOUT,
	};
	int rc;

	if (its->mtu < IBV_MTU_256 || l->running)
		return -EINVAL;
	if (its->mtu < d->mtu)
		route.mtu = (uint8_t)its->mtu;
	memcpy(route.path.grh.dgid.raw, its->gid, sizeof(its->gid));
	rc = verbs_route_start(l->qp, &route);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&l->lock);
	l->its = *its;
	l->running = true;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

void rdma_leave(struct nbar_rdma_link *l)
{
	if (l->qp)
		ibv_destroy_qp(l->qp);
	if (l->recv_cq)
		ibv_destroy_cq(l->recv_cq);
	if (l->send_cq)
		ibv_destroy_cq(l->send_cq);
	if (l->mr)
		ibv_dereg_mr(l->mr);
	if (l->pd)
		ibv_dealloc_pd(l->pd);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* With the lock: takes completions of pushes. */
static void take_completions(struct nbar_rdma_link *l)
{
	struct ibv_wc wc[RDMA_WRITES / RDMA_WRITES_SIGNALLED];
	int n = ibv_poll_cq(l->send_cq, (int)(sizeof(wc) / sizeof(wc[0])), wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			l->broken = true;
		else if (wc[i].wr_id > l->done)
			l->done = wc[i].wr_id;
	}
	l->broken |= n < 0;
}

/* With the lock. */
static int post_write(struct nbar_rdma_link *l, struct ibv_send_wr *wr, bool report)
{
	struct ibv_send_wr *bad;

	report |= (l->posted + 1) % RDMA_WRITES_SIGNALLED == 0;
	/* The sign of life comes here, too: so a connection that fails is found. */
	if (report || l->posted - l->done == RDMA_WRITES)
		take_completions(l);
	if (!l->running || l->broken)
		return -ENOTCONN;
	if (l->posted - l->done == RDMA_WRITES)
		return -EAGAIN;
	wr->wr_id = l->posted + 1;
	if (report) {
		wr->send_flags |= IBV_SEND_SIGNALED;
		l->asked = wr->wr_id;
	}
	if (ibv_post_send(l->qp, wr, &bad)) { /* the queue has room, so this is an error */
		l->broken = true;
		return -ENOTCONN;
	}
	l->posted++;
	return 0;
}

/* Pushes n bytes of `from`, which is in the page or inline, to `at` in the page.
 *
 * RDMA devices write 8 aligned bytes as a whole, which InfiniBand does not promise: a completion
 * word is such a piece, so its reader sees epoch and status of one barrier. */
static int push_to(struct nbar_rdma_link *l, const void *from, size_t n, size_t at, uint32_t cell)
{
	struct ibv_sge sge = { .addr = (uintptr_t)from,
			       .length = (uint32_t)n,
			       .lkey = l->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = n <= RDMA_INLINE ? IBV_SEND_INLINE : 0,
		.wr.rdma.remote_addr = l->its.page + at,
		.wr.rdma.rkey = l->its.rkey,
	};
	int rc;

	if (cell != NBAR_RDMA_NO_CELL) {
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = htobe32(cell);
	}
	pthread_mutex_lock(&l->lock);
	rc = post_write(l, &wr, false);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int rdma_push(struct nbar_rdma_link *l, const void *at, size_t n, uint32_t cell)
{
	return push_to(l, at, n, (size_t)((const uint8_t *)at - l->page), cell);
}

int rdma_push_word(struct nbar_rdma_link *l, size_t at, uint32_t word, uint32_t cell)
{
	return push_to(l, &word, sizeof(word), at, cell);
}

int rdma_arrived(struct nbar_rdma_link *l, uint64_t *mark)
{
	/* An empty push, which reports what no other push reports. */
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = l->its.page, .rkey = l->its.rkey },
	};
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	if (*mark == NBAR_RDMA_NO_MARK && l->posted != l->asked)
		rc = post_write(l, &wr, true);
	if (*mark == NBAR_RDMA_NO_MARK && rc == 0)
		*mark = l->posted;
	take_completions(l);
	if (l->broken || !l->running)
		rc = -ENOTCONN;
	else
		rc = *mark != NBAR_RDMA_NO_MARK && l->done >= *mark;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

static void link_break(struct nbar_rdma_link *l)
{
	pthread_mutex_lock(&l->lock);
	l->broken = true;
	pthread_mutex_unlock(&l->lock);
}

void rdma_heard(struct nbar_rdma *d, void (*heard)(void *arg, uint32_t cell, void *more),
		void *more)
{
	struct ibv_cq *cq;
	void *of;

	/* What is left makes the descriptor readable again. */
	for (uint32_t n = 0; n < EVENTS_A_CALL && !ibv_get_cq_event(d->channel, &cq, &of); n++) {
		struct nbar_rdma_link *l = of;
		struct ibv_wc wc;
		int rc;

		ibv_ack_cq_events(cq, 1);
		/* What comes from here on makes another event. */
		rc = ibv_req_notify_cq(cq, 0) ? -1 : 1;
		for (uint32_t i = 0; i < 2 * RDMA_RECVS && rc > 0; i++) {
			rc = ibv_poll_cq(cq, 1, &wc);
			if (rc <= 0)
				break;
			/* A hostile side can also send messages instead of writes. */
			bool good = wc.status == IBV_WC_SUCCESS &&
				    wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && post_recv(l);

			if (!good)
				link_break(l);
			heard(l->arg, good ? be32toh(wc.imm_data) : NBAR_RDMA_NO_CELL, more);
		}
		if (rc < 0) {
			link_break(l);
			heard(l->arg, NBAR_RDMA_NO_CELL, more);
		}
	}
}
