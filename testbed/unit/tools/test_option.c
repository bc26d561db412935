/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_option.c - what the subcommands share for their command lines, files and lines of progress:
 * each refusal names what is wrong, times are computed, and no failed file is left behind.
 */
#include "unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher.h"
#include "option.h"
#include "output.h"
#include "progress.h"
#include "unit/said.h"
#include "tool.h"

static bool terminal;
static uint64_t now;

int __wrap_isatty(int fd)
{
	return fd == STDERR_FILENO && terminal;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	assert_int_equal(id, CLOCK_MONOTONIC);
	*out = (struct timespec){ (time_t)(now / 1000000000), (long)(now % 1000000000) };
	return 0;
}

/* Compares the text on stderr since said_begin(). */
static void said_is(const char *want)
{
	assert_string_equal(said_end(), want);
}

/* --- options ------------------------------------------------------------------------------- */

static char read_as[256]; /* each option that was read, and its value */

static int note(void *arg, int c, const char *value)
{
	size_t n = strlen(read_as);

	assert_ptr_equal(arg, &now);
	snprintf(read_as + n, sizeof(read_as) - n, "%c=%s ", c, value ? value : "");
	return c == 'e' ? 7 : 0;
}

/* A line of words. Returns what option_all or option_each returns. */
static int line(bool all, const char *text, bool *help)
{
	static const struct option options[] = { { "value", required_argument, NULL, 'v' },
						 { "flag", no_argument, NULL, 'f' },
						 { "end", no_argument, NULL, 'e' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	static char copy[128], *word[16];
	int n = 2;

	snprintf(copy, sizeof(copy), "%s", text);
	word[0] = (char *)"nbar";
	word[1] = (char *)"sub";
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		word[n++] = w;
	word[n] = NULL;
	optind = 0; /* a new process */
	getopt(1, word, "");
	read_as[0] = '\0';
	*help = true;
	return (all ? option_all : option_each)(n, word, 2, ":v:feh", options, note, &now, help);
}

static void lines_of_options(void **state)
{
	static const struct {
		const char *text, *read;
		int result;
		bool help;
		const char *said;
	} row[] = {
		{ "", "", 0, false, "" },
		{ "-f --value 3 -v4", "f= v=3 v=4 ", 0, false, "" },
		{ "-f -h -v 1", "f= ", 0, true, "" },
		{ "--help more", "", 0, true, "" },
		{ "-e -f", "e= ", 7, false, "" },
		{ "-e more", "e= ", 7, false, "" },
		{ "-f -v", "f= ", TOOL_USAGE, false, "sub: -v needs a value\ntry `sub --help`\n" },
		{ "-f --odd -f", "f= ", TOOL_USAGE, false,
		  "sub: unknown option --odd\ntry `sub --help`\n" },
		{ "-f more -v 2", "f= v=2 ", TOOL_USAGE, false,
		  "sub: 'more' is not an option; all arguments must be options\ntry `sub --help`\n" },
	};
	bool help;

	tool_begin("sub");
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		said_begin();
		assert_int_equal(line(true, row[i].text, &help), row[i].result);
		said_is(row[i].said);
		assert_string_equal(read_as, row[i].read);
		assert_int_equal(help, row[i].help);
	}
	said_begin();
	assert_int_equal(line(false, "-f more last", &help), 0);
	said_is("");
	assert_int_equal(optind, 3); /* the first of the others, which getopt moves to the end */
}

static void values(void **state)
{
	static const char *const words[] = { "spin", "yield", "sleep" };
	struct experiment_options files = { 0 };
	uint32_t n = 5;
	uint64_t seed = 5;

	tool_begin("sub");
	said_begin();
	assert_int_equal(option_u32("--n", "3", 3, 9, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(option_u32("--n", "9", 3, 9, &n), 0);
	assert_int_equal(n, 9);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(option_word("--w", words[i], words, 3, &n), 0);
		assert_int_equal(n, i);
	}
	assert_int_equal(option_common(OPTION_SEED, "18446744073709551615", &seed, &files), 0);
	assert_true(seed == UINT64_MAX);
	assert_int_equal(option_common(OPTION_JSON, "j", &seed, &files), 0);
	assert_int_equal(option_common(OPTION_CSV, "-", &seed, &files), 0);
	assert_int_equal(option_common(OPTION_RAW, "r", &seed, &files), 0);
	assert_string_equal(files.json, "j");
	assert_string_equal(files.csv, "-");
	assert_string_equal(files.raw, "r");
	assert_int_equal(option_files_check(&files), 0);
	said_is("");
	said_begin();
	assert_int_equal(option_u32("--n", "2", 3, 9, &n), TOOL_USAGE);
	assert_int_equal(option_u32("--n", "10", 3, 9, &n), TOOL_USAGE);
	assert_int_equal(option_word("--w", "spi", words, 2, &n), TOOL_USAGE);
	assert_int_equal(option_word("--w", "sleep", words, 2, &n), TOOL_USAGE);
	assert_int_equal(option_common(OPTION_SEED, "-1", &seed, &files), TOOL_USAGE);
	assert_int_equal(option_common('x', "1", &seed, &files), TOOL_USAGE);
	files.raw = "-";
	assert_int_equal(option_files_check(&files), TOOL_USAGE);
	files.json = "-";
	files.csv = NULL;
	assert_int_equal(option_files_check(&files), TOOL_USAGE);
#define HELP "\ntry `sub --help`\n"
	said_is("sub: --n: '2' is not a number from 3 to 9" HELP
		"sub: --n: '10' is not a number from 3 to 9" HELP
		"sub: --w: 'spi' is none of spin, yield" HELP
		"sub: --w: 'sleep' is none of spin, yield" HELP
		"sub: --seed: '-1' is not a number" HELP "sub: it cannot be read" HELP
		"sub: --json -, --csv - and --raw - cannot go to stdout together" HELP
		"sub: --json -, --csv - and --raw - cannot go to stdout together" HELP);
	assert_int_equal(n, 2);
	assert_true(seed == UINT64_MAX);
	assert_int_equal(option_run_dir("/somewhere"), 0);
	assert_string_equal(getenv("NBAR_RUN_DIR"), "/somewhere");
	unsetenv("NBAR_RUN_DIR");
}

static uint32_t nusage;

static void usage(FILE *to)
{
	assert_ptr_equal(to, stdout);
	nusage++;
}

static void what_ends_a_subcommand(void **state)
{
	assert_false(option_ends(0, false, usage));
	assert_true(option_ends(TOOL_USAGE, false, usage));
	assert_int_equal(nusage, 0);
	assert_true(option_ends(0, true, usage));
	assert_int_equal(nusage, 1);
}

/* --- progress ------------------------------------------------------------------------------ */

static void times_in_words(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} row[] = { { 0, "0 s" },
		    { 0.49, "0 s" },
		    { 0.5, "1 s" },
		    { 59.4, "59 s" },
		    { 59.5, "1 m 0 s" },
		    { 3599.4, "59 m 59 s" },
		    { 3599.5, "1 h 0 m" },
		    { 7322, "2 h 2 m" },
		    { 1e9, "277777 h 46 m" },
		    { 1e30, "277777 h 46 m" } };
	char text[32];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		progress_time(row[i].seconds, text, sizeof(text));
		assert_string_equal(text, row[i].text);
	}
}

static void a_line_of_progress(void **state)
{
	struct progress p;

	terminal = true;
	now = UINT64_C(50000000000);
	progress_begin(&p, 8);
	said_begin();
	progress_show(&p, "point %u", 1u);
	progress_add(&p, 0.25);
	progress_add(&p, 0.75);
	now += UINT64_C(15000000000);
	progress_show(&p, "half of it");
	progress_add(&p, 1);
	now += UINT64_C(15000000000);
	progress_show(&p, "point %u", 2u);
	progress_add(&p, 6);
	progress_show(&p, "all");
	progress_end(&p);
	progress_end(&p);
	progress_show(&p, "no more");
	said_is("\r\033[K[                        ] 0 %  point 1"
		"\r\033[K[###                     ] 12 %, 1 m 45 s left  half of it"
		"\r\033[K[######                  ] 25 %, 1 m 30 s left  point 2"
		"\r\033[K[########################] 100 %  all\r\033[K");
	progress_begin(&p, 0); /* nothing to do */
	said_begin();
	progress_show(&p, "none");
	progress_end(&p);
	said_is("\r\033[K[########################] 100 %  none\r\033[K");
	terminal = false;
	progress_begin(&p, 8);
	said_begin();
	progress_show(&p, "point %u", 1u);
	progress_end(&p);
	said_is("");
}

/* --- files --------------------------------------------------------------------------------- */

static char dir[32], path[64];

static void in_file(const char *want)
{
	char text[64] = "";
	FILE *f = fopen(path, "r");

	if (!want) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(text, want);
}

/* A new file stays only if it was written; an old one keeps its content until new content is there.
 */
static void files_of_results(void **state)
{
	struct output o;
	int before = dup(STDIN_FILENO), fd;
	struct stat st;

	umask(022);
	close(before);
	for (uint32_t i = 0; i < 4; i++) {
		bool old = i & 1, is_written = i & 2;

		if (old) {
			FILE *f = fopen(path, "w");

			fputs("old text", f);
			fclose(f);
		}
		assert_int_equal(output_open(&o, "--json", path), 0);
		in_file(old ? "old text" : "");
		assert_int_equal(fstat(fileno(o.file), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0644);
		if (is_written) {
			assert_int_equal(output_begin(&o), 0);
			fputs("new", o.file);
		}
		assert_int_equal(output_close(&o, is_written), 0);
		assert_null(o.file);
		assert_int_equal(output_close(&o, is_written), 0);
		in_file(is_written ? "new" : old ? "old text" : NULL);
		unlink(path);
	}
	assert_int_equal(output_open(&o, "--json", NULL), 0);
	assert_null(o.file);
	assert_int_equal(output_open(&o, "--json", "-"), 0);
	assert_ptr_equal(o.file, stdout);
	assert_int_equal(output_begin(&o), 0);
	assert_int_equal(output_close(&o, true), 0);
	assert_int_equal(fcntl(STDOUT_FILENO, F_GETFD), 0);
	fd = dup(STDIN_FILENO);
	assert_int_equal(fd, before);
	close(fd);
}

static void files_that_cannot_be_written(void **state)
{
	char missing[96], want[512];
	struct output o;

	snprintf(missing, sizeof(missing), "%s/none/file", dir);
	said_begin();
	assert_int_equal(output_open(&o, "--csv", missing), TOOL_FAILED);
	assert_int_equal(output_open(&o, "--csv", dir), TOOL_FAILED);
	assert_int_equal(output_open(&o, "--csv", "/dev/full"), 0);
	assert_int_equal(output_begin(&o), 0); /* it is no file that has a length */
	fputs("text", o.file);
	assert_int_equal(output_close(&o, true), TOOL_FAILED);
	assert_int_equal(output_open(&o, "--csv", "/dev/full"), 0);
	fputs("text", o.file);
	assert_int_equal(output_close(&o, false), 0); /* another error has been said */
	snprintf(
		want, sizeof(want),
		"sub: --csv: cannot write %s: No such file or directory; make its folder, or name another "
		"file with --csv\n"
		"sub: --csv: cannot write %s: Is a directory; let it be written, or name another file with "
		"--csv\n"
		"sub: --csv: cannot write /dev/full: No space left on device; make room there, or name "
		"another file with --csv\n",
		missing, dir);
	said_is(want);
	assert_int_equal(access("/dev/full", F_OK), 0);
}

static int begin(void **state)
{
	tool_begin("sub");
	strcpy(dir, "/tmp/nbar-option-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	return 0;
}

static int end(void **state)
{
	return rmdir(dir);
}

/* --- launchers ----------------------------------------------------------------------------- */

/* Open MPI's mpirun sets both of its variables. */
static void launchers(void **state)
{
	assert_null(launcher_mpi());
	assert_true(launcher_is_first());
	setenv("PMIX_RANK", "0", 1);
	assert_string_equal(launcher_mpi(), "openmpi");
	assert_true(launcher_is_first());
	setenv("PMI_RANK", "10", 1);
	assert_string_equal(launcher_mpi(), "mpich");
	assert_false(launcher_is_first());
	setenv("OMPI_COMM_WORLD_RANK", "0", 1);
	assert_string_equal(launcher_mpi(), "openmpi");
	assert_true(launcher_is_first());
}

UNIT_MAIN(NULL, NULL, UNIT(lines_of_options), UNIT(values), UNIT(what_ends_a_subcommand),
	  UNIT(times_in_words), UNIT(a_line_of_progress), UNIT_IN(files_of_results, begin, end),
	  UNIT_IN(files_that_cannot_be_written, begin, end), UNIT(launchers))
