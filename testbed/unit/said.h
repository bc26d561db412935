/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * said.h - what a program prints to stderr, for a test to read.
 */
#ifndef NBAR_TEST_SAID_H
#define NBAR_TEST_SAID_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit/unit.h"

static int said_stderr = -1, said_file = -1;

/* From here on, stderr goes into a file in memory. */
static inline void said_begin(void)
{
	fflush(stderr);
	said_stderr = fcntl(2, F_DUPFD_CLOEXEC, 10);
	said_file = memfd_create("said", MFD_CLOEXEC);
	assert_true(said_stderr >= 0 && said_file >= 0);
	assert_int_equal(dup2(said_file, 2), 2);
}

/* Ends that, and returns the text. The next call overwrites it. */
static inline const char *said_end(void)
{
	static char text[8192];
	ssize_t n;

	fflush(stderr);
	n = pread(said_file, text, sizeof(text) - 1, 0);
	assert_int_equal(dup2(said_stderr, 2), 2);
	close(said_stderr);
	close(said_file);
	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

#endif
