/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_glue_tuned.c - the algorithm "tuned:FILE": ranks that agree on a profile run its plans;
 * ranks that cannot, or do not agree, all use "auto", and rank 0 says why.
 *
 * In place of libnbar-tune there are functions of the test.
 */
#include <dlfcn.h>
#include <errno.h>

#include "alg.h"
#include "plan.h"
#include "nbar_tune.h"
#include "ranks.h"
#include "tuned.h"

/* What goes wrong, and at which rank. */
static struct {
	const char *missing; /* the library, or its symbol */
	uint32_t rank;       /* RANKS_MAX: at all ranks */
	bool no_profile, other_digest, other_version, no_host, same_place, no_plan;
	bool zero;   /* the digest of the profile, in the bits that count */
	bool by_nic; /* the profile names NICs in place of hosts */
} wrong;

static uint32_t plans; /* made by this process */
static uint32_t asked; /* hosts that it has looked up */

static bool here(void)
{
	return wrong.rank == RANKS_MAX || wrong.rank == ranks_me;
}

static bool is_missing(const char *name)
{
	return wrong.missing && here() && strcmp(name, wrong.missing) == 0;
}

static int fake_open(const char *path, struct nbar_tune **out, char *why, size_t size)
{
	expect(strcmp(path, "/etc/site:profile.json") == 0, "%s", path);
	*out = (struct nbar_tune *)(uintptr_t)64;
	if (!wrong.no_profile || !here())
		return 0;
	snprintf(why, size, "%s is no profile", path);
	return -EINVAL;
}

static uint64_t fake_digest(const struct nbar_tune *t)
{
	expect(t == (struct nbar_tune *)(uintptr_t)64, "another profile");
	if (wrong.zero)
		return NBMPI_VOTE_YES;
	return UINT64_C(0xfedcba9876543211) - (wrong.other_digest && here());
}

static int fake_host(const struct nbar_tune *t, const char *name, uint32_t *out, char *why,
		     size_t size)
{
	char mine[16];

	asked++;
	snprintf(mine, sizeof(mine), "n%u", ranks_me / ranks->each);
	if ((wrong.no_host && here()) || (wrong.by_nic && strcmp(name, mine) != 0)) {
		snprintf(why, size, "no host %s", name);
		return -ENOENT;
	}
	*out = wrong.same_place && here() ? 100 : 100 + ranks_me / ranks->each;
	return 0;
}

static int fake_plan(const struct nbar_tune *t, const uint32_t *host, uint32_t size, uint32_t rank,
		     struct nbar_plan **plan, size_t *length, char *why, size_t whysize)
{
	struct nbfw_alg alg = { .kind = NBFW_ALG_DISSEMINATION, .n = 2 };
	int32_t n = nbfw_plan_generate(alg, size, rank, NULL, 0);

	plans++;
	for (uint32_t h = 0; h < size; h++)
		expect(host[h] == 100 + h, "host %u: %u", h, host[h]);
	if (wrong.no_plan && here()) {
		snprintf(why, whysize, "too many slots");
		return -ENOSPC;
	}
	expect(n > 0, "%d", n);
	*plan = malloc((size_t)n);
	*length = (size_t)n;
	if (!*plan)
		return -ENOMEM;
	expect(nbfw_plan_generate(alg, size, rank, *plan, (size_t)n) == n, "the plan");
	return 0;
}

void *__wrap_dlopen(const char *name, int flags)
{
	expect(strcmp(name, "libnbar-tune.so.0") == 0 && flags == (RTLD_NOW | RTLD_LOCAL), "%s",
	       name);
	return is_missing(name) ? NULL : &plans;
}

char *__wrap_dlerror(void)
{
	return (char *)(uintptr_t) "not found";
}

void *__wrap_dlsym(void *library, const char *name)
{
	static struct nbar_tune_ops ops = {
		.open = fake_open,
		.digest = fake_digest,
		.host = fake_host,
		.plan = fake_plan,
	};

	expect(library == &plans && strcmp(name, "nbar_tune") == 0, "%s", name);
	ops.version = NBAR_TUNE_VERSION + (wrong.other_version && here());
	return is_missing(name) ? NULL : &ops;
}

/* --- ranks -------------------------------------------------------------------------------------
 */

static const char *poor; /* a call that fails at the set-up, once */

/* Sets two communicators up. Note 0: plans that were made; 1: the last result. */
static void two(void)
{
	struct ranks_comm c[2];
	int rc = 0;

	for (uint32_t i = 0; i < 2; i++) {
		ranks_open(&c[i], i, 0, ranks->size);
		for (uint32_t k = 0; k < NBMPI_PAYS; k++)
			ranks_barrier(&c[i]);
		/* The first malloc is the list of ranks. */
		if (poor && here())
			faults_set(2, poor, ENOMEM);
		rc = ranks_barrier(&c[i]);
		faults_set(0, NULL, 0);
		expect(!c[i].nbar->tuned_host, "the places are left");
	}
	if (rc == 0)
		for (uint32_t i = 0; i < 20; i++)
			expect(ranks_barrier(&c[i % 2]) == 0, "barrier %u", i);
	ranks->rank[ranks_me].note[0] = plans;
	ranks->rank[ranks_me].note[1] = (uint64_t)(int64_t)rc;
	ranks->rank[ranks_me].note[2] = asked;
}

static int verbose;

static int usual(void **state)
{
	memset(&wrong, 0, sizeof(wrong));
	poor = NULL;
	verbose = 2;
	return 0;
}

static bool said(uint32_t rank, const char *text)
{
	return strstr(ranks->rank[rank].said, text) != NULL;
}

static void run(uint32_t size, uint32_t each)
{
	ranks_begin(size, each);
	ranks->config.verbose = verbose;
	strcpy(ranks->config.alg, "tuned:/etc/site:profile.json");
	ranks_run(two);
}

static void plans_come_from_the_profile(void **state)
{
	for (uint32_t each = 1; each <= 2; each++) {
		wrong.zero = each == 2;
		run(4, each);
		for (uint32_t r = 0; r < 4; r++)
			require(ranks->rank[r].note[0] == (r % each == 0 ? 2 : 0), "rank %u: %u", r,
				(unsigned)ranks->rank[r].note[0]);
		require(said(0, "barriers offloaded to NICs, tuned:/etc/site:profile.json\n"), "%s",
			ranks->rank[0].said);
		require(!said(0, "in place of"), "%s", ranks->rank[0].said);
		/* The profile is read once. */
		assert_int_equal(ranks->rank[0].note[2], 1);
	}
}

static void on_one_host_there_is_no_plan(void **state)
{
	wrong.missing = "libnbar-tune.so.0";
	wrong.rank = RANKS_MAX;
	run(3, 3);
	require(ranks->rank[0].note[1] == 0 && !said(0, "in place of"), "%s", ranks->rank[0].said);
}

static void hosts_are_found_by_their_nics(void **state)
{
	wrong.by_nic = true;
	run(3, 1);
	assert_int_equal(ranks->rank[2].note[0], 2);
	assert_int_equal(ranks->rank[2].note[2], 2);
}

/* The name of a NIC may be a path, with a port. */
static void named_by_a_path(void)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/n%u.sock", getenv("NBAR_RUN_DIR"), ranks_me);
	snprintf(nbmpi_self.nic, sizeof(nbmpi_self.nic), "%s", path);
	two();
}

static void hosts_are_found_by_the_paths_of_their_nics(void **state)
{
	wrong.by_nic = true;
	ranks_begin(3, 1);
	strcpy(ranks->config.alg, "tuned:/etc/site:profile.json");
	ranks_run(named_by_a_path);
	assert_int_equal(ranks->rank[2].note[0], 2);
}

/* All ranks use "auto" without a plan, and rank 0 says why. */
static void is_auto(uint32_t rank, const char *why)
{
	char text[200];

	run(4, 2);
	snprintf(text, sizeof(text),
		 "communicator of 4 ranks: algorithm auto in place of "
		 "tuned:/etc/site:profile.json: rank %u: %s\n",
		 rank, why);
	for (uint32_t r = 0; r < 4; r++) {
		require(ranks->rank[r].note[0] == 0 && ranks->rank[r].note[1] == 0, "rank %u", r);
		require(said(r, text) == (r == 0), "rank %u: %s", r, ranks->rank[r].said);
	}
	require(said(0, "barriers offloaded to NICs, auto\n"), "%s", ranks->rank[0].said);
}

static void without_the_library(void **state)
{
	static const char *const missing[] = { "libnbar-tune.so.0", "nbar_tune" };

	wrong.rank = 3;
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		wrong.missing = missing[i];
		is_auto(3, "cannot load libnbar-tune.so.0");
		require(said(3, "nbar: cannot load libnbar-tune.so.0: not found; install the "
				"Debian package nbar-lab\n"),
			"%s", ranks->rank[3].said);
	}
	wrong.missing = NULL;
	wrong.other_version = true;
	is_auto(3, "cannot load libnbar-tune.so.0");
	require(said(3, "nbar: libnbar-tune.so.0 is of version 2, this program knows version 1: "
			"install one nbar for both\n"),
		"%s", ranks->rank[3].said);
}

static void without_agreement(void **state)
{
	wrong.rank = 2;
	wrong.no_profile = true;
	is_auto(2, "cannot read the profile");
	require(said(2, "nbar: /etc/site:profile.json is no profile\n"), "%s", ranks->rank[2].said);
	usual(state);
	wrong.rank = 1;
	wrong.no_host = true;
	is_auto(1, "the profile does not have its host");
	require(said(1, "nbar: no host n0\n"), "%s", ranks->rank[1].said);
	/* The least digest counts: all ranks with another are against. */
	usual(state);
	wrong.rank = 3;
	wrong.other_digest = true;
	is_auto(0, "has another profile than other ranks");
	usual(state);
	wrong.rank = 2;
	wrong.same_place = true;
	is_auto(0, "another host has the same place in the profile");
	usual(state);
	wrong.rank = 1;
	poor = "malloc";
	is_auto(1, "has no memory for the places of all hosts");
}

/* Hosts with the same place need not be neighbours. */
static void twins_are_found(void **state)
{
	wrong.rank = 2;
	wrong.same_place = true;
	run(3, 1);
	require(said(0, "rank 0: another host has the same place in the profile\n"), "%s",
		ranks->rank[0].said);
}

/* The level of verbosity from which on each line is printed. */
static void lines_have_levels(void **state)
{
	static const struct {
		bool *is_wrong;
		const char *says;
		int level;
	} cases[] = {
		{ &wrong.no_profile, "nbar: /etc/site:profile.json is no profile\n", 1 },
		{ &wrong.no_profile, "algorithm auto in place of ", 1 },
		{ &wrong.no_host, "nbar: no host n0\n", 2 },
		{ &wrong.no_plan, "nbar: no plan by ", 1 },
		{ NULL, "nbar: cannot load ", 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int level = 0; level <= 2; level++) {
			usual(state);
			verbose = level;
			if (cases[i].is_wrong)
				*cases[i].is_wrong = true;
			else
				wrong.missing = "libnbar-tune.so.0";
			run(2, 1);
			require(said(0, cases[i].says) == (level >= cases[i].level), "level %d: %s",
				level, ranks->rank[0].said);
		}
}

/* If only one rank gets no plan, the group cannot be: the MPI runs the barriers. */
static void without_a_plan(void **state)
{
	wrong.rank = 2;
	wrong.no_plan = true;
	run(4, 2);
	assert_int_equal(ranks->rank[0].note[1], NBMPI_BY_MPI);
	require(said(2, "nbar: no plan by tuned:/etc/site:profile.json: too many slots\n"), "%s",
		ranks->rank[2].said);
	require(said(2, "fallback to MPI's barrier: rank 2: a NIC has no group for it"), "%s",
		ranks->rank[2].said);
}

/* A rank with another version may have faults that this one does not know. */
static struct nbmpi_sum from_others;
static int from_others_code;

static int sum_of_others(void *mpi, struct nbmpi_sum *sum)
{
	if (from_others.least)
		*sum = from_others;
	return from_others_code;
}

static void another_version(void)
{
	static const struct nbmpi_ops ops = { .sum = sum_of_others };
	struct nbmpi_comm c = { .size = 2, .nhost = 2 };
	struct nbar_group_attr attr = { .alg = "?" };

	nbmpi_self.start.ops = &ops;
	from_others.least = nbmpi_vote_no((enum nbmpi_why)99, 1);
	expect(nbmpi_tuned_agree(&c, NULL) == 0 && !c.tuned, "a fault");
	expect(strcmp(nbmpi_tuned_name(&c), "auto") == 0, "%s", nbmpi_tuned_name(&c));
	expect(nbmpi_tuned_plan(&c, &attr) == 0 && strcmp(attr.alg, "auto") == 0, "%s", attr.alg);
	from_others_code = 9;
	expect(nbmpi_tuned_agree(&c, NULL) == 9 && !c.tuned_host, "the MPI fails");
	strcpy(nbmpi_self.start.config.alg, "linear");
	attr.alg = "linear";
	expect(nbmpi_tuned_agree(&c, NULL) == 0, "another algorithm");
	expect(nbmpi_tuned_plan(&c, &attr) == 0 && strcmp(attr.alg, "linear") == 0, "%s", attr.alg);
	expect(strcmp(nbmpi_tuned_name(&c), "linear") == 0, "%s", nbmpi_tuned_name(&c));
}

static void faults_of_another_version(void **state)
{
	ranks_begin(1, 1);
	strcpy(ranks->config.alg, "tuned:/etc/site:profile.json");
	ranks_run(another_version);
	require(said(0, "rank 1: has another version of nbar\n"), "%s", ranks->rank[0].said);
}

static uint32_t mpi_call;

static void mpi_fails(void)
{
	struct ranks_comm c;
	int rc;

	ranks_open(&c, 0, 0, ranks->size);
	for (uint32_t k = 0; k < NBMPI_PAYS; k++)
		ranks_barrier(&c);
	if (ranks_me == 0)
		ranks_mpi_fails(mpi_call);
	rc = ranks_barrier(&c);
	expect(rc == 0 || rc == NBMPI_MPI_FAILED, "%d", rc);
	expect(!c.nbar->tuned_host, "the places are left");
	ranks->rank[ranks_me].note[0] = rc != 0;
}

static void the_mpi_fails(void **state)
{
	for (mpi_call = 1; mpi_call < 100; mpi_call++) {
		ranks_begin(2, 1);
		strcpy(ranks->config.alg, "tuned:/etc/site:profile.json");
		ranks_run(mpi_fails);
		if (!ranks->rank[0].note[0])
			break;
	}
	require(mpi_call > 8 && mpi_call < 100, "%u", mpi_call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(plans_come_from_the_profile, usual),
		cmocka_unit_test_setup(on_one_host_there_is_no_plan, usual),
		cmocka_unit_test_setup(hosts_are_found_by_their_nics, usual),
		cmocka_unit_test_setup(hosts_are_found_by_the_paths_of_their_nics, usual),
		cmocka_unit_test_setup(without_the_library, usual),
		cmocka_unit_test_setup(without_agreement, usual),
		cmocka_unit_test_setup(twins_are_found, usual),
		cmocka_unit_test_setup(lines_have_levels, usual),
		cmocka_unit_test_setup(without_a_plan, usual),
		cmocka_unit_test_setup(faults_of_another_version, usual),
		cmocka_unit_test_setup(the_mpi_fails, usual),
	};

	return run_with_ranks(4, tests);
}
