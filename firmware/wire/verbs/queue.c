/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.c - the queue pair of datagrams of the wire "verbs", and what all its files need: memory to
 * send from, errors, wakes of the control thread.
 *
 * The polling thread calls verbs_send, verbs_post_*, verbs_queue_failed, verbs_look_for_completions
 * and verbs_wake. The other functions are called when a NIC is opened, closed or repaired.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "verbs.h"

int verbs_error(const struct verbs_wire *w, const char *what, int err)
{
	const char *help = "";

	if (err == ENOMEM)
		help = "; this process may lock too little memory: raise the limit (ulimit -l unlimited, "
		       "or LimitMEMLOCK=infinity in a unit of systemd)";
	else if (err == EPERM || err == EACCES)
		help = "; this user may not use the device: see the permissions of /dev/infiniband";
	log_error("nic %s: %s: cannot make %s: %s%s", w->nic,
		  ibv_get_device_name(w->context->device), what, strerror(err), help);
	return err ? -err : -EIO;
}

int verbs_qp_start(struct verbs_wire *w)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = w->port,
		.qkey = VERBS_QKEY,
	};

	if (ibv_modify_qp(w->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		return -errno;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(w->qp, &attr, IBV_QP_STATE))
		return -errno;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(w->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) ? -errno : 0;
}

int verbs_out_make(const struct verbs_wire *w, struct verbs_out *out, uint32_t n, uint32_t size)
{
	const size_t all = (size_t)n * size;

	out->size = size;
	out->room = aligned_alloc(4096, (all + 4095) / 4096 * 4096);
	if (out->room)
		out->mr = ibv_reg_mr(w->pd, out->room, all, 0);
	return out->mr ? 0 : -errno;
}

void verbs_out_free(struct verbs_out *out)
{
	if (out->mr)
		ibv_dereg_mr(out->mr);
	free(out->room);
}

/* Wakes the control thread for rare work; verbs_serve then finds the work. */
void verbs_wake(const struct verbs_wire *w)
{
	uint64_t one = 1;

	if (write(w->wake_fd, &one, sizeof(one)) < 0)
		return; /* the control thread is awake already */
}

void verbs_post_one(struct verbs_wire *w, uint64_t i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(w->room + i * VERBS_ROOM),
		.length = VERBS_ROOM,
		.lkey = w->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(w->qp, &wr, &bad))
		w->base.errors++;
}

void verbs_post_all(struct verbs_wire *w)
{
	for (uint64_t i = 0; i < VERBS_RECVS; i++)
		verbs_post_one(w, i);
}

/* The queue pair has failed. The next look starts the repair. */
void verbs_queue_failed(struct verbs_wire *w)
{
	w->base.errors++;
	w->broken = true;
}

void verbs_look_for_completions(struct verbs_wire *w)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(w->send_cq, 4, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			verbs_queue_failed(w);
		w->done += VERBS_SIGNALLED;
	}
}

bool verbs_send(struct verbs_wire *w, const struct verbs_peer *p, const void *data, uint32_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = length };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = p->ah, .remote_qpn = p->qpn, .remote_qkey = VERBS_QKEY },
	};
	struct ibv_send_wr *bad;

	if (w->posted - w->done >= VERBS_SENDS - VERBS_SIGNALLED)
		verbs_look_for_completions(w);
	if (w->broken || w->posted - w->done >= VERBS_SENDS)
		return false;
	wr.send_flags = verbs_out_put(&w->out, w->posted % VERBS_SENDS, &sge);
	if ((w->posted + 1) % VERBS_SIGNALLED == 0)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (ibv_post_send(w->qp, &wr, &bad)) { /* the queue has room, so this is an error */
		w->broken = true;
		return false;
	}
	w->posted++;
	return true;
}
