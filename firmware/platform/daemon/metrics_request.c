/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_request.c - reads the head of an HTTP request. See metrics_request.h.
 */
#include "metrics_request.h"

#include <string.h>
#include <strings.h>

#define OPEN_METRICS "application/openmetrics-text"

/* Finds the end of a line; *next: the line after it. NULL: the line has no end. */
static const char *line_end(const char *line, const char *end, const char **next)
{
	const char *stop = memchr(line, '\n', (size_t)(end - line));

	if (!stop)
		return NULL;
	*next = stop + 1;
	return stop > line && stop[-1] == '\r' ? stop - 1 : stop;
}

static bool is_word(const char *text, const char *end, const char *word)
{
	return (size_t)(end - text) == strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

/* Reads "GET /metrics HTTP/1.1". Ignores the part of the path after a '?'. */
static int first_line(const char *line, const char *end)
{
	const char *path, *path_end, *version;

	path = memchr(line, ' ', (size_t)(end - line));
	path_end = path ? memchr(path + 1, ' ', (size_t)(end - path - 1)) : NULL;
	if (!path_end || path == line || memchr(line, '\0', (size_t)(end - line)))
		return 400;
	version = path_end + 1;
	if (end - version != 8 || memcmp(version, "HTTP/1.", 7) != 0)
		return 400;
	if (!is_word(line, path, "GET"))
		return 405;
	path++;
	if (memchr(path, '?', (size_t)(path_end - path)))
		path_end = memchr(path, '?', (size_t)(path_end - path));
	return is_word(path, path_end, "/metrics") ? 200 : 404;
}

static bool accepts_open_metrics(const char *line, const char *end)
{
	static const char name[] = "Accept:", type[] = OPEN_METRICS;
	size_t n = sizeof(name) - 1, t = sizeof(type) - 1;

	if ((size_t)(end - line) < n || strncasecmp(line, name, n) != 0)
		return false;
	for (const char *at = line + n; (size_t)(end - at) >= t; at++)
		if (strncasecmp(at, type, t) == 0)
			return true;
	return false;
}

int metrics_request_read(const char *text, size_t n, bool *open_metrics)
{
	const char *end = text + n, *next, *stop = line_end(text, end, &next);
	int status;

	*open_metrics = false;
	if (!stop)
		return 0;
	status = first_line(text, stop);
	for (const char *line = next; (stop = line_end(line, end, &next)); line = next) {
		if (stop == line)
			return status;
		*open_metrics |= accepts_open_metrics(line, stop);
	}
	return 0;
}

const char *metrics_request_reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 431:
		return "Request Header Fields Too Large";
	}
	return "Internal Server Error";
}
