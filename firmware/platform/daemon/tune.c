/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tune.c - reads a tune file. See tune.h. A file may come from anywhere: this checks everything
 * before use, and refuses a file with a bad line.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "nbar_file.h"
#include "tune.h"

#define LINE_MAX_BYTES 120u

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Returns the next word of a line, with a final zero; NULL: no more words. *at: the text after
 * it. */
static char *next_word(char **at)
{
	char *word = *at;

	while (is_blank(*word))
		word++;
	char *end = word;

	while (*end && !is_blank(*end))
		end++;
	*at = *end ? end + 1 : end;
	*end = '\0';
	return end > word ? word : NULL;
}

static bool read_size(const char *word, uint32_t *out)
{
	uint32_t n = 0;

	for (; *word; word++) {
		if (*word < '0' || *word > '9' || n > NBAR_SIZE_MAX)
			return false;
		n = n * 10 + (uint32_t)(*word - '0');
	}
	*out = n;
	return n >= 1 && n <= NBAR_SIZE_MAX;
}

/* Reads a line "SIZE ALGORITHM". Returns the text of the error, or NULL. */
static const char *take_entry(struct tune *t, char *word, char *rest)
{
	char *name = next_word(&rest);
	struct tune_entry e = { 0 };

	if (!read_size(word, &e.size))
		return "the first word of a line is a size of 1 to 1048576";
	if (!name)
		return "an algorithm must follow the size";
	if (next_word(&rest))
		return "nothing may follow the algorithm";
	if (t->n && e.size <= t->entry[t->n - 1].size)
		return "sizes must ascend";
	if (t->n == TUNE_LINES_MAX)
		return "it has more than 64 sizes";
	if (strlen(name) >= sizeof(e.name) || nbfw_alg_parse(name, &e.alg) < 0 ||
	    strcmp(name, NBFW_ALG_AUTO) == 0 || !nbfw_alg_plans(e.alg) ||
	    nbfw_alg_row(e.alg.kind)->limit < NBAR_SIZE_MAX)
		return "the algorithm is one of those that nbar-nicd --list-algs shows, for groups "
		       "of any size";
	strcpy(e.name, name);
	t->entry[t->n++] = e;
	return NULL;
}

/* Reads one line, which has no newline. Returns the text of the error, or NULL. */
static const char *take_line(struct tune *t, const char *text, size_t n, bool *begun)
{
	char line[LINE_MAX_BYTES + 1] = "", *rest = line, *word;

	for (size_t i = 0; i < n && text[i] != '#'; i++) {
		if ((text[i] < ' ' || text[i] > '~') && !is_blank(text[i]))
			return "it has bytes that are not text";
		if (i == LINE_MAX_BYTES)
			return "the line is too long";
		line[i] = text[i];
		line[i + 1] = '\0';
	}
	word = next_word(&rest);
	if (!word)
		return NULL;
	if (*begun)
		return take_entry(t, word, rest);
	char *version = next_word(&rest);

	if (strcmp(word, "nbar-tune") != 0 || !version || next_word(&rest))
		return "not a tune file: it must begin with the line \"nbar-tune 1\"";
	if (strcmp(version, "1") != 0)
		return "it is of another version; this daemon reads version 1";
	*begun = true;
	return NULL;
}

int tune_parse(const char *text, size_t n, struct tune *out, struct tune_fault *fault)
{
	struct tune t = { 0 };
	bool begun = false;

	*fault = (struct tune_fault){ 0, NULL };
	for (size_t at = 0; at < n && !fault->why;) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t length = end ? (size_t)(end - text) - at : n - at;

		fault->line++;
		fault->why = take_line(&t, text + at, length, &begun);
		at += length + 1;
	}
	if (fault->why)
		return -EINVAL;
	fault->line = 0;
	if (!begun)
		fault->why = "it is empty";
	else if (t.n == 0)
		fault->why = "it names no size";
	if (fault->why)
		return -EINVAL;
	*out = t;
	return 0;
}

int tune_load(const char *what, const char *path, struct tune *out)
{
	char *text, reason[128];
	struct tune_fault fault;
	size_t n;
	int rc = nbar_file_read(path, TUNE_BYTES_MAX, &text, &n);

	if (rc < 0) {
		log_error("%s %s: %s", what, path,
			  nbar_file_reason(rc, TUNE_BYTES_MAX, reason, sizeof(reason)));
		return rc;
	}
	rc = tune_parse(text, n, out, &fault);
	if (rc < 0 && fault.line)
		log_error("%s %s: line %u: %s", what, path, fault.line, fault.why);
	else if (rc < 0)
		log_error("%s %s: %s", what, path, fault.why);
	free(text);
	return rc;
}

const struct tune_entry *tune_find(const struct tune *t, uint32_t size)
{
	const struct tune_entry *found = NULL;

	for (uint32_t i = 0; i < t->n && t->entry[i].size <= size; i++)
		found = &t->entry[i];
	return found;
}
