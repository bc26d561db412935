/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor.h - `nbar doctor`: facts of a machine, and their consequences for barriers.
 *
 * doctor_facts.c looks at the machine, doctor_judge.c is pure: facts in, findings out. doctor.c
 * prints. None of them changes the machine.
 */
#ifndef NBAR_TOOLS_DOCTOR_H
#define NBAR_TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "nbar_abi.h"

#define DOCTOR_LINKS_MAX 16u
#define DOCTOR_FINDINGS_MAX 136u

/* A network interface that is up. */
struct doctor_link {
	char name[32], driver[32];
	uint32_t mtu, rx_usecs; /* for how long it holds frames back: 0 if it does not say */
	bool rps;               /* frames change the processor */
};

/* A control socket of the run directory. */
struct doctor_nic {
	char name[NBAR_NAME_MAX];
	int error;      /* 0, or negative errno of the request for its counters */
	char text[256]; /* of the error: what to do; else wire and address, and why this address */
};

struct doctor_facts {
	const char *root;    /* the machine is below this path: "", but for tests */
	uint32_t cpus;       /* number of processors that this process may use */
	char isolated[64];   /* isolated processors, as the kernel lists them; empty: none */
	char governor[32];   /* frequency governor; empty: the kernel has none */
	uint64_t huge_mb;    /* free hugepages */
	uint64_t memlock_kb; /* UINT64_MAX: no limit */
	uint64_t rmem_max;   /* largest receive queue that a socket may ask for */
	bool net_admin;      /* this process may ask for a larger queue */
	bool bpf;            /* it may load the programs of the wire kernel, too */
	uint32_t kernel;     /* major << 8 | minor; 0: not known */
	bool kernel_wire;    /* this wire is installed */
	uint32_t nlink, nrdma, nnic; /* nrdma: RDMA devices */
	struct doctor_link link[DOCTOR_LINKS_MAX];
	char run_dir[256];
	int run_dir_error; /* 0, or positive errno of opening it */
	struct doctor_nic nic[NBAR_NICS_MAX];
	struct doctor_nic in_process; /* the NIC that a program has with host:wire=udp */
	bool openmpi,
		component;   /* Open MPI is installed, and the component coll/nbar in its folder */
	bool mpich, preload; /* MPICH is installed, and libnbar-mpi-mpich.so is found */
};

enum doctor_grade {
	DOCTOR_GOOD,
	DOCTOR_SLOW, /* works; a change would make it faster or more robust */
	DOCTOR_BAD   /* programs get no NIC, or an interface cannot carry frames */
};

struct doctor_finding {
	enum doctor_grade grade;
	const char *subject;
	char text[400]; /* what was found */
	char next[300]; /* what to do; empty: nothing */
};

struct doctor_report {
	uint32_t n;
	struct doctor_finding finding[DOCTOR_FINDINGS_MAX];
};

/* Fills in all facts. A fact that cannot be read counts as absent. */
void doctor_look(struct doctor_facts *f);

/* Fills in what the device of an interface says: rx_usecs. */
void doctor_look_link(struct doctor_link *l);

/* Fills in what files below root and the limits of this process say, and nothing of NICs or MPI. */
void doctor_look_machine(const char *root, struct doctor_facts *f);

/* Makes the findings of these facts, in the order in which a reader should act. */
void doctor_judge(const struct doctor_facts *f, struct doctor_report *r);

/* "ok", "slow" or "bad". */
const char *doctor_grade_name(enum doctor_grade grade);

#endif
