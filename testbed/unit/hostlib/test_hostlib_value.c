/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_value.c - barriers with a value, through whole NICs that lose frames; and what a
 * program gets wrong.
 */
#include <errno.h>
#include <pthread.h>

#include "internal.h"
#include "unit/hostlib/cluster.h"
#include "unit/inproc.h"

static struct inproc *nics;

static int setup(void **state)
{
	nics = inproc_start(3, NULL);
	return 0;
}

static int teardown(void **state)
{
	inproc_stop(nics);
	return 0;
}

static void start(struct cluster *c, uint32_t size, uint32_t value_max)
{
	c->size = size;
	for (uint32_t r = 0; r < size; r++) {
		struct nbar_group_attr attr = {
			.struct_size = sizeof(attr), .rank = r, .size = size, .value_max = value_max
		};
		char name[16];

		snprintf(name, sizeof(name), "n%u", r % 3);
		require_ok(nbar_open(name, &c->port[r]));
		require_ok(nbar_group_open(c->port[r], &attr, &c->g[r], &c->endpoint[r]));
	}
	for (uint32_t r = 0; r < size; r++)
		require_ok(nbar_group_connect(c->g[r], c->endpoint));
}

/* Eight barriers of each member at once; each third has no value. */
static void round_of_eight(struct cluster *c, uint32_t first)
{
	struct nbar_value v = { .op = NBAR_MAX, .type = NBAR_INT32, .count = 3 };
	uint32_t ticket = 0;

	for (uint32_t i = first; i < first + NBAR_VALUES_AHEAD; i++) {
		for (uint32_t r = 0; r < c->size; r++) {
			v.of.i32[0] = (int32_t)(r * i) - 1000;
			v.of.i32[1] = -(int32_t)r;
			v.of.i32[2] = (int32_t)i;
			if (i % 3)
				require_ok(nbar_post_value(c->g[r], &v, &ticket));
			else
				require_ok(nbar_post(c->g[r], &ticket));
			assert_int_equal(ticket, i);
		}
	}
	for (uint32_t r = 0; r < c->size; r++) {
		require_ok(nbar_wait(c->g[r], ticket, NBAR_FOREVER));
		for (uint32_t i = first; i < first + NBAR_VALUES_AHEAD; i++) {
			if (i % 3 == 0) {
				assert_int_equal(nbar_result(c->g[r], i, &v), -EINVAL);
				continue;
			}
			require_ok(nbar_result(c->g[r], i, &v));
			assert_int_equal(v.op, NBAR_MAX);
			assert_int_equal(v.type, NBAR_INT32);
			assert_int_equal(v.count, 3);
			assert_int_equal(v.epoch, 0);
			assert_int_equal(v.of.i32[0], (int32_t)((c->size - 1) * i) - 1000);
			assert_int_equal(v.of.i32[1], 0);
			assert_int_equal(v.of.i32[2], i);
		}
	}
}

static void every_member_gets_the_result(void **state)
{
	for (uint32_t size = 1; size <= 7; size += 2) {
		struct cluster c;

		start(&c, size, 16);
		for (uint32_t i = 0; i < 20; i++) {
			inproc_set_loss(nics, i < 10 ? 0 : 10);
			round_of_eight(&c, 1 + i * NBAR_VALUES_AHEAD);
		}
		inproc_set_loss(nics, 0);
		cluster_end(&c);
	}
}

static void wrong_values_are_refused(void **state)
{
	struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 2 };
	struct cluster c, without;
	uint32_t ticket;

	start(&c, 2, 16);
	start(&without, 2, 0);
	assert_int_equal(nbar_group_fast_value(c.g[0]), NBAR_VALUE_MAX);
	assert_int_equal(nbar_post_value(without.g[0], &v, NULL), -EINVAL);
	v.count = 3; /* longer than value_max */
	assert_int_equal(nbar_post_value(c.g[0], &v, NULL), -EINVAL);
	v.count = 0;
	assert_int_equal(nbar_post_value(c.g[0], &v, NULL), -EINVAL);
	v.count = 1;
	v.op = NBAR_BAND; /* of reals */
	assert_int_equal(nbar_post_value(c.g[0], &v, NULL), -EINVAL);
	v.op = 0;
	assert_int_equal(nbar_post_value(c.g[0], &v, NULL), -EINVAL);
	v.op = 0xff;
	assert_int_equal(nbar_post_value(c.g[0], &v, NULL), -EINVAL);
	v.op = NBAR_SUM;
	v.type = 0;
	assert_int_equal(nbar_post_value(c.g[0], &v, NULL), -EINVAL);
	v.type = 0xff;
	assert_int_equal(nbar_post_value(c.g[0], &v, NULL), -EINVAL);
	v.type = NBAR_DOUBLE;
	for (uint32_t i = 0; i < NBAR_VALUES_AHEAD; i++)
		require_ok(nbar_post_value(c.g[0], &v, &ticket));
	assert_int_equal(nbar_post_value(c.g[0], &v, &ticket), -EAGAIN);
	assert_non_null(strstr(nbar_error(), "8 barriers"));
	assert_int_equal(nbar_result(c.g[0], 1, &v), -EINVAL); /* not complete */
	cluster_end(&without);
	cluster_end(&c);
}

static void values_that_differ_end_the_group(void **state)
{
	struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 2 };
	struct cluster c;
	uint32_t ticket[2];

	start(&c, 2, 16);
	require_ok(nbar_post_value(c.g[0], &v, &ticket[0]));
	v.op = NBAR_MIN;
	require_ok(nbar_post_value(c.g[1], &v, &ticket[1]));
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(nbar_wait(c.g[r], ticket[r], NBAR_FOREVER), -EBADMSG);
		assert_non_null(strstr(nbar_error(), "must post alike values"));
		assert_int_equal(nbar_post_value(c.g[r], &v, NULL), -EBADMSG);
	}
	cluster_end(&c);
}

/* A value that is refused is not taken by the next barrier. */
static void a_refused_value_is_forgotten(void **state)
{
	struct nbar_group_attr attr = { .struct_size = sizeof(attr), .size = 2, .value_max = 16 };
	struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 2 };
	struct nbar_endpoint endpoint[2];
	struct nbar_group *g[2];
	struct nbar_port *port;

	require_ok(nbar_open("n0", &port));
	for (attr.rank = 0; attr.rank < 2; attr.rank++)
		require_ok(nbar_group_open(port, &attr, &g[attr.rank], &endpoint[attr.rank]));
	assert_int_equal(nbar_result(g[0], 0, &v), -EINVAL); /* no barrier has this ticket */
	assert_int_equal(nbar_post_value(g[0], &v, NULL), -ENOTCONN);
	for (uint32_t r = 0; r < 2; r++)
		require_ok(nbar_group_connect(g[r], endpoint));
	for (uint32_t r = 0; r < 2; r++)
		require_ok(nbar_post(g[r], NULL));
	for (uint32_t r = 0; r < 2; r++) {
		require_ok(nbar_wait(g[r], 1, NBAR_FOREVER));
		assert_int_equal(nbar_result(g[r], 1, &v), -EINVAL);
	}
	nbar_close(port);
}

/* A hostile NIC may write anything in the place of a result. */
static void a_hostile_result_is_refused(void **state)
{
	struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 2 };
	struct nbar_value *place;
	struct cluster c;

	start(&c, 1, 16);
	require_ok(nbar_allreduce(c.g[0], &v, &v));
	place = nblib_value_place(c.g[0], 1);
	place->epoch = 1 + NBAR_VALUES_AHEAD;
	assert_int_equal(nbar_result(c.g[0], 1, &v), -EINVAL);
	place->epoch = 1;
	place->type = 0xff;
	assert_int_equal(nbar_result(c.g[0], 1, &v), -EINVAL);
	place->type = NBAR_DOUBLE;
	place->count = UINT8_MAX;
	assert_int_equal(nbar_result(c.g[0], 1, &v), -EINVAL);
	place->count = 2;
	require_ok(nbar_result(c.g[0], 1, &v));
	cluster_end(&c);
}

/* --- processes of a host, as threads --------------------------------------------------------- */

#define MATES 4u
#define ROUNDS 500u

static struct nbar_process_team procs;
static struct nbar_value all[MATES];
static struct nbar_group *mate_group[MATES];

/* Not commutative: the order of the processes shows. */
static void fold(struct nbar_value *to, const struct nbar_value *from)
{
	to->of.i32[0] = 3 * to->of.i32[0] + from->of.i32[0];
}

#ifdef __SANITIZE_THREAD__
static uint32_t have_posted;
#endif

static void *mate_main(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg, ticket;
	struct nbar_value v;
	int32_t want;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		want = 0;
		for (uint32_t k = 0; k < MATES; k++)
			want = k == 0 ? (int32_t)i : 3 * want + (int32_t)(i + k);
		all[me].op = NBAR_SUM;
		all[me].type = NBAR_INT32;
		all[me].count = 1;
		all[me].of.i32[0] = (int32_t)(i + me);
		require_ok(nbar_process_team_post_value(&procs, mate_group[me], me, all, fold,
							&ticket));
		assert_int_equal(ticket, i);
#ifdef __SANITIZE_THREAD__ /* it does not see the order by a page, which is mapped twice */
		__atomic_fetch_add(&have_posted, 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&have_posted, __ATOMIC_ACQUIRE) < i * MATES)
			sched_yield();
#endif
		require_ok(
			nbar_process_team_wait(&procs, mate_group[me], ticket, NULL, NBAR_FOREVER));
		require_ok(nbar_result(mate_group[me], ticket, &v));
		require(v.of.i32[0] == want + 7, "%u: %d, not %d", i, v.of.i32[0], want + 7);
	}
	return NULL;
}

static void mates_share_a_member(void **state)
{
	struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_INT32, .count = 1 };
	struct nbar_port *port[MATES];
	struct nbar_share share;
	pthread_t id[MATES];
	struct cluster c;
	uint32_t ticket;

	start(&c, 2, 4);
	nbar_group_share(c.g[0], &share);
	require_ok(nbar_process_team_init(&procs, MATES));
	mate_group[0] = c.g[0];
	for (uint32_t i = 1; i < MATES; i++) {
		require_ok(nbar_attach("n0", &share, &port[i]));
		require_ok(nbar_group_attach(port[i], &share, &mate_group[i]));
	}
	for (uint32_t i = 0; i < MATES; i++)
		pthread_create(&id[i], NULL, mate_main, (void *)(uintptr_t)i);
	v.of.i32[0] = 7;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		struct nbar_value in = v;

		require_ok(nbar_post_value(c.g[1], &in, &ticket));
		require_ok(nbar_wait(c.g[1], ticket, NBAR_FOREVER));
	}
	for (uint32_t i = 0; i < MATES; i++)
		pthread_join(id[i], NULL);
	/* One of them has another count. */
	all[2].count = 2;
	assert_int_equal(nbar_process_team_post_value(&procs, mate_group[2], 2, all, fold, NULL),
			 -EINVAL); /* more than value_max */
	all[2].count = 1;
	all[2].op = NBAR_MIN;
	for (uint32_t i = 0; i < MATES; i++)
		require_ok(
			nbar_process_team_post_value(&procs, mate_group[i], i, all, fold, &ticket));
	require_ok(nbar_post_value(c.g[1], &v, NULL));
	for (uint32_t i = 0; i < MATES; i++)
		assert_int_equal(
			nbar_process_team_wait(&procs, mate_group[i], ticket, NULL, NBAR_FOREVER),
			-EBADMSG);
	assert_int_equal(
		nbar_process_team_post_value(&procs, mate_group[0], MATES, all, fold, NULL),
		-ERANGE);
	for (uint32_t i = 1; i < MATES; i++)
		nbar_close(port[i]);
	cluster_end(&c);
	/* No other host has a value that differs. */
	start(&c, 1, 4);
	require_ok(nbar_process_team_init(&procs, MATES));
	for (uint32_t i = 0; i < MATES; i++)
		require_ok(nbar_process_team_post_value(&procs, c.g[0], i, all, fold, &ticket));
	assert_int_equal(nbar_process_team_wait(&procs, c.g[0], ticket, NULL, NBAR_FOREVER),
			 -EBADMSG);
	cluster_end(&c);
}

/* Each barrier has values of its own. There is room for 8, and one more is refused. */
static void mates_post_ahead(void **state)
{
	struct nbar_value ahead[NBAR_VALUES_AHEAD][MATES], v = { .op = NBAR_SUM };
	struct cluster c;
	uint32_t ticket;

	v.type = NBAR_INT32;
	v.count = 1;
	v.of.i32[0] = 7;
	start(&c, 2, 4);
	require_ok(nbar_process_team_init(&procs, MATES));
	for (uint32_t i = 0; i < NBAR_VALUES_AHEAD; i++)
		for (uint32_t k = 0; k < MATES; k++) {
			ahead[i][k] = v;
			ahead[i][k].of.i32[0] = (int32_t)(i + k);
			require_ok(nbar_process_team_post_value(&procs, c.g[0], k, ahead[i], fold,
								&ticket));
		}
	assert_int_equal(nbar_process_team_post_value(&procs, c.g[0], 0, ahead[0], fold, NULL),
			 -EAGAIN);
	for (uint32_t i = 0; i < NBAR_VALUES_AHEAD; i++)
		require_ok(nbar_post_value(c.g[1], &v, NULL));
	for (uint32_t i = 0; i < NBAR_VALUES_AHEAD; i++) {
		int32_t want = (int32_t)i;

		for (uint32_t k = 1; k < MATES; k++)
			want = 3 * want + (int32_t)(i + k);
		require_ok(nbar_process_team_wait(&procs, c.g[0], i + 1, NULL, NBAR_FOREVER));
		require_ok(nbar_result(c.g[0], i + 1, &v));
		assert_int_equal(v.of.i32[0], want + 7);
	}
	cluster_end(&c);
}

static void refused_groups(void **state)
{
	struct nbar_group_attr attr = { .struct_size = sizeof(attr), .size = 2, .value_max = 257 };
	struct nbar_group *g;
	struct nbar_endpoint endpoint;
	struct nbar_port *port;

	require_ok(nbar_open("n0", &port));
	assert_int_equal(nbar_group_open(port, &attr, &g, &endpoint), -ERANGE);
	attr.value_max = 8;
	attr.alg = "dissemination:1";
	assert_int_equal(nbar_group_open(port, &attr, &g, &endpoint), -EINVAL);
	assert_non_null(strstr(nbar_error(), "use auto for values"));
	attr.alg = "signal";
	assert_int_equal(nbar_group_open(port, &attr, &g, &endpoint), -EINVAL);
	attr.alg = NULL;
	for (uint32_t i = 0; i < NBAR_VALUE_GROUPS; i++)
		require_ok(nbar_group_open(port, &attr, &g, &endpoint));
	struct nbar_group *last = g;

	assert_int_equal(nbar_group_open(port, &attr, &g, &endpoint), -ENOSPC);
	assert_non_null(strstr(nbar_error(), "32 groups with values"));
	nbar_group_close(last);
	require_ok(nbar_group_open(port, &attr, &g, &endpoint));
	nbar_close(port);
}

UNIT_MAIN(setup, teardown, UNIT(every_member_gets_the_result), UNIT(wrong_values_are_refused),
	  UNIT(values_that_differ_end_the_group), UNIT(a_refused_value_is_forgotten),
	  UNIT(a_hostile_result_is_refused), UNIT(mates_share_a_member), UNIT(mates_post_ahead),
	  UNIT(refused_groups))
