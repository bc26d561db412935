/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar_host.h - what programs on a host share (daemons, the host library, tools, tests): the run
 * directory, clocks, messages. Not for a NIC's firmware, which has no libc. Needs _GNU_SOURCE; not
 * installed.
 */
#ifndef NBAR_HOST_H
#define NBAR_HOST_H

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NBAR_REMOTE_PREFIX "rdma:" /* of names of NICs that share no memory with this host */

/* Writes the path of the run directory, the first of these that applies: $NBAR_RUN_DIR; /run/nbar
 * for root; $XDG_RUNTIME_DIR/nbar; /tmp/nbar-UID. A program with more rights than its caller
 * ignores the caller's environment. Returns what snprintf returns. */
static inline int nbar_run_dir(char *out, size_t size)
{
	const char *set = secure_getenv("NBAR_RUN_DIR"), *xdg = secure_getenv("XDG_RUNTIME_DIR");

	if (set && *set)
		return snprintf(out, size, "%s", set);
	if (geteuid() == 0)
		return snprintf(out, size, "/run/nbar");
	if (xdg && *xdg)
		return snprintf(out, size, "%s/nbar", xdg);
	return snprintf(out, size, "/tmp/nbar-%u", (unsigned)geteuid());
}

/* Writes the path of the directory where a program looks for control sockets. This is the run
 * directory; but if it does not exist and $NBAR_RUN_DIR is not set, it is /run/nbar, if that
 * exists. Returns what snprintf returns. */
static inline int nbar_run_dir_find(char *out, size_t size)
{
	const char *set = secure_getenv("NBAR_RUN_DIR");
	int n = nbar_run_dir(out, size);

	if (n >= 0 && (size_t)n < size && !(set && *set) && access(out, F_OK) < 0 &&
	    access("/run/nbar", F_OK) == 0)
		n = snprintf(out, size, "/run/nbar");
	return n;
}

/* Returns the state of a process, as ps shows it. 'T', 't': stopped. 'Z', 'X': ended. 0: there is
 * no such process, so it has ended. '?': not known. Makes system calls. */
static inline char nbar_process_state(uint32_t pid)
{
	char path[32], text[512];
	const char *end = NULL;
	FILE *f;

	if (pid == 0) /* the process is in another PID namespace */
		return '?';
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT && access("/proc/self/stat", F_OK) == 0 ? 0 : '?';
	/* The name in parentheses may hold anything. */
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	for (const char *at = text; *at; at++)
		if (*at == ')')
			end = at;
	return end && end[1] == ' ' && end[2] ? end[2] : '?';
}

/* Nanoseconds of the clock that all processes of a machine share. */
static inline uint64_t nbar_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Ends a move: the thread may use its processors again. If they are its whole cpuset, it may also
 * use those that the cpuset gets later. A mask that somebody else has set before this call stays.
 * */
static inline void nbar_moved(const cpu_set_t *one, const cpu_set_t *may)
{
	cpu_set_t now, all;

	if (sched_getaffinity(0, sizeof(now), &now) < 0 || !CPU_EQUAL(&now, one))
		return;
	memset(&all, 0xff, sizeof(all));
	if (sched_setaffinity(0, sizeof(all), &all) < 0 ||
	    sched_getaffinity(0, sizeof(now), &now) < 0 || !CPU_EQUAL(&now, may))
		sched_setaffinity(0, sizeof(*may), may);
}

/* Moves one of `threads` threads that wait for each other to a processor; negative: to the next one
 * that it may use. The thread keeps the choice of all of them. Returns the processor before.
 * Nothing happens if it may not use that processor, if there are fewer than threads, or more than
 * 1,024. */
static inline int nbar_move(int to, uint32_t threads)
{
	size_t here = (size_t)sched_getcpu(), next = (size_t)to;
	cpu_set_t may, one;

	if (threads < 2 || sched_getaffinity(0, sizeof(may), &may) < 0 ||
	    (uint32_t)CPU_COUNT(&may) < threads)
		return (int)here;
	for (size_t i = CPU_SETSIZE - 1; to < 0 && i > 0; i--)
		if (CPU_ISSET((here + i) % CPU_SETSIZE, &may))
			next = (here + i) % CPU_SETSIZE;
	if (!CPU_ISSET(next, &may))
		return (int)here;
	CPU_ZERO(&one);
	CPU_SET(next, &one);
	if (sched_setaffinity(0, sizeof(one), &one) == 0)
		nbar_moved(&one, &may);
	return (int)here;
}

#endif
