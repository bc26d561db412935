/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flat.c - checks for leaks: compares descriptors and memory of this process before and after many
 * programs.
 *
 * Called by main.c between programs, when all of their communicators are freed. Never calls MPI.
 */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "random.h"

#define GROWTH_KIB 4096 /* growth that the caches of an MPI may cause */

static struct {
	long descriptors, kib;
} before;

static long count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	long n = 0;

	while (folder && readdir(folder))
		n++;
	if (folder)
		closedir(folder);
	return n;
}

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, resident = 0;

	if (file && fscanf(file, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	if (file)
		fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

void flat_begin(void)
{
	before.descriptors = count_descriptors();
	before.kib = resident_kib();
}

bool flat_end(int rank)
{
	long descriptors = count_descriptors(), kib = resident_kib();

	fprintf(stderr, "# rank %d: descriptors %ld, then %ld; memory %ld KiB, then %ld\n", rank,
		before.descriptors, descriptors, before.kib, kib);
	return descriptors <= before.descriptors && kib <= before.kib + GROWTH_KIB;
}
