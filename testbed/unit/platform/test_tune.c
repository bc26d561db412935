/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tune.c - tune files: a good file is read correctly, and a bad one is refused.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tune.h"

static int parse(const char *text, struct tune *t, struct tune_fault *fault)
{
	/* Allocates exactly this length, so a sanitizer finds a read beyond it. */
	size_t n = strlen(text);
	char *copy = malloc(n ? n : 1);

	assert_non_null(copy);
	memcpy(copy, text, n);
	int rc = tune_parse(copy, n, t, fault);

	free(copy);
	return rc;
}

static void good_file(void **state)
{
	struct tune t;
	struct tune_fault fault;

	(void)state;
	assert_int_equal(parse("# made by hand\n\nnbar-tune 1 # version\r\n"
			       "  4\tdissemination:3\n16 tournament#x\n1048576 mcs",
			       &t, &fault),
			 0);
	assert_int_equal(t.n, 3);
	assert_null(tune_find(&t, 1));
	assert_null(tune_find(&t, 3));
	assert_int_equal(tune_find(&t, 4)->alg.kind, NBFW_ALG_DISSEMINATION);
	assert_int_equal(tune_find(&t, 15)->alg.n, 3);
	assert_string_equal(tune_find(&t, 15)->name, "dissemination:3");
	assert_int_equal(tune_find(&t, 16)->alg.kind, NBFW_ALG_TOURNAMENT);
	assert_int_equal(tune_find(&t, 1048575)->alg.kind, NBFW_ALG_TOURNAMENT);
	assert_int_equal(tune_find(&t, 1048576)->alg.kind, NBFW_ALG_MCS);
}

static void bad_files(void **state)
{
	static const struct {
		const char *text;
		uint32_t line;
		const char *why;
	} bad[] = {
		{ "", 0, "empty" },
		{ "\n# nothing\n", 0, "empty" },
		{ "nbar-tune 1\n", 0, "names no size" },
		{ "2 mcs\n", 1, "must begin with" },
		{ "nbar-tune\n", 1, "must begin with" },
		{ "nbar-tune 1 1\n", 1, "must begin with" },
		{ "\nnbar-tune 2\n2 mcs\n", 2, "another version" },
		{ "nbar-tune 1\n0 mcs\n", 2, "a size of 1" },
		{ "nbar-tune 1\n1048577 mcs\n", 2, "a size of 1" },
		{ "nbar-tune 1\n4294967298 mcs\n", 2, "a size of 1" },
		{ "nbar-tune 1\n99999999999999999999999999 mcs\n", 2, "a size of 1" },
		{ "nbar-tune 1\n-2 mcs\n", 2, "a size of 1" },
		{ "nbar-tune 1\nmcs 2\n", 2, "a size of 1" },
		{ "nbar-tune 1\n2\n", 2, "must follow" },
		{ "nbar-tune 1\n2 mcs 3\n", 2, "nothing may follow" },
		{ "nbar-tune 1\n2 mcs\n2 mcs\n", 3, "ascend" },
		{ "nbar-tune 1\n4 mcs\n2 mcs\n", 3, "ascend" },
		{ "nbar-tune 1\n2 auto\n", 2, "is one of" },
		{ "nbar-tune 1\n2 custom\n", 2, "is one of" },
		{ "nbar-tune 1\n2 signal\n", 2, "is one of" },
		{ "nbar-tune 1\n2 linear\n", 2, "is one of" },
		{ "nbar-tune 1\n2 dissemination:17\n", 2, "is one of" },
		{ "nbar-tune 1\n2 MCS\n", 2, "is one of" },
		{ "nbar-tune 1\n2 an-algorithm-whose-name-is-longer-than-any\n", 2, "is one of" },
		{ "nbar-tune 1\n2 mc\x01s\n", 2, "not text" },
		{ "nbar-tune 1\n2 mc\xc3\xa4s\n", 2, "not text" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tune t = { .n = 7 };
		struct tune_fault fault;

		if (parse(bad[i].text, &t, &fault) == 0 || t.n != 7 || fault.line != bad[i].line ||
		    !strstr(fault.why, bad[i].why))
			fail_msg("%zu: line %u, %s", i, fault.line,
				 fault.why ? fault.why : "taken");
	}
}

/* Long lines, a zero inside, too many sizes. */
static void limits(void **state)
{
	char text[4096];
	struct tune t;
	struct tune_fault fault;
	int n = sprintf(text, "nbar-tune 1\n2 mcs");

	(void)state;
	memset(text + n, ' ', 300);
	strcpy(text + n + 300, "\n");
	assert_int_not_equal(parse(text, &t, &fault), 0);
	assert_string_equal(fault.why, "the line is too long");
	strcpy(text + n, " #");
	memset(text + n + 2, 'x', 300);
	assert_int_equal(tune_parse(text, (size_t)n + 302, &t, &fault), 0);
	assert_int_not_equal(tune_parse("nbar-tune 1\n2 mcs\0", 18, &t, &fault), 0);
	assert_string_equal(fault.why, "it has bytes that are not text");

	n = sprintf(text, "nbar-tune 1\n");
	for (int size = 1; size <= (int)TUNE_LINES_MAX; size++)
		n += sprintf(text + n, "%d mcs\n", size);
	assert_int_equal(tune_parse(text, (size_t)n, &t, &fault), 0);
	assert_int_equal(t.n, TUNE_LINES_MAX);
	n += sprintf(text + n, "%u mcs\n", TUNE_LINES_MAX + 1);
	assert_int_not_equal(tune_parse(text, (size_t)n, &t, &fault), 0);
	assert_int_equal(fault.line, TUNE_LINES_MAX + 2);
}

/* Random bytes: the reader must return a result, and must not crash. */
static void noise(void **state)
{
	static const char piece[][12] = { "nbar-tune 1", "\n",   " ", "2",    "mcs", "#",
					  "\r",          "auto", "9", "\x80", "",    "tournament" };
	uint32_t random = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char text[256] = "";
		struct tune t;
		struct tune_fault fault;

		for (int k = 0; k < 12; k++) {
			random = random * 1664525u + 1013904223u;
			strcat(text, piece[(random >> 16) % 12]);
		}
		if (parse(text, &t, &fault) == 0)
			assert_in_range(t.n, 1, TUNE_LINES_MAX);
		else
			assert_non_null(fault.why);
	}
}

/* Files on disk, and paths that are no files. */
static void from_disk(void **state)
{
	char dir[] = "/tmp/nbar-tune-XXXXXX", path[64], fifo[64];
	struct tune t = { 0 };
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tune", dir);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(tune_load("--tune", path, &t), -2);
	f = fopen(path, "w");
	fputs("nbar-tune 1\n2 pairwise\n", f);
	fclose(f);
	assert_int_equal(tune_load("--tune", path, &t), 0);
	assert_string_equal(t.entry[0].name, "pairwise");
	f = fopen(path, "w");
	for (int i = 0; i < 20000; i++)
		fputs("#\n", f);
	fclose(f);
	assert_true(tune_load("--tune", path, &t) < 0);
	assert_true(tune_load("--tune", dir, &t) < 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(tune_load("--tune", fifo, &t) < 0);
	unlink(fifo);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_file), cmocka_unit_test(bad_files), cmocka_unit_test(limits),
		cmocka_unit_test(noise),     cmocka_unit_test(from_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
