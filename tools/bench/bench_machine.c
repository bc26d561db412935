/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_machine.c - the machine that a bench runs on, and the cores that it uses.
 */
#include "bench.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* The core of a running daemon; -1 if the daemon may use several cores. */
static int cpu_of(pid_t pid)
{
	cpu_set_t set;

	if (sched_getaffinity(pid, sizeof(set), &set) || CPU_COUNT(&set) != 1)
		return -1;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET((unsigned)i, &set))
			return i;
	return -1;
}

void bench_machine_read(struct bench_machine *m, const struct bench_options *opt)
{
	struct nbar_rep_nic_stat stat;
	/* A daemon that sleeps while the kernel runs the barriers. */
	bool shares = strncmp(opt->wire, NBAR_WIRE_OF_DEVICE, strlen(NBAR_WIRE_OF_DEVICE)) == 0 &&
		      (!opt->idle || strcmp(opt->idle, "sleep") == 0);
	cpu_set_t set;

	*m = (struct bench_machine){ .daemon_cpu = opt->cpu };
	m->machine = tool_machine();
	if (sched_getaffinity(0, sizeof(set), &set))
		CPU_ZERO(&set);
	m->ncpu = (uint32_t)CPU_COUNT(&set);
	for (int i = 0; i < CPU_SETSIZE && m->daemon_cpu < 0 && !opt->nnic; i++)
		if (CPU_ISSET((unsigned)i, &set))
			m->daemon_cpu = i;
	if (opt->nnic && !nbar_nic_stat(opt->nic[0], &stat))
		m->daemon_cpu = cpu_of((pid_t)stat.pid);
	for (int i = 0; i < CPU_SETSIZE && m->nhost_cpu < 64; i++)
		if (CPU_ISSET((unsigned)i, &set) && (i != m->daemon_cpu || m->ncpu == 1))
			m->host_cpu[m->nhost_cpu++] = i;
	m->nin_process_cpu = m->nhost_cpu;
	if ((!opt->nnic || shares) && m->ncpu > 1 && m->nhost_cpu < 64 && m->daemon_cpu >= 0 &&
	    CPU_ISSET((unsigned)m->daemon_cpu, &set))
		m->host_cpu[m->nin_process_cpu++] = m->daemon_cpu;
	if (shares)
		m->nhost_cpu = m->nin_process_cpu;
	snprintf(m->idle, sizeof(m->idle), "%s",
		 opt->nnic     ? "attached"
		 : opt->idle   ? opt->idle
		 : shares      ? "sleep"
		 : m->ncpu > 1 ? "spin"
			       : "yield");
}
