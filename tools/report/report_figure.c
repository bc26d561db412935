/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_figure.c - draws figures by gnuplot, as SVG that takes its colours from the page.
 *
 * The script uses colours that are otherwise unused, rgb(0, 1, n). This file replaces them by
 * variables of the style sheet, so the same figure fits light, dark and paper.
 */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signals.h"
#include "tool.h"

/* Runs gnuplot: reads the script from `in`, writes the SVG to `out` and messages to `err`. */
static int run_gnuplot(FILE *in, FILE *out, FILE *err)
{
	int status;
	pid_t pid;

	fflush(in);
	rewind(in);
	pid = fork();
	if (pid == 0) {
		signals_unblock();
		if (dup2(fileno(in), 0) == 0 && dup2(fileno(out), 1) == 1 &&
		    dup2(fileno(err), 2) == 2)
			execlp("gnuplot", "gnuplot", "-d", "-", (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *read_back(FILE *f)
{
	long n = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
	char *text = n < 0 ? NULL : malloc((size_t)n + 1);

	rewind(f);
	if (text)
		text[fread(text, 1, (size_t)n, f)] = '\0';
	return text;
}

static const struct {
	const char *from, *to; /* @: the id of the figure */
} replaced[] = {
	{ " color=\"black\"", "" },
	{ " color=\"white\"", "" },
	{ "'black'", "'currentColor'" },
	{ "\"black\"", "\"currentColor\"" },
	{ "rgb(  0,   1,   0)", "var(--grid)" },
	{ " font-family=\"sans-serif\" ", " " },
	{ "id='gpPt", "id='@-pt" },
	{ "'#gpPt", "'#@-pt" },
	{ "id='gpDot", "id='@-dot" },
	{ "id=\"gnuplot", "id=\"@-gnuplot" },
	{ "xlink:href", "href" },
};

/* Writes the replacement for gnuplot's text at `at`, if there is one; returns the length of the
 * replaced text. */
static size_t replace(FILE *to, const char *at, const char *id)
{
	int colour, n = 0;

	for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++) {
		size_t length = strlen(replaced[i].from);

		if (strncmp(at, replaced[i].from, length))
			continue;
		for (const char *c = replaced[i].to; *c; c++)
			fputs(*c == '@' ? id : (const char[]){ *c, '\0' }, to);
		return length;
	}
	if (sscanf(at, "rgb(  0,   1,%4d)%n", &colour, &n) == 1 && n) {
		fprintf(to, "var(--c%d)", colour);
		return (size_t)n;
	}
	return 0;
}

/* Removes the parts that a page does not need: the prologue, the filters, and the title, which
 * browsers show when the pointer rests on the figure. */
static char *adapt(const char *svg, const char *id)
{
	static const char *const dropped[][2] = { { "<filter", "</filter>" },
						  { "<title>", "</title>" },
						  { "<desc>", "</desc>" } };
	const char *at = strstr(svg, "<svg");
	char *text = NULL;
	size_t length;
	FILE *to = at ? open_memstream(&text, &length) : NULL;

	if (!to)
		return NULL;
	while (*at) {
		const char *end = NULL;

		for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]) && !end; i++)
			if (!strncmp(at, dropped[i][0], strlen(dropped[i][0])) &&
			    (end = strstr(at, dropped[i][1])))
				at = end + strlen(dropped[i][1]);
		if (end)
			continue;
		size_t n = replace(to, at, id);

		if (n)
			at += n;
		else
			fputc(*at++, to);
	}
	if (fclose(to)) {
		free(text);
		return NULL;
	}
	return text;
}

char *report_figure(const struct report_result *r, const struct report_panel *panel, const char *id,
		    bool wide, enum report_missing *missing)
{
	FILE *in = tmpfile(), *out = tmpfile(), *err = tmpfile();
	char *svg = NULL, *adapted = NULL, *said;

	*missing = REPORT_NO_DATA;
	if (in && out && err && report_plot(r, panel, wide, in)) {
		int status = run_gnuplot(in, out, err);

		*missing = status == 127 ? REPORT_NO_GNUPLOT : REPORT_GNUPLOT_FAILED;
		svg = status ? NULL : read_back(out);
		adapted = svg ? adapt(svg, id) : NULL;
		said = adapted || status == 127 ? NULL : read_back(err);
		if (said)
			tool_error("gnuplot did not draw %s: %s", id, said);
		free(said);
		free(svg);
	}
	if (in)
		fclose(in);
	if (out)
		fclose(out);
	if (err)
		fclose(err);
	return adapted;
}
