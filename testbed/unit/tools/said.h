/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * said.h - keeps what a tool says on stderr.
 */
#ifndef NBAR_TEST_SAID_H
#define NBAR_TEST_SAID_H

#include <unistd.h>

#include "unit/unit.h"

static char said[4096]; /* between the last two calls */
static int said_held = -1;

static void hold_stderr(void)
{
	char name[] = "/tmp/nbar-said-XXXXXX";
	int fd = mkstemp(name);

	fflush(stderr);
	said_held = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
	unlink(name);
}

static void release_stderr(void)
{
	ssize_t n;

	fflush(stderr);
	n = pread(STDERR_FILENO, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	dup2(said_held, STDERR_FILENO);
	close(said_held);
}

#endif
