/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal.c - starts the EAL, which is DPDK's start-up, with the arguments of the user and ours.
 *
 * Called by the polling thread before NICs are opened, and after they are closed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "eal.h"
#include "log.h"

#define ARGS_MAX (WIRE_ARGS_MAX + 16) /* arguments of the user, and ours */
/* Memory for DPDK, and for each NIC. Without hugepages, unused memory is not resident. */
#define MEMORY_MB 32u
#define NIC_MB 24u

/* Megabytes of free hugepages of all sizes. */
static uint64_t huge_free_mb(void)
{
	DIR *d = opendir("/sys/kernel/mm/hugepages");
	uint64_t mb = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		char path[512];
		unsigned long kb = 0, n = 0;
		FILE *f;

		if (sscanf(e->d_name, "hugepages-%lukB", &kb) != 1)
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/free_hugepages",
			 e->d_name);
		f = fopen(path, "r");
		if (f && fscanf(f, "%lu", &n) == 1)
			mb += (uint64_t)n * kb / 1024;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return mb;
}

static bool starts_with_any(const char *text, const char *const *word)
{
	for (; *word; word++)
		if (strncmp(text, *word, strlen(*word)) == 0)
			return true;
	return false;
}

/* True if an EAL argument of the user begins with one of these words. */
static bool user_gave(const struct wire_start *s, const char *const *word)
{
	for (uint32_t i = 0; i < s->argc; i++)
		if (starts_with_any(s->argv[i], word))
			return true;
	return false;
}

/* Starts the EAL with our arguments, except those that the user replaces, and then the arguments of
 * the user. */
int eal_start(const struct wire_start *s)
{
	static const char *const cores[] = { "-l", "-c", "--lcores", NULL };
	static const char *const pci[] = { "-a", "--allow", "-b", "--block", NULL };
	static const char *const memory[] = { "-m", "--socket-mem", NULL };
	static char name[] = "nbar-nicd", no_telemetry[] = "--no-telemetry",
		    level[] = "--log-level=3", no_pci[] = "--no-pci", no_huge[] = "--no-huge",
		    no_shconf[] = "--no-shconf", in_memory[] = "--in-memory", m[] = "-m";
	static char lcores[32], mb[16];
	static char *argv[ARGS_MAX + 1];
	const unsigned need_mb = MEMORY_MB + s->nnic * NIC_MB;
	int argc = 0;

	if (user_gave(s, cores)) {
		log_error(
			"EAL arguments: the polled processor is chosen by --cpu, not by -l, -c or "
			"--lcores");
		return -EINVAL;
	}
	snprintf(lcores, sizeof(lcores), "--lcores=0@%u", s->cpu);
	snprintf(mb, sizeof(mb), "%u", need_mb);
	argv[argc++] = name;
	argv[argc++] = lcores;
	argv[argc++] = no_telemetry;
	argv[argc++] = level;
	if (!user_gave(s, pci))
		argv[argc++] = no_pci;
	if (s->huge == WIRE_HUGE_YES || (s->huge == WIRE_HUGE_AUTO && huge_free_mb() >= need_mb)) {
		argv[argc++] = in_memory;
	} else {
		argv[argc++] = no_huge;
		argv[argc++] = no_shconf;
	}
	if (!user_gave(s, memory)) {
		argv[argc++] = m;
		argv[argc++] = mb;
	}
	for (uint32_t i = 0; i < s->argc; i++)
		argv[argc++] = s->argv[i];
	if (rte_eal_init(argc, argv) >= 0)
		return 0;
	log_error("DPDK does not start: %s; %s", rte_strerror(rte_errno),
		  s->argc ? "check the EAL arguments behind \"--\""
			  : "try --huge no, or another --cpu");
	return -EIO;
}

void eal_end(void)
{
	rte_eal_cleanup();
}
