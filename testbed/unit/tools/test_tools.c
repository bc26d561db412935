/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tools.c - the parts of the tools that need no NIC: histogram, statistics, numbers, lists,
 * options of `nbar bench` and of `nbar mpi-bench`.
 */
#include "unit/unit.h"

#include <getopt.h>
#include <jansson.h>

#include "bench.h"
#include "hist.h"
#include "mpi/options.h"
#include "stats.h"
#include "tool.h"
#include "unit/said.h"

static void hist_of_nothing(void **state)
{
	struct hist *h = calloc(1, sizeof(*h)), *other = calloc(1, sizeof(*other));

	assert_int_equal(hist_quantile(h, 0.5), 0);
	hist_add(other, 7);
	hist_merge(other, h);
	assert_int_equal(other->total, 1);
	assert_int_equal(other->min, 7);
	hist_merge(h, other);
	assert_int_equal(h->min, 7);
	assert_int_equal(h->max, 7);
	free(h);
	free(other);
}

static void hist_is_exact_below_128(void **state)
{
	struct hist *h = calloc(1, sizeof(*h));

	for (uint64_t v = 1; v <= 100; v++)
		hist_add(h, v);
	assert_int_equal(hist_quantile(h, 0), 1);
	assert_int_equal(hist_quantile(h, 0.01), 1);
	assert_int_equal(hist_quantile(h, 0.50), 50);
	assert_int_equal(hist_quantile(h, 0.501), 51);
	assert_int_equal(hist_quantile(h, 0.99), 99);
	assert_int_equal(hist_quantile(h, 1), 100);
	assert_int_equal(h->sum, 5050);
	free(h);
}

/* Checks the error bound of hist.h at every edge of a bucket and at random values of 64 bits. */
static void hist_keeps_its_error(void **state)
{
	struct hist *h = calloc(1, sizeof(*h));
	uint64_t random = 1;

	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t v = stats_random(&random) >> (i % 64);

		if (i % 3 == 0)
			v &= ~UINT64_C(0) << (63 - i % 64) / 2;
		memset(h, 0, sizeof(*h));
		/* Two outliers, so that the limits do not hide a wrong answer. */
		hist_add(h, 0);
		hist_add(h, v);
		hist_add(h, UINT64_MAX);
		uint64_t got = hist_quantile(h, 0.5);
		uint64_t off = got > v ? got - v : v - got;

		assert_true(off <= v / 128);
	}
	free(h);
}

static void hist_merges(void **state)
{
	struct hist *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	struct hist *all = calloc(1, sizeof(*all));
	uint64_t random = 2;

	for (uint32_t i = 0; i < 5000; i++) {
		uint64_t v = stats_random(&random) >> 40;

		hist_add(i % 3 ? a : b, v);
		hist_add(all, v);
	}
	hist_merge(a, b);
	assert_memory_equal(a, all, sizeof(*a));
	free(a);
	free(b);
	free(all);
}

static void median_of_odd_even_and_one(void **state)
{
	double odd[] = { 5, 1, 9 }, even[] = { 4, 1, 9, 2 }, one[] = { 3 };

	assert_true(stats_median(odd, 3) == 5);
	assert_true(stats_median(even, 4) == 3);
	assert_true(stats_median(one, 1) == 3);
}

static void shuffle_is_a_permutation(void **state)
{
	uint32_t order[40], again[40], seen[40] = { 0 }, moved = 0;
	uint64_t a = 7, b = 7;

	stats_shuffle(order, 40, &a);
	stats_shuffle(again, 40, &b);
	assert_memory_equal(order, again, sizeof(order));
	for (uint32_t i = 0; i < 40; i++) {
		assert_true(order[i] < 40);
		seen[order[i]]++;
		moved += order[i] != i;
	}
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(seen[i], 1);
	assert_true(moved > 20);
	stats_shuffle(again, 40, &b);
	assert_memory_not_equal(order, again, sizeof(order));
}

static void numbers(void **state)
{
	uint64_t v = 99;

	assert_true(tool_number("12", 1, 12, &v));
	assert_int_equal(v, 12);
	assert_true(tool_number("18446744073709551615", 0, UINT64_MAX, &v));
	assert_true(v == UINT64_MAX);
	assert_false(tool_number("", 0, 9, &v));
	assert_false(tool_number(" 1", 0, 9, &v));
	assert_false(tool_number("-1", 0, UINT64_MAX, &v));
	assert_false(tool_number("+1", 0, 9, &v));
	assert_false(tool_number("1x", 0, 9, &v));
	assert_false(tool_number("0", 1, 9, &v));
	assert_false(tool_number("10", 1, 9, &v));
	assert_false(tool_number("18446744073709551616", 0, UINT64_MAX, &v));
	assert_true(v == UINT64_MAX);
}

static int collect(void *arg, const char *item)
{
	strcat(strcat(arg, "<"), item);
	return strcmp(item, "stop") ? 0 : 5;
}

/* The address sanitizer ends a process that asks for too much memory, unless told otherwise. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void messages(void **state)
{
	json_malloc_t alloc;
	json_free_t release;
	void *block;

	tool_begin("nbar test");
	tool_error("a message of a test");
	assert_int_equal(tool_usage("another"), TOOL_USAGE);
	tool_quiet(true);
	assert_int_equal(tool_usage("not printed"), TOOL_USAGE);
	tool_json_begin();
	json_get_alloc_funcs(&alloc, &release);
	block = alloc(1);
	assert_non_null(block);
	release(block);
	assert_int_equal(tool_end(TOOL_OK), TOOL_OK);
	assert_null(alloc(SIZE_MAX / 2));
	assert_int_equal(tool_end(TOOL_OK), TOOL_FAILED);
	assert_int_equal(tool_end(TOOL_USAGE), TOOL_USAGE);
	tool_quiet(false);
}

static void lists(void **state)
{
	char text[2 * TOOL_ITEM_MAX] = "", long_text[TOOL_ITEM_MAX + 100];

	assert_int_equal(tool_list("a,bc,,d", collect, text), 0);
	assert_string_equal(text, "<a<bc<<d");
	text[0] = '\0';
	assert_int_equal(tool_list("", collect, text), 0);
	assert_string_equal(text, "<");
	text[0] = '\0';
	assert_int_equal(tool_list("a,stop,b", collect, text), 5);
	assert_string_equal(text, "<a<stop");
	text[0] = '\0';
	memset(text, 0, sizeof(text));
	memset(long_text, 'y', sizeof(long_text) - 3);
	strcpy(long_text + sizeof(long_text) - 3, ",x");
	assert_int_equal(tool_list(long_text, collect, text), 0);
	assert_int_equal(strspn(text + 1, "y"), TOOL_ITEM_MAX - 1);
	assert_string_equal(text + TOOL_ITEM_MAX, "<x");
}

static bool of_bench; /* the command line is that of nbar bench, not of a sweep */

static int words_of(const char *line, char *argv[40])
{
	static char copy[512];
	char *save = NULL;
	int argc = 0;

	memset(argv, 0, 40 * sizeof(*argv));
	snprintf(copy, sizeof(copy), "bench %s", line);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	optind = 0; /* a new process */
	getopt(1, argv, "");
	return argc;
}

/* Parses a command line given as one string. Discards messages. */
static int parse(const char *line, struct bench_options *opt)
{
	char *argv[40];
	int argc = words_of(line, argv), r;
	bool help;

	*opt = bench_options_default();
	opt->in_process = of_bench;
	said_begin();
	r = bench_options_parse(argc, argv, opt, NULL, &help);
	said_end();
	return r;
}

static void options_usual(void **state)
{
	struct bench_options opt;

	assert_int_equal(parse("", &opt), 0);
	assert_int_equal(opt.nnodes, 4);
	assert_int_equal(opt.nodes[3], 16);
	assert_int_equal(opt.nwhere, 2);
	assert_string_equal(opt.alg[0], "dissemination:1");
	assert_string_equal(opt.wire, "ring");
	assert_int_equal(opt.drivers, BENCH_DRIVERS_NODES);
}

/* By an algorithm that counts each member once; the user may name another. Hosts carry 8 bytes. */
static void options_values(void **state)
{
	static const char *const refused[] = {
		"--value 7",   "--value 12",
		"--value 264", "--value 16 --where host",
		"--value x",   "--value 16 --where nic,host",
	};
	struct bench_options opt;

	assert_int_equal(parse("--value 8", &opt), TOOL_USAGE);
	of_bench = true;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		require(parse(refused[i], &opt) == TOOL_USAGE, "%s", refused[i]);
	assert_int_equal(parse("--value 8", &opt), 0);
	assert_true(bench_wants(&opt, BENCH_NIC) && bench_wants(&opt, BENCH_HOST));
	assert_string_equal(opt.alg[0], ALGS_VALUE);
	assert_int_equal(parse("--value 256", &opt), 0);
	assert_int_equal(opt.value, 256);
	assert_true(bench_wants(&opt, BENCH_NIC) && !bench_wants(&opt, BENCH_HOST));
	assert_string_equal(opt.alg[0], ALGS_VALUE);
	assert_int_equal(parse("--alg mcs --value 8 --where nic", &opt), 0);
	assert_string_equal(opt.alg[0], "mcs");
	of_bench = false;
}

/* The options have each algorithm with each usual value of its parameter, by name. */
static void options_all_algs(const struct bench_options *opt)
{
	uint32_t at = 0;

	for (uint32_t kind = NBFW_ALG_FIRST; kind < NBFW_ALG_END; kind++) {
		const struct nbfw_alg_row *row = nbfw_alg_row((enum nbfw_alg_kind)kind);

		for (uint32_t n = row->usual; n <= row->usual_end; n++) {
			struct nbfw_alg alg;

			assert_true(at < opt->nalg);
			assert_int_equal(nbfw_alg_parse(opt->alg[at++], &alg), 0);
			assert_int_equal(alg.kind, kind);
			assert_int_equal(alg.n, n);
		}
	}
	assert_int_equal(opt->nalg, at);
}

static void options_all(void **state)
{
	struct bench_options opt;

	assert_int_equal(
		parse("-i 5 -x 0 -f --nodes 3,64 --where host --alg "
		      "pairwise,dissemination:16 --wire udp --launches 7 --drivers 1 "
		      "--json - --csv file --idle sleep --cpu 1 --nicd /x --seed 9 --check "
		      "--ranks sorted --raw r",
		      &opt),
		0);
	assert_int_equal(opt.iters, 5);
	assert_int_equal(opt.warmup, 0);
	assert_true(opt.full && opt.check && opt.sorted);
	assert_int_equal(opt.drivers, BENCH_DRIVERS_ONE);
	assert_string_equal(opt.out.raw, "r");
	assert_int_equal(opt.nnodes, 2);
	assert_int_equal(opt.nodes[0], 3);
	assert_int_equal(opt.nodes[1], 64);
	assert_int_equal(opt.nwhere, 1);
	assert_int_equal(opt.where[0], BENCH_HOST);
	assert_int_equal(opt.nalg, 2);
	assert_string_equal(opt.alg[1], "dissemination:16");
	assert_string_equal(opt.wire, "udp");
	assert_int_equal(opt.repetitions, 7);
	assert_string_equal(opt.out.json, "-");
	assert_string_equal(opt.out.csv, "file");
	assert_string_equal(opt.idle, "sleep");
	assert_int_equal(opt.cpu, 1);
	assert_string_equal(opt.nicd, "/x");
	assert_int_equal(opt.seed, 9);
	assert_int_equal(parse("--nodes 2-32,64 --alg all --drivers nodes", &opt), 0);
	assert_int_equal(opt.drivers, BENCH_DRIVERS_NODES);
	assert_int_equal(opt.nnodes, 32);
	assert_int_equal(opt.nodes[30], 32);
	assert_int_equal(opt.nodes[31], 64);
	options_all_algs(&opt);
	assert_int_equal(parse("--nic a --nic b --nodes 128", &opt), 0);
	assert_int_equal(opt.nnic, 2);
	assert_string_equal(opt.nic[1], "b");
}

static void options_refused(void **state)
{
	static const char *const wrong[] = {
		"--nodes 0",
		"--nodes 1025",
		"--nodes 2,,4",
		"--nodes x",
		"--nodes 1-65",
		"--nodes 4-2",
		"--nodes 0-2",
		"--nodes 2-",
		"--nodes -2",
		"-i 0",
		"-i -3",
		"-i 100000001",
		"-i",
		"-x y",
		"--where nowhere",
		"--where nic,nic",
		"--alg fastest",
		"--alg dissemination:0",
		"--alg dissemination:17",
		"--alg custom",
		"--alg signal",
		"--alg pairwise,",
		"--wire a-name-and-keys-that-are-longer-than-any-wire-has",
		"--idle now",
		"--launches 0",
		"--drivers 2",
		"--cpu -1",
		"--seed s",
		"--ranks upward",
		"--json - --csv -",
		"--json - --raw -",
		"--nic n0 --wire ring",
		"--nic n0 --nodes 1025",
		"--nic host:wire=udp",
		"--host-keys mode=ud",
		"--where nic,host --host-keys mode=ud",
		"--where host-",
		"--where host-udp,host-udp",
		"--where host-a,host-b,host-c,host-d,host-e",
		"--unknown",
		"-q",
		"word",
	};
	struct bench_options opt;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (parse(wrong[i], &opt) != TOOL_USAGE)
			fail_msg("accepted: %s", wrong[i]);
	}
}

static struct mpib_options mpi; /* of nbar mpi-bench */

static int parse_mpi(const char *line)
{
	char *argv[40];
	int argc = words_of(line, argv), r;
	bool help;

	said_begin();
	r = mpib_options_parse(argc, argv, &mpi, &help);
	said_end();
	return r;
}

/* As the help says. No block is without an iteration. */
static void mpi_usual(void **state)
{
	static const char *const row[][2] = {
		{ "", "-i 1000 -x 200 --blocks 10 --compute 0 --value 0" },
		{ "--test ibarrier", "-i 1000 -x 200 --blocks 10 --compute 0 --value 0" },
		{ "--test allreduce", "-i 1000 -x 200 --blocks 10 --compute 0 --value 8" },
		{ "--test busy", "-i 100 -x 10 --blocks 10 --compute 10000 --value 0" },
		{ "--test app", "-i 100 -x 10 --blocks 10 --compute 0 --value 0" },
		{ "-i 9 -x 0", "-i 9 -x 0 --blocks 9 --compute 0 --value 0" },
	};
	char text[8192], *columns;
	FILE *f = fmemopen(text, sizeof(text), "w");

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		assert_int_equal(parse_mpi(row[i][0]), 0);
		snprintf(text, sizeof(text), "-i %u -x %u --blocks %u --compute %u --value %u",
			 mpi.iters, mpi.warmup, mpi.blocks, mpi.compute_us, mpi.value);
		assert_string_equal(text, row[i][1]);
	}
	assert_int_equal(parse_mpi("--method lib,lib2,p2p:mcs --nic2 n1"), 0);
	assert_int_equal(mpi.nmethod, 3);
	assert_int_equal(mpi.method[2].kind, MPIB_P2P);
	mpib_usage(f); /* has columns for each test */
	fclose(f);
	columns = strstr(text, "\nColumns:\n");
	for (uint32_t t = 0; t < MPIB_TEST_END; t++)
		assert_non_null(columns = strstr(columns, mpib_test_name[t]));
}

static void mpi_refused(void **state)
{
	char wrong[] =
		"--test x;--method mpi,nbar,mpi;--method x;--method p2p:x;--value 8;--test allreduce --value 12;"
		"--test allreduce --method lib;--method lib2;--nic2 n1;--compute 5;--test allreduce --compute 5;"
		"--test app --compute 5;--compute-by spin;--test allreduce --compute-by spin;--busy-rank 0;"
		"--scale 2;--test app -i 100000000;--mpi x;--json - --csv -;--test busy --busy-rank -1";

	for (char *save, *line = strtok_r(wrong, ";", &save); line;
	     line = strtok_r(NULL, ";", &save))
		require(parse_mpi(line) == TOOL_USAGE, "accepted: %s", line);
}

UNIT_MAIN(NULL, NULL, UNIT(hist_of_nothing), UNIT(hist_is_exact_below_128),
	  UNIT(hist_keeps_its_error), UNIT(hist_merges), UNIT(median_of_odd_even_and_one),
	  UNIT(shuffle_is_a_permutation), UNIT(numbers), UNIT(messages), UNIT(lists),
	  UNIT(options_usual), UNIT(options_values), UNIT(options_all), UNIT(options_refused),
	  UNIT(mpi_usual), UNIT(mpi_refused))
