/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.c - identifies the host of a process, and keeps a table of hosts.
 *
 * Called when MPI starts, and by the component when it first looks up a process. Knows no MPI.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "comm.h"
#include "nbar_host.h"
#include "node.h"

/* FNV-1a; includes the length, so that the border between two texts counts. */
static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *byte = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
	return (hash ^ size) * UINT64_C(0x100000001b3);
}

static uint64_t mix_file(uint64_t hash, const char *path)
{
	char text[128];
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, text, sizeof(text));
		close(fd);
	}
	return mix(hash, text, n > 0 ? (size_t)n : 0);
}

/* The inode of its file identifies a namespace. */
static uint64_t mix_inode(uint64_t hash, const char *path)
{
	struct stat st = { 0 };

	if (stat(path, &st) < 0)
		st.st_ino = 0;
	return mix(mix(hash, &st.st_ino, sizeof(st.st_ino)), &st.st_dev, sizeof(st.st_dev));
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return mix(hash, text ? text : "", text ? strlen(text) : 0);
}

static uint64_t boot_of(uint64_t seed)
{
	struct utsname host;
	uint64_t hash = mix_file(seed, "/proc/sys/kernel/random/boot_id");

	/* Without such a file, the name of the host is used. */
	if (access("/proc/sys/kernel/random/boot_id", R_OK) < 0 && uname(&host) == 0)
		hash = mix_text(hash, host.nodename);
	return hash;
}

static uint64_t host_of(const struct nbmpi_config *config, uint32_t rank, uint64_t seed)
{
	char nic[NBMPI_NIC_SIZE];
	struct utsname host;
	uint64_t hash = mix_inode(seed, "/proc/self/ns/pid");

	hash = mix_inode(hash, "/proc/self/ns/net");
	if (uname(&host) == 0)
		hash = mix_text(hash, host.nodename);
	if (nbmpi_nic_name(config, rank, nic, sizeof(nic)))
		hash = mix_text(hash, nic);
	hash = mix_text(hash, getenv("NBAR_NIC"));
	return mix_text(hash, getenv("NBAR_RUN_DIR"));
}

static void cpus_of(uint64_t out[NBMPI_CPU_WORDS])
{
	cpu_set_t set;

	memset(out, 0, NBMPI_CPU_WORDS * sizeof(*out));
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (uint32_t i = 0; i < 64 * NBMPI_CPU_WORDS && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			out[i / 64] |= UINT64_C(1) << (i % 64);
}

static char lacks_nic[1280];

const char *nbmpi_node_lacks_nic(void)
{
	return lacks_nic;
}

/* False: there is no socket of the NIC. A NIC that is named by a path counts as present: only
 * nbar_open knows. So does one whose daemon has been killed. */
static bool has_nic(const struct nbmpi_config *config, uint32_t rank)
{
	const char *env = getenv("NBAR_NIC");
	char nic[NBMPI_NIC_SIZE], dir[108], path[sizeof(dir) + sizeof(nic) + 8];
	int n = nbar_run_dir_find(dir, sizeof(dir));

	if (!config->enable || config->where == NBMPI_WHERE_HOST ||
	    !nbmpi_nic_name(config, rank, nic, sizeof(nic)) || n < 0 || (size_t)n >= sizeof(dir))
		return true;
	if (!nic[0])
		snprintf(nic, sizeof(nic), "%s", env && *env ? env : "n0");
	if (strchr(nic, '/'))
		return true;
	nic[strcspn(nic, ":")] = '\0';
	snprintf(path, sizeof(path), "%s/%s.sock", dir, nic);
	if (access(path, F_OK) == 0 || errno != ENOENT)
		return true;
	snprintf(lacks_nic, sizeof(lacks_nic),
		 "no NIC %s at %s when MPI started: start one with `nbar-nicd --nic name=%s`, or "
		 "set NBAR_RUN_DIR to its run directory",
		 nic, path, nic);
	return false;
}

void nbmpi_node_self(const struct nbmpi_config *config, uint32_t rank, struct nbmpi_node *out)
{
	const uint64_t seed[2] = { UINT64_C(0xcbf29ce484222325), UINT64_C(0x9ae16a3b2f90404f) };
	const uint32_t terms[] = {
		NBMPI_VERSION, NBAR_ABI_VERSION, config->enable, config->min_hosts, config->where,
	};

	for (int i = 0; i < 2; i++) {
		out->boot[i] = boot_of(seed[i]);
		out->host[i] = host_of(config, rank, seed[i]);
	}
	out->terms = mix_text(mix(seed[0], terms, sizeof(terms)), config->alg);
	out->has_nic = has_nic(config, rank);
	cpus_of(out->cpu);
}

void nbmpi_crowd_begin(struct nbmpi_crowd *crowd, const struct nbmpi_node *self)
{
	*crowd = (struct nbmpi_crowd){ .boot = { self->boot[0], self->boot[1] } };
}

void nbmpi_crowd_add(struct nbmpi_crowd *crowd, const struct nbmpi_node *node)
{
	if (node->boot[0] != crowd->boot[0] || node->boot[1] != crowd->boot[1])
		return;
	crowd->n++;
	for (uint32_t i = 0; i < NBMPI_CPU_WORDS; i++)
		crowd->cpu[i] |= node->cpu[i];
}

bool nbmpi_crowd_full(const struct nbmpi_crowd *crowd)
{
	uint32_t cpus = 0;

	for (uint32_t i = 0; i < NBMPI_CPU_WORDS; i++)
		cpus += (uint32_t)__builtin_popcountll(crowd->cpu[i]);
	return crowd->n > cpus;
}

static uint32_t *bucket_of(const struct nbmpi_nodes *nodes, const struct nbmpi_node *node)
{
	uint32_t at = (uint32_t)(node->host[0] ^ node->boot[0]) & (nodes->room - 1);

	while (nodes->bucket[at] && !nbmpi_node_same(&nodes->node[nodes->bucket[at] - 1], node))
		at = (at + 1) & (nodes->room - 1);
	return &nodes->bucket[at];
}

/* Doubles the table; at most half of it is ever used. */
static bool grow(struct nbmpi_nodes *nodes)
{
	struct nbmpi_nodes wider = { .n = nodes->n, .room = nodes->room ? 2 * nodes->room : 64 };

	wider.node = realloc(nodes->node, wider.room / 2 * sizeof(*wider.node));
	if (!wider.node)
		return false;
	nodes->node = wider.node;
	wider.bucket = calloc(wider.room, sizeof(*wider.bucket));
	if (!wider.bucket)
		return false;
	for (uint32_t i = 0; i < wider.n; i++)
		*bucket_of(&wider, &wider.node[i]) = i + 1;
	free(nodes->bucket);
	*nodes = wider;
	return true;
}

bool nbmpi_nodes_number(struct nbmpi_nodes *nodes, const struct nbmpi_node *node, uint32_t *out)
{
	uint32_t *bucket;

	if (nodes->n == nodes->room / 2 && !grow(nodes))
		return false;
	bucket = bucket_of(nodes, node);
	if (!*bucket) {
		nodes->node[nodes->n] = *node;
		*bucket = ++nodes->n;
	}
	*out = *bucket - 1;
	return true;
}

void nbmpi_nodes_free(struct nbmpi_nodes *nodes)
{
	free(nodes->node);
	free(nodes->bucket);
	*nodes = (struct nbmpi_nodes){ 0 };
}
