/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_glue_last - which ranks the barriers of a communicator have waited for, as a tool reads it;
 * and the texts of reasons and counters.
 */
#include <errno.h>

#include "nbar_pace.h"
#include "ranks.h"
#include "said.h"
#include "two_ranks.h"
#include "unit/moves.h"

#define BARRIERS 30u

/* As after a longer list. */
int __real_nbar_group_stat_sized(const struct nbar_group *g, struct nbar_group_stat *out,
				 size_t size);
int __wrap_nbar_group_stat_sized(const struct nbar_group *g, struct nbar_group_stat *out,
				 size_t size)
{
	int rc = __real_nbar_group_stat_sized(g, out, size);

	if (rc == 0 && out->nlast < sizeof(out->last) / sizeof(out->last[0]))
		out->last[out->nlast] = (struct nbar_last){ .barriers = 1, .most_ns = UINT64_MAX };
	return rc;
}

/* Blocks of memory that reading the statistic takes. Fails each of them once. */
static uint32_t blocks_of(struct ranks_comm *c)
{
	struct nbmpi_last all, of[RANKS_MAX];

	for (uint32_t n = 1;; n++) {
		int rc;

		faults_set(n, "malloc", ENOMEM);
		rc = nbmpi_comm_last(c->nbar, &all, of);
		if (!faults_end())
			return n - 1;
		expect(rc == -ENOMEM && all.barriers == 0 && of[0].barriers == 0, "block %u: %d", n,
		       rc);
	}
}

/* In every barrier but those of the set-up, rank `late` arrives when all others have begun. */
static uint32_t late;

static void one_is_late(void)
{
	struct nbmpi_last all, of[RANKS_MAX];
	struct nbmpi_request r;
	struct ranks_comm c;
	uint64_t sum = 0, most = 0;

	ranks_open(&c, 0, 0, ranks->size);
	memset(&all, 0xff, sizeof(all));
	memset(of, 0xff, sizeof(of));
	expect(nbmpi_comm_last(c.nbar, &all, of) == 0, "before the set-up");
	expect(all.barriers == 0 && all.ns == 0 && all.most_ns == 0 && of[1].barriers == 0, "0");
	expect(ranks_set_up(&c) == 0, "the set-up");
	for (uint32_t i = 1; i <= BARRIERS; i++) {
		if (ranks_me == late)
			ranks_await(0, (ranks->size - 1) * i);
		expect(nbmpi_ibarrier(c.nbar, &r) == 0, "barrier %u", i);
		if (ranks_me != late)
			ranks_signal(0);
		while (nbmpi_test(&r) == 0)
			nbmpi_yield();
	}
	ranks_signal(1);
	ranks_await(1, ranks->size);
	blocks_behind = 0; /* as if host 0 had one more rank */
	expect(nbmpi_comm_last(c.nbar, &all, of) == 0, "%s", nbar_error());
	expect(of[ranks->size].barriers == UINT64_MAX, "a rank behind the last");
	if (ranks->each >= ranks->size) {
		expect(all.barriers == 0, "no NIC has counted");
		return;
	}
	/* The set-up has run one. */
	expect(all.barriers == BARRIERS + 1, "%u", (unsigned)all.barriers);
	for (uint32_t rank = 0; rank < ranks->size; rank++) {
		uint32_t first = rank / ranks->each * ranks->each;

		/* The ranks of a host have the entry of their host. */
		expect(memcmp(&of[rank], &of[first], sizeof(of[0])) == 0, "rank %u", rank);
		sum += rank == first ? of[rank].barriers : 0;
		most = of[rank].most_ns > most ? of[rank].most_ns : most;
		expect(of[rank].ns <= all.ns && of[rank].most_ns <= of[rank].ns, "rank %u", rank);
	}
	expect(sum == BARRIERS + 1 && most == all.most_ns, "%u", (unsigned)sum);
	ranks->rank[ranks_me].note[0] = of[late].barriers;
	/* The numbers of the hosts are looked up if ranks share hosts, and only then. */
	expect(blocks_of(&c) == (ranks->each > 1 ? 3 : 1), "%u", blocks_of(&c));
	ranks_signal(2);
	ranks_await(2, ranks->size); /* a lost link ends the port, which others ask about */
	faults_set(1, "sendmsg", ECONNRESET);
	expect(nbmpi_comm_last(c.nbar, &all, of) < 0, "without an answer");
	expect(faults_end(), "it has asked");
	expect(all.barriers == 0 && of[late].barriers == 0, "what is left");
	ranks_signal(3);
	ranks_await(3, ranks->size);
}

static void the_late_rank_is_known(void **state)
{
	for (uint32_t size = 2; size <= 4; size += 2)
		for (uint32_t each = 1; each <= size; each *= 2) {
			ranks_begin(size, each);
			late = 1;
			ranks_run(one_is_late);
			if (size == 2 && each == 1)
				require(ranks->rank[0].note[0] >= BARRIERS, "%u",
					(unsigned)ranks->rank[0].note[0]);
		}
}

/* --- texts -------------------------------------------------------------------------------------
 */

static void reasons_have_texts(void **state)
{
	assert_string_equal(nbmpi_why_text(NBMPI_WHY_none), "");
	for (uint32_t why = 1; why < NBMPI_WHY_END; why++)
		require(nbmpi_why_text((enum nbmpi_why)why)[0], "%u", why);
	assert_string_equal(nbmpi_why_text(NBMPI_WHY_opening),
			    "they have taken too little time yet, or are nonblocking");
	assert_string_equal(nbmpi_why_text(NBMPI_WHY_END), "an unknown reason");
	assert_string_equal(nbmpi_why_text((enum nbmpi_why)1000), "an unknown reason");
}

static struct nbmpi_start start_at(int verbose)
{
	struct nbmpi_start start = { .rank = 0 };

	nbmpi_config_init(&start.config);
	start.config.verbose = verbose;
	return start;
}

/* A rank of another version votes with a reason that this one does not know. */
static void an_unknown_reason(void **state)
{
	struct nbmpi_comm c = {
		.path = NBMPI_PLAIN,
		.why = (enum nbmpi_why)40,
		.why_rank = 0,
		.size = 3,
	};
	struct nbmpi_start start = start_at(1);

	nbmpi_start(&start);
	said_begin();
	nbmpi_log_path(&c, "");
	assert_string_equal(said_end(), "nbar: communicator of 3 ranks: fallback to MPI's barrier: "
					"rank 0: an unknown reason\n");
	start = start_at(0);
	nbmpi_start(&start);
	said_begin();
	nbmpi_log_path(&c, "");
	c.why = NBMPI_WHY_END; /* the least of them */
	nbmpi_log_path(&c, "");
	assert_string_equal(said_end(), "");
	start = start_at(1);
	nbmpi_start(&start);
	said_begin();
	nbmpi_log_path(&c, "");
	assert_non_null(strstr(said_end(), "rank 0: an unknown reason\n"));
}

static void barriers_in_process(void **state)
{
	struct nbmpi_comm c = { .path = NBMPI_OFFLOADED, .size = 3, .nhost = 3 };
	struct nbmpi_start start = start_at(2);

	start.config.where = NBMPI_WHERE_HOST;
	nbmpi_start(&start);
	c.group = (struct nbar_group *)&c; /* only its presence counts */
	said_begin();
	nbmpi_log_path(&c, "");
	assert_string_equal(said_end(), "nbar: communicator of 3 ranks on 3 hosts: barriers by "
					"in-process NICs, auto\n");
}

static void lines_have_a_longest(void **state)
{
	struct nbmpi_start start = start_at(0);
	char text[1000];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	nbmpi_start(&start);
	said_begin();
	nbmpi_log(0, "%s", text);
	assert_int_equal(strlen(said_end()), strlen("nbar: ") + 599 + 1);
	said_begin();
	nbmpi_log(1, "%s", text);
	assert_string_equal(said_end(), "");
}

/* --- how a rank waits ---------------------------------------------------------------------------
 */

/* A yield that is prompt on every machine: in other tests the yields take real time, and the
 * fastest of the thread counts. */
#define PROMPT_NS (2 * NBAR_PACE_SHORT_NS)

/* Yields in n rounds of a wait, each of which takes ns. */
static uint32_t yields(enum nbmpi_wait wait, uint32_t n, uint64_t ns)
{
	struct nbmpi_start start = start_at(0);
	uint32_t before = calls.yields;

	start.config.wait = wait;
	nbmpi_start(&start);
	yield_takes = ns;
	for (uint32_t i = 0; i < n; i++)
		nbmpi_yield();
	yield_takes = 0;
	return calls.yields - before;
}

static void ranks_yield_by_policy(void **state)
{
	assert_int_equal(yields(NBMPI_WAIT_SPIN, 1000, 9000), 0);
	assert_int_equal(yields(NBMPI_WAIT_YIELD, 1000, 1000), 1000);
	assert_int_equal(yields(NBMPI_WAIT_BLOCK, 10, 1000), 10);
	/* "auto": by what the yields tell, again and again. */
	for (uint32_t i = 0; i < 3; i++) {
		assert_in_range(yields(NBMPI_WAIT_AUTO, 2000, 9000), 2000 - 16, 2000);
		assert_in_range(yields(NBMPI_WAIT_AUTO, 2000, PROMPT_NS), 2000 / 17,
				2000 / 17 + 70);
	}
}

/* Waits in which the library sleeps. */
static uint32_t waits;
static uint64_t waited_ns;
int __real_nbar_wait(struct nbar_group *g, uint32_t ticket, uint64_t timeout_ns);
int __wrap_nbar_wait(struct nbar_group *g, uint32_t ticket, uint64_t timeout_ns)
{
	waits++;
	waited_ns += timeout_ns;
	return __real_nbar_wait(g, ticket, timeout_ns);
}

int __real_nbar_process_team_wait(struct nbar_process_team *procs, struct nbar_group *g,
				  uint32_t ticket, const struct nbar_wait_policy *policy,
				  uint64_t timeout_ns);
int __wrap_nbar_process_team_wait(struct nbar_process_team *procs, struct nbar_group *g,
				  uint32_t ticket, const struct nbar_wait_policy *policy,
				  uint64_t timeout_ns)
{
	waits++;
	waited_ns += timeout_ns;
	return __real_nbar_process_team_wait(procs, g, ticket, policy, timeout_ns);
}

/* Rank 0 arrives when rank 1 has called the MPI in 20 rounds. */
static void the_other_sleeps(void)
{
	const uint32_t *progress = &ranks->rank[1].progress;
	struct ranks_comm c;
	uint32_t before;

	ranks_open(&c, 0, 0, ranks->size);
	expect(ranks_set_up(&c) == 0, "the set-up");
	calls.yields = waits = 0;
	if (ranks_me == 0)
		ranks_await(0, 1);
	before = __atomic_load_n(progress, __ATOMIC_RELAXED);
	if (ranks_me == 1)
		ranks_signal(0);
	while (ranks_me == 0 && __atomic_load_n(progress, __ATOMIC_RELAXED) - before < 20)
		usleep(100);
	expect(nbmpi_barrier(c.nbar) == 0, "a barrier");
	if (ranks_me == 0)
		return;
	/* The last call into the MPI follows the barrier. */
	expect(waits == *progress - before - 1, "%u waits", waits);
	/* Each twice as long as the one before, up to 3.2 ms. */
	expect(waited_ns == 50000 * (63 + UINT64_C(64) * (waits - 6)), "%u ns",
	       (unsigned)waited_ns);
	expect(calls.yields == *progress - before, "besides the fake MPI, somebody yields");
}

static void ranks_sleep_ever_longer(void **state)
{
	for (uint32_t each = 1; each <= 2; each++) {
		ranks_begin(2, each);
		ranks->config.wait = NBMPI_WAIT_BLOCK;
		ranks_run(the_other_sleeps);
	}
}

/* A barrier of one host: rank 1 arrives at a call of rank 0 into the MPI. */
static struct nbmpi_comm *waiting;
static uint32_t progresses, arrives, yields_before, tests_before;
static double progress_takes; /* s, by the clock of the test */
static const char *said;      /* by the rank that waits */

static void progress(void)
{
	if (progresses == 0) {
		yields_before = calls.yields;
		tests_before = waiting->vain;
	}
	clock_advance(progress_takes);
	if (++progresses == arrives)
		nbar_process_team_post(&waiting->memory->procs, NULL, 1, NULL);
}

/* Calls into the MPI of a rank that waits alone until its n-th call; without that which follows the
 * barrier, so that the MPI receives messages from before it. */
static uint32_t waits_until(enum nbmpi_wait wait, uint32_t n)
{
	static const struct nbmpi_ops ops = { .progress = progress, .receive = progress };
	struct nbmpi_start start = start_at(1);
	struct nbmpi_comm *c;

	start.config.wait = wait;
	start.ops = &ops;
	nbmpi_start(&start);
	waiting = c = two_ranks_open();
	progresses = calls.yields = 0;
	arrives = n;
	said_begin();
	assert_int_equal(nbmpi_barrier(c), 0);
	said = said_end();
	two_ranks_close(c);
	return progresses - 1;
}

/* The next line says a time from `least` to a tenth more: real time passes, too. */
static void says(const char **at, double least)
{
	static const char before[] = "nbar: rank 0 of 2 has waited ";
	static const char after[] = " s in a barrier; missing: nobody known\n";
	char *end;
	double seconds;

	assert_memory_equal(*at, before, strlen(before));
	seconds = strtod(*at + strlen(before), &end);
	assert_true(seconds >= least && seconds <= 1.1 * least);
	assert_memory_equal(end, after, strlen(after));
	*at = end + strlen(after);
}

/* A rank looks at the clock after each 16 rounds. In each it calls the MPI for 1.5 s. */
static void a_rank_says_how_long_it_has_waited(void **state)
{
	static const enum nbmpi_wait policy[] = { NBMPI_WAIT_SPIN, NBMPI_WAIT_YIELD,
						  NBMPI_WAIT_BLOCK };

	progress_takes = 1.5;
	for (uint32_t i = 0; i < 3; i++) {
		waits_until(policy[i], 15);
		assert_string_equal(said, "");
		waits_until(policy[i], 90);
		says(&said, 24);
		says(&said, 48);
		says(&said, 96);
		assert_string_equal(said, "");
	}
	progress_takes = 0;
	clock_restore();
	waits_until(NBMPI_WAIT_SPIN, 90);
	assert_string_equal(said, "");
}

static void a_rank_that_waits_calls_the_mpi(void **state)
{
	assert_int_equal(waits_until(NBMPI_WAIT_BLOCK, 1), 1);
	assert_int_equal(waits_until(NBMPI_WAIT_BLOCK, 20), 20);
	assert_int_equal(calls.yields, 0); /* it sleeps */
	assert_int_equal(tests_before, 1);
	/* A rank that yields makes four passes before its first call. */
	assert_int_equal(waits_until(NBMPI_WAIT_YIELD, 3), 3);
	assert_int_equal(yields_before, 4);
	assert_int_equal(tests_before, 5);
	assert_int_equal(waits_until(NBMPI_WAIT_SPIN, 3), 3);
	assert_int_equal(yields_before, 0);
	assert_int_equal(tests_before, 256);
	yields(NBMPI_WAIT_AUTO, 100, 9000); /* others want the processor ... */
	yield_takes = 9000;                 /* ... and still do */
	assert_int_equal(waits_until(NBMPI_WAIT_AUTO, 1), 1);
	yield_takes = 0;
	assert_int_equal(yields_before, 4);
	assert_int_equal(tests_before, 5);
	yields(NBMPI_WAIT_AUTO, 100, PROMPT_NS);
	while (yields(NBMPI_WAIT_AUTO, 1, PROMPT_NS) == 0)
		; /* until the next rounds spin */
	assert_int_equal(waits_until(NBMPI_WAIT_AUTO, 3), 3);
	assert_int_equal(tests_before, 256);
}

/* With "auto", ranks of a host try another processor while their yields are late. */
static void ranks_of_a_host_may_part(void **state)
{
	static const enum nbmpi_wait policy[] = { NBMPI_WAIT_AUTO, NBMPI_WAIT_YIELD };

	yield_takes = 9000;
	for (uint32_t i = 0; i < 2; i++) {
		moves_end();
		assert_int_equal(waits_until(policy[i], 20000), 20000);
		assert_in_range(moves_end(), i == 0 ? 2 : 0, i == 0 ? 30 : 0);
	}
	/* A caller that waits for itself does not say for whom. */
	yields(NBMPI_WAIT_AUTO, 200000, 9000);
	assert_int_equal(moves_end(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(the_late_rank_is_known),   UNIT(reasons_have_texts),
		UNIT(an_unknown_reason),        UNIT(barriers_in_process),
		UNIT(lines_have_a_longest),     UNIT(ranks_yield_by_policy),
		UNIT(ranks_sleep_ever_longer),  UNIT(a_rank_that_waits_calls_the_mpi),
		UNIT(ranks_of_a_host_may_part), UNIT(a_rank_says_how_long_it_has_waited),
	};

	return run_with_ranks(4, tests);
}
