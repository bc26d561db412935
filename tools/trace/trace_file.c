/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_file.c - reads the ring of a daemon while the daemon may write to the ring. The writer is
 * trace_ring.c of the daemon.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"
#include "trace_set.h"

#define WORDS (sizeof(struct nbar_trace_event) / sizeof(uint64_t))
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

/* Copies the events of the ring that are complete and not overwritten during the copy. */
static int copy_events(const char *map, uint32_t capacity, struct trace_log *log)
{
	const struct nbar_trace_head *head = (const void *)map;
	const uint64_t *ring = (const void *)(map + HEAD_BYTES);
	/* Pairs with the release in trace_ring_note. */
	uint64_t end = __atomic_load_n(&head->written, __ATOMIC_ACQUIRE);
	uint64_t first = end > capacity ? end - capacity : 0, begun, last = 0;
	struct nbar_trace_event *e = malloc((end - first ? end - first : 1) * sizeof(*e));

	if (!e)
		return -ENOMEM;
	for (uint64_t i = first; i < end; i++) {
		const uint64_t *from = &ring[(i & (capacity - 1)) * WORDS];
		uint64_t word[WORDS];

		/* Each pairs with the release of this word in trace_ring_note. */
		for (size_t k = 0; k < WORDS; k++)
			word[k] = __atomic_load_n(&from[k], __ATOMIC_ACQUIRE);
		memcpy(&e[i - first], word, sizeof(word));
	}
	begun = __atomic_load_n(&head->begun, __ATOMIC_RELAXED);
	log->event = e;
	for (uint64_t i = first; i < end; i++) {
		if (begun > i + capacity || !is_sane(&e[i - first], last))
			continue;
		last = e[i - first].time;
		e[log->n++] = e[i - first];
	}
	log->lost = end - log->n;
	return 0;
}

static int refuse_version(const char *path, uint32_t version)
{
	tool_error("%s has version %u, and this nbar reads version %u; use an nbar of the same "
		   "version as that daemon",
		   path, version, NBAR_TRACE_VERSION);
	return TOOL_FAILED;
}

static int read_map(const char *path, const char *map, uint64_t bytes, struct trace_log *log)
{
	struct nbar_trace_head head;

	memcpy(&head, map, sizeof(head));
	if (head.magic != NBAR_TRACE_MAGIC)
		return refuse(path, "this is no trace of a daemon");
	if (head.version != NBAR_TRACE_VERSION)
		return refuse_version(path, head.version);
	if (head.capacity == 0 || head.capacity > NBAR_TRACE_EVENTS_MAX ||
	    (head.capacity & (head.capacity - 1)) ||
	    bytes != HEAD_BYTES + (uint64_t)head.capacity * sizeof(struct nbar_trace_event))
		return refuse(path, "its length is wrong; copy the whole file");
	head.nic[sizeof(head.nic) - 1] = head.host[sizeof(head.host) - 1] = '\0';
	head.boot_id[sizeof(head.boot_id) - 1] = '\0';
	copy_name(log->nic, sizeof(log->nic), head.nic);
	copy_name(log->host, sizeof(log->host), head.host);
	copy_name(log->boot_id, sizeof(log->boot_id), head.boot_id);
	return copy_events(map, head.capacity, log) < 0 ? refuse(path, "no memory for it") : 0;
}

int trace_file_read(const char *path, struct trace_log *log)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;
	struct stat st;
	char *map;

	*log = (struct trace_log){ .clock = TRACE_NO_CLOCK };
	if (fd < 0 && errno == ENOENT) {
		tool_error("%s: there is no such trace; start the daemon with --trace N", path);
		return TOOL_FAILED;
	}
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = refuse(path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return r;
	}
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)HEAD_BYTES) {
		close(fd);
		return refuse(path, "this is no trace of a daemon");
	}
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return refuse(path, strerror(errno));
	r = read_map(path, map, (uint64_t)st.st_size, log);
	munmap(map, (size_t)st.st_size);
	return r;
}
