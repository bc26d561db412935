/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.c - frames in memory that the NICs of one machine share: daemons and programs of one user, no
 * DPDK, no root, no system call while peers are alive.
 *
 * Called by the polling thread, shm_peer_begin by the control thread. Each NIC has a file with one
 * ring, named by a random number, in a folder that only its user may enter. Peers put frames in;
 * the owner takes them out. A peer may die at any point, or write anything: the owner checks all
 * that it reads from a ring, and skips a slot that a dead peer has reserved within 2 * LOOK_NS.
 * There is no protection against a process of the same user that truncates the file and so kills
 * the owner: such a process could also kill the owner by a signal.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "nbar_file.h"
#include "wire.h"

#define MAGIC UINT64_C(0x336d68732d72626e) /* "nbr-shm3" */
#define SLOTS 1024u                        /* of a ring; a power of two */
#define PEERS 1024u                        /* mapped rings of peers; a power of two */
#define PROBES 8u                          /* places in the table that a peer may have */
#define TRIES 64u                          /* to reserve a slot, if other senders are faster */
#define LOOK_NS UINT64_C(5000000)          /* between two looks for slots that no peer fills */
#define SUFFIX ".ring"

/* A cache line. */
struct slot {
	uint32_t sequence; /* p: the slot is free for position p; p + 1: it has the frame of p */
	uint32_t sum; /* of p, all fields below and the value: detects a mixture of two senders */
	uint64_t from;
	uint8_t frame[NBFW_FRAME_SIZE];
};
_Static_assert(sizeof(struct slot) == 64, "a slot is a cache line");

/* The contents of a file. Only the owner takes frames out, so it keeps the head elsewhere. */
struct area {
	uint64_t magic, id;
	uint8_t gap1[112];
	uint32_t tail; /* next position to be reserved */
	uint8_t gap2[124];
	struct slot slot[SLOTS];
	uint8_t value[SLOTS][NBFW_FRAME_MAX - NBFW_FRAME_SIZE]; /* rest of a frame with a value */
};

struct peer {
	uint64_t id;
	struct area *area; /* NULL: the place is free */
};

struct shm_wire {
	struct wire_base base;
	int fd; /* of the file; locked while the NIC lives */
	int dir;
	uint64_t id;
	struct area *own;
	uint32_t head;    /* next position to be taken */
	uint32_t stalled; /* head at the last look ... */
	bool stalls;      /* ... which found reserved slots from there on */
	uint64_t look_at;
	char name[32];
	struct peer peer[PEERS];
};

static uint32_t shm_sum_of(uint64_t from, const uint8_t *frame, uint32_t position)
{
	uint32_t word, sum = position ^ 0x6e626172u;

	sum = (sum ^ (uint32_t)from) * UINT32_C(16777619);
	sum = (sum ^ (uint32_t)(from >> 32)) * UINT32_C(16777619);
	for (uint32_t i = 0; i < NBFW_FRAME_SIZE; i += sizeof(word)) {
		memcpy(&word, frame + i, sizeof(word));
		sum = (sum ^ word) * UINT32_C(16777619);
	}
	return sum;
}

/* Goes on with the sum over a value of size bytes, a multiple of 8. The shift takes the upper bits
 * down: without it, a value has the same sum if two of its elements change their signs. */
static uint32_t shm_sum_value(uint32_t sum, const uint8_t *at, uint32_t size)
{
	uint64_t word, all = sum;

	for (uint32_t i = 0; i < size; i += sizeof(word)) {
		memcpy(&word, at + i, sizeof(word));
		all = (all ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		all ^= all >> 29;
	}
	return (uint32_t)(all >> 32);
}

/* The bytes of a slot's value that its sum covers. */
static uint32_t rest_of(uint32_t length)
{
	return (length - NBFW_FRAME_SIZE + 7) & ~7u;
}

static void name_of(uint64_t id, char out[32])
{
	snprintf(out, 32, "%016llx" SUFFIX, (unsigned long long)id);
}

/* Maps the ring of the NIC with this id. NULL, with errno: no such ring. */
static struct area *area_map(int dir, uint64_t id)
{
	struct area *a = MAP_FAILED;
	struct stat st;
	char name[32];
	int fd;

	name_of(id, name);
	fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	errno = EPROTO;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_size == (off_t)sizeof(*a))
		a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (a == MAP_FAILED)
		return NULL;
	if (a->magic == MAGIC && a->id == id)
		return a;
	munmap(a, sizeof(*a));
	errno = EPROTO;
	return NULL;
}

/* True if the owner of a file has ended: then the file is not locked. */
static bool is_stale(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool stale = fd < 0 ? errno == ENOENT : flock(fd, LOCK_EX | LOCK_NB) == 0;

	if (fd >= 0)
		close(fd);
	return stale;
}

/* Removes the files of killed processes. The file of a live process has a lock before it has a
 * name. */
static void shm_clean(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		size_t n = strlen(e->d_name);

		if (n == 16 + strlen(SUFFIX) && strcmp(e->d_name + 16, SUFFIX) == 0 &&
		    is_stale(dir, e->d_name))
			unlinkat(dir, e->d_name, 0);
	}
	closedir(d);
}

/* --- frames --------------------------------------------------------------------------------------
 */

static void peer_forget(struct peer *p)
{
	munmap(p->area, sizeof(*p->area));
	p->area = NULL;
}

static struct peer *peer_of(struct shm_wire *w, uint64_t id)
{
	struct peer *at = &w->peer[id % PEERS], *p;

	for (uint32_t i = 0; i < PROBES; i++) {
		p = &w->peer[(id + i) % PEERS];
		if (p->area && p->id == id)
			return p;
		if (!p->area && at->area)
			at = p;
	}
	p = at;
	if (p->area)
		peer_forget(p);
	p->area = area_map(w->dir, id);
	p->id = id;
	return p->area ? p : NULL;
}

/* Reserves a slot. False: no slot is free. */
static bool shm_reserve(struct area *a, uint32_t *position)
{
	/* Relaxed: the sequence of the slot orders memory, this load does not. */
	uint32_t at = __atomic_load_n(&a->tail, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < TRIES; i++) {
		/* Pairs with the release in slot_free: the owner has read the old frame. */
		uint32_t sequence =
			__atomic_load_n(&a->slot[at % SLOTS].sequence, __ATOMIC_ACQUIRE);

		if ((int32_t)(sequence - at) < 0)
			return false;
		if (sequence != at) /* another sender was faster */
			at = __atomic_load_n(&a->tail, __ATOMIC_RELAXED);
		/* Pairs with this operation of other senders: only one gets the slot. */
		else if (__atomic_compare_exchange_n(&a->tail, &at, at + 1, false, __ATOMIC_RELAXED,
						     __ATOMIC_RELAXED)) {
			*position = at;
			return true;
		}
	}
	return false;
}

/* Not inline, so that the way of a frame without a value stays short. */
__attribute__((noinline)) static void put_value(struct area *a, struct slot *s,
						const struct nbfw_token *t, uint32_t position)
{
	const uint32_t rest = rest_of(NBFW_FRAME_SIZE + t->value_length);
	uint8_t frame[NBFW_FRAME_MAX], *value = frame + NBFW_FRAME_SIZE;

	memset(value + rest - 8, 0, 8);
	nbfw_token_pack(t, frame);
	memcpy(s->frame, frame, NBFW_FRAME_SIZE);
	memcpy(a->value[position % SLOTS], value, rest);
	s->sum = shm_sum_value(shm_sum_of(s->from, frame, position), value, rest);
}

static void put_frame(struct area *a, struct slot *s, const struct nbfw_token *t, uint32_t position)
{
	if (t->value_length) {
		put_value(a, s, t, position);
		return;
	}
	nbfw_token_pack(t, s->frame);
	s->sum = shm_sum_of(s->from, s->frame, position);
}

static bool shm_transmit(struct wire_base *base, const struct nbnic_addr *to,
			 const struct nbfw_token *t)
{
	struct shm_wire *w = (struct shm_wire *)base;
	uint32_t position = 0, expected;
	struct peer *p;
	struct slot *s;
	uint64_t id;

	memcpy(&id, to->byte, sizeof(id));
	p = peer_of(w, id);
	if (!p || !shm_reserve(p->area, &position)) {
		/* The next poll makes room in the NIC's own ring. A stopped or dead peer may never
		 * make room: so drop frames for a peer, and other groups do not wait. */
		if (id == w->id && p) {
			base->refused++;
			return false;
		}
		base->errors++;
		return true;
	}
	s = &p->area->slot[position % SLOTS];
	s->from = w->id;
	put_frame(p->area, s, t, position);
	expected = position;
	/* Pairs with the acquire in take: the owner sees the frame. Fails if the owner has
	 * meanwhile skipped the slot; another sender may use the slot now. */
	if (!__atomic_compare_exchange_n(&s->sequence, &expected, position + 1, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		base->errors++;
	return true;
}

/* Frees a slot. The release pairs with the acquire in reserve. */
static void slot_free(struct slot *s, uint32_t position)
{
	__atomic_store_n(&s->sequence, position + SLOTS, __ATOMIC_RELEASE);
}

/* The value of a frame that a slot has begun: copied, because peers can change it. Goes on with the
 * sum, and returns the size of the frame; 0: the frame is none. */
__attribute__((noinline)) static uint32_t take_value(const struct shm_wire *w, uint8_t *frame,
						     uint32_t *sum)
{
	uint32_t size;

	memcpy(frame + NBFW_FRAME_SIZE, w->own->value[w->head % SLOTS],
	       NBFW_FRAME_MAX - NBFW_FRAME_SIZE);
	size = nbfw_frame_length(frame, NBFW_FRAME_MAX, NBFW_FRAME_VERSION_VALUE);
	if (size)
		*sum = shm_sum_value(*sum, frame + NBFW_FRAME_SIZE, rest_of(size));
	return size;
}

/* Takes the next frame, if there is one. */
static bool shm_take(struct shm_wire *w, struct nbnic *nic, uint64_t now)
{
	struct slot *s = &w->own->slot[w->head % SLOTS], got;
	struct nbnic_addr from = { { 0 } };
	uint8_t room[NBFW_FRAME_MAX], *frame = got.frame;
	uint32_t size = NBFW_FRAME_SIZE, sum;
	struct nbfw_token t;

	/* Pairs with the release in shm_transmit. */
	if (__atomic_load_n(&s->sequence, __ATOMIC_ACQUIRE) != w->head + 1)
		return false;
	memcpy(&got, s, sizeof(got));
	sum = shm_sum_of(got.from, got.frame, w->head);
	if (got.frame[0] == NBFW_FRAME_VERSION_VALUE) {
		frame = memcpy(room, got.frame, NBFW_FRAME_SIZE);
		size = take_value(w, frame, &sum);
	}
	slot_free(s, w->head);
	if (got.sum != sum || !nbfw_token_unpack(frame, size, &t)) {
		w->base.malformed++;
	} else {
		memcpy(from.byte, &got.from, sizeof(got.from));
		nbnic_receive(nic, &from, &t, now);
	}
	w->head++;
	return true;
}

/* Skips to the next filled slot, or behind the last reserved slot. */
static void shm_skip(struct shm_wire *w, uint32_t reserved)
{
	for (uint32_t i = 0; i < reserved; i++) {
		struct slot *s = &w->own->slot[w->head % SLOTS];

		/* Pairs with the release in shm_transmit. */
		if (__atomic_load_n(&s->sequence, __ATOMIC_ACQUIRE) == w->head + 1)
			return;
		slot_free(s, w->head++);
		w->base.drops++;
	}
}

/* Looks for slots that dead or faulty peers have left. */
static void shm_look(struct shm_wire *w)
{
	/* Relaxed, as in reserve. */
	uint32_t reserved = __atomic_load_n(&w->own->tail, __ATOMIC_RELAXED) - w->head;
	struct slot *s = &w->own->slot[w->head % SLOTS];

	if (reserved > SLOTS) { /* no correct sender reserves so much */
		w->base.malformed++;
		__atomic_store_n(&w->own->tail, w->head, __ATOMIC_RELAXED);
		reserved = 0;
	}
	/* This access and the next pair with the compare-and-exchange of shm_transmit. */
	if (reserved == 0 && __atomic_load_n(&s->sequence, __ATOMIC_RELAXED) != w->head &&
	    __atomic_load_n(&s->sequence, __ATOMIC_RELAXED) != w->head + 1) {
		w->base.malformed++;
		slot_free(s, w->head - SLOTS);
	}
	if (reserved > 0 && w->stalls && w->stalled == w->head)
		shm_skip(w, reserved);
	w->stalls = reserved > 0;
	w->stalled = w->head;
}

static unsigned shm_poll(struct wire_base *base, struct nbnic *nic, uint64_t now, unsigned budget)
{
	struct shm_wire *w = (struct shm_wire *)base;
	unsigned n = 0;

	while (n < budget && shm_take(w, nic, now))
		n++;
	if (now >= w->look_at) {
		w->look_at = now + LOOK_NS;
		shm_look(w);
	}
	return n;
}

/* --- a NIC begins and ends -----------------------------------------------------------------------
 */

static int shm_peer_begin(struct wire_base *base, const struct nbnic_addr *addr, const char **why)
{
	const struct shm_wire *w = (const struct shm_wire *)base;
	struct area *a;
	uint64_t id;

	memcpy(&id, addr->byte, sizeof(id));
	a = area_map(w->dir, id);
	if (a) {
		munmap(a, sizeof(*a));
		return 0;
	}
	*why = errno == EPROTO
		       ? "the ring of its NIC has another format; use the same version of nbar"
		       : "its NIC has no ring in the folder of this one: it has ended, is on another "
			 "machine, or has another dir= or user";
	return errno ? -errno : -EPROTO;
}

static void shm_peer_end(struct wire_base *base, const struct nbnic_addr *addr)
{
	(void)base;
	(void)addr;
}

static void shm_close(struct wire_base *base)
{
	struct shm_wire *w = (struct shm_wire *)base;

	for (uint32_t i = 0; i < PEERS; i++)
		if (w->peer[i].area)
			peer_forget(&w->peer[i]);
	if (w->own)
		munmap(w->own, sizeof(*w->own));
	if (w->name[0])
		unlinkat(w->dir, w->name, 0);
	if (w->fd >= 0)
		close(w->fd);
	if (w->dir >= 0)
		close(w->dir);
	free(w);
}

static void shm_forked(struct wire_base *base)
{
	const struct shm_wire *w = (const struct shm_wire *)base;

	close(w->fd); /* so that the lock ends with the parent */
	close(w->dir);
}

static int dir_open(struct shm_wire *w, const char *nic, const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		log_error("nic %s: dir=%s: cannot make this folder: %s", nic, path,
			  strerror(errno));
		return -errno;
	}
	w->dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w->dir < 0 || fstat(w->dir, &st) < 0) {
		log_error("nic %s: dir=%s: cannot use this folder: %s", nic, path, strerror(errno));
		return -errno;
	}
	if (st.st_uid == geteuid() && (st.st_mode & 077) == 0)
		return 0;
	log_error(
		"nic %s: dir=%s: other users may enter this folder, or it is theirs; name another, or "
		"chmod 700 it",
		nic, path);
	return -EPERM;
}

/* The file gets its name last, so no process sees an incomplete or unlocked file. */
static int own_make(struct shm_wire *w)
{
	char self[32], name[32];
	int rc;

	if (getrandom(&w->id, sizeof(w->id), 0) != sizeof(w->id))
		return -EIO;
	w->fd = openat(w->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (w->fd < 0 || flock(w->fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	rc = nbar_file_reserve(w->fd, sizeof(*w->own));
	if (rc < 0)
		return rc;
	w->own = mmap(NULL, sizeof(*w->own), PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
	if (w->own == MAP_FAILED) {
		w->own = NULL;
		return -errno;
	}
	w->own->magic = MAGIC;
	w->own->id = w->id;
	for (uint32_t i = 0; i < SLOTS; i++)
		w->own->slot[i].sequence = i;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", w->fd);
	name_of(w->id, name);
	if (linkat(AT_FDCWD, self, w->dir, name, AT_SYMLINK_FOLLOW) < 0)
		return -errno;
	memcpy(w->name, name, sizeof(w->name));
	return 0;
}

static int shm_open_wire(const char *nic, wire_option *option, void *args, struct wire_base **out)
{
	const char *dir = option(args, "dir");
	struct shm_wire *w = calloc(1, sizeof(*w));
	char otherwise[40];
	int rc;

	if (!w) {
		log_error("nic %s: no memory for a wire", nic);
		return -ENOMEM;
	}
	w->fd = w->dir = -1;
	snprintf(otherwise, sizeof(otherwise), "/dev/shm/nbar-%u", (unsigned)geteuid());
	dir = dir ? dir : otherwise;
	rc = dir_open(w, nic, dir);
	if (rc == 0) {
		shm_clean(w->dir);
		rc = own_make(w);
		if (rc < 0)
			log_error(
				"nic %s: dir=%s: cannot make a ring of %zu bytes there: %s; name a "
				"folder of a tmpfs",
				nic, dir, sizeof(struct area), strerror(-rc));
	}
	if (rc < 0) {
		shm_close(&w->base);
		return rc;
	}
	memcpy(w->base.addr.byte, &w->id, sizeof(w->id));
	snprintf(w->base.text, sizeof(w->base.text), "%.40s/%.16s", dir, w->name);
	*out = &w->base;
	return 0;
}

/* The folder of the NIC is the same, or the NICs do not meet. */
static void shm_show(const struct wire_base *base, const struct nbnic_addr *a, char *text,
		     size_t size)
{
	uint64_t id;

	memcpy(&id, a->byte, sizeof(id));
	snprintf(text, size, "%.*s%016llx", (int)(strrchr(base->text, '/') + 1 - base->text),
		 base->text, (unsigned long long)id);
}

const struct wire_ops wire_shm_ops = {
	.values = true,
	.open = shm_open_wire,
	.close = shm_close,
	.poll = shm_poll,
	.transmit = shm_transmit,
	.peer_begin = shm_peer_begin,
	.peer_end = shm_peer_end,
	.show = shm_show,
	.forked = shm_forked,
};
