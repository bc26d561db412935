/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_process_team.c - processes of a node that share one member: attach, and process team.
 *
 * Threads act as processes: each has its own connection to the NIC. The data that a barrier
 * protects is in plain memory, so ThreadSanitizer checks the fences. test_process_team_ends.c has
 * processes that end.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#include "unit/unit.h"
#include "cluster.h"
#include "unit/nics.h"
#include "internal.h"

#define NICS 3u
#define MATES_MAX 9u
#define ALL_MAX (NICS * MATES_MAX)

/* One process of a process team. */
struct mate {
	struct nbar_process_team *procs;
	struct nbar_group *g;
	struct nbar_wait_policy wait;
	uint64_t (*seen)[ALL_MAX]; /* by parity of the barrier, then by number */
	uint32_t me, all;          /* me: number among all; mine: number in the process team */
	uint32_t mine;
	uint32_t first; /* ticket before the first barrier */
	uint32_t rounds, bad;
	pthread_t id;
};

static void *mate_main(void *arg)
{
	struct mate *m = arg;

	for (uint32_t i = 1; i <= m->rounds; i++) {
		m->seen[i % 2][m->me] = i;
		if (nbar_process_team_post(m->procs, m->g, m->mine, NULL) != 0 ||
		    nbar_process_team_wait(m->procs, m->g, m->first + i, &m->wait, NBAR_FOREVER) !=
			    0)
			m->bad++;
		for (uint32_t n = 0; n < m->all; n++)
			m->bad += m->seen[i % 2][n] != i;
	}
	return NULL;
}

static void run(struct mate *mate, uint32_t n, uint32_t rounds)
{
	static uint64_t seen[2][ALL_MAX];

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < n; i++) {
		mate[i].seen = seen;
		mate[i].me = i;
		mate[i].all = n;
		mate[i].rounds = rounds;
		require(pthread_create(&mate[i].id, NULL, mate_main, &mate[i]) == 0, "thread");
	}
	for (uint32_t i = 0; i < n; i++) {
		pthread_join(mate[i].id, NULL);
		require(mate[i].bad == 0, "mate %u of %u: %u", i, n, mate[i].bad);
	}
}

static const struct nbar_wait_policy awake = { .spin_us = 5, .yield_us = UINT32_MAX };
static const struct nbar_wait_policy asleep = { .block = 1 };

static void alone(void **state)
{
	/* 16: as many as a cache line has tickets. */
	static const uint32_t sizes[] = { 1, 2, 3, 4, 16, 17 };

	for (uint32_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		static struct nbar_process_team procs;
		const uint32_t size = sizes[k];
		struct mate mate[17] = { 0 };

		require_ok(nbar_process_team_init(&procs, size));
		for (uint32_t i = 0; i < size; i++) {
			mate[i].procs = &procs;
			mate[i].mine = i;
			mate[i].wait = i % 2 ? awake : asleep;
		}
		run(mate, size, size < 5 ? 2000 : 300);
	}
}

static void tickets_wrap(void **state)
{
	struct nbar_process_team procs;
	struct mate mate[3] = { 0 };

	require_ok(nbar_process_team_init(&procs, 3));
	for (uint32_t i = 0; i < 3; i++) {
		procs.arrived[i] = UINT32_MAX - 500;
		mate[i].procs = &procs;
		mate[i].mine = i;
		mate[i].wait = awake;
		mate[i].first = UINT32_MAX - 500;
	}
	run(mate, 3, 1000);
}

static void several_under_way(void **state)
{
	struct nbar_process_team procs;

	for (uint32_t size = 2; size <= 20; size += 18) {
		require_ok(nbar_process_team_init(&procs, size));
		for (uint32_t i = 0; i < size; i++) {
			assert_int_equal(nbar_process_team_test(&procs, NULL, 1), 0);
			for (uint32_t t = 1; t <= 3000; t++)
				require_ok(nbar_process_team_post(&procs, NULL, i, NULL));
		}
		assert_int_equal(nbar_process_team_test(&procs, NULL, 3000), 1);
		assert_int_equal(nbar_process_team_test(&procs, NULL, 3001), 0);
	}
	assert_int_equal(nbar_process_team_post(&procs, NULL, 20, NULL), -ERANGE);
	assert_int_equal(nbar_process_team_post(&procs, NULL, 21, NULL), -ERANGE);
	assert_string_equal(nbar_error(), "process 21: a process team of 20 has processes 0 to 19");
	assert_int_equal(nbar_process_team_init(&procs, 0), -ERANGE);
	assert_int_equal(nbar_process_team_init(&procs, NBAR_PROCESS_TEAM_MAX + 1), -ERANGE);
	require_ok(nbar_process_team_init(&procs, NBAR_PROCESS_TEAM_MAX));
}

static void a_wait_can_time_out(void **state)
{
	struct nbar_process_team procs;

	require_ok(nbar_process_team_init(&procs, 2));
	require_ok(nbar_process_team_post(&procs, NULL, 0, NULL));
	assert_int_equal(nbar_process_team_wait(&procs, NULL, 1, &asleep, 1000000), -ETIME);
	assert_int_equal(nbar_process_team_wait(&procs, NULL, 1, NULL, 0), -ETIME);
	require_ok(nbar_process_team_post(&procs, NULL, 1, NULL));
	require_ok(nbar_process_team_wait(&procs, NULL, 1, &asleep, 0));
}

/* --- with a group ---------------------------------------------------------------------------- */

/* NICS hosts with a process team each; the first process of each host has opened the group, the
 * others are attached. */
struct hosts {
	struct cluster c;
	struct nbar_process_team procs[NICS];
	uint32_t nprocs;
	struct nbar_port *port[ALL_MAX];
	struct mate mate[ALL_MAX];
};

static void hosts_start(struct hosts *h, uint32_t nprocs)
{
	memset(h, 0, sizeof(*h));
	h->nprocs = nprocs;
	cluster_start(&h->c, NICS, NICS, NULL);
	for (uint32_t host = 0; host < NICS; host++) {
		struct nbar_share share;
		char name[16];

		require_ok(nbar_process_team_init(&h->procs[host], nprocs));
		nbar_group_share(h->c.g[host], &share);
		snprintf(name, sizeof(name), "n%u", host);
		for (uint32_t i = 0; i < nprocs; i++) {
			uint32_t n = host * nprocs + i;

			h->mate[n].procs = &h->procs[host];
			h->mate[n].wait = n % 2 ? awake : asleep;
			h->mate[n].g = h->c.g[host];
			h->mate[n].mine = i;
			if (i == 0)
				continue;
			require_ok(nbar_attach(name, &share, &h->port[n]));
			require_ok(nbar_group_attach(h->port[n], &share, &h->mate[n].g));
		}
	}
}

static void hosts_end(struct hosts *h)
{
	for (uint32_t n = 0; n < NICS * h->nprocs; n++)
		nbar_close(h->port[n]);
	cluster_end(&h->c);
}

static void with_a_group(void **state)
{
	static struct hosts h;

	for (uint32_t nprocs = 1; nprocs <= 4; nprocs++) {
		hosts_start(&h, nprocs);
		run(h.mate, NICS * nprocs, 500);
		hosts_end(&h);
	}
}

static void several_under_way_with_a_group(void **state)
{
	static struct hosts h;
	const uint32_t max = NBAR_POSTED_MAX;

	hosts_start(&h, 2);
	for (uint32_t n = 0; n < 2 * NICS; n++) {
		struct mate *m = &h.mate[n];

		for (uint32_t t = 1; t <= max; t++) {
			require_ok(nbar_process_team_post(m->procs, m->g, m->mine, NULL));
			require(nbar_process_team_test(m->procs, m->g, t) == 0 || n == 2 * NICS - 1,
				"ticket %u of process %u", t, n);
		}
		if (n < 2 * NICS - 1)
			assert_int_equal(nbar_process_team_post(m->procs, m->g, m->mine, NULL),
					 -EAGAIN);
	}
	for (uint32_t n = 0; n < 2 * NICS; n++)
		require_ok(nbar_process_team_wait(h.mate[n].procs, h.mate[n].g, max, NULL,
						  NBAR_FOREVER));
	hosts_end(&h);
}

/* The most processes of a host: the limit of a process team, or of descriptors, because this
 * program has both ends of each socket. */
static uint32_t most_processes(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return limit.rlim_max / 4 < NBAR_PROCESS_TEAM_MAX ? (uint32_t)limit.rlim_max / 4
							  : NBAR_PROCESS_TEAM_MAX;
}

static void a_full_host(void **state)
{
	static struct nbar_process_team procs;
	static struct nbar_port *port[NBAR_PROCESS_TEAM_MAX];
	static struct nbar_group *g[NBAR_PROCESS_TEAM_MAX];
	const uint32_t n = most_processes();
	struct nbar_share share;
	struct cluster c;

	print_message("%u processes\n", n);
	cluster_start(&c, 2, 2, NULL);
	nbar_group_share(c.g[0], &share);
	require_ok(nbar_process_team_init(&procs, n));
	g[0] = c.g[0];
	for (uint32_t i = 1; i < n; i++) {
		require_ok(nbar_attach("n0", &share, &port[i]));
		require_ok(nbar_group_attach(port[i], &share, &g[i]));
	}
	for (uint32_t ticket = 1; ticket <= 3; ticket++) {
		require_ok(nbar_post(c.g[1], NULL));
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(nbar_test(c.g[1], ticket), 0);
			require_ok(nbar_process_team_post(&procs, g[i], (i + ticket) % n, NULL));
		}
		for (uint32_t i = 0; i < n; i++)
			require_ok(
				nbar_process_team_wait(&procs, g[i], ticket, NULL, NBAR_FOREVER));
		require_ok(nbar_wait(c.g[1], ticket, NBAR_FOREVER));
	}
	for (uint32_t i = 1; i < n; i++)
		nbar_close(port[i]);
	cluster_end(&c);
}

static void what_is_not_shared_is_refused(void **state)
{
	struct nbar_share share, other;
	struct nbar_group *g, *second;
	struct nbar_endpoint endpoint;
	struct nbar_port *port;
	const struct nbar_group_attr attr = { .rank = 0, .size = 1 };
	const struct nbar_group_attr signal = { .rank = 0, .size = 1, .alg = "signal" };
	struct cluster c;

	cluster_start(&c, 1, 1, NULL);
	nbar_group_share(c.g[0], &share);
	other = share;
	other.secret[1] ^= 1;
	assert_int_equal(nbar_attach("n0", &other, &port), -ENOENT);
	other = share;
	other.port = 63;
	assert_int_equal(nbar_attach("n0", &other, &port), -ENOENT);
	assert_int_equal(nbar_attach("n1", &share, &port), -ENOENT);
	require_ok(nbar_attach("n0", &share, &port));
	other = share;
	other.endpoint.byte[50] ^= 1;
	assert_int_equal(nbar_group_attach(port, &other, &g), -ENOENT);
	other = share;
	other.cell = 1;
	assert_int_equal(nbar_group_attach(port, &other, &g), -ENOENT);
	other.cell = NBAR_GROUPS_MAX;
	assert_int_equal(nbar_group_attach(port, &other, &g), -EINVAL);
	require_ok(nbar_group_attach(port, &share, &g));
	assert_int_equal(nbar_group_attach(port, &share, &second), -EALREADY);
	/* Only the owner opens groups, and only the process team posts on them. */
	assert_int_equal(nbar_group_open(port, &attr, &second, &endpoint), -EPERM);
	assert_int_equal(nbar_post(g, NULL), -EPERM);
	require_ok(nbar_group_open(c.port[0], &signal, &second, &endpoint));
	nbar_group_share(second, &other);
	assert_int_equal(nbar_group_attach(port, &other, &g), -ENOENT);
	nbar_close(port);
	cluster_end(&c);
}

static void an_orderly_close_harms_nobody(void **state)
{
	static struct hosts h;
	uint32_t ticket;

	hosts_start(&h, 2);
	run(h.mate, 2 * NICS, 10);
	nbar_group_close(h.mate[1].g);
	nbar_close(h.port[3]);
	h.port[3] = NULL;
	for (uint32_t host = 0; host < NICS; host++)
		require_ok(nbar_post(h.c.g[host], &ticket));
	for (uint32_t host = 0; host < NICS; host++)
		require_ok(nbar_wait(h.c.g[host], ticket, NBAR_FOREVER));
	hosts_end(&h);
}

static void a_cell_stays_while_somebody_looks_at_it(void **state)
{
	const struct nbar_group_attr attr = { .rank = 0, .size = 1 };
	struct nbar_share share, next;
	struct nbar_group *mine, *theirs;
	struct nbar_port *port, *other;
	struct nbar_endpoint endpoint;
	struct nbar_process_team procs;

	require_ok(nbar_open("n0", &port));
	require_ok(nbar_group_open(port, &attr, &mine, &endpoint));
	require_ok(nbar_group_connect(mine, &endpoint));
	nbar_group_share(mine, &share);
	require_ok(nbar_attach("n0", &share, &other));
	require_ok(nbar_group_attach(other, &share, &theirs));
	require_ok(nbar_process_team_init(&procs, 2));
	require_ok(nbar_process_team_post(&procs, mine, 0, NULL));
	require_ok(nbar_process_team_post(&procs, theirs, 1, NULL));
	require_ok(nbar_process_team_wait(&procs, mine, 1, NULL, NBAR_FOREVER));
	nbar_group_close(mine);
	require_ok(nbar_group_open(port, &attr, &mine, &endpoint));
	nbar_group_share(mine, &next);
	assert_int_not_equal(next.cell, share.cell);
	assert_int_equal(nbar_process_team_test(&procs, theirs, 1), 1);
	/* The next barrier cannot complete, because the owner of the group has ended. */
	require_ok(nbar_process_team_init(&procs, 1));
	procs.arrived[0] = 1;
	assert_int_equal(nbar_process_team_post(&procs, theirs, 0, NULL), -ESHUTDOWN);
	nbar_group_close(theirs);
	nbar_group_close(mine);
	require_ok(nbar_group_open(port, &attr, &mine, &endpoint));
	nbar_group_share(mine, &next);
	assert_int_equal(next.cell, share.cell);
	nbar_close(other);
	nbar_close(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(alone),
		UNIT(tickets_wrap),
		UNIT(several_under_way),
		UNIT(a_wait_can_time_out),
		UNIT(with_a_group),
		UNIT(several_under_way_with_a_group),
		UNIT(a_full_host),
		UNIT(what_is_not_shared_is_refused),
		UNIT(an_orderly_close_harms_nobody),
		UNIT(a_cell_stays_while_somebody_looks_at_it),
	};

	return run_with_nics(NICS, tests);
}
