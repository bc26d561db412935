/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.c - frames in unreliable datagrams of an RDMA device: InfiniBand or RoCE. In the modes
 * write-rc and write-uc, tokens go by a connection if it is ready: connection.c.
 *
 * Called by the polling thread. Never blocks, and registers and creates nothing: memory, queue pair
 * and address handles exist already (device.c, peer.c). Does not send a frame to an unknown peer;
 * the control thread makes this peer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "log.h"
#include "verbs.h"

#define BURST 32u
#define LOOK_NS UINT64_C(1000000)
#define REPAIR_NS UINT64_C(5000000) /* between two repairs, at least */

static void look_for_repair(struct verbs_wire *w, struct nbnic *nic, uint64_t now)
{
	if (w->failing) {
		w->failing = false;
		nbnic_fail(nic, NBAR_STATUS_NIC_DOWN, now);
	}
	if (w->broken && now >= w->repair_at) {
		w->repair_at = now + REPAIR_NS;
		verbs_wake(w);
	}
}

static bool to_itself(struct verbs_wire *w, const struct nbfw_token *t)
{
	struct nbfw_token *at;

	if (w->loop_tail - w->loop_head == VERBS_LOOP) {
		w->base.refused++;
		return false;
	}
	at = &w->loop[w->loop_tail % VERBS_LOOP];
	*at = *t;
	if (t->value_length) {
		at->value = &w->loop_value[w->loop_tail % VERBS_LOOP];
		nbfw_value_copy(&w->loop_value[w->loop_tail % VERBS_LOOP], t->value,
				t->value_length);
	}
	w->loop_tail++;
	return true;
}

static bool verbs_transmit(struct wire_base *base, const struct nbnic_addr *to,
			   const struct nbfw_token *t)
{
	struct verbs_wire *w = (struct verbs_wire *)base;
	struct verbs_addr a = verbs_addr_of(to);
	/* PULLs, their answers and ABORTs go as datagrams: they must arrive when a connection has
	 * failed, and an unreliable connection does not report its failure. If the queue pair of
	 * datagrams has failed, these frames go by the connection, but for values that no
	 * write can carry. */
	bool write = (t->type == NBFW_TOKEN && !w->is_reply) || t->type == NBFW_SIGNAL || w->broken;
	struct verbs_peer *p;
	uint8_t frame[NBFW_FRAME_MAX];
	uint32_t size;

	if (a.qpn == w->self.qpn && memcmp(a.gid, w->self.gid, sizeof(a.gid)) == 0)
		return to_itself(w, t);
	p = verbs_peer_find(w, &a);
	if (!p) {
		/* Drop the answer to a PULL of a stranger. The control thread makes the peer, and
		 * the next PULL gets the answer. */
		w->base.errors++;
		if (w->wanted)
			return true;
		w->want = a;
		w->wanted = true;
		verbs_wake(w);
		return true;
	}
	size = nbfw_token_pack(t, frame);
	if ((write && p->connection && verbs_connection_write(w, p, frame, size)) ||
	    verbs_send(w, p, frame, size))
		return true;
	if (!w->broken) {
		w->base.refused++;
		return false;
	}
	w->base.errors++;
	return true;
}

/* Reads the source of a datagram from its GRH. With RoCE over IPv4, the end of the GRH is an IPv4
 * header. */
static bool source_of(const struct ibv_wc *wc, const uint8_t *grh, struct verbs_addr *out)
{
	static const uint8_t v4[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	if (!(wc->wc_flags & IBV_WC_GRH))
		return false;
	*out = (struct verbs_addr){ .qpn = wc->src_qp, .lid = wc->slid };
	if (grh[0] >> 4 == 6) {
		memcpy(out->gid, grh + 8, 16);
	} else if (grh[20] >> 4 == 4) {
		memcpy(out->gid, v4, 12);
		memcpy(out->gid + 12, grh + 32, 4);
	} else {
		return false;
	}
	return true;
}

static void verbs_receive(struct verbs_wire *w, struct nbnic *nic, const struct ibv_wc *wc,
			  uint64_t now)
{
	const uint8_t *room = w->room + wc->wr_id * VERBS_ROOM;
	size_t length = wc->byte_len > VERBS_GRH ? wc->byte_len - VERBS_GRH : 0;
	const uint8_t *data = room + VERBS_GRH;
	struct verbs_peer *p;
	struct verbs_addr a;
	struct nbnic_addr stranger = { { 0 } };
	struct verbs_handshake handshake;
	struct nbfw_token t;

	if (!source_of(wc, room, &a)) {
		w->base.malformed++;
		return;
	}
	p = verbs_peer_find(w, &a);
	if (length == sizeof(handshake) && data[0] == VERBS_HANDSHAKE) {
		memcpy(&handshake, data, sizeof(handshake));
		verbs_connection_heard(w, p, &handshake);
		return;
	}
	if (!nbfw_token_unpack(data, length, &t)) {
		w->base.malformed++;
		return;
	}
	if (!p)
		memcpy(stranger.byte, &a, sizeof(a));
	w->is_reply = t.type == NBFW_PULL;
	nbnic_receive(nic, p ? &p->addr : &stranger, &t, now);
	w->is_reply = false;
}

/* Takes frames that the NIC has sent to itself, at most `most`. Each keeps its place while the NIC
 * uses it. */
static unsigned take_loopback(struct verbs_wire *w, struct nbnic *nic, uint64_t now, unsigned most)
{
	unsigned n = 0;

	for (uint32_t end = w->loop_tail; w->loop_head != end && n < most; n++, w->loop_head++)
		nbnic_receive(nic, &w->base.addr, &w->loop[w->loop_head % VERBS_LOOP], now);
	return n;
}

/* Takes datagrams in bursts, at most `most`. */
static unsigned take_datagrams(struct verbs_wire *w, struct nbnic *nic, uint64_t now, unsigned most)
{
	struct ibv_wc wc[BURST];
	unsigned n = 0, burst;
	int got;

	do {
		burst = most - n < BURST ? most - n : BURST;
		got = burst > 0 && !w->broken ? ibv_poll_cq(w->recv_cq, (int)burst, wc) : 0;
		for (int i = 0; i < got; i++) {
			if (wc[i].status != IBV_WC_SUCCESS) {
				verbs_queue_failed(w);
				continue;
			}
			verbs_receive(w, nic, &wc[i], now);
			verbs_post_one(w, wc[i].wr_id);
		}
		n += got > 0 ? (unsigned)got : 0;
	} while (got == (int)burst && n < most);
	return n;
}

/* Each of the three sources has its share of the budget (8 or more), which the others cannot use.
 */
static unsigned verbs_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	struct verbs_wire *w = (struct verbs_wire *)base;
	unsigned n = take_loopback(w, nic, now, budget / 2), left = budget - n;

	if (now >= w->look_at) {
		w->look_at = now + LOOK_NS;
		verbs_look_for_completions(w);
		verbs_connection_look(w, now);
		look_for_repair(w, nic, now);
	}
	n += take_datagrams(w, nic, now, w->connections ? left / 2 : left);
	return n + verbs_connection_poll(w, nic, now, budget - n);
}

static void verbs_close(struct wire_base *base)
{
	struct verbs_wire *w = (struct verbs_wire *)base;

	verbs_peers_free(w);
	verbs_device_close(w);
	if (w->base.fd >= 0)
		close(w->base.fd);
	free(w);
}

/* In a child of fork(): closes the descriptors, so that the queue pairs end with the parent. */
static void verbs_forked(struct wire_base *base)
{
	const struct verbs_wire *w = (const struct verbs_wire *)base;

	close(w->context->cmd_fd);
	close(w->context->async_fd);
	close(w->wake_fd);
	close(w->base.fd);
}

/* Makes one descriptor for both: wakes by the polling thread, and events of the device. */
static int verbs_watch(struct verbs_wire *w)
{
	const int fd[] = { w->wake_fd, w->context->async_fd };
	struct epoll_event ev = { .events = EPOLLIN };

	w->base.fd = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < 2; i++)
		if (w->base.fd < 0 || epoll_ctl(w->base.fd, EPOLL_CTL_ADD, fd[i], &ev) < 0)
			return verbs_error(w, "a set of descriptors", errno);
	if (fcntl(w->context->async_fd, F_SETFL, O_NONBLOCK) < 0)
		return verbs_error(w, "its events ready", errno);
	return 0;
}

static int mode_try(const struct verbs_wire *w)
{
	struct verbs_connection *l;

	if (w->self.mode == VERBS_UD)
		return 0;
	l = verbs_connection_make(w);
	if (!l && errno == ENOMEM)
		return 0; /* there may be memory later, when a group is connected */
	if (!l)
		return verbs_error(
			w,
			w->self.mode == VERBS_WRITE_RC
				? "a reliable connection (mode=ud does without)"
				: "an unreliable connection (mode=write-rc has reliable ones)",
			errno);
	verbs_connection_free(l);
	return 0;
}

static int verbs_open(const char *nic, wire_option *option, void *args, struct wire_base **out)
{
	struct verbs_wire *w = calloc(1, sizeof(*w));
	int rc;

	if (!w) {
		log_error("nic %s: no memory for a wire", nic);
		return -ENOMEM;
	}
	strncpy(w->nic, nic, sizeof(w->nic) - 1);
	w->wake_fd = -1;
	w->base.fd = -1;
	rc = verbs_device_open(w, option, args);
	if (rc == 0)
		rc = mode_try(w);
	if (rc == 0)
		rc = verbs_watch(w);
	if (rc < 0) {
		verbs_close(&w->base);
		return rc;
	}
	verbs_post_all(w);
	*out = &w->base;
	return 0;
}

static void verbs_show(const struct wire_base *base, const struct nbnic_addr *addr, char *text,
		       size_t size)
{
	struct verbs_addr a = verbs_addr_of(addr);
	char ip[INET6_ADDRSTRLEN];

	(void)base;
	inet_ntop(AF_INET6, a.gid, ip, sizeof(ip));
	snprintf(text, size, "%s:%u", ip, a.qpn);
}

const struct wire_ops wire_verbs_ops = {
	.values = true,
	.open = verbs_open,
	.close = verbs_close,
	.poll = verbs_poll,
	.transmit = verbs_transmit,
	.peer_begin = verbs_peer_begin,
	.peer_end = verbs_peer_end,
	.show = verbs_show,
	.serve = verbs_serve,
	.forked = verbs_forked,
};
