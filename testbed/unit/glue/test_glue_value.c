/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_glue_value.c - allreduces: folds of the ranks of a host have the bits of the NICs' folds;
 * ranks that offload them, alone or several a host, beside their barriers; and ranks that cannot,
 * or give it up.
 */
#include <errno.h>
#include <fenv.h>

#include "value.h"
#include "ranks.h"

#define ROUNDS 60u

/* --- fold --------------------------------------------------------------------------------------
 */

/* Elements of all kinds of bits: random, few, and those of special reals. */
static void fill(struct nbar_value *v)
{
	static struct rng rng;
	static const uint64_t special[] = { 0,
					    1,
					    UINT64_C(1) << 63,
					    UINT64_C(0x7ff) << 52,
					    UINT64_C(0xfff) << 52,
					    UINT64_C(0x7ff8) << 48,
					    UINT64_C(0xfff4) << 48,
					    UINT64_C(0x8000000080000000),
					    UINT64_C(0x7f8000007f800000),
					    UINT64_C(0xff8000007fc00000),
					    UINT64_C(0x3ff) << 52,
					    UINT64_C(0x3f8000003f800000),
					    UINT64_MAX };

	for (uint32_t i = 0; i < NBAR_VALUE_MAX / 8; i++) {
		uint64_t word = rng_next(&rng);

		if (word % 3 == 0)
			word = special[word / 3 % (sizeof(special) / sizeof(special[0]))];
		v->of.i64[i] = (int64_t)word;
	}
}

static void folds_have_the_bits_of_nics(void **state)
{
	static const struct {
		uint8_t number, size;
		char class;
	} type[] = {
#define TYPE(name, number, class, size, ...) { number, size, class },
		NBAR_VALUE_TYPES(TYPE)
#undef TYPE
	};
	static const struct {
		uint8_t number;
		const char *takes;
	} op[] = {
#define OP(name, number, takes) { number, takes },
		NBAR_VALUE_OPS(OP)
#undef OP
	};
	uint32_t folds = 0;

	for (size_t t = 0; t < sizeof(type) / sizeof(type[0]); t++)
		for (size_t o = 0; o < sizeof(op) / sizeof(op[0]); o++)
			for (uint32_t i = 0; i < 300 && strchr(op[o].takes, type[t].class); i++) {
				struct nbar_value a = { op[o].number,
							type[t].number,
							(uint16_t)(NBAR_VALUE_MAX / type[t].size),
							0,
							{ { 0 } } },
						  b = a, nic;

				fill(&a);
				fill(&b);
				nic = a;
				/* Neither the program's flags nor its rounding matter. */
				feclearexcept(FE_ALL_EXCEPT);
				fesetround(i % 2 ? FE_DOWNWARD : FE_TONEAREST);
				nbmpi_fold(&a, &b);
				assert_int_equal(fetestexcept(FE_ALL_EXCEPT), 0);
				assert_int_equal(fegetround(), i % 2 ? FE_DOWNWARD : FE_TONEAREST);
				fesetround(FE_TONEAREST);
				nbfw_value_fold((struct nbfw_value *)&nic,
						(const struct nbfw_value *)&nic,
						(const struct nbfw_value *)&b);
				for (uint32_t k = 0; k < NBAR_VALUE_MAX; k++)
					require(a.of.byte[k] == nic.of.byte[k],
						"op %u, type %u, byte %u: %x, not %x", op[o].number,
						type[t].number, k, a.of.byte[k], nic.of.byte[k]);
				folds++;
			}
	assert_true(folds > 20000);
}

/* --- ranks -------------------------------------------------------------------------------------
 */

static enum nbmpi_why expected; /* why the ranks fall back; none: they offload */
static uint32_t by_mpi;         /* allreduces that the MPI runs first */
static uint32_t by_nic;         /* allreduces that NICs run then */
static bool odd_rank;           /* the last rank has another type at the end */

/* An allreduce as the program calls it; the MPI's own has no result here. */
static int allreduce(struct nbmpi_comm *c, struct nbar_value *v)
{
	int rc = nbmpi_allreduce(c, v);

	if (rc == NBMPI_BY_MPI) {
		clock_advance(ranks->barrier_takes);
		nbmpi_barrier_by_mpi(c);
	}
	return rc;
}

static void one_round(struct nbmpi_comm *c, uint32_t i)
{
	struct nbar_value v = { .op = NBAR_SUM, .type = NBAR_DOUBLE, .count = 1 + i % 32 };
	const double all = ranks->size * (ranks->size - 1) / 2;
	int rc;

	for (uint32_t k = 0; k < v.count; k++)
		v.of.f64[k] = ranks_me * (i + 1.0) + k;
	rc = allreduce(c, &v);
	expect(rc == (i >= by_mpi && i < by_mpi + by_nic ? 0 : NBMPI_BY_MPI), "%u: %d", i, rc);
	for (uint32_t k = 0; k < v.count; k++) {
		double want = rc ? ranks_me * (i + 1.0) + k : all * (i + 1) + ranks->size * k;

		expect(v.of.f64[k] == want, "%u: [%u] %f, not %f", i, k, v.of.f64[k], want);
	}
}

/* Allreduces, with barriers in between, which have a set-up of their own. */
static void reduce(void)
{
	struct nbmpi_comm *c;
	struct nbmpi_counters n;
	struct ranks_comm barriers;
	struct nbar_value v = { .op = NBAR_MIN, .type = NBAR_INT32, .count = 1 };

	ranks_open(&barriers, 0, 0, ranks->size);
	c = nbmpi_comm_open(&barriers, ranks_me, ranks->size, false, NBMPI_ALLREDUCES);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		one_round(c, i);
		expect(ranks_barrier(&barriers) >= 0, "barrier %u", i);
		if (i == by_mpi && expected == NBMPI_WHY_slow)
			ranks_progress_takes = 2;
	}
	nbmpi_counters_read(&n);
	expect(n.allreduces_by_nic == by_nic && n.allreduces_by_mpi == ROUNDS - by_nic, "%u and %u",
	       (unsigned)n.allreduces_by_nic, (unsigned)n.allreduces_by_mpi);
	expect(n.by_nic + n.by_host + n.fallback == ROUNDS && n.comms == 1, "barriers");
	expect(c->why == expected && (c->group != NULL) == (expected == NBMPI_WHY_none), "why %u",
	       c->why);
	v.type = odd_rank && ranks_me == ranks->size - 1 ? NBAR_INT64 : NBAR_INT32;
	if (odd_rank) {
		expect(allreduce(c, &v) == NBMPI_FAILED, "values that differ");
		expect(nbmpi_comm_code(c) == MPI_TEXT, "%d", nbmpi_comm_code(c));
		expect(allreduce(c, &v) == NBMPI_FAILED, "for good");
		expect(ranks_barrier(&barriers) == 0, "barriers go on");
	}
	nbmpi_comm_close(c);
	nbmpi_comm_close(barriers.nbar);
}

#define UNDER_WAY (3 * NBAR_VALUES_AHEAD)

static bool no_thread; /* no thread can post what waits for room */

static void begin(struct nbar_value *v, uint32_t i)
{
	*v = (struct nbar_value){ .op = NBAR_SUM, .type = NBAR_INT64, .count = 1 + i % 32 };
	for (uint32_t k = 0; k < v->count; k++)
		v->of.i64[k] = ranks_me * (i + 1) + k;
}

static void check(const struct nbar_value *v, uint32_t i)
{
	const uint32_t all = ranks->size * (ranks->size - 1) / 2;

	for (uint32_t k = 0; k < v->count; k++)
		expect(v->of.i64[k] == all * (i + 1) + ranks->size * k, "%u: [%u] %lld", i, k,
		       (long long)v->of.i64[k]);
}

static void await(struct nbmpi_request *r, int result)
{
	int rc;

	while ((rc = nbmpi_test(r)) == 0)
		nbmpi_yield();
	expect(rc == result, "%d, not %d", rc, result);
}

/* More allreduces than a NIC takes at once. Their requests are tested from the last one on, or by a
 * blocking allreduce behind them; a result stays, whatever follows. */
static void under_way(void)
{
	static struct nbmpi_request r[UNDER_WAY];
	static struct nbar_value v[UNDER_WAY + 1];
	struct ranks_comm world;
	struct nbmpi_comm *c;

	ranks_open(&world, 0, 0, ranks->size);
	c = nbmpi_comm_open(&world, ranks_me, ranks->size, false, NBMPI_ALLREDUCES);
	for (uint32_t i = 0; i < by_mpi; i++) {
		begin(&v[0], i);
		expect((i % 2 ? nbmpi_iallreduce(c, &v[0], &r[0]) : nbmpi_allreduce(c, &v[0])) ==
			       NBMPI_BY_MPI,
		       "%u", i);
	}
	begin(&v[0], 0);
	expect(nbmpi_allreduce(c, &v[0]) == 0, "the set-up");
	check(&v[0], 0);
	for (uint32_t round = 0; round < 6; round++) {
		if (ranks_me == round % ranks->size)
			usleep(2000);
		if (no_thread)
			faults_always("pthread_create", EAGAIN);
		for (uint32_t i = 0; i < UNDER_WAY; i++) {
			begin(&v[i], i);
			expect(nbmpi_iallreduce(c, &v[i], &r[i]) == 0, "request %u", i);
		}
		faults_end();
		begin(&v[UNDER_WAY], UNDER_WAY);
		if (round % 2)
			expect(nbmpi_allreduce(c, &v[UNDER_WAY]) == 0, "behind all of them");
		for (uint32_t i = UNDER_WAY; i-- > 0;)
			await(&r[i], 1);
		for (uint32_t i = 0; i < UNDER_WAY + round % 2; i++)
			check(&v[i], i);
	}
	expect(c->nrequest == 0 && !c->queue && !c->unposted, "something is left");
	nbmpi_comm_close(c);
	nbmpi_comm_close(world.nbar);
}

static struct nbmpi_comm *open_offloaded(struct ranks_comm *world)
{
	struct nbmpi_comm *c =
		nbmpi_comm_open(world, ranks_me, ranks->size, false, NBMPI_ALLREDUCES);
	struct nbar_value v;

	for (uint32_t i = 0; i <= by_mpi; i++) {
		begin(&v, i);
		expect(nbmpi_allreduce(c, &v) == (i < by_mpi ? NBMPI_BY_MPI : 0), "%u", i);
	}
	return c;
}

/* The program frees a communicator with allreduces under way; then a rank has another type. */
static void under_way_and_failed(void)
{
	static struct nbmpi_request r[UNDER_WAY];
	static struct nbar_value v[UNDER_WAY];
	const uint32_t odd = UNDER_WAY / 2;
	struct ranks_comm world;
	struct nbar_value behind;
	struct nbmpi_comm *c;
	uint32_t n = 0;
	int rc;

	ranks_open(&world, 0, 0, ranks->size);
	c = open_offloaded(&world);
	for (uint32_t i = 0; i < UNDER_WAY; i++) {
		begin(&v[i], i);
		if (i == odd && ranks_me == ranks->size - 1)
			v[i].op = NBAR_MIN;
		rc = nbmpi_iallreduce(c, &v[i], &r[i]);
		if (rc == NBMPI_FAILED && i >= odd)
			break; /* the NIC was fast: the communicator has failed already */
		expect(rc == 0, "request %u", i);
		n++;
	}
	/* With room for less than all of them, the last request must see the failure, too. */
	if (no_thread && n == UNDER_WAY) {
		begin(&behind, n);
		expect(nbmpi_allreduce(c, &behind) == NBMPI_FAILED, "behind them");
		await(&r[--n], NBMPI_FAILED);
	}
	nbmpi_comm_close(c);
	for (uint32_t i = 0; i < n; i++) {
		await(&r[i], i < odd ? 1 : NBMPI_FAILED);
		expect(i < odd || (r[i].code == MPI_TEXT && r[i].orphan), "code %d", r[i].code);
		if (i < odd)
			check(&v[i], i);
		else
			expect(v[i].of.i64[0] == (int64_t)(ranks_me * (i + 1)), "%u: a result", i);
	}
	nbmpi_comm_close(world.nbar);
}

/* What the NICs take only by a slow path, the MPI runs. */
static void slow_values(void)
{
	static const struct {
		uint8_t op, type;
		uint16_t count;
		bool is_fast;
	} value[] = {
		{ NBAR_SUM, NBAR_DOUBLE, 8, true },         { NBAR_SUM, NBAR_DOUBLE, 9, false },
		{ NBAR_SUM, NBAR_INT16, 2, true },          { NBAR_SUM, NBAR_INT16, 3, false },
		{ NBAR_MINLOC, NBAR_DOUBLE_INT, 1, false }, { NBAR_MIN, NBAR_UINT8, 64, true },
		{ NBAR_MIN, NBAR_UINT8, 65, false },
	};
	struct nbmpi_counters n;
	struct ranks_comm world;
	struct nbmpi_request r;
	struct nbmpi_comm *c;

	ranks_open(&world, 0, 0, ranks->size);
	c = open_offloaded(&world);
	expect(c->fast_value == NBAR_VALUE_MAX, "%u", c->fast_value);
	c->fast_value = 64; /* as if of a NIC in the kernel's network path */
	for (uint32_t i = 0; i < sizeof(value) / sizeof(value[0]); i++) {
		struct nbar_value v = { value[i].op, value[i].type, value[i].count, 0, { { 0 } } };
		int want = value[i].is_fast ? 0 : NBMPI_BY_MPI;

		expect(nbmpi_comm_offloaded(c, &v) == value[i].is_fast, "%u", i);
		expect(nbmpi_allreduce(c, &v) == want, "%u", i);
		expect(nbmpi_iallreduce(c, &v, &r) == want, "%u", i);
		if (want == 0)
			await(&r, 1);
	}
	expect(nbmpi_comm_offloaded(c, NULL), "a barrier");
	nbmpi_counters_read(&n);
	expect(n.why_allreduce[NBMPI_WHY_value] == 8, "%u",
	       (unsigned)n.why_allreduce[NBMPI_WHY_value]);
	nbmpi_comm_close(c);
	nbmpi_comm_close(world.nbar);
}

/* The result is none of the value that was posted, as if another process had written the page. */
static void odd_result(void)
{
	struct ranks_comm world;
	struct nbmpi_request r;
	struct nbmpi_comm *c;
	struct nbar_value v;

	ranks_open(&world, 0, 0, ranks->size);
	c = open_offloaded(&world);
	begin(&v, 0);
	expect(nbmpi_iallreduce(c, &v, &r) == 0, "posted");
	v.count++;
	await(&r, NBMPI_FAILED);
	expect(nbmpi_allreduce(c, &v) == NBMPI_FAILED, "for good");
	nbmpi_comm_close(c);
	nbmpi_comm_close(world.nbar);
}

static void with(uint32_t size, uint32_t each, enum nbmpi_why why)
{
	ranks_begin(size, each);
	expected = why;
	by_mpi = NBMPI_PAYS;
	by_nic = why == NBMPI_WHY_none ? ROUNDS - by_mpi : 0;
}

static void are_offloaded(void **state)
{
	static const uint32_t shape[][2] = { { 2, 1 }, { 5, 1 }, { 4, 2 }, { 7, 3 } };

	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		with(shape[i][0], shape[i][1], NBMPI_WHY_none);
		ranks_run(reduce);
		require(strstr(ranks->rank[0].said, "allreduces offloaded to NICs, auto"), "%s",
			ranks->rank[0].said);
		require(strstr(ranks->rank[0].said, "52 allreduces offloaded, 8 by fallback"), "%s",
			ranks->rank[0].said);
	}
}

static void slow_ones_are_left_to_the_mpi(void **state)
{
	with(4, 2, NBMPI_WHY_none);
	ranks_run(slow_values);
}

static void odd_results_fail(void **state)
{
	with(2, 1, NBMPI_WHY_none);
	ranks_run(odd_result);
}

/* With "auto", they count and are timed as barriers are. */
static void are_offloaded_when_it_pays(void **state)
{
	with(4, 2, NBMPI_WHY_none);
	ranks->config.where = NBMPI_WHERE_AUTO;
	ranks->barrier_takes = 1;
	by_mpi = NBMPI_ASK;
	by_nic = ROUNDS - by_mpi;
	ranks_run(reduce);
}

/* The result of the last one by NICs counts, too. The barriers of the same ranks are judged apart.
 */
static void slow_nics_are_given_up(void **state)
{
	for (uint32_t each = 1; each <= 2; each++) {
		with(4, each, NBMPI_WHY_slow);
		ranks->config.where = NBMPI_WHERE_AUTO;
		ranks->barrier_takes = 1;
		by_mpi = NBMPI_ASK;
		by_nic = NBMPI_TIMED_MOST;
		ranks_run(reduce);
		require(strstr(ranks->rank[0].said,
			       "fallback to MPI's allreduce: the NICs were slower: "),
			"%s", ranks->rank[0].said);
	}
}

static void one_host_needs_no_nic(void **state)
{
	with(3, 3, NBMPI_WHY_few);
	ranks_run(reduce);
	require(strstr(ranks->rank[0].said, "fallback to MPI's allreduce: it is over fewer hosts"),
		"%s", ranks->rank[0].said);
}

/* No text of an algorithm that carries no values ends the barriers. */
static void an_algorithm_without_values(void **state)
{
	with(3, 1, NBMPI_WHY_values);
	strcpy(ranks->config.alg, "dissemination");
	ranks_run(reduce);
	require(strstr(ranks->rank[0].said,
		       "fallback to MPI's allreduce: rank 0: a NIC cannot carry its values: NIC n0: "
		       "algorithm \"dissemination\" does not count each member's value once"),
		"%s", ranks->rank[0].said);
	require(strstr(ranks->rank[0].said, "barriers offloaded to NICs, dissemination"), "%s",
		ranks->rank[0].said);
}

/* Also within a host: its NIC gets no value then. */
static void values_that_differ_fail(void **state)
{
	static const uint32_t shape[][2] = { { 2, 1 }, { 3, 2 }, { 4, 2 } };

	odd_rank = true;
	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		with(shape[i][0], shape[i][1], NBMPI_WHY_none);
		ranks_run(reduce);
		for (uint32_t r = 0; r < ranks->size; r++)
			require(strstr(ranks->rank[r].error, "nbar: allreduce over ") &&
					strstr(ranks->rank[r].error, "must post alike values"),
				"%s", ranks->rank[r].error);
	}
	odd_rank = false;
}

static void several_are_under_way(void **state)
{
	static const uint32_t shape[][2] = { { 2, 1 }, { 4, 2 }, { 7, 3 } };

	for (size_t i = 0; i < 2 * sizeof(shape) / sizeof(shape[0]); i++) {
		no_thread = i % 2;
		with(shape[i / 2][0], shape[i / 2][1], NBMPI_WHY_none);
		ranks_run(under_way);
		with(shape[i / 2][0], shape[i / 2][1], NBMPI_WHY_none);
		ranks_run(under_way_and_failed);
	}
	no_thread = false;
}

/* What a rank does not wait for, it still posts: the others complete meanwhile. */
static void blocked_elsewhere(void)
{
	static struct nbmpi_request r[UNDER_WAY];
	static struct nbar_value v[UNDER_WAY];
	struct ranks_comm world;
	struct nbmpi_comm *c;

	ranks_open(&world, 0, 0, ranks->size);
	c = open_offloaded(&world);
	for (uint32_t i = 0; i < UNDER_WAY; i++) {
		begin(&v[i], i);
		expect(nbmpi_iallreduce(c, &v[i], &r[i]) == 0, "request %u", i);
	}
	if (ranks_me == 0) /* in a call of the MPI that never calls the glue */
		ranks_await(0, ranks->size - 1);
	for (uint32_t i = 0; i < UNDER_WAY; i++) {
		await(&r[i], 1);
		check(&v[i], i);
	}
	if (ranks_me != 0)
		ranks_signal(0);
	nbmpi_comm_close(c);
	nbmpi_comm_close(world.nbar);
}

static void a_blocked_rank_delays_nobody(void **state)
{
	static const uint32_t shape[][2] = { { 2, 1 }, { 4, 2 }, { 5, 2 } };

	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		with(shape[i][0], shape[i][1], NBMPI_WHY_none);
		ranks_run(blocked_elsewhere);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folds_have_the_bits_of_nics),
		cmocka_unit_test(are_offloaded),
		cmocka_unit_test(slow_ones_are_left_to_the_mpi),
		cmocka_unit_test(odd_results_fail),
		cmocka_unit_test(are_offloaded_when_it_pays),
		cmocka_unit_test(slow_nics_are_given_up),
		cmocka_unit_test(one_host_needs_no_nic),
		cmocka_unit_test(an_algorithm_without_values),
		cmocka_unit_test(values_that_differ_fail),
		cmocka_unit_test(several_are_under_way),
		cmocka_unit_test(a_blocked_rank_delays_nobody),
	};

	return run_with_ranks(7, tests);
}
