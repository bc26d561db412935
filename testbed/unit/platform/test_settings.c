/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_settings.c - values of settings: their types and bounds, the message for each error; and the
 * manual pages, which say what the table says.
 */
#include "unit/unit.h"

#include <errno.h>

#include "logged.h"
#include "settings.h"

static struct settings out;

static int own(void *arg, const struct setting *s, const char *text)
{
	return 0;
}

static const struct settings_reader reader = { SETTING_NICD, &out, own, NULL };

static int take(const char *name, const char *text)
{
	return settings_option(&reader, settings_find(SETTING_NICD, name), text);
}

static void refused(const struct setting *s, const char *text)
{
	struct settings before;

	memcpy(&before, &out, sizeof(out)); /* padding, too */
	require(settings_option(&reader, s, text) == -EINVAL, "%s %s", s->name, text);
	assert_memory_equal(&out, &before, sizeof(out));
}

/* Every number of the table, at its bounds and beyond, and in every other form. */
static void numbers(void **state)
{
	static const char *const bad[] = { "",     "x",
					   "1x",   "-1",
					   " 5",   "+5",
					   "0x10", "5 ",
					   "1e1",  "1.5",
					   "-0",   "99999999999999999999",
					   "5,",   "18446744073709551617" };
	char text[32];

	for (const struct setting *s = settings_table; s->name; s++) {
		if (s->type != SETTING_NUMBER)
			continue;
		for (uint64_t n = s->low; n <= s->high; n += s->high - s->low) {
			const char *field = (const char *)&out + s->at;

			snprintf(text, sizeof(text), "0%llu", (unsigned long long)n);
			errno = ERANGE; /* of an earlier call */
			assert_int_equal(settings_option(&reader, s, text), 0);
			require(s->size == 8 ? *(const uint64_t *)field == n * s->unit
					     : *(const uint32_t *)field == n,
				"%s %s", s->name, text);
		}
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			refused(s, bad[i]);
		snprintf(text, sizeof(text), "%ld", (long)s->low - 1);
		refused(s, text);
		snprintf(text, sizeof(text), "%lu", s->high + 1);
		refused(s, text);
	}
	logged[0] = '\0';
	assert_int_equal(take("user-percent", "101"), -EINVAL);
	assert_int_equal(take("mode", "0668"), -EINVAL);
	assert_int_equal(take("mode", "1000"), -EINVAL);
	logged_is("--user-percent 101: not a number from 1 to 100\n"
		  "--mode 0668: not an octal number from 0 to 777\n"
		  "--mode 1000: not an octal number from 0 to 777\n");
}

static void texts(void **state)
{
	char text[4] = "old";

	assert_int_equal(settings_text("t", "", text, sizeof(text)), -EINVAL);
	assert_int_equal(settings_text("t", "four", text, sizeof(text)), -EINVAL);
	assert_string_equal(text, "old");
	logged_is("--t: the value must have 1 to 3 bytes\n--t: the value must have 1 to 3 bytes\n");
	assert_int_equal(settings_text("t", "new", text, sizeof(text)), 0);
	assert_string_equal(text, "new");
}

static void groups(void **state)
{
	static const char *const bad[] = { "no-such-group", "", "4294967295", "/1", ":1" };
	static const char *const good[] = { "4294967294", "00", "root", "54321" };
	static const gid_t gid[] = { 4294967294u, 0, 0, 54321 };

	for (size_t i = 0; i < 5; i++)
		refused(settings_find(SETTING_NICD, "group"), bad[i]);
	assert_non_null(strstr(logged, "--group /1: there is no such group\n"));
	logged[0] = '\0';
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(take("group", good[i]), 0);
		assert_int_equal(out.group, gid[i]);
	}
}

static void names(void **state)
{
	static const char *const bad[] = { "", ".a", "a/b" };
	char longest[NBAR_NAME_MAX + 1], name[NBAR_NAME_MAX] = "old";

	memset(longest, 'x', sizeof(longest));
	longest[NBAR_NAME_MAX] = '\0';
	assert_int_equal(settings_name("n", longest, name), -EINVAL);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(settings_name("n", bad[i], name), -EINVAL);
	logged[0] = '\0';
	assert_int_equal(settings_name("n=a b", "a b", name), -EINVAL);
	logged_is("n=a b: a name has 1 to 31 letters, digits, '_', '.' or '-', and does not begin "
		  "with '.'\n");
	assert_string_equal(name, "old");
	longest[NBAR_NAME_MAX - 1] = '\0';
	assert_int_equal(settings_name("n", longest, name), 0);
	assert_string_equal(name, longest);
	assert_int_equal(settings_name("n", "a.b-C_9", name), 0);
	assert_int_equal(settings_name("n", "n", name), 0);
}

/* Every platform has what its settings need; each default is valid there. */
static void places(void **state)
{
	settings_default(SETTING_NICD, &out);
	assert_true(out.config.pull_ns == NBNIC_PULL_NS_DEFAULT && out.mode == 0600);
	assert_true(out.config.budget_ns == NBNIC_BUDGET_NS_DEFAULT);
	assert_true(out.config.memory_bytes == NBNIC_MEMORY_BYTES && out.group == (gid_t)-1);
	assert_int_equal(settings_check(&out), 0);
	settings_default(SETTING_BARED, &out);
	assert_true(out.config.pull_ns == 20000000 && out.nport == 4);
	assert_string_equal(out.name, "n0");
	assert_int_equal(settings_check(&out), 0);
	settings_default(SETTING_PROCESS, &out);
	assert_string_equal(out.name, "host");
	assert_int_equal(settings_check(&out), 0);
	assert_null(settings_find(SETTING_BARED, "cpu"));
	assert_null(settings_find(SETTING_KEY, "cpu"));
	assert_null(settings_find(SETTING_NICD, "nic-"));
	assert_int_equal(settings_find(SETTING_PROCESS, "budget-ms")->low, 200);
	logged_is("");
}

/* The text of a manual page, without the backslashes and fonts of roff. */
static char *page(const char *path)
{
	static char text[65536];
	FILE *f = fopen(path, "r");
	size_t n = 0;
	int c;

	require(f != NULL, "%s: %s", path, strerror(errno));
	while ((c = getc(f)) != EOF && n + 1 < sizeof(text)) {
		if (c != '\\')
			text[n++] = (char)c;
		else if ((c = getc(f)) == 'f')
			getc(f);
		else
			text[n++] = (char)c;
	}
	text[n] = '\0';
	fclose(f);
	return text;
}

/* The paragraph of an option has its default and its bounds. */
static void option_in(const char *path, const struct setting *s)
{
	char tag[64], most[32], *paragraph = page(path), *next, *name;

	snprintf(tag, sizeof(tag), "--%s", s->name);
	snprintf(most, sizeof(most), "%lu", s->high);
	for (paragraph = strstr(paragraph, "\n.TP\n"); paragraph; paragraph = next) {
		next = strstr(paragraph + 5, "\n.TP\n");
		if (next)
			*next = '\0';
		name = strstr(paragraph, tag);
		if (name && name < strchr(paragraph + 5, '\n') && !strchr("s-", name[strlen(tag)]))
			break;
		if (next)
			*next = '\n';
	}
	require(paragraph != NULL, "%s: no paragraph of %s", path, tag);
	if (s->usual)
		require(strstr(paragraph, s->type == SETTING_WORD ? "the default" : s->usual) !=
				NULL,
			"%s: %s has the default %s", path, tag, s->usual);
	if (s->type == SETTING_NUMBER && strcmp(s->name, "cpu") != 0)
		require(strstr(paragraph, most) != NULL, "%s: %s may be %s", path, tag, most);
}

static void manual_pages(void **state)
{
	char key[64];

	for (const struct setting *s = settings_table; s->name; s++) {
		if (s->where & SETTING_NICD)
			option_in("firmware/platform/daemon/nbar-nicd.8", s);
		snprintf(key, sizeof(key), "%s", s->name);
		if (s->where & SETTING_PROCESS)
			require(strstr(page("hostlib/man/nbar.3"), key) != NULL,
				"nbar.3: no key %s", key);
	}
}

UNIT_MAIN(NULL, NULL, UNIT(numbers), UNIT(texts), UNIT(groups), UNIT(names), UNIT(places),
	  UNIT(manual_pages))
