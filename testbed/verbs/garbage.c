/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * garbage.c - sends invalid datagrams to the queue pair of a NIC.
 *
 * verbs-garbage GID QPN COUNT: sends COUNT datagrams to queue pair QPN of GID. Half of them are
 * random bytes of random length; the others begin like a frame or a handshake, and continue with
 * random bytes. Sends from the first device, with its first RoCE v2 GID of an IPv4 address. Used by
 * test-bad.sh.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define QKEY 0x6e626172u
#define LENGTH_MAX 64u

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static int gid_index(struct ibv_context *c)
{
	struct ibv_gid_entry e[64];
	ssize_t n = ibv_query_gid_table(c, e, 64, 0);

	for (ssize_t i = 0; i < n; i++)
		if (e[i].gid_type == IBV_GID_TYPE_ROCE_V2 && e[i].gid.raw[10] == 0xff &&
		    e[i].gid.raw[0] == 0)
			return (int)e[i].gid_index;
	return 0;
}

static struct ibv_qp *qp_make(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = cq,
		.recv_cq = cq,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = LENGTH_MAX },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp ||
	    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		die("queue pair");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		die("queue pair to RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN))
		die("queue pair to RTS");
	return qp;
}

static uint32_t fill(uint8_t *data)
{
	uint32_t length = (uint32_t)rand() % (LENGTH_MAX + 1);

	for (uint32_t i = 0; i < LENGTH_MAX; i++)
		data[i] = (uint8_t)rand();
	if (rand() % 2)
		return length;
	data[0] = rand() % 2 ? 1 : 0x81; /* version of a frame; a handshake */
	data[1] = (uint8_t)(1 + rand() % 5);
	data[2] = data[3] = 0;
	return 48;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = c ? ibv_alloc_pd(c) : NULL;
	struct ibv_cq *cq = c ? ibv_create_cq(c, 4, NULL, NULL, 0) : NULL;
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1 };
	uint8_t data[LENGTH_MAX];
	struct ibv_qp *qp;
	struct ibv_ah *ah;

	if (argc != 4 || !pd || !cq || inet_pton(AF_INET6, argv[1], path.grh.dgid.raw) != 1)
		die("usage: verbs-garbage GID QPN COUNT, with an RDMA device");
	path.grh.sgid_index = (uint8_t)gid_index(c);
	path.grh.hop_limit = 64;
	qp = qp_make(pd, cq);
	ah = ibv_create_ah(pd, &path);
	if (!ah)
		die("address handle");
	for (long n = strtol(argv[3], NULL, 10); n > 0; n--) {
		struct ibv_sge sge = { .addr = (uintptr_t)data, .length = fill(data) };
		struct ibv_send_wr wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_INLINE,
			.wr.ud = { ah, (uint32_t)strtoul(argv[2], NULL, 10), QKEY },
		};
		struct ibv_send_wr *bad;
		struct ibv_wc wc;

		if (ibv_post_send(qp, &wr, &bad))
			die("post");
		while (ibv_poll_cq(cq, 1, &wc) == 0)
			;
		if (wc.status != IBV_WC_SUCCESS) {
			fprintf(stderr, "send: %s\n", ibv_wc_status_str(wc.status));
			return 1;
		}
	}
	return 0;
}
