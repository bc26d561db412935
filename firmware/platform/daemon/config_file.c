/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_file.c - reads a file of options. See config_file.h.
 */
#include "config_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "log.h"

static int refuse(const char *path, const char *why)
{
	log_error("--config %s: %s", path, why);
	return EXIT_USAGE;
}

/* Returns the text of the file, which the caller frees; or NULL after log_error(). */
static char *load(const char *path)
{
	char *text = malloc(CONFIG_FILE_BYTES_MAX + 2);
	FILE *f = text ? fopen(path, "re") : NULL;
	size_t n;

	if (!f) {
		refuse(path, strerror(errno));
		free(text);
		return NULL;
	}
	n = fread(text, 1, CONFIG_FILE_BYTES_MAX + 1, f);
	if (ferror(f) || n > CONFIG_FILE_BYTES_MAX || memchr(text, '\0', n)) {
		refuse(path, ferror(f)                   ? strerror(errno)
			     : n > CONFIG_FILE_BYTES_MAX ? "the file is longer than 64 KB"
							 : "the file is not text");
		free(text);
		text = NULL;
	} else {
		text[n] = '\0';
	}
	fclose(f);
	return text;
}

/* Cuts the line into a word and its value, without blanks around them. False: the line is empty or
 * a comment. */
static bool split(char *line, char **word, char **value)
{
	static const char blank[] = " \t\r";
	char *end;

	line += strspn(line, blank);
	for (end = line + strlen(line); end > line && strchr(blank, end[-1]);)
		*--end = '\0';
	if (*line == '\0' || *line == '#')
		return false;
	*word = line;
	*value = line + strcspn(line, blank);
	if (**value) {
		*(*value)++ = '\0';
		*value += strspn(*value, blank);
	}
	return true;
}

int config_file_read(const char *path, config_file_take *take, void *arg)
{
	char *text = load(path), *next = text, *line, *word, *value;
	int rc = -1;

	if (!next)
		return EXIT_USAGE;
	for (unsigned n = 1; rc == -1 && (line = strsep(&next, "\n")); n++) {
		if (!split(line, &word, &value))
			continue;
		if (*value == '\0') {
			log_error("%s has no value; a line is an option without its dashes, then "
				  "its value",
				  word);
			rc = EXIT_USAGE;
		} else {
			rc = take(arg, word, value);
		}
		if (rc != -1)
			log_error("%s, line %u: correct this line, then try nbar-nicd --config %s "
				  "--check-config",
				  path, n, path);
	}
	free(text);
	return rc;
}
