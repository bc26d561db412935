/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_file.c - files that a user names: only regular files are read, up to a limit, even if
 * another process extends or cuts them meanwhile.
 */
#include "unit/unit.h"

#include "nbar_file.h"
#include "unit/descriptors.h"

static char dir[] = "/tmp/nbar-file.XXXXXX";
static char path[64];

/* Before each read, the file gets `extend` more bytes; before read number cut_at, it loses all. */
static struct {
	size_t extend;
	unsigned reads, cut_at;
	bool fail;
} play;

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
	play.reads++;
	if (play.fail) {
		errno = EIO;
		return -1;
	}
	if (play.extend) {
		FILE *f = fopen(path, "a");

		for (size_t i = 0; i < play.extend; i++)
			fputc('x', f);
		fclose(f);
	}
	if (play.reads == play.cut_at)
		assert_int_equal(truncate(path, 0), 0);
	return __real_read(fd, to, n);
}

static void file_make(size_t bytes)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (size_t i = 0; i < bytes; i++)
		fputc('a' + (int)(i % 26), f);
	fclose(f);
	memset(&play, 0, sizeof(play));
}

static void refused(int rc, size_t max, const char *words)
{
	int lowest = unit_lowest_free();
	char *text, reason[128];
	size_t n;

	assert_int_equal(nbar_file_read(path, max, &text, &n), rc);
	assert_null(text);
	nbar_file_reason(rc, max, reason, sizeof(reason));
	require(strstr(reason, words), "%s", reason);
	assert_int_equal(unit_lowest_free(), lowest);
}

/* Around the sizes at which the reader takes more memory, with the limit exactly there. */
static void whole_files_up_to_the_limit(void **state)
{
	static const size_t size[] = { 0, 1, 16383, 16384, 16385, 32768, 100000 };
	int lowest = unit_lowest_free();
	char *text;
	size_t n;

	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		file_make(size[i]);
		assert_int_equal(nbar_file_read(path, size[i], &text, &n), 0);
		assert_int_equal(n, size[i]);
		for (size_t k = 0; k < n; k++)
			require(text[k] == 'a' + (char)(k % 26), "byte %zu of %zu", k, n);
		assert_int_equal(text[n], 0);
		free(text);
		if (size[i])
			refused(-EFBIG, size[i] - 1, "more than ");
	}
	file_make(1001);
	refused(-EFBIG, 1000, "the file has more than 1000 bytes, the limit");
	assert_int_equal(unit_lowest_free(), lowest);
}

static void only_regular_files(void **state)
{
	unlink(path);
	refused(-ENOENT, 100, "No such file");
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes: an open would wait */
	refused(-EINVAL, 100, "not a regular file");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	refused(-EINVAL, 100, "not a regular file");
	rmdir(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	refused(-EINVAL, 100, "not a regular file");
	unlink(path);
}

/* A file that always grows ends at the limit, and not when memory ends. */
static void a_file_that_grows(void **state)
{
	file_make(10);
	play.extend = 20000;
	refused(-EFBIG, 100000, "more than 100000 bytes");
	assert_true(play.reads <= 8);
}

static void a_file_that_is_cut(void **state)
{
	char *text;
	size_t n;

	file_make(50000);
	play.cut_at = 2;
	assert_int_equal(nbar_file_read(path, 100000, &text, &n), 0);
	assert_int_equal(n, 16384);
	free(text);
	file_make(10);
	play.fail = true;
	refused(-EIO, 100, "Input/output error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(whole_files_up_to_the_limit),
		UNIT(only_regular_files),
		UNIT(a_file_that_grows),
		UNIT(a_file_that_is_cut),
	};

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/file", dir);
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	unlink(path);
	rmdir(dir);
	return rc;
}
