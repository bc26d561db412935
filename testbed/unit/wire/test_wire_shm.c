/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wire_shm.c - the wire "shm": two NICs, a ring that wraps, full rings, senders that die while
 * they write, and rings full of garbage.
 *
 * A NIC without groups counts each received frame as a stranger.
 */
#include <fcntl.h>

static int fallocate_error; /* 0: none */

static int fallocate_or_fail(int fd, off_t offset, off_t length)
{
	return fallocate_error ? fallocate_error : posix_fallocate(fd, offset, length);
}
#define posix_fallocate fallocate_or_fail

#include "shm.c"

#include "unit/glue/said.h"

static char folder[] = "/tmp/nbar-shm-XXXXXX";

struct end {
	struct wire_base *wire;
	struct nbnic nic;
	uint64_t now;
};

static const char *folder_of(void *args, const char *key)
{
	(void)args;
	return strcmp(key, "dir") == 0 ? folder : NULL;
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
	(void)state;
	end_open(&a);
	end_open(&b);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	shm_close(a.wire);
	shm_close(b.wire);
	return 0;
}

static void goes_round(void **state)
{
	(void)state;
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

	(void)state;
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
	(void)state;
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

	(void)state;
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
}

static void nonsense(void **state)
{
	struct area *ring = of(&b)->own;
	uint32_t random = 1;

	(void)state;
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

	(void)state;
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
	int fd;

	(void)state;
	name_of(1234, name);
	fd = openat(of(&a)->dir, name, O_CREAT | O_RDWR, 0600);
	assert_true(fd >= 0);
	close(fd);
	end_open(&c);
	assert_int_equal(faccessat(of(&a)->dir, name, F_OK, 0), -1);
	assert_int_equal(faccessat(of(&a)->dir, of(&b)->name, F_OK, 0), 0);
	shm_close(c.wire);
}

/* Each part of a slot counts for its sum, and a frame needs more than a right sum. */
static void mixed_slots(void **state)
{
	const uint8_t frame[NBFW_FRAME_SIZE] = { 1, 2, 3, [47] = 4 };
	struct slot *s;

	(void)state;
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
	const char *why;
	char name[32];
	struct end c;

	(void)state;
	name_of(other, name);
	memcpy(addr.byte, &other, sizeof(other));
	assert_int_equal(shm_peer_begin(a.wire, &addr, &why), -ENOENT);
	assert_int_equal(linkat(of(&a)->dir, of(&b)->name, of(&a)->dir, name, 0), 0);
	assert_int_equal(shm_peer_begin(a.wire, &addr, &why), -EPROTO);
	assert_int_equal(unlinkat(of(&a)->dir, name, 0), 0);
	end_open(&c);
	assert_true(send_to(&c, &a) && send_to(&c, &b));
	assert_int_equal(mapped(), before + 3);
	shm_close(c.wire);
	assert_int_equal(mapped(), before);
}

static const char *refused(int error)
{
	struct wire_base *w;

	said_begin();
	assert_int_equal(shm_open_wire("n3", folder_of, NULL, &w), error);
	return said_end();
}

static void refuses(void **state)
{
	const char last = folder[sizeof(folder) - 3];

	(void)state;
	assert_int_equal(chmod(folder, 0750), 0);
	assert_non_null(strstr(refused(-EPERM), "nic n3: dir=/tmp/nbar-shm-"));
	assert_non_null(strstr(refused(-EPERM), ": other users may enter this folder"));
	assert_int_equal(chmod(folder, 0700), 0);
	folder[sizeof(folder) - 3] = '/'; /* in a folder that does not exist */
	assert_non_null(strstr(refused(-ENOENT), "nic n3: dir=/tmp/nbar-shm-"));
	assert_non_null(strstr(refused(-ENOENT), ": cannot make this folder: No such file"));
	folder[sizeof(folder) - 3] = last;
}

/* The return value is the error; errno is that of an earlier call. */
static void no_memory(void **state)
{
	struct wire_base *w;

	(void)state;
	fallocate_error = ENOSPC;
	errno = EACCES;
	assert_int_equal(shm_open_wire("test", folder_of, NULL, &w), -ENOSPC);
	fallocate_error = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(goes_round, setup, teardown),
		cmocka_unit_test_setup_teardown(full_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(full_loopback, setup, teardown),
		cmocka_unit_test_setup_teardown(dead_sender, setup, teardown),
		cmocka_unit_test_setup_teardown(nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(peer_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(cleans, setup, teardown),
		cmocka_unit_test_setup_teardown(mixed_slots, setup, teardown),
		cmocka_unit_test_setup_teardown(leaves_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses, setup, teardown),
		cmocka_unit_test(no_memory),
	};
	int rc;

	if (!mkdtemp(folder))
		return 1;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return rc;
}
