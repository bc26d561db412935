/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tune.c - reads a tune file. See tune.h. A file may come from anywhere: this checks everything
 * before use, and refuses a file with a bad line.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
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
			return "it has bytes that are no text";
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
		return "this is no tune file: it must begin with the line \"nbar-tune 1\"";
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

/* Reads a regular file, up to room bytes. 0, or negative errno after log_error(). */
static int read_file(const char *path, char *text, size_t room, size_t *n)
{
	/* O_NONBLOCK: do not wait for a pipe that nobody writes to. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	struct stat st;
	ssize_t got = 1;

	*n = 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		rc = -errno;
	} else if (!S_ISREG(st.st_mode)) {
		log_error("--tune %s: this is no regular file", path);
		close(fd);
		return -EINVAL;
	}
	while (rc == 0 && got > 0 && *n < room) {
		got = read(fd, text + *n, room - *n);
		if (got > 0)
			*n += (size_t)got;
		else if (got < 0)
			rc = -errno;
	}
	if (fd >= 0)
		close(fd);
	if (rc < 0)
		log_error("--tune %s: cannot be read: %s", path, strerror(-rc));
	return rc;
}

int tune_load(const char *path, struct tune *out)
{
	static char text[TUNE_BYTES_MAX + 1];
	struct tune_fault fault;
	size_t n;
	int rc = read_file(path, text, sizeof(text), &n);

	if (rc < 0)
		return rc;
	if (n > TUNE_BYTES_MAX) {
		log_error("--tune %s: a tune file has at most %u bytes", path, TUNE_BYTES_MAX);
		return -EFBIG;
	}
	if (tune_parse(text, n, out, &fault) == 0)
		return 0;
	if (fault.line)
		log_error("--tune %s: line %u: %s", path, fault.line, fault.why);
	else
		log_error("--tune %s: %s", path, fault.why);
	return -EINVAL;
}

const struct tune_entry *tune_find(const struct tune *t, uint32_t size)
{
	const struct tune_entry *found = NULL;

	for (uint32_t i = 0; i < t->n && t->entry[i].size <= size; i++)
		found = &t->entry[i];
	return found;
}
