/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk.c - frames on Ethernet, through any ethdev of DPDK: one receive queue, one transmit queue,
 * our own EtherType. Each frame is sent at once.
 *
 * libnbar-wire-dpdk.so, which the daemon loads. Called by the polling thread. The EAL arguments say
 * which devices exist.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "auth.h"
#include "eal.h"
#include "log.h"
#include "wire_build.h"

#define BURST 32u
#define RX_DESCRIPTORS_MAX 4096u          /* if the device allows this many */
#define DESCRIPTORS 256u                  /* to send; and to receive if the device tells no limit */
#define LIMIT_UNSAID UINT16_MAX           /* the limit that ethdev shows if the device has none */
#define STATISTICS_NS UINT64_C(100000000) /* between two reads of the device's counters */
/* net_af_xdp of DPDK 22.11 always keeps 2048 buffers in its fill queue, and gives sent buffers back
 * only when its completion queue of 2048 is half full. With fewer buffers in the pool, it does not
 * start, or it stops. */
#define AF_XDP_NAME "net_af_xdp"
#define AF_XDP_BUFFERS (3u * 2048u)
#define SEND_TRIES 8u /* tries until a full queue has room */

#define LOOP 1024u /* frames that a NIC may have sent to itself; a power of two */

#define FRAME_LENGTH_MAX (RTE_ETHER_HDR_LEN + WIRE_FRAME_MAX)

struct dpdk_wire {
	struct wire_base base;
	uint16_t port;
	struct rte_ether_addr mac;
	uint64_t look_at; /* next read of the device's counters */
	uint64_t missed;  /* frames that the device had dropped by the last read */
	/* Frames to itself: two ports of a NIC may be in one group, and no switch sends a frame
	 * back to its sender. */
	uint32_t loop_head, loop_tail;
	struct nbfw_token loop[LOOP];
	struct nbfw_value loop_value[LOOP]; /* of those that carry one */
};

static struct rte_mempool *pool; /* of all NICs */
static uint32_t nwire;
static bool taken[RTE_MAX_ETHPORTS];

/* Returns the number of descriptors to receive: as many as the device allows, because all peers may
 * send at once. */
static uint16_t rx_descriptors(const struct rte_eth_dev_info *info)
{
	const uint16_t limit = info->rx_desc_lim.nb_max;

	if (limit == LIMIT_UNSAID)
		return DESCRIPTORS;
	return limit < RX_DESCRIPTORS_MAX ? limit : RX_DESCRIPTORS_MAX;
}

/* Returns how many buffers a device may hold at the same time. */
static uint32_t buffers_of(uint16_t port)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port, &info) < 0)
		return 2 * DESCRIPTORS;
	if (strncmp(info.driver_name, AF_XDP_NAME, strlen(AF_XDP_NAME)) == 0)
		return AF_XDP_BUFFERS;
	return (uint32_t)rx_descriptors(&info) + DESCRIPTORS;
}

static int pool_make(void)
{
	/*
	 * The flag lets a buffer cross pages, so that buffers lie close to each other. This is
	 * possible if devices use virtual addresses (IOVA as VA). Without the flag, DPDK keeps each
	 * buffer within a page: without hugepages, each page then has one buffer, and net_af_xdp
	 * loses all memory beyond n times the size of a buffer.
	 */
	const unsigned flags =
		rte_eal_iova_mode() == RTE_IOVA_VA ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0;
	const size_t room = RTE_MBUF_DEFAULT_BUF_SIZE;
	uint32_t n = BURST;

	for (uint16_t port = 0; port < RTE_MAX_ETHPORTS; port++)
		if (rte_eth_dev_is_valid_port(port))
			n += buffers_of(port) + 2 * BURST;
	if (!pool)
		pool = rte_mempool_create("frames", n, sizeof(struct rte_mbuf) + room, 0,
					  sizeof(struct rte_pktmbuf_pool_private),
					  rte_pktmbuf_pool_init, NULL, rte_pktmbuf_init, NULL,
					  SOCKET_ID_ANY, flags);
	return pool ? 0 : -ENOMEM;
}

/* Finds the ethdev that port= or dev= names. */
static int find_port(const char *nic, const char *index, const char *name, uint16_t *out)
{
	char *end = NULL;
	unsigned long n;

	if (!index == !name) {
		log_error("nic %s: wire dpdk needs port=INDEX or dev=NAME of an ethdev", nic);
		return -EINVAL;
	}
	if (index) {
		n = strtoul(index, &end, 10);
		*out = (uint16_t)n;
		if (*index && !*end && n < RTE_MAX_ETHPORTS && rte_eth_dev_is_valid_port(*out))
			return 0;
	} else if (rte_eth_dev_get_port_by_name(name, out) == 0) {
		return 0;
	}
	log_error(
		"nic %s: DPDK has no ethdev %s (it has %u in all); name one in the EAL arguments, for "
		"example -- --vdev=net_af_packet0,iface=eth1, or -- -a 0000:01:00.0; if one is named, DPDK "
		"could not open it: --log-level=8 behind the -- says why",
		nic, index ? index : name, rte_eth_dev_count_avail());
	return -ENODEV;
}

static int port_start(uint16_t port)
{
	const struct rte_eth_conf conf = { 0 };
	unsigned socket = (unsigned)rte_eth_dev_socket_id(port);
	struct rte_eth_dev_info info;
	uint16_t nrx = DESCRIPTORS, ntx = DESCRIPTORS;
	int rc = rte_eth_dev_info_get(port, &info);

	if (rc == 0)
		rc = rte_eth_dev_configure(port, 1, 1, &conf);
	if (rc == 0) {
		nrx = rx_descriptors(&info);
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(port, &nrx, &ntx);
	}
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(port, 0, nrx, socket, NULL, pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(port, 0, ntx, socket, NULL);
	if (rc == 0)
		rc = rte_eth_dev_start(port);
	if (rc == 0)
		(void)rte_eth_promiscuous_disable(port); /* some devices cannot, and need not */
	return rc;
}

static void dpdk_describe(struct dpdk_wire *w, const char *nic)
{
	char name[RTE_ETH_NAME_MAX_LEN] = "?", mac[RTE_ETHER_ADDR_FMT_SIZE];
	struct rte_eth_link link;

	(void)rte_eth_dev_get_name_by_port(w->port, name);
	rte_ether_format_addr(mac, sizeof(mac), &w->mac);
	snprintf(w->base.text, sizeof(w->base.text), "%.40s %s", name, mac);
	if (rte_eth_link_get_nowait(w->port, &link) == 0 && !link.link_status)
		log_error("nic %s: the link of %s is not up yet; until it is, frames are lost", nic,
			  name);
}

static int dpdk_open(const char *nic, wire_option *option, void *args, struct wire_base **out)
{
	struct dpdk_wire *w;
	uint16_t port;
	int rc = find_port(nic, option(args, "port"), option(args, "dev"), &port);

	if (rc < 0)
		return rc;
	if (taken[port]) {
		log_error("nic %s: another NIC has ethdev %u already; each needs its own", nic,
			  port);
		return -EBUSY;
	}
	w = calloc(1, sizeof(*w));
	rc = w ? pool_make() : -ENOMEM;
	if (rc == 0)
		rc = port_start(port);
	if (rc == 0)
		rc = rte_eth_macaddr_get(port, &w->mac);
	if (rc < 0) {
		log_error("nic %s: ethdev %u does not start: %s%s", nic, port, strerror(-rc),
			  rc == -ENOMEM ? "; give DPDK more memory, for example -- -m 256" : "");
		free(w);
		return rc;
	}
	taken[port] = true;
	nwire++;
	w->port = port;
	memcpy(w->base.addr.byte, w->mac.addr_bytes, RTE_ETHER_ADDR_LEN);
	dpdk_describe(w, nic);
	*out = &w->base;
	return 0;
}

static void dpdk_close(struct wire_base *base)
{
	struct dpdk_wire *w = (struct dpdk_wire *)base;

	(void)rte_eth_dev_stop(w->port);
	(void)rte_eth_dev_close(w->port);
	taken[w->port] = false;
	free(w);
	if (--nwire == 0) {
		rte_mempool_free(pool);
		pool = NULL;
	}
}

/* Takes one frame from the wire. Ignores frames of other types or for other receivers. */
static void dpdk_take(struct dpdk_wire *w, struct rte_mbuf *m, struct nbnic *nic, uint64_t now)
{
	uint8_t copy[FRAME_LENGTH_MAX];
	uint32_t length = rte_pktmbuf_pkt_len(m);
	uint32_t n = length < FRAME_LENGTH_MAX ? length : FRAME_LENGTH_MAX;
	const uint8_t *frame = rte_pktmbuf_read(m, 0, n, copy);
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;
	struct nbnic_addr from = { { 0 } };
	struct nbfw_token t;

	if (!frame || n < RTE_ETHER_HDR_LEN ||
	    eth->ether_type != rte_cpu_to_be_16(NBFW_ETHER_TYPE) ||
	    !rte_is_same_ether_addr(&eth->dst_addr, &w->mac))
		return;
	memcpy(from.byte, eth->src_addr.addr_bytes, RTE_ETHER_ADDR_LEN);
	if (wire_frame_unpack(&w->base, nic, &from, frame + RTE_ETHER_HDR_LEN,
			      n - RTE_ETHER_HDR_LEN, &t))
		nbnic_receive(nic, &from, &t, now);
}

/* Takes frames that the NIC has sent to itself, at most `most`. */
static unsigned dpdk_take_loopback(struct dpdk_wire *w, struct nbnic *nic, uint64_t now,
				   unsigned most)
{
	unsigned n = 0;

	/* A place is free after its token, whose value lies there. */
	for (uint32_t end = w->loop_tail; w->loop_head != end && n < most; n++, w->loop_head++) {
		struct nbfw_token t = w->loop[w->loop_head % LOOP];

		nbnic_receive(nic, &w->base.addr, &t, now);
	}
	return n;
}

/* Counts the frames for which the device had no room or no buffer. */
static void count_missed(struct dpdk_wire *w)
{
	struct rte_eth_stats s;
	uint64_t missed;

	if (rte_eth_stats_get(w->port, &s) < 0)
		return;
	missed = s.imissed + s.rx_nombuf;
	if (missed > w->missed)
		w->base.drops += missed - w->missed;
	w->missed = missed;
}

static unsigned dpdk_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	struct dpdk_wire *w = (struct dpdk_wire *)base;
	struct rte_mbuf *m[BURST];
	unsigned n = dpdk_take_loopback(w, nic, now, budget / 2);
	uint16_t most, got;

	if (now >= w->look_at) {
		w->look_at = now + STATISTICS_NS;
		count_missed(w);
	}
	for (got = most = 0; n < budget && got == most; n += got) {
		most = (uint16_t)(budget - n < BURST ? budget - n : BURST);
		got = rte_eth_rx_burst(w->port, 0, m, most);
		for (uint16_t i = 0; i < got; i++) {
			dpdk_take(w, m[i], nic, now);
			rte_pktmbuf_free(m[i]);
		}
	}
	return n;
}

static bool dpdk_to_itself(struct dpdk_wire *w, const struct nbfw_token *t)
{
	if (w->loop_tail - w->loop_head == LOOP) {
		w->base.refused++;
		return false;
	}
	struct nbfw_token *to = &w->loop[w->loop_tail % LOOP];

	*to = *t;
	if (t->value_length) {
		to->value = &w->loop_value[w->loop_tail % LOOP];
		memcpy(&w->loop_value[w->loop_tail % LOOP], t->value, t->value_length);
	}
	w->loop_tail++;
	return true;
}

static bool dpdk_transmit(struct wire_base *base, const struct nbnic_addr *to,
			  const struct nbfw_token *t)
{
	struct dpdk_wire *w = (struct dpdk_wire *)base;
	struct rte_ether_hdr *eth;
	struct rte_mbuf *m;

	if (memcmp(to->byte, w->mac.addr_bytes, RTE_ETHER_ADDR_LEN) == 0)
		return dpdk_to_itself(w, t);
	m = rte_pktmbuf_alloc(pool);
	if (!m) {
		w->base.refused++;
		return false;
	}
	/* A new mbuf always has room for a frame. */
	eth = (void *)rte_pktmbuf_append(m,
					 (uint16_t)(RTE_ETHER_HDR_LEN + wire_frame_size(base, t)));
	memcpy(eth->dst_addr.addr_bytes, to->byte, RTE_ETHER_ADDR_LEN);
	eth->src_addr = w->mac;
	eth->ether_type = rte_cpu_to_be_16(NBFW_ETHER_TYPE);
	wire_frame_pack(base, to, t, (uint8_t *)(eth + 1));
	for (unsigned i = 0; i < SEND_TRIES; i++)
		if (rte_eth_tx_burst(w->port, 0, &m, 1) == 1)
			return true;
	rte_pktmbuf_free(m);
	w->base.refused++;
	return false;
}

static void dpdk_show(const struct wire_base *base, const struct nbnic_addr *a, char *text,
		      size_t size)
{
	struct rte_ether_addr mac;

	(void)base;
	memcpy(&mac, a->byte, sizeof(mac));
	rte_ether_format_addr(text, (uint16_t)size, &mac);
}

static const struct wire_ops dpdk_ops = {
	.values = true,
	.quota = 4, /* each frame is a burst; on some ethdevs a system call */
	.open = dpdk_open,
	.close = dpdk_close,
	.poll = dpdk_poll,
	.transmit = dpdk_transmit,
	.peer_begin = wire_auth_peer_begin,
	.peer_end = wire_auth_peer_end,
	.show = dpdk_show,
};

__attribute__((visibility("default"))) const struct wire_object nbar_wire = {
	.build = WIRE_BUILD,
	.nic_size = sizeof(struct nbnic),
	.ops = &dpdk_ops,
	.log = &wire_object_log,
	.start = eal_start,
	.end = eal_end,
};
