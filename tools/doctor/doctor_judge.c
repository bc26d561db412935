/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor_judge.c - what the facts of a machine mean for barriers. See doctor.h.
 */
#include "doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HUGE_MB 64u           /* hugepages of a daemon with a NIC on dpdk */
#define MEMLOCK_KB 65536u     /* more than the memory that a NIC on verbs registers */
#define RMEM_BYTES (4u << 20) /* receive queue for a burst of a large group */
#define KERNEL_LEAST 0x606u   /* Linux 6.6 has tcx */
#define KERNEL_VALUES 0x612u  /* the wire kernel's programs of values load since Linux 6.18 */
#define MTU_MIN 576u          /* the longest frame of a NIC, with headers of UDP */

/* Adds a finding; the text may be followed by "\n" and the next step. */
__attribute__((format(printf, 4, 5))) static void
add(struct doctor_report *r, enum doctor_grade grade, const char *subject, const char *format, ...)
{
	struct doctor_finding *f = &r->finding[r->n];
	char both[sizeof(f->text) + sizeof(f->next)], *next;
	va_list args;

	if (r->n == DOCTOR_FINDINGS_MAX)
		return;
	va_start(args, format);
	vsnprintf(both, sizeof(both), format, args);
	va_end(args);
	next = strchr(both, '\n');
	if (next)
		*next++ = '\0';
	*f = (struct doctor_finding){ .grade = grade, .subject = subject };
	snprintf(f->text, sizeof(f->text), "%.*s", (int)sizeof(f->text) - 1, both);
	snprintf(f->next, sizeof(f->next), "%.*s", (int)sizeof(f->next) - 1, next ? next : "");
	r->n++;
}

static void judge_nics(const struct doctor_facts *f, struct doctor_report *r)
{
	if (f->run_dir_error == EACCES)
		add(r, DOCTOR_BAD, "run directory",
		    "no permission for %s\nask its owner to start nbar-nicd with --mode 0660 --group "
		    "GROUP, and join that group",
		    f->run_dir);
	else if (f->run_dir_error)
		add(r, DOCTOR_BAD, "run directory",
		    "%s: %s\nstart a daemon (nbar-nicd --nics 4 to try), or name its directory by "
		    "NBAR_RUN_DIR",
		    f->run_dir, strerror(f->run_dir_error));
	else if (f->nnic == 0)
		add(r, DOCTOR_BAD, "run directory",
		    "%s has no NIC\nstart a daemon (nbar-nicd --nics 4 to try), or name its "
		    "directory by NBAR_RUN_DIR",
		    f->run_dir);
	for (uint32_t i = 0; i < f->nnic; i++) {
		const struct doctor_nic *n = &f->nic[i];

		if (n->error)
			add(r, DOCTOR_BAD, "NIC", "%s does not answer as expected: %s", n->name,
			    n->text);
		else
			add(r, DOCTOR_GOOD, "NIC", "%s answers, and is of this version: %s",
			    n->name, n->text);
	}
	if (f->in_process.error)
		add(r, DOCTOR_SLOW, "NIC", "programs have no in-process NIC: %s",
		    f->in_process.text);
	else
		add(r, DOCTOR_GOOD, "NIC", "in-process NIC %s: %s", f->in_process.name,
		    f->in_process.text);
}

static void judge_cpus(const struct doctor_facts *f, struct doctor_report *r)
{
	if (f->cpus < 2)
		add(r, DOCTOR_SLOW, "processors",
		    "1: the NIC and the hosts take turns on it; a NIC in a daemon needs a processor "
		    "that is free while barriers run\nuse in-process NICs (host:wire=udp)");
	else if (!f->isolated[0])
		add(r, DOCTOR_SLOW, "processors",
		    "%u, none isolated: the scheduler interrupts the thread that polls\nboot with "
		    "isolcpus=%u nohz_full=%u, then nbar-nicd --cpu %u --idle spin",
		    f->cpus, f->cpus - 1, f->cpus - 1, f->cpus - 1);
	else
		add(r, DOCTOR_GOOD, "processors", "%u, isolated: %s", f->cpus, f->isolated);
	if (f->governor[0] && strcmp(f->governor, "performance") != 0)
		add(r, DOCTOR_SLOW, "frequency",
		    "governor %s: a processor that wakes runs slowly at first\ncpupower "
		    "frequency-set -g performance",
		    f->governor);
}

static void judge_memory(const struct doctor_facts *f, struct doctor_report *r)
{
	if (f->huge_mb < HUGE_MB)
		add(r, DOCTOR_SLOW, "hugepages",
		    "%llu MB free: the wire dpdk then uses small pages, and drivers of devices do "
		    "not start\nsysctl vm.nr_hugepages=%u",
		    (unsigned long long)f->huge_mb, HUGE_MB / 2);
	else
		add(r, DOCTOR_GOOD, "hugepages", "%llu MB free", (unsigned long long)f->huge_mb);
	if (f->nrdma && f->memlock_kb < MEMLOCK_KB)
		add(r, DOCTOR_SLOW, "locked memory",
		    "limit %llu KB: the wire verbs may fail to register memory\nraise memlock in "
		    "/etc/security/limits.conf, or LimitMEMLOCK of the service",
		    (unsigned long long)f->memlock_kb);
	if (f->rmem_max < RMEM_BYTES && !f->net_admin)
		add(r, DOCTOR_SLOW, "receive queue",
		    "at most %llu bytes: bursts of large groups overflow it, and cost "
		    "retransmissions\nsysctl net.core.rmem_max=%u, or give the daemon "
		    "CAP_NET_ADMIN",
		    (unsigned long long)f->rmem_max, RMEM_BYTES);
	else
		add(r, DOCTOR_GOOD, "receive queue", "large enough for bursts of large groups");
}

static void judge_network(const struct doctor_facts *f, struct doctor_report *r)
{
	if (f->nlink == 0)
		add(r, DOCTOR_SLOW, "network",
		    "no interface is up: only NICs of this machine meet\nip link set DEV up");
	for (uint32_t i = 0; i < f->nlink; i++) {
		const struct doctor_link *l = &f->link[i];

		if (l->mtu < MTU_MIN)
			add(r, DOCTOR_BAD, "network",
			    "%s: MTU %u is too small for a frame\nip link set %s mtu 1500", l->name,
			    l->mtu, l->name);
		else
			add(r, DOCTOR_GOOD, "network", "%s: up, driver %s, MTU %u", l->name,
			    l->driver[0] ? l->driver : "unknown", l->mtu);
		if (l->rx_usecs)
			add(r, DOCTOR_SLOW, "network",
			    "%s holds frames back for up to %u us\nethtool -C %s adaptive-rx off "
			    "rx-usecs 0",
			    l->name, l->rx_usecs, l->name);
		if (l->rps)
			add(r, DOCTOR_SLOW, "network",
			    "%s: RPS hands frames to other processors\necho 0 "
			    ">/sys/class/net/%s/queues/rx-0/rps_cpus",
			    l->name, l->name);
	}
	if (f->nrdma)
		add(r, DOCTOR_GOOD, "RDMA", "%u devices: wire=verbs can use them", f->nrdma);
}

/* Whether NICs that need no processor can be had, if there is none. */
static void judge_kernel(const struct doctor_facts *f, struct doctor_report *r)
{
	for (uint32_t i = 0; i < f->nnic; i++) {
		if (strncmp(f->nic[i].text, "wire kernel,", 12) != 0)
			continue;
		if (f->kernel && f->kernel < KERNEL_VALUES)
			add(r, DOCTOR_SLOW, "wire kernel",
			    "Linux %u.%u takes no programs of values: allreduces wake the daemon\n"
			    "boot Linux 6.18 or later",
			    f->kernel >> 8, f->kernel & 0xff);
		return;
	}
	if (f->kernel && f->kernel < KERNEL_LEAST)
		add(r, DOCTOR_SLOW, "wire kernel",
		    "Linux %u.%u does not attach its programs (tcx)\nboot Linux 6.6 or later, or "
		    "use the wire udp",
		    f->kernel >> 8, f->kernel & 0xff);
	else if (!f->kernel_wire)
		add(r, DOCTOR_SLOW, "wire kernel",
		    "is not installed: a daemon needs a processor\ninstall the package "
		    "nbar-nicd-kernel, or "
		    "install clang and libbpf-dev and build nbar again");
	else if (!f->bpf)
		add(r, DOCTOR_SLOW, "wire kernel",
		    "this user may not load its programs\nstart nbar-nicd as root, or by the "
		    "service: CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW");
	else
		add(r, DOCTOR_GOOD, "wire kernel",
		    "can run barriers without a processor: nbar-nicd --nic wire=kernel,dev=DEV");
}

static void judge_mpi(const struct doctor_facts *f, struct doctor_report *r)
{
	if (f->openmpi && f->component)
		add(r, DOCTOR_GOOD, "Open MPI",
		    "has the component coll/nbar: mpirun --mca "
		    "coll_nbar_enable 1");
	if (f->openmpi && !f->component)
		add(r, DOCTOR_SLOW, "Open MPI",
		    "has no component coll/nbar: its barriers are not offloaded\nmake install, or "
		    "make install-component-user, or install the package libnbar-mpi (RPM: "
		    "nbar-mpi)");
	if (f->mpich && f->preload)
		add(r, DOCTOR_GOOD, "MPICH",
		    "LD_PRELOAD=libnbar-mpi-mpich.so offloads its barriers");
	if (f->mpich && !f->preload)
		add(r, DOCTOR_SLOW, "MPICH",
		    "libnbar-mpi-mpich.so is not installed: its barriers are not offloaded\nmake "
		    "install && ldconfig, or install the package libnbar-mpi (RPM: nbar-mpi)");
}

void doctor_judge(const struct doctor_facts *f, struct doctor_report *r)
{
	r->n = 0;
	judge_nics(f, r);
	judge_network(f, r);
	judge_kernel(f, r);
	judge_cpus(f, r);
	judge_memory(f, r);
	judge_mpi(f, r);
}

const char *doctor_grade_name(enum doctor_grade grade)
{
	switch (grade) {
	case DOCTOR_GOOD:
		return "ok";
	case DOCTOR_SLOW:
		return "slow";
	case DOCTOR_BAD:
		return "bad";
	}
	return "?";
}
