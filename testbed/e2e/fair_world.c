/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fair_world.c - the daemons and the bystander of the program `fair`.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fair.h"

#define PATIENCE_NS UINT64_C(20000000000) /* after this time a barrier counts as hanging */

uint64_t fair_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static cpu_set_t allowed; /* the processors of this thread before it was bound to one of them */

/* Number of the i-th processor that this process may use; -1: it may not use so many. */
static int processor(uint32_t i)
{
	if (CPU_COUNT(&allowed) == 0 && sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -1;
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && i-- == 0)
			return (int)cpu;
	return -1;
}

static void bind_to_second(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((uint32_t)processor(1), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static bool daemon_start(struct fair *f, int i, uint32_t nnic, const char *const *nic,
			 const char *budget_ms)
{
	const char *args[24];
	char cpu[16];
	uint32_t n = 0;

	for (; *nic; nic++) {
		args[n++] = "--nic";
		args[n++] = *nic;
	}
	args[n++] = "--budget-ms";
	args[n++] = budget_ms;
	args[n++] = "--idle";
	args[n++] = f->spin ? "spin" : "yield";
	if (f->spin) {
		snprintf(cpu, sizeof(cpu), "%d", processor(0));
		args[n++] = "--cpu";
		args[n++] = cpu;
	}
	args[n] = NULL;
	f->daemon[i] = raw_daemon_start(f->dir[i], nnic, args);
	return f->daemon[i] != 0;
}

void fair_dial(struct fair *f, struct raw *r, int nic)
{
	if (raw_dial(r, f->dir[f->daemon[1] ? nic : 0], nic ? "n1" : "n0"))
		return;
	perror("# connect");
	fair_end(f);
	exit(1);
}

/* A group of two in this process, opened in the usual way. */
static bool bystander_open(struct fair *f)
{
	struct nbar_rep_group_open rep;
	struct nbar_endpoint endpoint[2];

	for (uint32_t i = 0; i < 2; i++) {
		fair_dial(f, &f->by[i], (int)i);
		if (raw_port_open(&f->by[i], NBAR_PORT_ANY) != 0 ||
		    raw_group_open(&f->by[i], "pairwise", i, 2, 1) != 0)
			return false;
		memcpy(&rep, f->by[i].reply.body, sizeof(rep));
		endpoint[i] = rep.endpoint;
	}
	return raw_group_connect(&f->by[0], 0, &endpoint[1], 1) == 0 &&
	       raw_group_connect(&f->by[1], 0, &endpoint[0], 1) == 0;
}

/* Daemons that start from now on get small receive buffers (see rcvbuf.c). rcvbuf.so is in the
 * folder of this program. */
static void small_buffers(void)
{
#ifndef __SANITIZE_ADDRESS__ /* the sanitizer's library must be loaded first */
	char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);

	while (n > 0 && path[n - 1] != '/')
		n--;
	if (n > 0) {
		strcpy(path + n, "rcvbuf.so");
		setenv("LD_PRELOAD", path, 1);
	}
#endif
}

bool fair_begin(struct fair *f, enum fair_wire wire, const char *budget_ms, bool spin)
{
	static const char *const ring[] = { "name=n0,wire=ring", "name=n1,wire=ring", NULL };
	static const char *const udp[] = { "name=n0,wire=udp,bind=127.0.0.1:0",
					   "name=n1,wire=udp,bind=127.0.0.1:0", NULL };
	static const char *const first[] = { "name=n0,wire=udp,bind=127.0.0.1:0", NULL };
	bool started = false;

	memset(f, 0, sizeof(*f));
	f->patience_ns = PATIENCE_NS;
	f->spin = spin && processor(1) >= 0;
	if (f->spin)
		sched_setaffinity(0, sizeof(allowed), &allowed); /* daemons inherit it */
	for (int i = 0; i < 2; i++) {
		snprintf(f->dir[i], sizeof(f->dir[i]), "/tmp/nbar-fair-XXXXXX");
		if (!mkdtemp(f->dir[i]))
			return false;
	}
	switch (wire) {
	case FAIR_RING:
		started = daemon_start(f, 0, 2, ring, budget_ms);
		break;
	case FAIR_UDP:
		started = daemon_start(f, 0, 2, udp, budget_ms);
		break;
	case FAIR_SMALL:
		small_buffers();
		started = daemon_start(f, 0, 2, udp, budget_ms);
		break;
	case FAIR_PAIR:
		small_buffers();
		started = daemon_start(f, 0, 1, first, budget_ms) &&
			  daemon_start(f, 1, 1, udp + 1, budget_ms);
		break;
	}
	unsetenv("LD_PRELOAD");
	if (f->spin)
		bind_to_second();
	return started && bystander_open(f);
}

static void run_dir_remove(const char *dir)
{
	char lock[64];

	snprintf(lock, sizeof(lock), "%s/nicd.lock", dir);
	unlink(lock);
	rmdir(dir);
}

/* Sends SIGTERM to the daemon; kills it if it does not end. True if it ended with status 0. */
static bool daemon_end(pid_t pid, uint64_t patience_ns)
{
	uint64_t end = fair_now() + patience_ns;
	pid_t ended;
	int status;

	kill(pid, SIGTERM);
	while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && fair_now() < end)
		usleep(1000);
	if (ended == pid)
		return WIFEXITED(status) && WEXITSTATUS(status) == 0;
	raw_daemon_end(pid, SIGKILL);
	return false;
}

bool fair_end(struct fair *f)
{
	bool well = true;

	for (int i = 0; i < 2; i++)
		if (f->daemon[i])
			well &= daemon_end(f->daemon[i], f->patience_ns);
	for (int i = 0; i < 2; i++)
		run_dir_remove(f->dir[i]);
	return well;
}

struct raw *fair_client(struct fair *f, int nic)
{
	struct raw *r = &f->client[f->nclient];

	if (f->nclient == FAIR_CLIENTS_MAX)
		return NULL;
	fair_dial(f, r, nic);
	f->request_pending[f->nclient] = false;
	f->given[f->nclient] = 0;
	f->at[f->nclient] = 0;
	f->nclient++;
	if (raw_port_open(r, NBAR_PORT_ANY) == 0)
		return r;
	snprintf(f->said, sizeof(f->said), "%s", r->reply.head.text);
	return NULL;
}

/* True if the NICs have only the ports and groups of the bystander, and no lingering group. */
static bool is_quiet(struct fair *f)
{
	for (int i = 0; i < 2; i++) {
		struct nbar_rep_nic_stat stat;

		if (raw_ask(&f->by[i], NBAR_OP_NIC_STAT, NULL, 0) != 0)
			return true;
		memcpy(&stat, f->by[i].reply.body, sizeof(stat));
		if (stat.nport > 1 || stat.ngroup > 1 || stat.nlinger > 0)
			return false;
	}
	return true;
}

void fair_quiet(struct fair *f)
{
	uint64_t end = fair_now() + f->patience_ns;

	for (uint32_t i = 0; i < f->nclient; i++)
		raw_close(&f->client[i]);
	f->nclient = f->npair = f->next = 0;
	while (!is_quiet(f) && fair_now() < end)
		usleep(10000);
}

static bool barrier_is_over(const struct fair *f, uint64_t word[2])
{
	bool over = true;

	for (int i = 0; i < 2; i++) {
		word[i] = __atomic_load_n(&f->by[i].page->completion[0].word, __ATOMIC_ACQUIRE);
		over &= word[i] >> 32 || (uint32_t)word[i] == f->epoch;
	}
	return over;
}

/* Processor time of this thread. */
static uint64_t thread_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t fair_barrier(struct fair *f, void (*pass)(struct fair *f))
{
	uint64_t ran = thread_time(), start = fair_now(), end = start + f->patience_ns, word[2];
	uint64_t took;

	f->epoch++;
	for (int i = 0; i < 2; i++)
		raw_post(&f->by[i], 0, f->epoch);
	while (!barrier_is_over(f, word)) {
		if (fair_now() > end)
			break;
		if (pass)
			pass(f);
		sched_yield(); /* the daemon's control thread may be on this processor */
	}
	took = fair_now() - start;
	ran = thread_time() - ran;
	f->off_ns = ran < took ? took - ran : 0;
	if (word[0] == f->epoch && word[1] == f->epoch)
		return took;
	printf("# barrier %u of the bystander: status %u and %u, completed %u and %u\n", f->epoch,
	       (unsigned)(word[0] >> 32), (unsigned)(word[1] >> 32), (unsigned)word[0],
	       (unsigned)word[1]);
	return 0;
}

uint64_t fair_counter(struct fair *f, enum nbar_counter which)
{
	return raw_counter(&f->by[0], which) + raw_counter(&f->by[1], which);
}
