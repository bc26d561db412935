/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_threads.c - a host with several threads: the threads meet as a team, then the nodes meet.
 *
 * If the NIC runs the barrier, the team is one member of the group. If the host runs the barrier,
 * one thread learns that all threads have arrived, runs the protocol, and then releases the other
 * threads: they have no other way to learn of the end. bench_host.c calls this file.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_host.h"
#include "hostbar.h"

struct thread {
	const struct bench_host *h;
	struct bench_member *m;
	struct nbar_team *team;
	uint32_t me;
	uint64_t total_ns;
	pthread_t id;
};

static struct nbar_team *make_team(const struct bench_host *h, const struct bench_member *m)
{
	const struct bench_config *c = h->config;
	const struct nbar_team_attr attr = {
		.size = c->threads,
		.kind = c->kind,
		.group = m->group,
		.local = c->where == BENCH_NIC_RELEASE,
	};
	struct nbar_team *team = NULL;
	size_t bytes;

	if (nbar_team_size(c->kind, c->threads, &bytes) ||
	    posix_memalign((void **)&team, 128, bytes) || nbar_team_init(team, bytes, &attr)) {
		free(team);
		return NULL;
	}
	/* A thread does not spin if other threads may wait for its core. It never sleeps: the
	 * figures would contain the sleep. */
	team->wait = (struct nbar_wait_policy){ .spin_us = h->yield ? 0 : UINT32_MAX };
	return team;
}

/* The barrier of the hosts, run by the thread that knows that its node has arrived. */
static int threads_cross(const struct thread *t)
{
	struct hostbar *hb = t->m->hostbar;
	uint32_t ticket;
	int r = hostbar_post(hb, &ticket);

	while (!r) {
		r = hostbar_test(hb, ticket);
		if (!r)
			bench_host_idle(t->h);
	}
	return r < 0 ? r : 0;
}

static int threads_barrier(const struct thread *t)
{
	uint32_t ticket;
	int last, r;

	if (t->m->group)
		return nbar_team_barrier(t->team, t->me);
	last = nbar_team_arrive(t->team, t->me, &ticket);
	if (last < 0)
		return last;
	if (!last)
		return nbar_team_await(t->team, t->me, ticket);
	r = threads_cross(t);
	return r ? r : nbar_team_release(t->team, t->me, ticket);
}

static void threads_pin(const struct thread *t)
{
	const struct bench_machine *machine = t->h->machine;
	uint32_t at = t->m->node * t->h->config->threads + t->me;
	cpu_set_t set;

	if (!machine->nhost_cpu)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)machine->host_cpu[at % machine->nhost_cpu], &set);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* Thread 0 records every barrier, the other threads only their total time. A thread that fails ends
 * the process, because the other threads would wait for this thread. */
static void *run_thread(void *arg)
{
	struct thread *t = arg;
	struct bench_member *m = t->m;
	uint32_t all = m->left, iters = t->h->config->iters;
	uint64_t begun = 0, now = 0;

	threads_pin(t);
	for (uint32_t i = 1; i <= all; i++) {
		bench_host_enter(t->h, m, t->me, i);
		int r = threads_barrier(t);

		if (r)
			bench_host_fail(m, "%s", bench_host_error(m));
		if (r || bench_host_check(t->h, m, i))
			_exit(TOOL_FAILED);
		if (i + iters == all || i == all || t->me == 0)
			now = tool_now_ns();
		if (i + iters == all)
			begun = now;
		if (t->me == 0)
			bench_host_note(t->h, m, all - i, now);
	}
	t->total_ns = now - (begun ? begun : m->started);
	return NULL;
}

int bench_threads_drive(const struct bench_host *h, struct bench_member *m)
{
	uint32_t n = h->config->threads;
	struct thread *thread = calloc(n, sizeof(*thread));
	struct nbar_team *team = make_team(h, m);
	int r = 0;

	if (!thread || !team) {
		free(thread);
		free(team);
		return bench_host_fail(m, "no team of %u threads of kind %s: %s", n,
				       h->config->kind, nbar_error());
	}
	m->started = m->last = tool_now_ns();
	for (uint32_t i = 0; i < n; i++)
		thread[i] = (struct thread){ .h = h, .m = m, .team = team, .me = i };
	for (uint32_t i = 1; i < n && !r; i++)
		r = pthread_create(&thread[i].id, NULL, run_thread, &thread[i]);
	if (r) /* the started threads wait for the others, until this process ends */
		return bench_host_fail(m, "cannot start %u threads: %s", n, strerror(r));
	run_thread(&thread[0]);
	m->out->total_ns = thread[0].total_ns;
	for (uint32_t i = 1; i < n; i++) {
		pthread_join(thread[i].id, NULL);
		if (thread[i].total_ns > m->out->total_ns)
			m->out->total_ns = thread[i].total_ns;
	}
	free(team);
	free(thread);
	return 0;
}
