/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_shm.c - the wire "shm": two NICs, a ring that wraps, full rings, senders that die while
 * they write, and rings full of garbage.
 *
 * A NIC without groups counts each received frame as a stranger.
 */
#include <fcntl.h>

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The call of shm.c that fails, with EPERM: -1 is an error, too. */
static const char *fails;
static int blocks; /* of memory */

static bool fails_now(const char *call)
{
	if (!fails || strcmp(fails, call) != 0)
		return false;
	errno = EPERM;
	return true;
}
#define calloc(...) (fails_now("calloc") ? NULL : (blocks++, calloc(__VA_ARGS__)))
#define free(p) (blocks--, free(p))
#define mkdir(...) (fails_now("mkdir") ? -1 : mkdir(__VA_ARGS__))
#define open(...) (fails_now("open") ? -1 : open(__VA_ARGS__))
/* A file of the folder may belong to another user. */
static uid_t strange;

static int fstat_strange(int fd, struct stat *st)
{
	int rc = fstat(fd, st);

	st->st_uid += strange;
	return rc;
}
#define fstat(...) (fails_now("fstat") ? -1 : fstat_strange(__VA_ARGS__))
#define getrandom(...) (fails_now("getrandom") ? -1 : getrandom(__VA_ARGS__))
#define openat(...) (fails_now("openat") ? -1 : openat(__VA_ARGS__))
#define flock(...) (fails_now("flock") ? -1 : flock(__VA_ARGS__))
#define mmap(...) (fails_now("mmap") ? MAP_FAILED : mmap(__VA_ARGS__))
#define linkat(...) (fails_now("linkat") ? -1 : linkat(__VA_ARGS__))
#define posix_fallocate(...) (fails_now("fallocate") ? EPERM : posix_fallocate(__VA_ARGS__))

#include "shm.c"
#include "value.h"

#include "unit/descriptors.h"
#include "unit/said.h"

static char folder[] = "/tmp/nbar-shm-XXXXXX";

struct end {
	struct wire_base *wire;
	struct nbnic nic;
	uint64_t now;
};

static const char *folder_of(void *args, const char *key)
{
	return strcmp(key, "dir") == 0 ? folder : NULL;
}

static const char *no_folder(void *args, const char *key)
{
	return NULL;
}

static void end_open(struct end *e)
{
	static const struct nbnic_ops none;
	const struct nbnic_config config = { .pull_ns = NBNIC_PULL_NS_DEFAULT,
					     .budget_ns = NBNIC_BUDGET_NS_DEFAULT };

	memset(e, 0, sizeof(*e));
	assert_int_equal(shm_open_wire("test", folder_of, NULL, &e->wire), 0);
	assert_int_equal(nbnic_init(&e->nic, &none, NULL, 5, &e->wire->addr, &config), 0);
}

static uint64_t taken(const struct end *e)
{
	return e->nic.counter[NBAR_COUNTER_frames_stranger];
}

static unsigned poll_end(struct end *e, unsigned budget)
{
	e->now += LOOK_NS;
	return shm_poll(e->wire, &e->nic, e->now, budget);
}

static bool send_to(struct end *from, const struct end *to)
{
	const struct nbfw_token t = { .type = NBFW_TOKEN, .handle = 7, .cookie = 9, .epoch = 1 };

	return shm_transmit(from->wire, &to->wire->addr, &t);
}

static struct shm_wire *of(const struct end *e)
{
	return (struct shm_wire *)e->wire;
}

static struct end a, b;

static int setup(void **state)
{
	end_open(&a);
	end_open(&b);
	return 0;
}

static int teardown(void **state)
{
	shm_close(a.wire);
	shm_close(b.wire);
	return 0;
}

static void goes_round(void **state)
{
	for (uint32_t i = 0; i < 5 * SLOTS; i++) {
		assert_true(send_to(&a, &b));
		assert_true(i % 3 || send_to(&b, &b));
		assert_int_equal(poll_end(&b, 1), 1);
		assert_true(i % 3 || poll_end(&b, 1) == 1);
	}
	assert_int_equal(poll_end(&b, 1), 0);
	assert_int_equal(taken(&b), 5 * SLOTS + (5 * SLOTS + 2) / 3);
	assert_int_equal(a.wire->errors + b.wire->errors + b.wire->drops + b.wire->malformed, 0);
}

/* A frame to a peer with a full ring is lost, so a stopped peer does not block other peers. */
static void full_peer(void **state)
{
	struct end c;

	end_open(&c);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(send_to(&a, &b));
	assert_true(send_to(&a, &b));
	assert_true(send_to(&a, &b));
	assert_int_equal(a.wire->errors, 2);
	assert_int_equal(a.wire->refused, 0);
	assert_true(send_to(&a, &c));
	assert_int_equal(poll_end(&c, 10), 1);
	assert_int_equal(poll_end(&b, 10), 10);
	for (uint32_t i = 0; i < 10; i++)
		assert_true(send_to(&a, &b));
	assert_int_equal(a.wire->errors, 2);
	assert_true(send_to(&a, &b));
	assert_int_equal(a.wire->errors, 3);
	assert_int_equal(poll_end(&b, 2 * SLOTS), SLOTS);
	assert_int_equal(taken(&b), SLOTS + 10);
	shm_close(c.wire);
}

/* A NIC's own ring has room again after a poll: the frame waits. */
static void full_loopback(void **state)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(send_to(&b, &b));
	assert_false(send_to(&b, &b));
	assert_int_equal(b.wire->refused, 1);
	assert_int_equal(b.wire->errors, 0);
	assert_int_equal(poll_end(&b, 10), 10);
	assert_true(send_to(&b, &b));
	assert_int_equal(poll_end(&b, 2 * SLOTS), SLOTS - 9);
	assert_int_equal(taken(&b), SLOTS + 1);
}

/* Two senders die after they have reserved a slot, and a third sender is slow. */
static void dead_sender(void **state)
{
	struct area *ring = of(&b)->own;
	struct slot *s;
	uint32_t position[3];

	for (uint32_t i = 0; i < 3; i++)
		assert_true(shm_reserve(ring, &position[i]));
	assert_true(send_to(&a, &b));
	assert_int_equal(poll_end(&b, 64), 0);
	assert_int_equal(poll_end(&b, 64), 0); /* it skips their slots ... */
	assert_int_equal(poll_end(&b, 64), 1);
	assert_int_equal(taken(&b), 1);
	assert_int_equal(b.wire->drops, 3);
	/* ... and the slow one writes into a slot that now belongs to another. */
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(send_to(&a, &b));
	s = &ring->slot[position[1] % SLOTS];
	memset(s->frame, 0x55, sizeof(s->frame));
	assert_int_equal(poll_end(&b, 2 * SLOTS), SLOTS);
	assert_int_equal(b.wire->malformed, 1);
	assert_int_equal(taken(&b), SLOTS);
	/* One more dies, and nobody sends behind it. */
	assert_true(shm_reserve(ring, &position[0]));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(poll_end(&b, 64), 0);
	assert_int_equal(b.wire->drops, 4);
	assert_true(send_to(&a, &b));
	assert_int_equal(poll_end(&b, 64), 1);
	assert_int_equal(b.wire->malformed, 1);
}

/* A slow sender has the time between two looks, however often the NIC polls. */
static void slow_sender(void **state)
{
	uint32_t position;

	assert_true(shm_reserve(of(&b)->own, &position));
	assert_int_equal(poll_end(&b, 64), 0); /* the first look */
	for (uint64_t ns = 1; ns < 5; ns++)
		assert_int_equal(shm_poll(b.wire, &b.nic, b.now + ns * 1000000, 64), 0);
	assert_int_equal(b.wire->drops, 0);
	assert_int_equal(shm_poll(b.wire, &b.nic, b.now + 5000000, 64), 0);
	assert_int_equal(b.wire->drops, 1);
}

/* A look at one slow sender is none at the next. */
static void two_slow_senders(void **state)
{
	struct area *ring = of(&b)->own;
	uint32_t position;

	assert_true(shm_reserve(ring, &position));
	assert_int_equal(poll_end(&b, 64), 0);
	ring->slot[position].sequence = position + 1; /* it comes, with a frame of zeros */
	assert_true(shm_reserve(ring, &position));
	assert_int_equal(poll_end(&b, 64), 1);
	assert_int_equal(b.wire->drops, 0);
	assert_int_equal(poll_end(&b, 64), 0);
	assert_int_equal(b.wire->drops, 1);
}

/* A ring is full, and its first sender has died. */
static void dead_sender_of_full_ring(void **state)
{
	uint32_t position;

	assert_true(shm_reserve(of(&b)->own, &position));
	for (uint32_t i = 1; i < SLOTS; i++)
		assert_true(send_to(&a, &b));
	assert_int_equal(poll_end(&b, 64), 0);
	assert_int_equal(poll_end(&b, 64), 0);
	assert_int_equal(poll_end(&b, 2 * SLOTS), SLOTS - 1);
	assert_int_equal(b.wire->drops, 1);
	assert_int_equal(b.wire->malformed + a.wire->errors, 0);
}

static void nonsense(void **state)
{
	struct area *ring = of(&b)->own;
	uint32_t random = 1;

	for (uint32_t round = 0; round < 200; round++) {
		ring->tail = round % 2 ? random : of(&b)->head + random % (2 * SLOTS);
		for (uint32_t i = 0; i < SLOTS * sizeof(struct slot) / 4; i++) {
			random = random * 1664525u + 1013904223u;
			((uint32_t *)(void *)ring->slot)[i] = random;
		}
		for (uint32_t i = 0; i < 4; i++)
			poll_end(&b, 64);
	}
	assert_int_equal(taken(&b), 0);
	/* The ring recovers: each bad slot costs its owner two looks. */
	for (uint32_t i = 0; i < 3 * SLOTS; i++)
		poll_end(&b, 64);
	for (uint32_t i = 0; i < 4 * SLOTS; i++) {
		(void)send_to(&a, &b);
		poll_end(&b, 64);
		poll_end(&b, 64);
	}
	assert_true(taken(&b) > 2 * SLOTS);
}

static void peer_gone(void **state)
{
	struct nbnic_addr addr = b.wire->addr;
	const struct nbfw_token t = { .type = NBFW_TOKEN };
	const char *why = NULL;
	struct end c;

	assert_int_equal(shm_peer_begin(a.wire, &addr, &why), 0);
	assert_true(send_to(&a, &b));
	end_open(&c);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_true(send_to(&a, &c));
	addr = c.wire->addr;
	shm_close(c.wire); /* its ring is full, and no NIC reads it */
	assert_true(shm_transmit(a.wire, &addr, &t));
	assert_int_equal(a.wire->errors, 1);
	assert_true(shm_peer_begin(a.wire, &addr, &why) < 0);
	assert_non_null(strstr(why, "it has ended"));
}

/* A file without a lock was left by a killed process. */
static void cleans(void **state)
{
	char name[32];
	struct end c;
	int fd, was;

	name_of(1234, name);
	fd = openat(of(&a)->dir, name, O_CREAT | O_RDWR, 0600);
	assert_true(fd >= 0);
	close(fd);
	was = (int)unit_descriptors();
	end_open(&c);
	assert_int_equal(unit_descriptors(), was + 2); /* its file, and the folder */
	assert_int_equal(faccessat(of(&a)->dir, name, F_OK, 0), -1);
	assert_int_equal(faccessat(of(&a)->dir, of(&b)->name, F_OK, 0), 0);
	shm_close(c.wire);
}

/* Each part of a slot counts for its sum, and a frame needs more than a right sum. */
static void mixed_slots(void **state)
{
	const uint8_t frame[NBFW_FRAME_SIZE] = { 1, 2, 3, [47] = 4 };
	struct slot *s;

	assert_int_equal(shm_sum_of(UINT64_C(0x1122334455667788), frame, 9), 0xf1259bd6);
	for (uint32_t i = 0; i < 4; i++) {
		s = &of(&b)->own->slot[i];
		assert_true(send_to(&a, &b));
		if (i == 0)
			s->from ^= UINT64_C(1) << 40;
		else if (i == 1)
			s->frame[20] ^= 1;
		else if (i == 2)
			s->frame[0] = 99; /* another version */
		if (i == 2)
			s->sum = shm_sum_of(s->from, s->frame, i);
		assert_int_equal(poll_end(&b, 1), 1);
		assert_int_equal(b.wire->malformed, i < 3 ? i + 1 : 3);
		assert_int_equal(taken(&b), i == 3);
	}
}

/* A value lies beside its slot, and its last byte counts for the sum, as does the frame. */
static void values(void **state)
{
	for (uint32_t n = 1; n <= NBAR_VALUE_MAX; n++) {
		struct nbfw_value v = { .op = NBAR_BOR,
					.type = NBAR_UINT8,
					.count = { (uint8_t)n, (uint8_t)(n >> 8) } };
		const struct nbfw_token t = { .type = NBFW_TOKEN,
					      .value = &v,
					      .value_length = (uint16_t)(NBFW_VALUE_HEAD + n) };

		memset(v.byte, 0x5a, n);
		for (uint32_t bad = 0; bad < 3; bad++) {
			const uint32_t i = of(&b)->head % SLOTS;
			uint8_t *at = of(&b)->own->value[i];

			assert_true(shm_transmit(a.wire, &b.wire->addr, &t));
			assert_memory_equal(at, &v, t.value_length);
			for (uint32_t k = t.value_length; k % 8; k++)
				assert_int_equal(at[k], 0);
			at[t.value_length - 1] ^= bad == 1;
			of(&b)->own->slot[i].frame[20] ^= bad == 2;
			assert_int_equal(poll_end(&b, 1), 1);
			assert_int_equal(b.wire->malformed, 2 * (n - 1) + bad);
			assert_int_equal(taken(&b), n);
		}
	}
}

/* A sender is late: the owner has skipped its slot, and another sender has filled it. Now the late
 * one writes its value there, in which two elements of the other value have the other sign. */
static void value_of_a_late_sender(void **state)
{
	struct nbfw_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = { 8 } };
	const struct nbfw_token t = { .type = NBFW_TOKEN,
				      .value = &v,
				      .value_length = NBFW_VALUE_HEAD + 64 };
	uint32_t position, n = 0;

	for (uint32_t i = 0; i < 64; i++)
		v.byte[i] = (uint8_t)(37 * i);
	for (uint32_t i = 7; i < 64; i += 8) {
		for (uint32_t k = i + 8; k < 64; k += 8) {
			struct nbfw_value late = v;

			assert_true(shm_reserve(of(&b)->own, &position));
			assert_int_equal(poll_end(&b, 1), 0);
			assert_int_equal(poll_end(&b, 1), 0); /* it skips the slot */
			for (uint32_t more = 1; more < SLOTS; more++)
				assert_true(send_to(&a, &b));
			assert_int_equal(poll_end(&b, SLOTS), SLOTS - 1);
			assert_true(shm_transmit(a.wire, &b.wire->addr, &t));
			late.byte[i] ^= 0x80;
			late.byte[k] ^= 0x80;
			memcpy(of(&b)->own->value[position % SLOTS], &late, t.value_length);
			assert_int_equal(poll_end(&b, 1), 1);
			n++;
			require(b.wire->malformed == n, "elements %u and %u: taken", i / 8, k / 8);
			assert_int_equal(b.wire->drops, n);
			assert_int_equal(taken(&b), n * (SLOTS - 1));
		}
	}
}

/* Two small numbers have few bits as doubles. No other two have the same sum. */
static void sums_of_small_numbers(void **state)
{
	static uint32_t sum[32 * 32];

	for (uint32_t i = 0; i < 32 * 32; i++) {
		const double value[2] = { (double)(i % 32) - 16, (double)(i / 32) - 16 };

		sum[i] = shm_sum_value(0, (const uint8_t *)value, sizeof(value));
		for (uint32_t k = 0; k < i; k++)
			require(sum[i] != sum[k], "value %u has the sum of value %u", i, k);
	}
}

/* A value has another sum if any of its elements change their signs. */
static void sums_of_other_signs(void **state)
{
	float value[16], other[16];
	uint32_t sum;

	for (uint32_t i = 0; i < 16; i++)
		value[i] = (float)i + 0.5f;
	sum = shm_sum_value(0, (const uint8_t *)value, sizeof(value));
	for (uint32_t signs = 1; signs < 1u << 16; signs++) {
		for (uint32_t i = 0; i < 16; i++)
			other[i] = signs >> i & 1 ? -value[i] : value[i];
		require(shm_sum_value(0, (const uint8_t *)other, sizeof(other)) != sum,
			"signs 0x%x", signs);
	}
}

/* Rings of peers that this process has mapped. */
static uint32_t mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	uint32_t n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, SUFFIX) != NULL || strstr(line, folder) != NULL;
	if (f)
		fclose(f);
	return n;
}

/* A file with the name of another ring is none; and a NIC that ends leaves no memory mapped. */
static void leaves_no_memory(void **state)
{
	const uint64_t other = 77;
	struct nbnic_addr addr = { { 0 } };
	uint32_t before = mapped();
	const char *why = NULL;
	char name[32];
	struct end c;

	name_of(other, name);
	memcpy(addr.byte, &other, sizeof(other));
	assert_int_equal(shm_peer_begin(a.wire, &addr, &why), -ENOENT);
	assert_true(why && strstr(why, "its NIC has no ring in the folder"));
	assert_int_equal(linkat(of(&a)->dir, of(&b)->name, of(&a)->dir, name, 0), 0);
	assert_int_equal(shm_peer_begin(a.wire, &addr, &why), -EPROTO);
	assert_int_equal(unlinkat(of(&a)->dir, name, 0), 0);
	strange = 1;
	assert_int_equal(shm_peer_begin(a.wire, &b.wire->addr, &why), -EPROTO);
	strange = 0;
	end_open(&c);
	assert_true(send_to(&c, &a) && send_to(&c, &b));
	assert_int_equal(mapped(), before + 3);
	shm_close(c.wire);
	assert_int_equal(mapped(), before);
}

/* An older NIC has another sum of values. */
static void other_format(void **state)
{
	const char *why = NULL;

	of(&b)->own->magic = UINT64_C(0x326d68732d72626e);
	assert_int_equal(shm_peer_begin(a.wire, &b.wire->addr, &why), -EPROTO);
	assert_string_equal(why, "the ring of its NIC has another format; use the same version of "
				 "nbar");
	assert_true(send_to(&a, &b));
	assert_int_equal(a.wire->errors, 1);
	assert_int_equal(poll_end(&b, 1), 0);
}

/* A child of fork() has none of the two descriptors of a NIC. */
static void forked(void **state)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		int before = (int)unit_descriptors();

		shm_forked(a.wire);
		_exit(before - (int)unit_descriptors());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 2);
}

/* An answer goes to the ring that the frame named. */
static bool answered(void *ctx, const struct nbnic_addr *to, const struct nbfw_token *t)
{
	assert_int_equal(t->type, NBFW_ABORT);
	*(struct nbnic_addr *)ctx = *to;
	return true;
}

static void answers(void **state)
{
	static const struct nbnic_ops ops = { .transmit = answered };
	const struct nbfw_token pull = { .type = NBFW_PULL, .handle = 7, .arg = 1 };
	struct nbnic_addr to = { { 0 } };
	char text[sizeof(b.wire->text)];

	b.nic.ops = &ops;
	b.nic.ctx = &to;
	assert_true(shm_transmit(a.wire, &b.wire->addr, &pull));
	assert_int_equal(poll_end(&b, 1), 1);
	assert_memory_equal(to.byte, a.wire->addr.byte, sizeof(to.byte));
	shm_show(b.wire, &to, text, sizeof(text));
	assert_memory_equal(text, a.wire->text, strlen(text)); /* without the suffix */
	assert_int_equal(strlen(text), strlen(folder) + 17);
}

/* Peers whose ids fall on one place of the table keep their rings: the first eight of them. */
static void one_place(void **state)
{
	const uint32_t before = mapped();
	const int in = dup(0);
	uint64_t id[PROBES + 1];
	char name[32];

	close(0); /* descriptor 0 is as good as others */
	for (uint32_t i = 0; i <= PROBES; i++) {
		struct area *ring;
		int fd;

		id[i] = 5 + (i + 1) * UINT64_C(0x100000400);
		name_of(id[i], name);
		fd = openat(of(&a)->dir, name, O_CREAT | O_RDWR, 0600);
		assert_int_equal(ftruncate(fd, sizeof(*ring)), 0);
		ring = mmap(NULL, sizeof(*ring), PROT_WRITE, MAP_SHARED, fd, 0);
		ring->magic = MAGIC;
		ring->id = id[i];
		munmap(ring, sizeof(*ring));
		close(fd);
		assert_non_null(peer_of(of(&a), id[i]));
		unlinkat(of(&a)->dir, name, 0); /* now a ring that is no longer mapped is gone */
	}
	assert_non_null(peer_of(of(&a), id[PROBES]));
	assert_int_equal(mapped(), before + PROBES);
	assert_null(peer_of(of(&a), id[0])); /* it had the place of the last one */
	assert_int_equal(mapped(), before + PROBES - 1);
	dup2(in, 0);
	close(in);
	for (uint32_t i = 1; i < PROBES; i++)
		assert_non_null(peer_of(of(&a), id[i]));
}

static const char *refused_in(wire_option *option, int error)
{
	struct wire_base *w = NULL;

	said_begin();
	assert_int_equal(shm_open_wire("n3", option, NULL, &w), error);
	assert_null(w);
	return said_end();
}

static const char *refused(int error)
{
	return refused_in(folder_of, error);
}

static void refuses(void **state)
{
	const char last = folder[sizeof(folder) - 3];

	for (mode_t bit = 01; bit < 0100; bit <<= 1) {
		assert_int_equal(chmod(folder, 0700 | bit), 0);
		assert_non_null(strstr(refused(-EPERM), "nic n3: dir=/tmp/nbar-shm-"));
		assert_non_null(strstr(refused(-EPERM), ": other users may enter this folder"));
	}
	assert_int_equal(chmod(folder, 0700), 0);
	folder[sizeof(folder) - 3] = '/'; /* in a folder that does not exist */
	assert_non_null(strstr(refused(-ENOENT), "nic n3: dir=/tmp/nbar-shm-"));
	assert_non_null(strstr(refused(-ENOENT), ": cannot make this folder: No such file"));
	folder[sizeof(folder) - 3] = last;
}

/* It leaves no descriptor, memory or file. */
static void each_call_fails(void **state)
{
	static const struct {
		const char *call, *says;
		int rc;
	} cases[] = {
		{ "calloc", "nic n3: no memory for a wire", -ENOMEM },
		{ "mkdir", ": cannot make this folder: Operation not permitted", -EPERM },
		{ "open", ": cannot use this folder: Operation not permitted", -EPERM },
		{ "fstat", ": cannot use this folder: Operation not permitted", -EPERM },
		{ "getrandom", " a ring of 336128 bytes there: Input/output error; name", -EIO },
		{ "openat", " a ring of 336128 bytes there: Operation not permitted; name",
		  -EPERM },
		{ "flock", " a ring of 336128 bytes there: Operation not permitted; name", -EPERM },
		{ "fallocate", " a ring of 336128 bytes there: Operation not permitted; name",
		  -EPERM },
		{ "mmap", " a ring of 336128 bytes there: Operation not permitted; name", -EPERM },
		{ "linkat", " a ring of 336128 bytes there: Operation not permitted; name",
		  -EPERM },
	};
	const int memory = (int)mapped(), held = blocks;
	char otherwise[64];

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int in = dup(0), was = (int)unit_descriptors() - 1;

		close(0); /* so that the wire may get the descriptor 0 */
		fails = cases[i].call;
		assert_non_null(strstr(refused(cases[i].rc), cases[i].says));
		fails = NULL;
		assert_int_equal(unit_descriptors(), was);
		dup2(in, 0);
		close(in);
		assert_int_equal(mapped(), memory);
		assert_int_equal(blocks, held);
		assert_int_equal(rmdir(folder), 0); /* it is empty */
		assert_int_equal(mkdir(folder, 0700), 0);
	}
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(symlink("/tmp", folder), 0);
	assert_non_null(strstr(refused(-ENOTDIR), ": cannot use this folder: Not a directory"));
	unlink(folder); /* the wire makes it */
	end_open(&a);
	shm_close(a.wire);
	fails = "mkdir";
	snprintf(otherwise, sizeof(otherwise), "nic n3: dir=/dev/shm/nbar-%u: ", geteuid());
	assert_non_null(strstr(refused_in(no_folder, -EPERM), otherwise));
	fails = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_IN(goes_round, setup, teardown),
		UNIT_IN(full_peer, setup, teardown),
		UNIT_IN(full_loopback, setup, teardown),
		UNIT_IN(dead_sender, setup, teardown),
		UNIT_IN(nonsense, setup, teardown),
		UNIT_IN(peer_gone, setup, teardown),
		UNIT_IN(cleans, setup, teardown),
		UNIT_IN(mixed_slots, setup, teardown),
		UNIT_IN(leaves_no_memory, setup, teardown),
		UNIT_IN(other_format, setup, teardown),
		UNIT_IN(refuses, setup, teardown),
		UNIT_IN(forked, setup, teardown),
		UNIT_IN(answers, setup, teardown),
		UNIT_IN(one_place, setup, teardown),
		UNIT_IN(values, setup, teardown),
		UNIT_IN(value_of_a_late_sender, setup, teardown),
		UNIT(sums_of_small_numbers),
		UNIT(sums_of_other_signs),
		UNIT_IN(slow_sender, setup, teardown),
		UNIT_IN(two_slow_senders, setup, teardown),
		UNIT_IN(dead_sender_of_full_ring, setup, teardown),
		UNIT(each_call_fails),
	};
	int rc;

	if (!mkdtemp(folder))
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return rc;
}
