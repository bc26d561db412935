/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.c - see journal.h. Experiments call it between two measurements.
 */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

struct journal {
	char *path; /* NULL: none */
	FILE *file;
	json_t *point; /* key -> values */
};

static int cannot(const struct journal *j, const char *what)
{
	tool_error("cannot %s %s: %s", what, j->path, strerror(errno));
	return TOOL_FAILED;
}

/* Prints where two objects differ. True if they do. */
static bool differs(const char *path, const char *of, const json_t *old, const json_t *now)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)now, key, value)
	{
		const json_t *was = json_object_get(old, key);
		char *a, *b;

		if (json_is_object(value) && json_is_object(was)) {
			if (differs(path, key, was, value))
				return true;
			continue;
		}
		if (json_equal(was, value))
			continue;
		a = json_dumps(was, JSON_ENCODE_ANY);
		b = json_dumps(value, JSON_ENCODE_ANY);
		tool_error("%s cannot be resumed: its %s%s%s is %s, and here it is %s; resume on "
			   "the same machine with the same settings, or start with another file",
			   path, of, *of ? " " : "", key, a ? a : "not set", b ? b : "?");
		free(a);
		free(b);
		return true;
	}
	return false;
}

/* differs() does not see keys that only the old identity has; json_equal() sees them. */
static int check_identity(const struct journal *j, const char *line, const json_t *identity)
{
	json_t *old = json_loads(line, 0, NULL);
	int r = 0;

	if (!json_is_object(old) || !json_object_get(old, "experiment")) {
		tool_error("%s is no journal of an experiment; it was not changed", j->path);
		r = TOOL_FAILED;
	} else if (differs(j->path, "", old, identity)) {
		r = TOOL_FAILED;
	} else if (!json_equal(old, identity)) {
		tool_error("%s cannot be resumed: it has settings that this run has not; start "
			   "with another file",
			   j->path);
		r = TOOL_FAILED;
	}
	json_decref(old);
	return r;
}

/* Reads a line. False: the line is cut, because the run was killed while it wrote the line. */
static bool take(struct journal *j, const char *line)
{
	json_t *o = json_loads(line, 0, NULL);
	const char *key = json_string_value(json_object_get(o, "point"));
	json_t *values = json_object_get(o, "values");
	bool good = key && json_is_array(values) && strchr(line, '\n');

	if (good)
		json_object_set(j->point, key, values);
	json_decref(o);
	return good;
}

/* Reads the file, and leaves its position at the end of the last complete point. */
static int read_old(struct journal *j, const json_t *identity)
{
	char *line = NULL;
	size_t room = 0;
	long end = 0;
	int r = TOOL_FAILED;

	j->file = fopen(j->path, "r+e");
	if (!j->file) {
		if (errno == ENOENT)
			tool_error("--resume: there is no %s; start without --resume", j->path);
		else
			cannot(j, "resume");
		return TOOL_FAILED;
	}
	if (getline(&line, &room, j->file) > 0)
		r = check_identity(j, line, identity);
	else
		tool_error("%s is empty: remove it and start without --resume", j->path);
	while (!r) {
		end = ftell(j->file);
		if (getline(&line, &room, j->file) <= 0 || !take(j, line))
			break;
	}
	free(line);
	if (!r && (fseek(j->file, end, SEEK_SET) || ftruncate(fileno(j->file), end)))
		r = cannot(j, "resume");
	return r;
}

static int put(struct journal *j, json_t *line)
{
	if (!j->file)
		return 0;
	if (!json_dumpf(line, j->file, JSON_COMPACT | JSON_REAL_PRECISION(12)) &&
	    fputc('\n', j->file) != EOF && !fflush(j->file) && !fdatasync(fileno(j->file)))
		return 0;
	return cannot(j, "write");
}

static int begin_new(struct journal *j, json_t *identity)
{
	int fd = open(j->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0 && errno == EEXIST) {
		tool_error("%s keeps an interrupted run: continue with --resume, or remove it",
			   j->path);
		return TOOL_FAILED;
	}
	j->file = fd < 0 ? NULL : fdopen(fd, "w");
	return j->file ? put(j, identity) : cannot(j, "write");
}

static void destroy(struct journal *j)
{
	if (j->file)
		fclose(j->file);
	json_decref(j->point);
	free(j->path);
	free(j);
}

int journal_open(struct journal **out, const char *path, json_t *identity, bool resume)
{
	struct journal *j = calloc(1, sizeof(*j));
	int r = 0;

	if (!j || !(j->point = json_object()) || (path && !(j->path = strdup(path)))) {
		tool_error("no memory for the journal: free some, and try again");
		if (j)
			destroy(j);
		return TOOL_FAILED;
	}
	if (path)
		r = resume ? read_old(j, identity) : begin_new(j, identity);
	if (r)
		destroy(j);
	else
		*out = j;
	return r;
}

bool journal_find(const struct journal *j, const char *point, double *value, uint32_t n)
{
	const json_t *values = json_object_get(j->point, point);

	if (json_array_size(values) != n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		value[i] = json_number_value(json_array_get(values, i));
	return n > 0;
}

int journal_add(struct journal *j, const char *point, const double *value, uint32_t n)
{
	json_t *values = json_array(), *line;
	int r;

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(values, json_real(value[i]));
	json_object_set(j->point, point, values);
	line = json_pack("{s:s, s:o}", "point", point, "values", values);
	r = put(j, line);
	json_decref(line);
	return r;
}

uint32_t journal_count(const struct journal *j)
{
	return (uint32_t)json_object_size(j->point);
}

void journal_close(struct journal *j, bool complete)
{
	if (!j)
		return;
	if (j->path && (complete || !journal_count(j)))
		unlink(j->path);
	destroy(j);
}
