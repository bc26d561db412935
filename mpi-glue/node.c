/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.c - identifies the host of a process, and the settings that all ranks must share; numbers
 * hosts.
 *
 * Called when MPI starts, by the component when it first looks up a process, and for the texts of
 * failures. Knows no MPI.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "comm.h"
#include "nbar_host.h"
#include "nbar_hostnic.h"
#include "node.h"

/* FNV-1a. Two beginnings give two hashes. */
#define FNV_PRIME UINT64_C(0x100000001b3)
#define FNV_BEGIN UINT64_C(0xcbf29ce484222325)
#define FNV_OTHER UINT64_C(0x9ae16a3b2f90404f)

/* Includes the length, so that the border between two texts counts. */
static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *byte = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * FNV_PRIME;
	return (hash ^ size) * FNV_PRIME;
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

/* The inode of its file identifies a namespace. A file that cannot be read says nothing. */
static uint64_t mix_inode(uint64_t hash, const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return hash;
	return mix(mix(hash, &st.st_ino, sizeof(st.st_ino)), &st.st_dev, sizeof(st.st_dev));
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	const char *known = text ? text : "";

	return mix(hash, known, strlen(known));
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

/* Writes the name of this process's NIC, as the settings of the MPI give it, else as the
 * environment does; else "". False: the settings give no name. */
static bool node_nic(const struct nbmpi_config *config, uint32_t rank, char nic[NBMPI_NIC_SIZE])
{
	const char *env = getenv("NBAR_NIC");

	if (!nbmpi_nic_name(config, rank, nic, NBMPI_NIC_SIZE))
		return false;
	if (!*nic && env)
		snprintf(nic, NBMPI_NIC_SIZE, "%s", env);
	return true;
}

static uint64_t host_of(const struct nbmpi_config *config, uint32_t rank, uint64_t seed)
{
	char nic[NBMPI_NIC_SIZE];
	struct utsname host;
	uint64_t hash = mix_inode(seed, "/proc/self/ns/pid");

	hash = mix_inode(hash, "/proc/self/ns/net");
	hash = mix_inode(hash, NBAR_HOSTNIC_DIR); /* the files of mates.c */
	if (uname(&host) == 0)
		hash = mix_text(hash, host.nodename);
	if (node_nic(config, rank, nic))
		hash = mix_text(hash, nic);
	return mix_text(hash, getenv("NBAR_RUN_DIR"));
}

static char lacks_nic[1280];

const char *nbmpi_node_lacks_nic(void)
{
	return lacks_nic;
}

/* False: the NIC has no socket. A NIC that is named by a path counts as present, because only
 * nbar_open can tell. A NIC whose daemon was killed counts as present, too. */
static bool has_nic(const struct nbmpi_config *config, uint32_t rank)
{
	char nic[NBMPI_NIC_SIZE], dir[108], path[sizeof(dir) + sizeof(nic) + 8];
	int n = nbar_run_dir_find(dir, sizeof(dir));

	if (!config->enable || config->where == NBMPI_WHERE_HOST || !node_nic(config, rank, nic) ||
	    n < 0 || (size_t)n >= sizeof(dir))
		return true;
	if (!*nic)
		snprintf(nic, sizeof(nic), "n0");
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
	const uint64_t seed[2] = { FNV_BEGIN, FNV_OTHER };
	const uint32_t terms[] = {
		NBMPI_VERSION, NBAR_ABI_VERSION,  config->enable,
		config->where, config->min_hosts, config->allreduce,
	};

	for (int i = 0; i < 2; i++) {
		out->boot[i] = boot_of(seed[i]);
		out->host[i] = host_of(config, rank, seed[i]);
	}
	out->terms = mix_text(mix(FNV_BEGIN, terms, sizeof(terms)), config->alg);
	out->has_nic = has_nic(config, rank);
}

struct place {
	uint64_t host;
	uint32_t rank;
};

static int by_host(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = (x->host > y->host) - (x->host < y->host);

	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

uint32_t *nbmpi_hosts_number(uint64_t (*host)(void *arg, uint32_t rank), void *arg, uint32_t size)
{
	struct place *place = malloc(size * sizeof(*place));
	uint32_t *number = malloc(size * sizeof(*number)), n = 0, lowest = 0;

	if (!place || !number) {
		free(place);
		free(number);
		return NULL;
	}
	for (uint32_t r = 0; r < size; r++)
		place[r] = (struct place){ host(arg, r), r };
	qsort(place, size, sizeof(*place), by_host);
	for (uint32_t i = 0; i < size; i++) {
		if (i == 0 || place[i].host != place[i - 1].host)
			lowest = place[i].rank;
		number[place[i].rank] = lowest;
	}
	free(place);
	for (uint32_t r = 0; r < size; r++)
		number[r] = number[r] == r ? n++ : number[number[r]];
	return number;
}
