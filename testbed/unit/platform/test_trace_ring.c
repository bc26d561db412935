/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_trace_ring.c - the file with the events of a NIC: who may read it, what it holds after the
 * ring is full, and what a failed call leaves behind.
 */
#include "unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "trace_ring.h"

static char dir[32], path[64];
static char said[512];
enum { NOTHING, CALLOC, UNLINK, FALLOCATE, FCHOWN, FCHMOD, MMAP };
static int fails; /* one of these */
static gid_t group;
static uint32_t nunmapped, nclosed, nfclosed;
static size_t unmapped;

void *__real_calloc(size_t n, size_t size);
int __real_unlink(const char *name);
int __real_posix_fallocate(int fd, off_t at, off_t bytes);
int __real_fchmod(int fd, mode_t mode);
void *__real_mmap(void *at, size_t bytes, int how, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __real_fclose(FILE *f);
int __real_close(int fd);

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(said, sizeof(said), format, args);
	va_end(args);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails == CALLOC ? NULL : __real_calloc(n, size);
}

static int result(int rc, bool failed, int error)
{
	if (!failed)
		return rc;
	errno = error;
	return -1;
}

int __wrap_unlink(const char *name)
{
	bool failed = fails == UNLINK;

	return failed ? result(0, true, EPERM) : __real_unlink(name);
}

int __wrap_posix_fallocate(int fd, off_t at, off_t bytes)
{
	return fails == FALLOCATE ? ENOSPC : __real_posix_fallocate(fd, at, bytes);
}

int __wrap_fchown(int fd, uid_t uid, gid_t gid)
{
	assert_true(fd >= 0 && uid == (uid_t)-1);
	group = gid;
	return result(0, fails == FCHOWN, EPERM);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	return fails == FCHMOD ? result(0, true, EIO) : __real_fchmod(fd, mode);
}

void *__wrap_mmap(void *at, size_t bytes, int how, int flags, int fd, off_t offset)
{
	if (fails != MMAP)
		return __real_mmap(at, bytes, how, flags, fd, offset);
	errno = ENOMEM;
	return MAP_FAILED;
}

int __wrap_munmap(void *at, size_t bytes)
{
	nunmapped++;
	unmapped = bytes;
	return __real_munmap(at, bytes);
}

int __wrap_fclose(FILE *f)
{
	nfclosed++;
	return __real_fclose(f);
}

int __wrap_close(int fd)
{
	nclosed++;
	return __real_close(fd);
}

static int begin(void **state)
{
	strcpy(dir, "/tmp/nbar-trace-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/n0.trace", dir);
	fails = NOTHING;
	group = 0;
	nunmapped = nclosed = nfclosed = 0;
	said[0] = '\0';
	return 0;
}

static int end(void **state)
{
	fails = NOTHING;
	unlink(path);
	return rmdir(dir);
}

static bool exists(void)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static const struct nbar_trace_head *map(size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	*bytes = (size_t)st.st_size;
	at = __real_mmap(NULL, *bytes, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	__real_close(fd);
	return at;
}

static const struct nbar_trace_event *event(const struct nbar_trace_head *h, uint32_t i)
{
	return (const struct nbar_trace_event *)((const char *)h + NBAR_TRACE_HEAD_BYTES) + i;
}

/* Room for 5 events is room for 8; the ninth and tenth replace the first two. */
static void events(void **state)
{
	const struct nbar_trace_head *h;
	struct trace_ring *t = NULL;
	char host[64] = "";
	size_t bytes;

	assert_int_equal(trace_ring_open(dir, "n0", 5, 0600, (gid_t)-1, &t), 0);
	assert_true(t && nclosed == 1 && nfclosed == 1 && group == 0);
	h = map(&bytes);
	assert_true(bytes == NBAR_TRACE_HEAD_BYTES + 8 * sizeof(struct nbar_trace_event));
	assert_true(h->magic == NBAR_TRACE_MAGIC && h->version == NBAR_TRACE_VERSION);
	assert_true(h->capacity == 8 && h->pid == (uint32_t)getpid());
	assert_string_equal(h->nic, "n0");
	gethostname(host, sizeof(host) - 1);
	assert_string_equal(h->host, host);
	assert_int_equal(strlen(h->boot_id), 36);
	for (uint32_t i = 0; i < 10; i++) {
		struct nbar_trace_event e = { .epoch = 100 + i, .peer = 200 + i };

		assert_true(h->begun == i && h->written == i);
		trace_ring_note(t, &e, 1000 + i);
	}
	assert_true(h->begun == 10 && h->written == 10);
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t n = i < 2 ? 8 + i : i;

		assert_true(event(h, i)->time == 1000 + n);
		assert_int_equal(event(h, i)->epoch, 100 + n);
		assert_int_equal(event(h, i)->peer, 200 + n);
	}
	trace_ring_close(t);
	assert_false(exists());
	assert_true(nunmapped == 1 && unmapped == bytes);
	__real_munmap((void *)(uintptr_t)h, bytes);
	trace_ring_close(NULL);
	assert_int_equal(nunmapped, 1);
}

static void capacities(void **state)
{
	static const uint32_t of[][2] = { { 1, 1 }, { 2, 2 }, { 3, 4 }, { 8, 8 }, { 9, 16 } };

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const struct nbar_trace_head *h;
		struct trace_ring *t;
		size_t bytes;

		assert_int_equal(trace_ring_open(dir, "n0", of[i][0], 0600, (gid_t)-1, &t), 0);
		h = map(&bytes);
		assert_int_equal(h->capacity, of[i][1]);
		__real_munmap((void *)(uintptr_t)h, bytes);
		trace_ring_close(t);
	}
}

/* Who may write to the sockets may read the file. */
static void readers(void **state)
{
	static const mode_t of[][2] = { { 0600, 0600 }, { 0660, 0640 }, { 0666, 0644 },
					{ 0644, 0600 }, { 0622, 0644 }, { 0601, 0600 } };
	struct trace_ring *t;
	struct stat st;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		assert_int_equal(trace_ring_open(dir, "n0", 1, of[i][0], 77, &t), 0);
		assert_true(stat(path, &st) == 0 && group == 77);
		assert_int_equal(st.st_mode & 07777, of[i][1]);
		trace_ring_close(t);
	}
}

/* A new file, even if there is one: a reader may still have it open. */
static void replaces_a_file(void **state)
{
	int old = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct trace_ring *t;
	struct stat st;

	errno = EPERM; /* of an earlier call */
	assert_int_equal(trace_ring_open(dir, "n0", 4, 0600, (gid_t)-1, &t), 0);
	assert_true(fstat(old, &st) == 0 && st.st_nlink == 0 && st.st_size == 0);
	__real_close(old);
	trace_ring_close(t);
}

static void failed_calls(void **state)
{
	static const struct {
		int call, error;
	} of[] = { { UNLINK, EPERM },
		   { FALLOCATE, ENOSPC },
		   { FCHOWN, EPERM },
		   { FCHMOD, EIO },
		   { MMAP, ENOMEM } };
	struct trace_ring *t = NULL;
	char want[256];

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		fails = of[i].call;
		nclosed = 0;
		assert_int_equal(trace_ring_open(dir, "n0", 2, 0600, 77, &t), -of[i].error);
		snprintf(want, sizeof(want),
			 "--trace: cannot make %s with %zu bytes: %s; give fewer events", path,
			 NBAR_TRACE_HEAD_BYTES + 2 * sizeof(struct nbar_trace_event),
			 strerror(of[i].error));
		assert_string_equal(said, want);
		assert_int_equal(nclosed, of[i].call != UNLINK);
		assert_false(exists());
	}
	fails = CALLOC;
	assert_int_equal(trace_ring_open(dir, "n0", 2, 0600, 77, &t), -ENOMEM);
	assert_string_equal(said, "--trace: no memory for that of nic n0");
	fails = NOTHING;
	assert_int_equal(trace_ring_open("/nowhere", "n0", 2, 0600, 77, &t), -ENOENT);
	assert_null(t);
}

static void file_is(const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	__real_close(fd);
}

/* Of a killed daemon, the trace of the NIC is removed, and no other file. */
static void stale_traces(void **state)
{
	const uint32_t magic = NBAR_TRACE_MAGIC, other = NBAR_TRACE_MAGIC + 1;
	char target[64], longest[300];

	file_is(&magic, sizeof(magic));
	trace_ring_remove_stale(dir, "n1.sock");
	trace_ring_remove_stale(dir, "n0");
	assert_true(exists());
	nclosed = 0;
	trace_ring_remove_stale(dir, "n0.sock");
	assert_false(exists());
	assert_int_equal(nclosed, 1);
	trace_ring_remove_stale(dir, "n0.sock");
	assert_int_equal(nclosed, 1);
	file_is(&other, sizeof(other));
	trace_ring_remove_stale(dir, "n0.sock");
	assert_true(exists());
	file_is(&magic, sizeof(magic) - 1);
	trace_ring_remove_stale(dir, "n0.sock");
	assert_true(exists());
	/* Not through a link. */
	file_is(&magic, sizeof(magic));
	snprintf(target, sizeof(target), "%s/target", dir);
	assert_int_equal(rename(path, target), 0);
	assert_int_equal(symlink(target, path), 0);
	trace_ring_remove_stale(dir, "n0.sock");
	assert_true(exists());
	unlink(target);
	/* A path that is too long is of no file. */
	memset(longest, 'x', sizeof(longest));
	strcpy(longest + sizeof(longest) - 6, ".sock");
	trace_ring_remove_stale(dir, longest);
}

UNIT_MAIN(NULL, NULL, UNIT_IN(events, begin, end), UNIT_IN(capacities, begin, end),
	  UNIT_IN(readers, begin, end), UNIT_IN(replaces_a_file, begin, end),
	  UNIT_IN(failed_calls, begin, end), UNIT_IN(stale_traces, begin, end))
