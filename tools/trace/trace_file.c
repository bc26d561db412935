/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_file.c - reads the ring of a daemon while the daemon may write to the ring. The writer is
 * trace_ring.c of the daemon.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nbar_file.h"
#include "tool.h"
#include "trace_set.h"

#define HEAD_BYTES NBAR_TRACE_HEAD_BYTES

static int refuse(const char *path, const char *why)
{
	tool_error("%s: %s", path, why);
	return TOOL_FAILED;
}

/* Copies a text of a file; replaces characters that no name has by '_'. */
static void copy_name(char *out, size_t size, const char *from)
{
	size_t i = 0;

	for (; i < size - 1 && from[i]; i++) {
		char c = from[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr("-_.", c);

		out[i] = c;
		if (!plain)
			out[i] = '_';
	}
	out[i] = '\0';
}

/* False for an event of an unknown version or of a broken file: the reader leaves it out. */
static bool is_sane(const struct nbar_trace_event *e, uint64_t last)
{
	return e->what > 0 && e->what < NBAR_TRACE_END && e->time >= last &&
	       e->time <= (uint64_t)INT64_MAX / 2;
}

/* Keeps the events that were not overwritten while they were copied. The first is event number
 * `first` of the ring. */
static void keep_whole(struct trace_log *log, uint64_t first, uint64_t n, uint32_t capacity,
		       uint64_t begun)
{
	uint64_t last = 0;

	for (uint64_t i = 0; i < n; i++) {
		const struct nbar_trace_event e = log->event[i];

		if (begun > first + i + capacity || !is_sane(&e, last))
			continue;
		last = e.time;
		log->event[log->n++] = e;
	}
	log->lost = first + n - log->n;
}

static int refuse_version(const char *path, uint32_t version)
{
	tool_error("%s has version %u, and this nbar reads version %u; use an nbar of the same "
		   "version as that daemon",
		   path, version, NBAR_TRACE_VERSION);
	return TOOL_FAILED;
}

/* Reads n bytes from this place of the file: the file may have been cut meanwhile. */
static int read_at(int fd, void *out, size_t n, off_t at)
{
	for (size_t got = 0; got < n;) {
		ssize_t k = pread(fd, (char *)out + got, n - got, at + (off_t)got);

		if (k <= 0)
			return k < 0 ? -errno : -ENODATA;
		got += (size_t)k;
	}
	return 0;
}

/* Copies n events, of which the first is event number `first`, in their order. */
static int copy_ring(int fd, uint64_t first, uint64_t n, uint32_t capacity,
		     struct nbar_trace_event *out)
{
	uint64_t place = first & (capacity - 1);
	uint64_t until_end = n < capacity - place ? n : capacity - place;
	int rc = read_at(fd, out, until_end * sizeof(*out),
			 (off_t)(HEAD_BYTES + place * sizeof(*out)));

	return rc ? rc : read_at(fd, out + until_end, (n - until_end) * sizeof(*out), HEAD_BYTES);
}

/* Copies the last events that are complete: those before event number `end`. Returns 0 or negative
 * errno. */
static int copy_events(int fd, uint64_t end, uint32_t capacity, struct trace_log *log)
{
	uint64_t first = end > capacity ? end - capacity : 0, n = end - first;
	struct nbar_trace_head head;
	int rc;

	log->event = malloc((n ? n : 1) * sizeof(*log->event));
	rc = log->event ? 0 : -ENOMEM;
	/* Pairs with the release of `written` in trace_ring_note: the events are complete. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (rc == 0)
		rc = copy_ring(fd, first, n, capacity, log->event);
	/* Pairs with the release of each word in trace_ring_note: if a word is of a later event,
	 * `begun` counts this event. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (rc == 0)
		rc = read_at(fd, &head, sizeof(head), 0);
	if (rc == 0)
		keep_whole(log, first, n, capacity, head.begun);
	return rc;
}

/* 0, or an exit code after a message. */
static int read_trace(const char *path, int fd, uint64_t size, struct trace_log *log)
{
	struct nbar_trace_head head;
	int rc = read_at(fd, &head, sizeof(head), 0);

	if (rc == -ENODATA || (rc == 0 && head.magic != NBAR_TRACE_MAGIC))
		return refuse(path, "not a trace of a daemon");
	if (rc < 0)
		return refuse(path, strerror(-rc));
	if (head.version != NBAR_TRACE_VERSION)
		return refuse_version(path, head.version);
	if (head.capacity == 0 || head.capacity > NBAR_TRACE_EVENTS_MAX ||
	    (head.capacity & (head.capacity - 1)) ||
	    size != HEAD_BYTES + (uint64_t)head.capacity * sizeof(*log->event))
		return refuse(path, "its length is wrong; copy the whole file");
	head.nic[sizeof(head.nic) - 1] = head.host[sizeof(head.host) - 1] = '\0';
	head.boot_id[sizeof(head.boot_id) - 1] = '\0';
	copy_name(log->nic, sizeof(log->nic), head.nic);
	copy_name(log->host, sizeof(log->host), head.host);
	copy_name(log->boot_id, sizeof(log->boot_id), head.boot_id);
	rc = copy_events(fd, head.written, head.capacity, log);
	if (rc == -ENODATA)
		return refuse(path, "it was cut while it was read; copy the whole file");
	return rc < 0 ? refuse(path, strerror(-rc)) : 0;
}

int trace_file_read(const char *path, struct trace_log *log)
{
	uint64_t size = 0;
	int fd = nbar_file_open(path, &size), r;

	*log = (struct trace_log){ .clock = TRACE_NO_CLOCK };
	if (fd == -ENOENT) {
		tool_error("%s: there is no such trace; start the daemon with --trace N", path);
		return TOOL_FAILED;
	}
	if (fd < 0)
		return refuse(path, fd == -EINVAL ? "not a trace of a daemon" : strerror(-fd));
	r = read_trace(path, fd, size, log);
	close(fd);
	if (r) {
		free(log->event);
		log->event = NULL;
	}
	return r;
}
