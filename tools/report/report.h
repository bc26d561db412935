/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - what the files of `nbar report` share.
 *
 * report.c         the command: options, the folder, the steps
 * report_list.c    the experiments: their command lines, their figures
 * report_run.c     runs experiments, one after the other, as processes of this program
 * report_mpi.c     starts the experiments that are MPI programs
 * report_read.c    reads the results of experiments, and checks everything
 * report_page.c    the data of page.html: a page without other files; page.css is its style
 * report_section.c the data of section.html, the part of the page for one experiment
 * report_pair.c    names, keys and values, for report_page.c and report_section.c
 * report_figure.c  the figures of a result, by gnuplot
 * report_series.c  the rows of a result as lines, bars and fields
 * report_plot.c    the data of figure.gp, the script of a figure
 * template.c       fills data into page.html, section.html and figure.gp
 * report_points.c  published values in a figure
 * published.c      the table of published values
 */
#ifndef NBAR_TOOLS_REPORT_H
#define NBAR_TOOLS_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_PATH_MAX 4096u
#define REPORT_SERIES_MAX 2u
#define REPORT_PANELS_MAX 2u
#define REPORT_RANKS_MAX 8 /* of an MPI program on one machine */

enum report_kind { REPORT_LINES, REPORT_BARS, REPORT_HEAT };

/* A figure, described by the names of the columns of a result. A figure without its columns is left
 * out. */
struct report_panel {
	enum report_kind kind;
	const char *title;
	const char *x, *y;                     /* REPORT_BARS: x is a text */
	const char *value;                     /* REPORT_HEAT: gives the colour of field (x, y) */
	const char *series[REPORT_SERIES_MAX]; /* the first gives a line its colour, the second
						* its dashes */
	bool log_x, log_y;
	const char *only, *only_value; /* rows that have this value in this column; NULL: all */
};

enum report_length { REPORT_DEFAULT, REPORT_QUICK, REPORT_THOROUGH, REPORT_LENGTHS };

struct report_experiment {
	const char *name; /* NAME.json, NAME.csv; for --only */
	const char *title, *text;
	/* By enum report_length: arguments after "nbar", separated by spaces, and the estimated
	 * seconds on two cores. If a command is NULL, the command of REPORT_DEFAULT is used. No
	 * command is the beginning of another command. */
	const char *command[REPORT_LENGTHS];
	double seconds[REPORT_LENGTHS];
	const char *file, *file_option; /* NULL, or the last argument: a file in the folder */
	bool mpi;                       /* started by an MPI's launcher */
	const char *best, *best_text; /* the column whose greatest value is the summary; or NULL */
	struct report_panel panel[REPORT_PANELS_MAX];
};

static inline enum report_length report_length_of(const struct report_experiment *e,
						  enum report_length length)
{
	return e->command[length] ? length : REPORT_DEFAULT;
}

extern const struct report_experiment report_experiments[];
extern const uint32_t report_nexperiment;

struct report_options {
	const char *dir;
	enum report_length length;
	bool resume, render_only;
	const char *mpirun; /* words that start an MPI program; NULL: report_mpi.c makes them */
	bool wanted[32];    /* by index in report_experiments */
};

/* Writes the path DIR/NAME.SUFFIX to `out`. */
void report_path(const struct report_options *opt, const char *name, const char *suffix, char *out,
		 size_t size);

/* A result as read from its file. columns and rows are parts of root. */
struct report_result {
	json_t *root;
	json_t *columns, *rows;
	size_t ncolumn;
};

enum report_found { REPORT_READ, REPORT_NONE, REPORT_BROKEN };

/* Reads the result of an experiment. REPORT_NONE: no file, or an empty file. REPORT_BROKEN: `why`
 * has the message. */
enum report_found report_read(const char *path, struct report_result *out, char *why, size_t size);
void report_result_free(struct report_result *r);

/* Index of the column of this name, or -1. */
int report_column(const struct report_result *r, const char *name);

/* Text of a value. A real number gets this many digits after the point. */
void report_value(const json_t *value, int digits, char *out, size_t size);

/* Number of digits that distinguish the values of a column. */
int report_digits(const struct report_result *r, size_t column);

/* Runs the wanted experiments that have no result yet. 0, or an exit code after a message. *begun:
 * the folder could be used; *interrupted: a signal ended the experiments. */
int report_run(const struct report_options *opt, bool *begun, bool *interrupted);

/* NULL, or the reason why an MPI program cannot run. */
const char *report_mpi_missing(const struct report_options *opt);

/* Called in the child process that will run an MPI program: writes the words of the launcher and
 * the path of this program to argv. Returns their number. */
int report_mpi_begin(const struct report_options *opt, char **argv, int room);

/* Writes DIR/index.html from the results in DIR. 0, or an exit code after a message;
 * may_be_none: no message if there are no results. */
int report_page(const struct report_options *opt, bool may_be_none);

/* Writes a part of the page; notes in *drawn if a figure could not be drawn. */
struct report_drawn {
	bool no_gnuplot, failed;
};
void report_section(const struct report_result *r, const struct report_experiment *e, FILE *to,
		    struct report_drawn *drawn);

/* The name of a key or column for a reader: spaces replace '_'. */
json_t *report_name(const char *name);

/* Appends {key, value} to pairs for each member of the object. */
void report_pairs_add(json_t *pairs, json_t *object);

/* Writes the script for a figure. False if it would have no data. */
bool report_plot(const struct report_result *r, const struct report_panel *panel, bool wide,
		 FILE *to);

/* Published values in a figure. ..._data writes the data, and returns the number of lines in the
 * key; ..._plot writes the plot commands; ..._there is true if the figure has published values. The
 * key marks them with an asterisk. */
uint32_t report_points_data(const struct report_result *r, const struct report_panel *panel,
			    FILE *to);
void report_points_plot(const struct report_result *r, const struct report_panel *panel, FILE *to);
bool report_points_there(const struct report_result *r, const struct report_panel *panel);

/* SVG of a figure for a page. Its ids begin with `id`; its colours are variables of the page's
 * style. The caller frees it. NULL: there is no figure, and *missing says why. */
enum report_missing { REPORT_NO_DATA, REPORT_NO_GNUPLOT, REPORT_GNUPLOT_FAILED };
char *report_figure(const struct report_result *r, const struct report_panel *panel, const char *id,
		    bool wide, enum report_missing *missing);

#endif
