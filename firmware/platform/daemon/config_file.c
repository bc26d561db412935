/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_file.c - reads a file of options. See config_file.h.
 */
#include "config_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "nbar_file.h"

/* Returns the text of the file, which the caller frees; or NULL after log_error(). */
static char *file_load(const char *path)
{
	char *text, reason[128];
	size_t n;
	int rc = nbar_file_read(path, CONFIG_FILE_BYTES_MAX, &text, &n);

	if (rc < 0) {
		log_error("--config %s: %s", path,
			  nbar_file_reason(rc, CONFIG_FILE_BYTES_MAX, reason, sizeof(reason)));
	} else if (memchr(text, '\0', n)) {
		log_error("--config %s: the file is not text", path);
		free(text);
		text = NULL;
	}
	return text;
}

/* Cuts the line into a word and its value, without blanks around them. False: the line is empty or
 * a comment. */
static bool file_split(char *line, char **word, char **value)
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
	char *text = file_load(path), *next = text, *line, *word, *value;
	int rc = 0;

	if (!next)
		return -EINVAL;
	for (unsigned n = 1; rc == 0 && (line = strsep(&next, "\n")); n++) {
		if (!file_split(line, &word, &value))
			continue;
		if (*value == '\0') {
			log_error("%s has no value; a line is an option without its dashes, then "
				  "its value",
				  word);
			rc = -EINVAL;
		} else {
			rc = take(arg, word, value);
		}
		if (rc < 0)
			log_error("%s, line %u: correct this line, then try nbar-nicd --config %s "
				  "--check-config",
				  path, n, path);
	}
	free(text);
	return rc;
}
