/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nics.h - the NICs that all tests of a program share. Included once, by the file with main().
 */
#ifndef NBAR_TEST_NICS_H
#define NBAR_TEST_NICS_H

#include "unit/inproc.h"

static struct inproc *nics; /* a test that stops them sets it to NULL */
static uint32_t nics_count;

static int nics_start(void **state)
{
	nics = inproc_start(nics_count, NULL);
	return 0;
}

static int nics_end(void **state)
{
	if (nics)
		inproc_stop(nics);
	return 0;
}

/* Runs the tests of an array beside n NICs; the exit status of main(). */
#define run_with_nics(n, tests) \
	(nics_count = (n), cmocka_run_group_tests(tests, nics_start, nics_end))

#endif
