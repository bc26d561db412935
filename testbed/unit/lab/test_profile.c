/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_profile.c - the file of a profile: bad files are refused with the right message, and a
 * written file reads back unchanged.
 */
#include <errno.h>
#include <unistd.h>

#include "profile.h"
#include "unit/unit.h"

#define HEAD "{\"nbar_profile\": 1, \"hosts\": [\"a\", \"b\"], "
#define GOOD HEAD "\"O_ns\": [[1, 2], [3, 4]], \"L_ns\": [[0, 0.5], [0.25, 0]]}"

static int parse(const char *text, struct profile **out, char why[256])
{
	size_t length = strlen(text);
	char *copy = malloc(length ? length : 1); /* a sanitizer finds a read beyond the copy */
	int rc;

	memcpy(copy, text, length);
	*out = NULL;
	*why = 0;
	rc = profile_parse(copy, length, "FILE", out, why, 256);
	free(copy);
	return rc;
}

/* The text is refused, with a message that contains `part` and the name of the file. */
static void refuses(const char *text, const char *part)
{
	struct profile *p;
	char why[256];

	assert_int_equal(parse(text, &p, why), -EINVAL);
	assert_null(p);
	require(strstr(why, part) && strstr(why, "FILE: "), "'%s' lacks '%s'", why, part);
}

static void test_good(void **state)
{
	struct profile *p;
	char why[256];

	assert_int_equal(parse(GOOD, &p, why), 0);
	assert_int_equal(p->hosts, 2);
	assert_string_equal(p->name[1], "b");
	assert_true(profile_o(p, 0, 1) == 2e-9 && profile_o(p, 1, 0) == 3e-9);
	assert_true(profile_l(p, 0, 1) == 0.5e-9 && profile_l(p, 1, 0) == 0.25e-9);
	assert_true(profile_self(p, 0) == 1e-9 && profile_self(p, 1) == 4e-9);
	assert_int_equal(profile_find(p, "b"), 1);
	assert_int_equal(profile_find(p, "c"), -1);
	profile_free(p);
}

static void test_cut_short(void **state)
{
	char text[] = GOOD, why[256];
	struct profile *p;

	for (size_t n = sizeof(text) - 1; n-- > 0;) {
		text[n] = 0;
		assert_int_equal(parse(text, &p, why), -EINVAL);
		assert_non_null(strstr(why, "FILE: this is no JSON"));
	}
}

static void test_bad_values(void **state)
{
	refuses(HEAD "\"O_ns\": [[1, null], [3, 4]], \"L_ns\": [[0, 0], [0, 0]]}",
		"row 0, column 1");
	refuses(HEAD "\"O_ns\": [[1, NaN], [3, 4]], \"L_ns\": [[0, 0], [0, 0]]}", "no JSON");
	refuses(HEAD "\"O_ns\": [[1, 1e999], [3, 4]], \"L_ns\": [[0, 0], [0, 0]]}", "no JSON");
	refuses(HEAD "\"O_ns\": [[1, 2], [3, 4]], \"L_ns\": [[0, 0], [-1, 0]]}",
		"\"L_ns\" has no cost in row 1, column 0");
	refuses(HEAD "\"O_ns\": [[1, 2], [3, \"4\"]], \"L_ns\": [[0, 0], [0, 0]]}",
		"row 1, column 1");
	refuses(HEAD "\"O_ns\": [[1, 2e12], [3, 4]], \"L_ns\": [[0, 0], [0, 0]]}", "row 0");
	refuses(HEAD "\"O_ns\": [[1, 2]], \"L_ns\": [[0, 0], [0, 0]]}", "must have 2 rows");
	refuses(HEAD "\"O_ns\": [[1, 2], [3]], \"L_ns\": [[0, 0], [0, 0]]}",
		"row 1 of \"O_ns\" must have 2 costs and has 1");
	refuses(HEAD "\"O_ns\": [[1, 2], [3, 4]]}", "\"L_ns\" must have 2 rows and has 0");
	refuses(HEAD "\"O_ns\": [[1, 2], [3, 4]], \"L_ns\": [[0, 0], [0, 0]], \"how\": 1}",
		"\"how\" is not a text");
	refuses(HEAD "\"O_ns\": [[1, 2], [3, 4]], \"L_ns\": [[0, 0], [0, 0]], \"when\": [1]}",
		"\"when\" is not a text");
	refuses(HEAD "\"O_ns\": 7, \"L_ns\": 8}", "must have 2 rows");
}

static void test_bad_heads(void **state)
{
	refuses("", "no JSON");
	refuses("[]", "not a profile");
	refuses("{}", "not a profile");
	refuses("{\"nbar_profile\": 2}", "version 2");
	refuses("{\"nbar_profile\": 1}", "has 0 names");
	refuses("{\"nbar_profile\": 1, \"hosts\": []}", "has 0 names");
	refuses("{\"nbar_profile\": 1, \"hosts\": [1], \"O_ns\": [[0]], \"L_ns\": [[0]]}",
		"host 0 has no name");
	refuses("{\"nbar_profile\": 1, \"hosts\": [\"a\", \"b\", \"a\"], "
		"\"O_ns\": [], \"L_ns\": []}",
		"two hosts have the name 'a'");
	refuses("{\"nbar_profile\": 1, \"nbar_profile\": 1}", "no JSON");
}

/* More hosts than a matrix may have rows, and more than a profile may have. */
static void test_too_many(void **state)
{
	static const uint32_t count[] = { PROFILE_CLASSES_MAX + 1, 100000 };

	for (uint32_t c = 0; c < 2; c++) {
		char *text = malloc(64 + (size_t)count[c] * 12), *at = text;

		at += sprintf(at, "{\"nbar_profile\": 1, \"hosts\": [");
		for (uint32_t i = 0; i < count[c]; i++)
			at += sprintf(at, "%s\"h%u\"", i ? "," : "", i);
		strcpy(at, "]}");
		refuses(text, c ? "has 1 to 65536 hosts" : "has 1 to 4096");
		free(text);
	}
}

#define CLASSES                                                                                \
	"{\"nbar_profile\": 1, \"hosts\": [\"a\", \"b\", \"c\"], \"O_ns\": [[1, 2], [3, 4]], " \
	"\"L_ns\": [[0, 0], [0, 0]], "

static void test_classes(void **state)
{
	struct profile *p;
	char why[256];

	assert_int_equal(parse(CLASSES "\"class\": [0, 1, 0], \"self_ns\": [7, 8]}", &p, why), 0);
	assert_true(profile_o(p, 0, 2) == 1e-9 && profile_o(p, 1, 2) == 3e-9);
	assert_true(profile_self(p, 1) == 8e-9 && profile_self(p, 2) == 7e-9);
	profile_free(p);
	refuses(CLASSES "\"class\": [0, 1], \"self_ns\": [7, 8]}", "must have 3 numbers");
	refuses(CLASSES "\"class\": [0, 1, 2], \"self_ns\": [7, 8]}", "class of host 2");
	refuses(CLASSES "\"class\": [0, 1, -1], \"self_ns\": [7, 8]}", "class of host 2");
	refuses(CLASSES "\"class\": [0, 1, 1], \"self_ns\": [7]}", "must have 2 costs");
	refuses(CLASSES "\"class\": [0, 1, 1], \"self_ns\": [7, null]}", "column 1");
	refuses(CLASSES "\"class\": [0, 1, 1]}", "must have 2 costs");
}

#define MORE(text) HEAD "\"O_ns\": [[1, 2], [3, 4]], \"L_ns\": [[0, 0], [0, 0]], " text "}"

/* The optional keys. */
static void test_options(void **state)
{
	struct profile *p;
	char why[256];

	assert_int_equal(parse(MORE("\"processor\": [1, 1], \"flat_ns\": {\"mcs\": 7.5, "
				    "\"a-later-one\": 3, \"tree:3\": 9}"),
			       &p, why),
			 0);
	assert_int_equal(p->processor[0], 1);
	assert_int_equal(p->nflat, 2);
	assert_true(p->flat[0].alg.kind == NBFW_ALG_MCS && p->flat[0].time == 7.5e-9);
	assert_true(p->flat[1].alg.kind == NBFW_ALG_TREE && p->flat[1].alg.n == 3);
	profile_free(p);
	refuses(MORE("\"processor\": [0]"), "must have 2 numbers, one a host, and has 1");
	refuses(MORE("\"processor\": 3"), "must have 2 numbers");
	refuses(MORE("\"processor\": [0, 2]"), "the processor of host 1");
	refuses(MORE("\"processor\": [-1, 0]"), "the processor of host 0");
	refuses(MORE("\"processor\": [0.5, 0]"), "the processor of host 0");
	refuses(MORE("\"flat_ns\": [1]"), "not a list of algorithms");
	refuses(MORE("\"flat_ns\": {\"mcs\": -1}"), "no time above 0 for 'mcs'");
	refuses(MORE("\"flat_ns\": {\"mcs\": 0}"), "no time above 0 for 'mcs'");
	refuses(MORE("\"flat_ns\": {\"mcs\": \"7\"}"), "no time above 0 for 'mcs'");
}

/* A random profile that is written and read again has the same digest. After one change the digest
 * differs. */
static void test_round_trip(void **state)
{
	char path[] = "/tmp/nbar-lab-profile-XXXXXX", why[256];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (uint64_t seed = unit_seed(), last = seed + 40; seed != last; seed++) {
		struct rng rng = { seed };
		uint32_t hosts = 1 + rng_below(&rng, 20), classes = 1 + rng_below(&rng, hosts);
		struct profile *p = profile_new(hosts, classes), *q;
		FILE *f = fopen(path, "w");

		for (uint32_t i = 0; i < hosts; i++) {
			p->name[i] = malloc(32);
			snprintf(p->name[i], 32, "h\"%u\n\xc3\xa9", i);
			if (p->class_of)
				p->class_of[i] = rng_below(&rng, classes);
		}
		for (uint32_t i = 0; i < classes * classes; i++) {
			p->o[i] = rng_below(&rng, 1000000) / 1e10;
			p->l[i] = rng_below(&rng, 1000000) / 1e10;
		}
		for (uint32_t i = 0; i < classes; i++) {
			p->self[i] = rng_below(&rng, 1000000) / 1e10;
			if (!p->class_of)
				p->o[i * classes + i] = p->self[i];
		}
		if (rng_percent(&rng, 50)) {
			p->processor = calloc(hosts, sizeof(*p->processor));
			p->processor[0] = rng_below(&rng, hosts);
			p->flat = calloc(1, sizeof(*p->flat));
			p->nflat = 1;
			p->flat->alg = (struct nbfw_alg){ NBFW_ALG_TREE, 2 };
			p->flat->time = 1e-9;
		}
		assert_int_equal(profile_write(p, f), 0);
		fclose(f);
		require(profile_read(path, &q, why, sizeof(why)) == 0, "NBAR_SEED=%llu: %s",
			(unsigned long long)seed, why);
		require(profile_digest(p) == profile_digest(q), "NBAR_SEED=%llu",
			(unsigned long long)seed);
		q->l[rng_below(&rng, classes * classes)] += 1e-9;
		require(profile_digest(p) != profile_digest(q), "NBAR_SEED=%llu",
			(unsigned long long)seed);
		profile_free(p);
		profile_free(q);
	}
	unlink(path);
	assert_int_equal(profile_read(path, NULL, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, path));
}

UNIT_MAIN(NULL, NULL, UNIT(test_good), UNIT(test_cut_short), UNIT(test_bad_values),
	  UNIT(test_bad_heads), UNIT(test_too_many), UNIT(test_classes), UNIT(test_round_trip),
	  UNIT(test_options))
