/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * descriptors.h - the descriptors of a process, for tests that no descriptor is left open.
 */
#ifndef TESTBED_DESCRIPTORS_H
#define TESTBED_DESCRIPTORS_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Descriptors that this process has open. */
static inline uint32_t unit_descriptors(void)
{
	uint32_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* The descriptor that this process opens next. */
static inline int unit_lowest_free(void)
{
	int fd = dup(STDERR_FILENO);

	if (fd < 0)
		abort();
	close(fd);
	return fd;
}

#endif
