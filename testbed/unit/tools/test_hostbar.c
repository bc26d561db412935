/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostbar.c - the host-based barrier, over the signal service of real NICs on a wire that
 * loses frames. One thread drives all members, so the test knows the state of each.
 */
#include "unit/unit.h"

#include <errno.h>
#include <sched.h>

#include "hostbar.h"
#include "unit/nics.h"
#include "stats.h"
#include "tool.h"

#define SIZE_MAX_HERE 9u

struct member {
	struct nbar_port *port;
	struct hostbar *hb;
	uint32_t ticket; /* last barrier entered */
	uint32_t left;   /* last barrier left */
};

static uint32_t value_max; /* of the groups that open_all opens */

static void open_all(struct member *m, uint32_t n, const char *alg,
		     const struct nbnic_config *config)
{
	struct nbar_endpoint endpoint[SIZE_MAX_HERE];

	for (uint32_t i = 0; i < n; i++) {
		const struct nbar_group_attr attr = {
			.rank = i, .size = n, .alg = alg, .value_max = value_max
		};
		const char *name[] = { "n0", "n1", "n2" };

		m[i] = (struct member){ 0 };
		assert_int_equal(nbar_open(name[i % 3], &m[i].port), 0);
		assert_int_equal(hostbar_open(m[i].port, &attr, config, &m[i].hb, &endpoint[i]), 0);
		assert_int_equal(hostbar_post(m[i].hb, NULL), -ENOTCONN);
	}
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(hostbar_connect(m[i].hb, endpoint), 0);
}

static void close_all(struct member *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		hostbar_close(m[i].hb);
		nbar_close(m[i].port);
	}
}

static void enter(struct member *m)
{
	assert_int_equal(hostbar_post(m->hb, &m->ticket), 0);
}

/* One barrier with values. A second one may not begin before it ends. */
static void run_sum(struct member *m, uint32_t n, uint32_t barrier)
{
	uint32_t done = 0, refused;

	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(hostbar_post_sum(m[i].hb, barrier + i / 64.0, &m[i].ticket), 0);
	if (n > 1)
		assert_int_equal(hostbar_post_sum(m->hb, 1e9, &refused), -EAGAIN);
	while (done < n) {
		done = 0;
		for (uint32_t i = 0; i < n; i++) {
			int rc = hostbar_test(m[i].hb, m[i].ticket);

			assert_in_range(rc, 0, 1);
			done += rc == 1;
		}
		sched_yield();
	}
	for (uint32_t i = 0; i < n; i++)
		assert_true(hostbar_sum(m[i].hb) == n * barrier + n * (n - 1) / 128.0);
}

/* Drives all members in random order until each has left barrier `count`. No member may be ahead.
 */
static void run(struct member *m, uint32_t n, uint32_t count, uint64_t *random)
{
	uint32_t done = 0;

	while (done < n) {
		struct member *one = &m[stats_random(random) % n];

		if (one->left == one->ticket && one->left < count)
			enter(one);
		int r = hostbar_test(one->hb, one->ticket);

		assert_in_range(r, 0, 1);
		if (!r || one->left == one->ticket) {
			sched_yield();
			continue;
		}
		one->left = one->ticket;
		for (uint32_t i = 0; i < n; i++)
			assert_in_range(m[i].ticket, one->left, one->left + 1);
		done += one->left == count;
	}
}

static void barriers(void **state)
{
	static const char *const alg[] = { "pairwise", "dissemination:1", "dissemination:3", NULL };
	uint64_t random = 1;

	for (uint32_t a = 0; a < 4; a++) {
		for (uint32_t n = 1; n <= SIZE_MAX_HERE; n++) {
			struct member m[SIZE_MAX_HERE];

			open_all(m, n, alg[a], NULL);
			run(m, n, 40, &random);
			close_all(m, n);
		}
	}
}

/* A fifth of all frames is lost: the receivers ask again. */
static void barriers_despite_loss(void **state)
{
	static const struct nbnic_config quick = { .pull_ns = 50000,
						   .budget_ns = HOSTBAR_BUDGET_NS };
	static const char *const alg[] = { "pairwise", "dissemination:2" };
	uint64_t random = 2;

	for (uint32_t a = 0; a < 2; a++) {
		struct member m[SIZE_MAX_HERE];

		open_all(m, 5, alg[a], &quick);
		inproc_set_loss(nics, 20);
		run(m, 5, 100, &random);
		inproc_set_loss(nics, 0);
		close_all(m, 5);
	}
}

/* Each member adds its rank, scaled so that a sum of another barrier or of other members shows. */
static void sums(void **state)
{
	static const char *const alg[] = { NULL, "mcs", "pairwise" };
	static const struct nbnic_config quick = { .pull_ns = 50000,
						   .budget_ns = HOSTBAR_BUDGET_NS };

	for (uint32_t loss = 0; loss <= 20; loss += 20) {
		for (uint32_t k = 0; k < 3 * SIZE_MAX_HERE; k++) {
			uint32_t n = 1 + k % SIZE_MAX_HERE;
			struct member m[SIZE_MAX_HERE];

			value_max = HOSTBAR_VALUE;
			open_all(m, n, alg[k / SIZE_MAX_HERE], &quick);
			value_max = 0;
			inproc_set_loss(nics, loss);
			for (uint32_t b = 1; b <= 20; b++)
				run_sum(m, n, b);
			inproc_set_loss(nics, 0);
			close_all(m, n);
		}
	}
}

static void sums_that_are_refused(void **state)
{
	struct nbar_group_attr attr = { .size = 2, .value_max = 2 * HOSTBAR_VALUE };
	struct nbar_endpoint endpoint;
	struct nbar_port *port;
	struct hostbar *hb;

	assert_int_equal(nbar_open("n0", &port), 0);
	assert_int_equal(hostbar_open(port, &attr, NULL, &hb, &endpoint), -EINVAL);
	attr.value_max = HOSTBAR_VALUE;
	attr.alg = "dissemination:1"; /* counts some members twice */
	assert_int_equal(hostbar_open(port, &attr, NULL, &hb, &endpoint), -EINVAL);
	nbar_close(port);
}

/* Drives some members until one fails. Returns the error; *text gets its text. */
static int run_to_failure(struct member *m, uint32_t n, const struct member * not,
			  const char **text)
{
	for (;;) {
		for (uint32_t i = 0; i < n; i++) {
			int r = &m[i] == not ? 0 : hostbar_test(m[i].hb, m[i].ticket);

			assert_int_not_equal(r, 1);
			if (r < 0) {
				*text = hostbar_error(m[i].hb);
				return r;
			}
		}
		sched_yield();
	}
}

/* A member that no longer answers is given up, and all others name it. */
static void silent_member(void **state)
{
	static const struct nbnic_config quick = { .pull_ns = 1000000, .budget_ns = 2000000000 };
	struct member m[4];
	const char *text = "";
	uint64_t random = 3;

	open_all(m, 4, "dissemination:1", &quick);
	run(m, 4, 10, &random);
	for (uint32_t i = 0; i < 4; i++)
		if (i != 2)
			enter(&m[i]);
	assert_int_equal(run_to_failure(m, 4, &m[2], &text), -EHOSTUNREACH);
	assert_non_null(strstr(text, "barrier 11 "));
	assert_non_null(strstr(text, "rank 2 "));
	/* Failure spreads, and is final. */
	for (uint32_t failed = 0; failed < 3; sched_yield()) {
		failed = 0;
		for (uint32_t i = 0; i < 4; i++)
			failed += i != 2 && hostbar_test(m[i].hb, m[i].ticket) == -EHOSTUNREACH;
	}
	for (uint32_t i = 0; i < 4; i++) {
		if (i == 2)
			continue;
		assert_int_equal(hostbar_post(m[i].hb, NULL), -EHOSTUNREACH);
		assert_non_null(strstr(hostbar_error(m[i].hb), "rank 2 "));
	}
	close_all(m, 4);
}

/* A member that answers but does not arrive is not given up, even after the retry budget. */
static void late_member(void **state)
{
	static const struct nbnic_config quick = { .pull_ns = 1000000, .budget_ns = 1500000000 };
	struct member m[4];
	uint64_t random = 4, end;

	open_all(m, 4, "pairwise", &quick);
	run(m, 4, 10, &random);
	for (uint32_t i = 0; i < 3; i++)
		enter(&m[i]);
	end = tool_now_ns() + 5 * quick.budget_ns / 2;
	while (tool_now_ns() < end) {
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(hostbar_test(m[i].hb, m[i].ticket), 0);
		/* The late member still answers PULLs, for barriers that it has entered and for
		 * others. */
		assert_int_equal(hostbar_test(m[3].hb, 11), 0);
	}
	run(m, 4, 20, &random);
	close_all(m, 4);
}

/* Barriers may be posted ahead: they run one after the other. */
static void posted_ahead(void **state)
{
	struct member m[3];

	open_all(m, 3, "dissemination:1", NULL);
	for (uint32_t k = 0; k < NBAR_POSTED_MAX; k++)
		enter(&m[0]);
	assert_int_equal(hostbar_post(m[0].hb, NULL), -EAGAIN);
	for (uint32_t k = 1; k <= 50; k++) {
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(hostbar_test(m[i].hb, k), 0);
		enter(&m[1]);
		enter(&m[2]);
		for (uint32_t done = 0; done < 3; sched_yield()) {
			done = 0;
			for (uint32_t i = 0; i < 3; i++)
				done += hostbar_test(m[i].hb, k) == 1;
		}
	}
	close_all(m, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(barriers),
		UNIT(barriers_despite_loss),
		UNIT(silent_member),
		UNIT(late_member),
		UNIT(posted_ahead),
		UNIT(sums),
		UNIT(sums_that_are_refused),
	};

	return run_with_nics(3, tests);
}
