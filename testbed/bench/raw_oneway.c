/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw_oneway.c - measures the lower bound of a barrier of two hosts: the one-way time of a bare
 * frame through a DPDK driver, and the transfer of a cache line from core to core.
 *
 * raw.sh starts it; the EAL arguments name two ethdevs that a cable joins. One thread sends a frame
 * on the first and polls the second until the frame arrives. Prints two medians: "ONE-WAY-NS
 * LINE-NS".
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#include "nbar_host.h"

#define FRAMES 20000u
#define WARMUP 1000u
#define LENGTH 62u /* as a frame of nbar: an Ethernet header and 48 bytes */
#define ETHER_TYPE 0x88B5u
#define WAIT_NS UINT64_C(100000000) /* after this time a frame is lost */
#define ROUNDS 200u                 /* samples; each is the mean of TRIPS round trips */
#define TRIPS 1000u
#define GIVE_UP 1000000000u /* limit of looks for a cache line */

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t median(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

/* --- a frame ---------------------------------------------------------------------------------- */

static int port_start(uint16_t port, struct rte_mempool *pool)
{
	const struct rte_eth_conf conf = { 0 };
	int rc = rte_eth_dev_configure(port, 1, 1, &conf);

	if (rc == 0)
		rc = rte_eth_rx_queue_setup(port, 0, 256, (unsigned)SOCKET_ID_ANY, NULL, pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(port, 0, 256, (unsigned)SOCKET_ID_ANY, NULL);
	return rc == 0 ? rte_eth_dev_start(port) : rc;
}

/* Receives all frames that have arrived. True: the frame with this number is among them. */
static bool arrived(uint16_t port, uint32_t number)
{
	struct rte_mbuf *m[32];
	uint16_t n = rte_eth_rx_burst(port, 0, m, 32);
	bool found = false;

	for (uint16_t i = 0; i < n; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(m[i], const uint8_t *);
		const uint16_t type = rte_cpu_to_be_16(ETHER_TYPE);

		found |= rte_pktmbuf_data_len(m[i]) >= LENGTH &&
			 memcmp(frame + 12, &type, sizeof(type)) == 0 &&
			 memcmp(frame + 14, &number, sizeof(number)) == 0;
		rte_pktmbuf_free(m[i]);
	}
	return found;
}

/* Sends one frame from port 0 to port 1. Returns its time in ns; 0: it was lost. */
static uint64_t one_way(struct rte_mempool *pool, const struct rte_ether_addr mac[2],
			uint32_t number)
{
	const uint16_t type = rte_cpu_to_be_16(ETHER_TYPE);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *frame = m ? (void *)rte_pktmbuf_append(m, LENGTH) : NULL;
	uint64_t start = nbar_now_ns();

	if (!frame)
		return 0;
	memset(frame, 0, LENGTH);
	memcpy(frame, &mac[1], 6);
	memcpy(frame + 6, &mac[0], 6);
	memcpy(frame + 12, &type, sizeof(type));
	memcpy(frame + 14, &number, sizeof(number));
	if (rte_eth_tx_burst(0, 0, &m, 1) != 1) {
		rte_pktmbuf_free(m);
		return 0;
	}
	while (!arrived(1, number))
		if (nbar_now_ns() - start > WAIT_NS)
			return 0;
	return nbar_now_ns() - start;
}

static int measure_frames(uint64_t *out)
{
	static uint64_t time[FRAMES];
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"raw", 2047, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct rte_ether_addr mac[2];
	uint32_t n = 0;

	for (uint16_t p = 0; p < 2; p++)
		if (!pool || port_start(p, pool) < 0 || rte_eth_macaddr_get(p, &mac[p]) < 0)
			return -1;
	for (uint32_t i = 0; i < WARMUP + FRAMES; i++) {
		uint64_t ns = one_way(pool, mac, i);

		if (i >= WARMUP && ns > 0)
			time[n++] = ns;
	}
	if (n < FRAMES / 2)
		return -1;
	*out = median(time, n);
	return 0;
}

/* --- a cache line ----------------------------------------------------------------------------- */

static struct {
	_Alignas(128) uint32_t there;
	_Alignas(128) uint32_t back;
	_Alignas(128) int cpu;
} line;

static bool await(const uint32_t *word, uint32_t value)
{
	/* Pairs with the release of the other thread. */
	for (uint32_t i = 0; i < GIVE_UP; i++)
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
			return true;
	return false;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *answer(void *arg)
{
	(void)arg;
	pin(line.cpu);
	for (uint32_t i = 1; i <= ROUNDS * TRIPS && await(&line.there, i); i++)
		__atomic_store_n(&line.back, i, __ATOMIC_RELEASE); /* pairs with await */
	return NULL;
}

/* Needs a second processor. */
static int measure_lines(const cpu_set_t *allowed, uint64_t *out)
{
	uint64_t time[ROUNDS];
	pthread_t thread;
	uint32_t trip = 0;
	int self = sched_getcpu();
	bool ok = true;

	for (line.cpu = 0; line.cpu < CPU_SETSIZE; line.cpu++)
		if (line.cpu != self && CPU_ISSET((size_t)line.cpu, allowed))
			break;
	if (line.cpu == CPU_SETSIZE || pthread_create(&thread, NULL, answer, NULL) != 0)
		return -1;
	for (uint32_t r = 0; r < ROUNDS && ok; r++) {
		uint64_t start = nbar_now_ns();

		for (uint32_t i = 0; i < TRIPS && ok; i++) {
			__atomic_store_n(&line.there, ++trip,
					 __ATOMIC_RELEASE); /* pairs with await */
			ok = await(&line.back, trip);
		}
		time[r] = (nbar_now_ns() - start) / (2 * TRIPS);
	}
	pthread_join(thread, NULL);
	*out = median(time, ROUNDS);
	return ok ? 0 : -1;
}

int main(int argc, char **argv)
{
	uint64_t frame_ns, line_ns;
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return 1;
	if (rte_eal_init(argc, argv) < 0 || rte_eth_dev_count_avail() != 2) {
		fprintf(stderr, "raw-oneway: two ethdevs are wanted as EAL arguments\n");
		return 2;
	}
	if (measure_frames(&frame_ns) < 0) {
		fprintf(stderr,
			"raw-oneway: frames do not go from the first ethdev to the second\n");
		return 1;
	}
	if (measure_lines(&allowed, &line_ns) < 0) {
		fprintf(stderr, "raw-oneway: cache lines need two processors\n");
		return 1;
	}
	printf("%llu %llu\n", (unsigned long long)frame_ns, (unsigned long long)line_ns);
	rte_eal_cleanup();
	return 0;
}
