/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostnic_owner.c - an in-process NIC, tested in its own process: sharing, its cost when idle,
 * its end without leaks, and refusals.
 */
#include <sched.h>
#include <poll.h>
#include <dirent.h>
#include <pthread.h>

#include "members.h"

static uint32_t entries(const char *folder)
{
	DIR *d = opendir(folder);
	uint32_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Descriptors of a NIC, without those for the memory of its ports. */
static uint32_t ends_held(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		char what[64] = "";

		if (readlinkat(dirfd(d), e->d_name, what, sizeof(what) - 1) > 0)
			n += strstr(what, "socket:") || strstr(what, "anon_inode:");
	}
	if (d)
		closedir(d);
	return n;
}

static void forks(void)
{
	uint32_t before = ends_held();
	int status;
	pid_t pid;

	want_ok(nbar_open(ANY, &port));
	pid = fork();
	if (pid == 0) {
		nbar_close(port);
		want(ends_held() == before, "%u descriptors, not %u", ends_held(), before);
		_exit(0);
	}
	want(waitpid(pid, &status, 0) == pid, "no child");
	if (status) /* it has printed the reason */
		_exit(1);
	nbar_close(port);
}

static void child_of_a_fork_holds_no_socket(void **state)
{
	members(1, forks, 0);
}

/* Two ports of one NIC are two members. When both are closed, no thread or descriptor is left. */
static void shares(void)
{
	const struct nbar_group_attr attr[2] = { { .rank = 0, .size = 2 },
						 { .rank = 1, .size = 2 } };
	uint32_t fds = entries("/proc/self/fd"), threads = entries("/proc/self/task"), ticket[2];
	struct nbar_rep_nic_stat stat;
	struct nbar_port *p[2];
	struct nbar_group *g[2];

	want_error(nbar_nic_stat(QUICK, &stat), -ENOENT, "in this process");
	want_ok(nbar_open(QUICK, &p[0]));
	setenv("NBAR_NIC", QUICK, 1);
	want_ok(nbar_open(NULL, &p[1]));
	want_ok(nbar_nic_stat(QUICK, &stat));
	want(stat.nport == 2 && !strcmp(stat.wire, "udp"), "%u ports on %s", stat.nport, stat.wire);
	for (int i = 0; i < 2; i++)
		want_ok(nbar_group_open(p[i], &attr[i], &g[i], &shared->endpoint[i]));
	for (int i = 0; i < 2; i++)
		want_ok(nbar_group_connect(g[i], shared->endpoint));
	for (uint32_t n = 1; n <= BARRIERS; n++) {
		for (int i = 0; i < 2; i++)
			want_ok(nbar_post(g[i], &ticket[i]));
		for (int i = 0; i < 2; i++)
			want_ok(nbar_wait(g[i], ticket[i], NBAR_FOREVER));
	}
	nbar_close(p[0]);
	want_ok(nbar_nic_stat(QUICK, &stat));
	nbar_close(p[1]);
	/* The NIC still answers for the retry budget, and then ends. A sanitizer may have a thread,
	 * too. */
	while (entries("/proc/self/fd") != fds ||
	       (entries("/proc/self/task") != threads && !unit_sanitized()))
		nap_ms(10);
	want_error(nbar_nic_stat(QUICK, &stat), -ENOENT, "in this process");
}

static void two_ports_of_one_nic(void **state)
{
	members(1, shares, 0);
}

static struct nbar_group *pair[2];

static void *pair_main(void *arg)
{
	struct nbar_group *g = *(struct nbar_group **)arg;

	for (uint32_t i = 0; i < BARRIERS; i++)
		want_ok(nbar_barrier(g));
	return NULL;
}

static void threads_poll(void)
{
	struct nbar_endpoint endpoint[2];
	pthread_t thread[2];
	struct nbar_port *p[2];

	for (uint32_t i = 0; i < 2; i++) {
		const struct nbar_group_attr attr = { .rank = i, .size = 2 };

		want_ok(nbar_open(ANY, &p[i]));
		want_ok(nbar_group_open(p[i], &attr, &pair[i], &endpoint[i]));
	}
	for (int i = 0; i < 2; i++)
		want_ok(nbar_group_connect(pair[i], endpoint));
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, pair_main, &pair[i]);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		nbar_close(p[i]);
	}
}

static void threads_share_a_nic(void **state)
{
	members(1, threads_poll, 0);
}

static void *waits_for_ever(void *arg)
{
	nbar_wait(pair[0], 1, NBAR_FOREVER);
	return NULL;
}

/* A cancelled thread first completes its pass of the NIC, so the others can go on. */
static void one_is_cancelled(void)
{
	const struct nbar_wait_policy spin = { .spin_us = UINT32_MAX };
	const struct nbar_group_attr attr[2] = { { .rank = 0, .size = 2 },
						 { .rank = 1, .size = 2 } };
	struct nbar_rep_nic_stat stat;
	struct nbar_endpoint endpoint[2];
	pthread_t thread;
	void *end;

	want_ok(nbar_open(ANY, &port));
	for (int i = 0; i < 2; i++)
		want_ok(nbar_group_open(port, &attr[i], &pair[i], &endpoint[i]));
	for (int i = 0; i < 2; i++)
		want_ok(nbar_group_connect(pair[i], endpoint));
	nbar_group_set_wait(pair[0], &spin);
	want_ok(nbar_post(pair[0], NULL));
	for (int i = 0; i < 20; i++) {
		want(pthread_create(&thread, NULL, waits_for_ever, NULL) == 0, "no thread");
		nap_ms(5);
		pthread_cancel(thread);
		pthread_join(thread, &end);
		want(end == PTHREAD_CANCELED, "the wait has ended");
		want_ok(nbar_nic_stat(ANY, &stat));
	}
	want_ok(nbar_barrier(pair[1]));
	want_ok(nbar_wait(pair[0], 1, NBAR_FOREVER));
	nbar_close(port);
}

static void cancelled_waiter_leaves_the_nic(void **state)
{
	if (unit_sanitized())
		skip(); /* ASan does not follow how a cancelled thread leaves its frames */
	members(1, one_is_cancelled, 0);
}

/* Number of sleeps of all other threads. */
static unsigned long naps(void)
{
	unsigned long all = 0, n;
	DIR *d = opendir("/proc/self/task");

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		char path[300], line[200];
		FILE *f;

		if (atoi(e->d_name) <= 0 || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1)
				all += n;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return all;
}

static void idles(void)
{
	unsigned long before;
	uint32_t windows = 0;

	want_ok(nbar_open(ANY, &port));
	/* On a busy machine its thread falls asleep late. */
	do {
		before = naps();
		nap_ms(300);
	} while (naps() != before && ++windows < 100);
	want(windows < 100, "it wakes up without a group");
	nbar_close(port);
}

static void nic_without_groups_sleeps(void **state)
{
	if (unit_sanitized())
		skip(); /* a sanitizer has threads of its own */
	members(1, idles, 0);
}

static void refuses(void)
{
	static const struct {
		const char *nic, *part;
	} bad[] = {
		{ "host:3", "not a list of KEY=VALUE" },
		{ "host:wire=udp,", "not a list of KEY=VALUE" },
		{ "host:wire=ring", "no such wire here, but: udp" },
		{ "host:wire=udp,color=red", "unknown key \"color\"; a NIC on wire udp has: name" },
		{ "host:wire=udp,bind=127.0.0.1:0,bind=127.0.0.1:0", "needs one value" },
		{ "host:wire=udp,bind=127.0.0.1", "is not ADDRESS:PORT" },
		{ "host:wire=udp,bind=192.0.2.1:0", "Cannot assign requested address" },
		{ "host:name=a/b", "letters, digits" },
		{ "host:pull-us=0", "from 1 to" },
		{ "host:budget-ms=1", "from 200 to" },
		{ "host:budget-ms=200,pull-us=10000", "at least 64 times" },
		{ "host:color=red", "unknown key \"color\"" },
		{ "host:bind=192.0.2.1:0", "Cannot assign requested address" },
	};
	const struct nbar_share share = { .port = 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = nbar_open(bad[i].nic, &port);

		want(rc < 0 && strstr(nbar_error(), bad[i].part), "%s: %d, %s", bad[i].nic, rc,
		     nbar_error());
	}
	want(nbar_open("host:wire=verbs,mode=fast", &port) < 0 &&
		     (strstr(nbar_error(), "mode=fast: it is ud, write") ||
		      strstr(nbar_error(), "package nbar-nicd-verbs")),
	     "%s", nbar_error());
	want_error(nbar_attach(ANY, &share, &port), -ENOENT, "only the process that has opened");
	setenv("NBAR_HOSTNIC", "/none/such.so", 1);
	want_error(nbar_open(ANY, &port), -ELIBACC, "NBAR_HOSTNIC");
	setenv("NBAR_HOSTNIC", "libc.so.6", 1);
	want_error(nbar_open(ANY, &port), -ELIBBAD, "libc.so.6 is not an nbar library");
}

static void what_is_wrong_is_told(void **state)
{
	members(1, refuses, 0);
}

/* --- the thread of the NIC ------------------------------------------------------------------- */

/* The thread of this process with this name; 0: there is none. */
static pid_t thread_named(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *e;
	pid_t found = 0;

	while (dir && (e = readdir(dir)) != NULL) {
		char path[64], text[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(text, sizeof(text), f) && !strncmp(text, name, strlen(name)))
			found = (pid_t)atoi(e->d_name);
		if (f)
			fclose(f);
	}
	closedir(dir);
	return found;
}

static void has_a_processor(void)
{
	cpu_set_t mine, its;
	char text[128];
	int cpu = 0;

	want(sched_getaffinity(0, sizeof(mine), &mine) == 0, "%s", strerror(errno));
	while (!CPU_ISSET((size_t)cpu, &mine))
		cpu++;
	snprintf(text, sizeof(text), ANY ",cpu=%d", cpu);
	want_ok(nbar_open(text, &port));
	want(sched_getaffinity(thread_named("nbar-control"), sizeof(its), &its) == 0, "%s",
	     strerror(errno));
	want(CPU_COUNT(&its) == 1 && CPU_ISSET((size_t)cpu, &its), "not on cpu %d", cpu);
	want(sched_getaffinity(0, sizeof(its), &its) == 0 && CPU_EQUAL(&its, &mine), "moved");
	nbar_close(port);
	want_error(nbar_open(ANY ",cpu=1023", &port), -EINVAL, "cannot use that processor");
	want_error(nbar_open(ANY ",cpu=x", &port), -EINVAL, "cpu");
}

static void its_thread_runs_where_told(void **state)
{
	members(1, has_a_processor, 0);
}

/* No thread waits in the library: only the thread of the NIC makes progress and wakes the poller.
 */
static void polls_a_descriptor(void)
{
	struct pollfd p = { .events = POLLIN };
	uint32_t ticket;
	int rc;

	join(ANY);
	p.fd = nbar_group_fd(group);
	want_ok(p.fd);
	for (uint32_t i = 1; i <= 10; i++) {
		if (rank == i % size)
			nap_ms(10);
		want_ok(nbar_post(group, &ticket));
		while ((rc = nbar_group_arm(group, ticket)) == 0)
			want(poll(&p, 1, -1) == 1, "%s", strerror(errno));
		want_ok(rc);
	}
	leave();
}

static void descriptors_work_without_a_daemon(void **state)
{
	members(3, polls_a_descriptor, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(two_ports_of_one_nic),       UNIT(child_of_a_fork_holds_no_socket),
		UNIT(threads_share_a_nic),        UNIT(cancelled_waiter_leaves_the_nic),
		UNIT(nic_without_groups_sleeps),  UNIT(what_is_wrong_is_told),
		UNIT(its_thread_runs_where_told), UNIT(descriptors_work_without_a_daemon),
	};

	members_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
