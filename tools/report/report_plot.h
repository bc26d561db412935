/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report_plot.h - the data of a figure: report_series.c makes it from a result, report_plot.c
 * writes it into the script. Other files do not use it.
 */
#ifndef NBAR_TOOLS_REPORT_PLOT_H
#define NBAR_TOOLS_REPORT_PLOT_H

#include "report.h"

#define LINES_MAX 48u
#define WORD 48u

/* The distinct values of a column, in order of first appearance. */
struct values {
	char word[LINES_MAX][WORD];
	uint32_t n;
};

struct figure {
	const struct report_result *r;
	const struct report_panel *panel;
	int x, y, value, series[REPORT_SERIES_MAX], only;
	struct values colour, dash, xs, ys;
	bool used[LINES_MAX][LINES_MAX]; /* lines with colour i and dash k */
	uint32_t nline, marks;           /* marks: of published values */
	char *data;
	double least, most; /* of a heat map */
};

/* Copies text; replaces characters that gnuplot may not take as part of a word by '?'. */
void plot_harmless(const char *text, char *out, size_t size);

/* The value of a column in a row, as a harmless word. */
void plot_word(const struct report_result *r, size_t row, int column, char out[WORD]);

/* The index of a word in v; adds the word if it is new. LINES_MAX: no room. */
uint32_t plot_index(struct values *v, const char *word);

/* The number in a row and column; false if it cannot be drawn. */
bool plot_number(const struct report_result *r, size_t row, int column, bool log, double *out);

/* True if the row belongs to the figure. */
bool plot_has(const struct figure *f, size_t row);

/* Finds the columns; false if a necessary column is missing. */
bool plot_begin(struct figure *f, const struct report_result *r, const struct report_panel *p);

/* Sorts rows into lines; writes their data and published values. False: there is no data. */
bool plot_lines(struct figure *f, FILE *to);

/* Finds the cells of a heat map, and the least and greatest value. False: there is no cell. */
bool plot_heat(struct figure *f);

#endif
