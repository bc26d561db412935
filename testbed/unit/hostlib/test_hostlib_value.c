/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostlib_value.c - barriers with a value, through whole NICs that lose frames; and what a
 * program gets wrong.
 */
#include <errno.h>

#include "internal.h"
#include "unit/hostlib/cluster.h"
#include "unit/inproc.h"

static struct inproc *nics;

static int setup(void **state)
{
	(void)state;
	nics = inproc_start(3, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
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
	(void)state;
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

	(void)state;
	start(&c, 2, 16);
	start(&without, 2, 0);
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

	(void)state;
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

static void refused_groups(void **state)
{
	struct nbar_group_attr attr = { .struct_size = sizeof(attr), .size = 2, .value_max = 257 };
	struct nbar_group *g;
	struct nbar_endpoint endpoint;
	struct nbar_port *port;

	(void)state;
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
	  UNIT(values_that_differ_end_the_group), UNIT(refused_groups))
