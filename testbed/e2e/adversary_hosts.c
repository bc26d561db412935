/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adversary_hosts.c - hosts that write garbage into their pages, and hosts that die.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adversary.h"

/* Writes this value into a doorbell, and waits until the NIC counts it as bad. */
static bool rings_bad(struct raw *r, uint32_t cell, uint32_t posted)
{
	uint64_t before = raw_counter(r, NBAR_COUNTER_doorbells_bad);

	raw_post(r, cell, posted);
	return raw_await_counter(r, NBAR_COUNTER_doorbells_bad, before + 1) == before + 1;
}

static void doorbells(void)
{
	struct nbar_endpoint endpoint[2];
	struct raw a, b;

	dial(&a, "n0");
	dial(&b, "n1");
	if (!ok(pair(&a, &b, 2, endpoint), "a victim"))
		return;
	raw_group_open(&a, "pairwise", 0, 2, 3);
	raw_group_open(&a, "pairwise", 0, 2, 4);
	raw_group_close(&a, 1); /* cell 1 is empty; the cells beside it are not */
	ok(rings_bad(&a, 0, NBAR_POSTED_MAX + 2), "doorbell: too far ahead");
	ok(rings_bad(&a, 0, 0xffffffff), "doorbell: backwards");
	raw_post(&a, 1, 1);
	ok(rings_bad(&a, 0, 0xfffffffe),
	   "doorbell: one of a cell without a group is not looked at");
	raw_post(&a, 0, 1);
	raw_post(&b, 0, 1);
	ok(raw_await(&a, 0, 1) == 1 && raw_await(&b, 0, 1) == 1,
	   "doorbell: after all that a good one counts");
	ok(others_work(), "all goes on");
	raw_close(&a);
	raw_close(&b);
}

static void put_entry(struct raw *r, uint32_t i, uint32_t cell, uint32_t peer)
{
	struct nbar_signal *e = &r->page->send[i % NBAR_SIGNALS_MAX];

	e->cell = cell;
	e->peer = peer;
	__atomic_store_n(&e->seq, i + 1, __ATOMIC_RELEASE);
}

/* Two signal groups on one port, connected to each other. */
static void send_ring(void)
{
	struct nbar_rep_group_open first, rep;
	struct raw r;
	uint64_t before;

	dial(&r, "n0");
	raw_port_open(&r, NBAR_PORT_ANY);
	raw_group_open(&r, "signal", 0, 2, 0);
	memcpy(&first, r.reply.body, sizeof(first));
	raw_group_open(&r, "signal", 1, 2, 0);
	memcpy(&rep, r.reply.body, sizeof(rep));
	raw_group_connect(&r, 0, &rep.endpoint, 1);
	raw_group_connect(&r, 1, &first.endpoint, 1);
	before = raw_counter(&r, NBAR_COUNTER_entries_bad);
	put_entry(&r, 0, 1, 1); /* this group has no peer 1 */
	put_entry(&r, 1, 2, 0); /* cell 2 has no group */
	put_entry(&r, 2, NBAR_GROUPS_MAX, 0);
	put_entry(&r, 3, 0xffffffff, 0);
	put_entry(&r, 4, 0, 1);
	put_entry(&r, 5, 0, 0xffffffff);
	ok(raw_await_counter(&r, NBAR_COUNTER_entries_bad, before + 6) == before + 6,
	   "send ring: entries without a group or a peer");
	before = raw_counter(&r, NBAR_COUNTER_signals_received);
	put_entry(&r, 6, 0, 0);
	ok(raw_await_counter(&r, NBAR_COUNTER_signals_received, before + 1) == before + 1 &&
		   r.page->recv[0].cell == 1 && r.page->recv[0].peer == 0,
	   "send ring: after all that a good one arrives");
	ok(others_work(), "all goes on");
	raw_close(&r);
}

/* The host writes garbage into each word that it can write, again and again while the NIC reads. */
static void page_noise(void)
{
	struct nbar_endpoint endpoint[2];
	struct raw a, b;

	dial(&a, "n0");
	dial(&b, "n1");
	if (!ok(pair(&a, &b, 5, endpoint) && raw_group_open(&a, "signal", 0, 4, 0) == 0,
		"a victim"))
		return;
	for (int round = 0; round < 100; round++) {
		uint32_t *word = (uint32_t *)a.page;

		for (size_t i = 0; i < sizeof(*a.page) / sizeof(*word); i++)
			__atomic_store_n(&word[i], adversary_random() >> adversary_random() % 32,
					 __ATOMIC_RELAXED);
		for (uint32_t i = 0; i < NBAR_SIGNALS_MAX; i++)
			put_entry(&a, (uint32_t)round * NBAR_SIGNALS_MAX + i,
				  adversary_random() % 3, adversary_random() % 5);
	}
	ok(raw_ask(&a, NBAR_OP_NIC_STAT, NULL, 0) == 0 && others_work(),
	   "a page full of noise, a hundred times, and all goes on");
	raw_close(&a);
	raw_close(&b);
}

/* Rank 1 of a group of two, in its own process. Writes its endpoint address to `out`, and reads
 * that of rank 0 from `in`. */
static void victim(const char *nic, int in, int out)
{
	struct nbar_rep_group_open rep;
	struct nbar_endpoint endpoint;
	struct raw r;

	dial(&r, nic);
	raw_port_open(&r, NBAR_PORT_ANY);
	raw_group_open(&r, "pairwise", 1, 2, 6);
	memcpy(&rep, r.reply.body, sizeof(rep));
	if (write(out, &rep.endpoint, sizeof(endpoint)) != sizeof(endpoint) ||
	    read(in, &endpoint, sizeof(endpoint)) != sizeof(endpoint) ||
	    raw_group_connect(&r, rep.cell, &endpoint, 1) != 0 || write(out, "k", 1) != 1)
		_exit(1);
	pause();
}

static void killed_host(const char *its_nic, const char *nic)
{
	struct nbar_rep_group_open rep;
	struct nbar_endpoint endpoint;
	struct raw r;
	int to[2], from[2];
	char byte;

	if (pipe(to) < 0 || pipe(from) < 0)
		return;
	pid_t pid = fork();

	if (pid == 0)
		victim(its_nic, to[0], from[1]);
	dial(&r, nic);
	raw_port_open(&r, NBAR_PORT_ANY);
	raw_group_open(&r, "pairwise", 0, 2, 6);
	memcpy(&rep, r.reply.body, sizeof(rep));
	bool met = read(from[0], &endpoint, sizeof(endpoint)) == sizeof(endpoint) &&
		   write(to[1], &rep.endpoint, sizeof(endpoint)) == sizeof(endpoint) &&
		   read(from[0], &byte, 1) == 1 && raw_group_connect(&r, 0, &endpoint, 1) == 0;

	raw_post(&r, 0, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	uint64_t word = raw_await(&r, 0, 1);

	ok(met && word >> 32 == NBAR_STATUS_HOST_DIED && r.page->completion[0].failed_rank == 1,
	   "a host of %s killed in a barrier: its peer is told, and who it was", its_nic);
	ok(others_work(), "all goes on");
	raw_close(&r);
	close(to[0]), close(to[1]), close(from[0]), close(from[1]);
}

void adversary_hosts(void)
{
	doorbells();
	send_ring();
	page_noise();
	killed_host("n1", "n0");
	killed_host("n0", "n1");
}
