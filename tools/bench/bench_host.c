/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_host.c - a host process of a run: opens, connects, runs barriers, stores figures.
 *
 * One loop serves NIC-based and host-based runs, so only the place of the protocol differs. The
 * loop drives one node or all nodes. It runs in a forked child, and leaves the figures in shared
 * memory.
 */
#include "bench_host.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "hostbar.h"

static size_t host_lines(size_t bytes)
{
	return (bytes + 127) / 128 * 128;
}

int bench_shared_create(struct bench_shared *s, uint32_t nodes, uint32_t threads, uint32_t nskew)
{
	const size_t length[] = {
		host_lines(STAGE_END * sizeof(*s->stage)),
		host_lines((size_t)nodes * threads * sizeof(*s->entered)),
		host_lines(nodes * sizeof(*s->endpoint)),
		host_lines(nodes * sizeof(*s->node)),
		host_lines((size_t)nodes * nskew * sizeof(*s->exit)),
	};
	size_t at = 0;
	char *base;

	*s = (struct bench_shared){ .nodes = nodes, .threads = threads, .nskew = nskew };
	for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++)
		s->length += length[i];
	base = mmap(NULL, s->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	s->memory = base;
	s->stage = (void *)(base + at);
	s->entered = (void *)(base + (at += length[0]));
	s->endpoint = (void *)(base + (at += length[1]));
	s->node = (void *)(base + (at += length[2]));
	s->exit = (void *)(base + (at += length[3]));
	return 0;
}

void bench_shared_destroy(struct bench_shared *s)
{
	munmap(s->memory, s->length);
}

/* Pairs with the acquire in passed(): after it, all nodes see what this node wrote before. */
static void host_pass(const struct bench_host *h, enum bench_stage stage)
{
	__atomic_add_fetch(&h->shared->stage[stage].value, h->count, __ATOMIC_RELEASE);
}

static bool passed(const struct bench_host *h, enum bench_stage stage)
{
	/* Pairs with the release in host_pass(). */
	return __atomic_load_n(&h->shared->stage[stage].value, __ATOMIC_ACQUIRE) ==
	       h->shared->nodes;
}

bool bench_host_finished(const struct bench_host *h)
{
	/* Pairs with the release in host_pass(). */
	return __atomic_load_n(&h->shared->stage[STAGE_FINISHED].value, __ATOMIC_ACQUIRE) > 0;
}

int bench_host_fail(const struct bench_member *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(m->out->error, sizeof(m->out->error), format, args);
	va_end(args);
	m->out->failed_at = tool_now_ns();
	return TOOL_FAILED;
}

/* The NIC of a node: of a daemon, or in-process. The name of an in-process NIC is unique, so that
 * nodes do not share the NIC. */
static const char *nic_of(const struct bench_host *h, const struct bench_member *m, char *text,
			  size_t size)
{
	if (!bench_in_process(h->config->where))
		return h->nics->name[m->node % h->nics->n];
	snprintf(text, size, "host:name=h%u,wire=%s%s%s", m->node,
		 bench_where_name[h->config->where] + strlen("host-"), h->opt->keys ? "," : "",
		 h->opt->keys ? h->opt->keys : "");
	return text;
}

static int open_member(const struct bench_host *h, struct bench_member *m)
{
	char text[BENCH_KEYS_MAX + 64];
	const char *nic = nic_of(h, m, text, sizeof(text));
	struct nbar_group_attr attr = {
		.struct_size = sizeof(attr),
		.value_max = h->opt->value,
		.rank = m->rank,
		.size = h->config->nodes,
		.alg = h->config->alg,
		.tag = h->config->where,
	};
	struct nbar_endpoint *endpoint = &h->shared->endpoint[m->rank];
	int r = nbar_open(nic, &m->port);

	if (r)
		return bench_host_fail(m, "%s", nbar_error());
	if (h->tuned && bench_tuned_plan(h->tuned, &attr, text, sizeof(text)))
		return bench_host_fail(m, "no plan: %s", text);
	r = h->config->where != BENCH_HOST
		    ? nbar_group_open(m->port, &attr, &m->group, endpoint)
		    : hostbar_open(m->port, &attr, NULL, &m->hostbar, endpoint);
	free((void *)(uintptr_t)attr.plan); /* the NIC has a copy */
	return r ? bench_host_fail(m, "%s", nbar_error()) : 0;
}

static int connect_member(const struct bench_host *h, struct bench_member *m)
{
	if (m->group)
		return nbar_group_connect(m->group, h->shared->endpoint)
			       ? bench_host_fail(m, "%s", nbar_error())
			       : 0;
	return hostbar_connect(m->hostbar, h->shared->endpoint)
		       ? bench_host_fail(m, "%s", hostbar_error(m->hostbar))
		       : 0;
}

static void close_member(struct bench_member *m)
{
	if (m->group)
		nbar_group_close(m->group);
	if (m->hostbar)
		hostbar_close(m->hostbar);
	nbar_close(m->port);
}

static int host_post(const struct bench_host *h, struct bench_member *m)
{
	struct nbar_value *v = &m->value;

	if (h->opt->value && m->hostbar)
		return hostbar_post_sum(m->hostbar, m->rank, &m->ticket);
	if (!h->opt->value)
		return m->group ? nbar_post(m->group, &m->ticket)
				: hostbar_post(m->hostbar, &m->ticket);
	v->op = NBAR_SUM;
	v->type = NBAR_DOUBLE;
	v->count = (uint16_t)(h->opt->value / sizeof(double));
	for (uint32_t i = 0; i < v->count; i++)
		v->of.f64[i] = m->rank;
	return nbar_post_value(m->group, v, &m->ticket);
}

/* The result of a barrier with a value is part of it. */
static int host_test(const struct bench_host *h, struct bench_member *m)
{
	int rc = m->group ? nbar_test(m->group, m->ticket) : hostbar_test(m->hostbar, m->ticket);

	if (rc != 1 || !h->opt->value)
		return rc;
	if (m->hostbar)
		m->value.of.f64[0] = hostbar_sum(m->hostbar);
	else if (nbar_result(m->group, m->ticket, &m->value) != 0)
		return -EINVAL;
	return rc;
}

const char *bench_host_error(const struct bench_member *m)
{
	return m->group ? nbar_error() : hostbar_error(m->hostbar);
}

/* Relaxed is enough: the barrier itself must order these words. */
void bench_host_enter(const struct bench_host *h, const struct bench_member *m, uint32_t thread,
		      uint32_t barrier)
{
	struct bench_counter *c = &h->shared->entered[m->rank * h->shared->threads + thread];

	if (h->opt->check)
		__atomic_store_n(&c->value, barrier, __ATOMIC_RELAXED);
}

/* After barrier n, all nodes have entered n, and no node can have passed n + 1. */
int bench_host_check(const struct bench_host *h, const struct bench_member *m, uint32_t barrier)
{
	uint32_t all = h->opt->check ? h->shared->nodes * h->shared->threads : 0;

	for (uint32_t i = 0; i < all; i++) {
		uint32_t entered = __atomic_load_n(&h->shared->entered[i].value, __ATOMIC_RELAXED);

		if (entered - barrier > 1)
			return bench_host_fail(
				m, "it left barrier %u while rank %u had entered barrier %u",
				barrier, i / h->shared->threads, entered);
	}
	if (h->opt->check && h->opt->value &&
	    m->value.of.f64[0] != h->shared->nodes * (h->shared->nodes - 1) / 2.0)
		return bench_host_fail(m, "barrier %u brought a wrong sum: %g", barrier,
				       m->value.of.f64[0]);
	return 0;
}

static int start(const struct bench_host *h, struct bench_member *m)
{
	uint32_t all = h->config->warmup + h->config->iters;

	bench_host_enter(h, m, 0, all - m->left + 1);
	return host_post(h, m) ? bench_host_fail(m, "%s", bench_host_error(m)) : 0;
}

void bench_host_note(const struct bench_host *h, struct bench_member *m, uint32_t left,
		     uint64_t now)
{
	uint32_t iters = h->config->iters;

	if (left < iters) {
		uint32_t i = iters - left - 1;

		hist_add(&m->out->hist, now - m->last);
		if (i < h->shared->nskew)
			m->exit[i] = now;
	} else if (left == iters) {
		m->started = now;
	}
	m->last = now;
	if (!left)
		m->out->total_ns = now - m->started;
}

/* Continues with the next barrier, or with the computation before it. */
static int go_on(const struct bench_host *h, struct bench_member *m, uint64_t now)
{
	const struct bench_work *w = h->config->work;
	uint32_t all = h->config->warmup + h->config->iters;

	if (!w)
		return start(h, m);
	m->until = now + bench_work_ns(w, m->rank, all - m->left);
	return 0;
}

/* A barrier is complete: enters the next at once, then notes the time of this one. */
static int host_finish(const struct bench_host *h, struct bench_member *m, uint64_t now)
{
	uint32_t all = h->config->warmup + h->config->iters;
	int r = bench_host_check(h, m, all - m->left + 1);

	m->left--;
	if (m->left && !r)
		r = go_on(h, m, now);
	bench_host_note(h, m, m->left, now);
	return r;
}

void bench_host_idle(const struct bench_host *h)
{
	if (h->yield)
		sched_yield();
#if defined(__x86_64__) || defined(__i386__)
	else
		__builtin_ia32_pause();
#endif
}

/* Checks a member that computes. If its time is over, starts its barrier and returns true. */
static bool computed(const struct bench_host *h, struct bench_member *m, uint64_t now, int *r)
{
	if (now < m->until)
		return false;
	if (m->left <= h->config->iters)
		m->out->late_ns += now - m->until;
	m->until = 0;
	*r = start(h, m);
	return true;
}

/*
 * A round over all members. Without computations, a round reads the clock at most once: a clock
 * read makes the processor wait for all pending stores and loads, and so couples nodes that one
 * process drives. With computations, it reads the clock first, and again after each slow action.
 * True if something has happened.
 */
static bool drive_round(const struct bench_host *h, struct bench_member *member, uint32_t *running,
			int *r)
{
	bool work = h->config->work, busy = false;
	uint64_t now = work ? tool_now_ns() : 0;

	for (uint32_t i = 0; i < h->count && !*r; i++) {
		struct bench_member *m = &member[i];

		if (m->until) {
			if (!computed(h, m, now, r))
				continue;
			busy = true;
			now = tool_now_ns();
			continue;
		}
		int done = m->left ? host_test(h, m) : 0;

		if (!done)
			continue;
		busy = true;
		if (!now || work)
			now = tool_now_ns();
		*r = done > 0 ? host_finish(h, m, now)
			      : bench_host_fail(m, "%s", bench_host_error(m));
		*running -= !m->left;
	}
	return busy;
}

static int host_drive(const struct bench_host *h, struct bench_member *member)
{
	uint32_t running = h->count;
	uint64_t now = tool_now_ns();
	int r = 0;

	for (uint32_t i = 0; i < h->count && !r; i++) {
		member[i].started = member[i].last = now;
		r = go_on(h, &member[i], now);
	}
	while (running && !r)
		if (!drive_round(h, member, &running, &r))
			bench_host_idle(h);
	return r;
}

/* Waits for all nodes. At the end, a host that runs the protocol still answers its peers. */
static void bench_host_meet(const struct bench_host *h, struct bench_member *member,
			    enum bench_stage stage)
{
	host_pass(h, stage);
	while (!passed(h, stage)) {
		for (uint32_t i = 0; i < h->count && stage == STAGE_FINISHED; i++)
			(void)host_test(h, &member[i]);
		sched_yield();
	}
}

static int host_run(const struct bench_host *h, struct bench_member *member)
{
	int r = 0;

	for (uint32_t i = 0; i < h->count && !r; i++)
		r = open_member(h, &member[i]);
	if (r)
		return r;
	bench_host_meet(h, member, STAGE_OPENED);
	for (uint32_t i = 0; i < h->count && !r; i++)
		r = connect_member(h, &member[i]);
	if (r)
		return r;
	bench_host_meet(h, member, STAGE_CONNECTED);
	r = h->config->drive ? h->config->drive(h, member) : host_drive(h, member);
	if (r)
		return r;
	bench_host_meet(h, member, STAGE_FINISHED);
	for (uint32_t i = 0; i < h->count; i++)
		close_member(&member[i]);
	return 0;
}

int bench_host_run(const struct bench_host *h)
{
	struct bench_member *member = calloc(h->count, sizeof(*member));
	int r = TOOL_FAILED;

	if (h->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((unsigned)h->cpu, &set);
		(void)sched_setaffinity(0, sizeof(set), &set);
	}
	if (member) {
		for (uint32_t i = 0; i < h->count; i++) {
			struct bench_member *m = &member[i];

			m->node = h->first + i;
			m->rank = h->config->rank[m->node];
			m->left = h->config->warmup + h->config->iters;
			m->out = &h->shared->node[m->rank];
			m->exit = h->shared->exit + (size_t)m->rank * h->shared->nskew;
			/* Touch every page now, so that no page fault occurs during the
			 * measurement. */
			memset(m->exit, 0, h->shared->nskew * sizeof(*m->exit));
			memset(m->out, 0, sizeof(*m->out));
		}
		r = host_run(h, member);
	}
	free(member);
	return r;
}
