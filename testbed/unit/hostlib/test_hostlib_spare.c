/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_spare.c - survivors make a smaller group, with real NICs.
 */
#include <errno.h>
#include <pthread.h>

#include "cluster.h"
#include "unit/nics.h"
#include "unit/unit.h"

#define NICS 3u
#define SIZE 7u
#define LONG_NS UINT64_C(60000000000)

struct survivor {
	struct nbar_port *port;
	struct nbar_spare *spare;
	struct nbar_group *group;
	const uint32_t *failed;
	uint32_t nfailed;
	uint64_t timeout_ns;
	pthread_t thread;
	int rc;
};

static void open_all(struct survivor *s)
{
	struct nbar_endpoint endpoint[SIZE];

	for (uint32_t r = 0; r < SIZE; r++) {
		const struct nbar_group_attr attr = { .rank = r, .size = SIZE, .tag = 3 };
		char name[16];

		s[r] = (struct survivor){ .timeout_ns = LONG_NS };
		snprintf(name, sizeof(name), "n%u", r % NICS);
		require_ok(nbar_open(name, &s[r].port));
		require_ok(nbar_spare_open(s[r].port, &attr, &s[r].spare, &endpoint[r]));
	}
	for (uint32_t r = 0; r < SIZE; r++)
		require_ok(nbar_spare_connect(s[r].spare, endpoint));
}

static void *shrink_main(void *arg)
{
	struct survivor *s = arg;

	s->rc = nbar_spare_shrink(s->spare, s->failed, s->nfailed, s->timeout_ns, &s->group);
	return NULL;
}

static bool is_in(uint32_t rank, const uint32_t *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == rank)
			return true;
	return false;
}

/* All survivors shrink at once; the barriers of the new group work. */
static void shrink_all(struct survivor *s, const uint32_t *failed, uint32_t n)
{
	for (uint32_t r = 0; r < SIZE; r++) {
		s[r].failed = failed;
		s[r].nfailed = n;
		if (!is_in(r, failed, n))
			assert_int_equal(pthread_create(&s[r].thread, NULL, shrink_main, &s[r]), 0);
	}
	for (uint32_t r = 0; r < SIZE; r++) {
		if (is_in(r, failed, n))
			continue;
		pthread_join(s[r].thread, NULL);
		require(s[r].rc == 0, "rank %u: %d", r, s[r].rc);
	}
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t r = 0; r < SIZE; r++)
			if (!is_in(r, failed, n))
				require_ok(nbar_post(s[r].group, NULL));
	for (uint32_t r = 0; r < SIZE; r++)
		if (!is_in(r, failed, n))
			require_ok(nbar_wait(s[r].group, 4, NBAR_FOREVER));
}

static void close_all(struct survivor *s)
{
	for (uint32_t r = 0; r < SIZE; r++) {
		if (s[r].spare)
			nbar_spare_close(s[r].spare);
		nbar_close(s[r].port);
	}
}

/* Closes the groups of a member that leaves. */
static void lose(struct survivor *s)
{
	nbar_spare_close(s->spare);
	nbar_close(s->port);
	s->spare = NULL;
	s->port = NULL;
}

static void those_that_are_left_go_on(void **state)
{
	static const uint32_t first[] = { 5, 0 }, both[] = { 0, 3, 5 };
	struct survivor s[SIZE];

	(void)state;
	open_all(s);
	lose(&s[0]);
	lose(&s[5]);
	shrink_all(s, first, 2);
	lose(&s[3]);
	shrink_all(s, both, 3);
	close_all(s);
}

static void a_bad_wire_loses_nothing(void **state)
{
	static const uint32_t failed[] = { 1 };
	struct survivor s[SIZE];

	(void)state;
	open_all(s);
	inproc_set_loss(nics, 20);
	shrink_all(s, failed, 1);
	inproc_set_loss(nics, 0);
	close_all(s);
}

static void all_but_one(void **state)
{
	static const uint32_t failed[] = { 0, 1, 2, 3, 4, 6 };
	struct survivor s[SIZE];

	(void)state;
	open_all(s);
	shrink_all(s, failed, 6);
	close_all(s);
}

/* A survivor with another list than the others gets an error, and the others succeed. */
static void other_lists_do_not_meet(void **state)
{
	static const uint32_t six[] = { 6 }, five[] = { 5, 6 }, self[] = { 2 }, none[] = { 7 };
	struct survivor s[SIZE];

	(void)state;
	open_all(s);
	assert_int_equal(nbar_spare_shrink(s[2].spare, self, 1, 0, &s[2].group), -EINVAL);
	assert_int_equal(nbar_spare_shrink(s[2].spare, none, 1, 0, &s[2].group), -EINVAL);
	for (uint32_t r = 0; r < 6; r++) {
		s[r].failed = r < 5 ? five : six;
		s[r].nfailed = r < 5 ? 2 : 1;
		s[r].timeout_ns = r == 5 ? 50000000 : LONG_NS;
		assert_int_equal(pthread_create(&s[r].thread, NULL, shrink_main, &s[r]), 0);
	}
	for (uint32_t r = 0; r < 6; r++) {
		pthread_join(s[r].thread, NULL);
		assert_int_equal(s[r].rc, r < 5 ? 0 : -ETIME);
	}
	close_all(s);
}

/* A member calls again and again, each time without waiting, while the others stay in their first
 * call. */
static void one_calls_again_and_again(void **state)
{
	static const uint32_t failed[] = { 3 };
	struct survivor s[SIZE];

	(void)state;
	open_all(s);
	for (uint32_t r = 0; r < SIZE; r++) {
		s[r].failed = failed;
		s[r].nfailed = 1;
		if (r != 1 && r != 3)
			assert_int_equal(pthread_create(&s[r].thread, NULL, shrink_main, &s[r]), 0);
	}
	s[1].timeout_ns = 0;
	do
		shrink_main(&s[1]);
	while (s[1].rc == -ETIME);
	require_ok(s[1].rc);
	for (uint32_t r = 0; r < SIZE; r++) {
		if (r == 1 || r == 3)
			continue;
		pthread_join(s[r].thread, NULL);
		require_ok(s[r].rc);
	}
	close_all(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_that_are_left_go_on),
		cmocka_unit_test(a_bad_wire_loses_nothing),
		cmocka_unit_test(all_but_one),
		cmocka_unit_test(other_lists_do_not_meet),
		cmocka_unit_test(one_calls_again_and_again),
	};

	return run_with_nics(NICS, tests);
}
