/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_ring.c - see trace_ring.h. One thread writes the ring, any process reads it, and neither
 * waits for the other. A reader copies the ring, and drops events that were overwritten meanwhile.
 */
#include "trace_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define WORDS (sizeof(struct nbar_trace_event) / sizeof(uint64_t))

struct trace_ring {
	struct nbar_trace_head *head;
	uint64_t *event; /* of WORDS words each */
	uint64_t written, mask;
	size_t bytes;
	char path[256];
};

/* Reads the id of this boot; empty: the kernel does not tell it. */
static void read_boot_id(char *out, size_t size)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(out, (int)size, f))
		*out = '\0';
	out[strcspn(out, "\n")] = '\0';
	if (f)
		fclose(f);
}

static void head_fill(struct trace_ring *t, const char *nic)
{
	struct nbar_trace_head *h = t->head;

	h->version = NBAR_TRACE_VERSION;
	h->capacity = (uint32_t)t->mask + 1;
	h->pid = (uint32_t)getpid();
	snprintf(h->nic, sizeof(h->nic), "%s", nic);
	gethostname(h->host, sizeof(h->host) - 1);
	read_boot_id(h->boot_id, sizeof(h->boot_id));
	h->magic = NBAR_TRACE_MAGIC;
}

static bool is_trace(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	uint32_t magic;
	bool is = fd >= 0 && read(fd, &magic, sizeof(magic)) == sizeof(magic) &&
		  magic == NBAR_TRACE_MAGIC;

	if (fd >= 0)
		close(fd);
	return is;
}

void trace_ring_remove_stale(const char *dir, const char *socket)
{
	const char *end = strrchr(socket, '.');
	char path[256];
	int n = end ? snprintf(path, sizeof(path), "%s/%.*s" NBAR_TRACE_SUFFIX, dir,
			       (int)(end - socket), socket)
		    : -1;

	if (n > 0 && (size_t)n < sizeof(path) && is_trace(path))
		unlink(path);
}

/* Makes a new file: a reader may still have the file of an older daemon open. */
static int file_make(struct trace_ring *t, mode_t mode, gid_t group)
{
	int fd, rc;

	if (unlink(t->path) < 0 && errno != ENOENT)
		return -errno;
	fd = open(t->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* Reserve the memory now: so a full disk shows here, and not at an event. */
	rc = -posix_fallocate(fd, 0, (off_t)t->bytes);
	if (rc == 0 && group != (gid_t)-1 && fchown(fd, (uid_t)-1, group) < 0)
		rc = -errno;
	/* Users who may write to the sockets may use the NICs, and may read this file. */
	if (rc == 0 && fchmod(fd, 0600 | (mode & 0022) << 1) < 0)
		rc = -errno;
	if (rc == 0) {
		t->head = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			       fd, 0);
		if (t->head == MAP_FAILED)
			rc = -errno;
	}
	close(fd);
	if (rc < 0)
		unlink(t->path);
	return rc;
}

int trace_ring_open(const char *dir, const char *nic, uint32_t events, mode_t mode, gid_t group,
		    struct trace_ring **out)
{
	struct trace_ring *t = calloc(1, sizeof(*t));
	uint32_t capacity = 1;
	int rc;

	if (!t) {
		log_error("--trace: no memory for that of nic %s", nic);
		return -ENOMEM;
	}
	while (capacity < events)
		capacity *= 2;
	t->mask = capacity - 1;
	t->bytes = NBAR_TRACE_HEAD_BYTES + (size_t)capacity * sizeof(struct nbar_trace_event);
	snprintf(t->path, sizeof(t->path), "%s/%s" NBAR_TRACE_SUFFIX, dir, nic);
	rc = file_make(t, mode, group);
	if (rc < 0) {
		log_error("--trace: cannot make %s with %zu bytes: %s; give fewer events", t->path,
			  t->bytes, strerror(-rc));
		free(t);
		return rc;
	}
	t->event = (uint64_t *)((char *)t->head + NBAR_TRACE_HEAD_BYTES);
	head_fill(t, nic);
	*out = t;
	return 0;
}

void trace_ring_note(struct trace_ring *t, const struct nbar_trace_event *e, uint64_t now)
{
	uint64_t *to = &t->event[(t->written & t->mask) * WORDS], word[WORDS];
	struct nbar_trace_event stamped = *e;

	stamped.time = now;
	memcpy(word, &stamped, sizeof(word));
	t->written++;
	__atomic_store_n(&t->head->begun, t->written, __ATOMIC_RELAXED);
	/* Pairs with the second fence of copy_events in trace_file.c of `nbar trace`: a reader that
	 * sees a word of this event sees `begun` too. */
	for (size_t i = 0; i < WORDS; i++)
		__atomic_store_n(&to[i], word[i], __ATOMIC_RELEASE);
	/* Pairs with the first fence of copy_events in trace_file.c: the event is complete. */
	__atomic_store_n(&t->head->written, t->written, __ATOMIC_RELEASE);
}

void trace_ring_close(struct trace_ring *t)
{
	if (!t)
		return;
	unlink(t->path);
	munmap(t->head, t->bytes);
	free(t);
}
