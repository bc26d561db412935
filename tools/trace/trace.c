/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - `nbar trace`: a timeline of what NICs have noted (nbar-nicd --trace).
 *
 * It only reads files; it sends no request to a NIC, so it does not slow a NIC down.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "option.h"
#include "output.h"
#include "subcommands.h"
#include "tool.h"
#include "trace_set.h"

struct trace_options {
	const char *output;
	bool slowest;
};

static void trace_usage(FILE *to)
{
	fputs("usage: nbar trace [OPTION]... [NIC|FILE]...\n"
	      "Writes the last events of NICs as a timeline: open it at https://ui.perfetto.dev\n"
	      "or chrome://tracing. Daemons with --trace N keep the last N events of each NIC.\n"
	      "NIC is a name (n0); FILE is a copy of RUN_DIR/NIC.trace, of any machine; without\n"
	      "any, all NICs of the run directory are in the timeline.\n\n"
	      "  -o, --output FILE  the timeline; \"-\", the default, is stdout\n"
	      "  --slowest          only events during the slowest barrier, and around it\n"
	      "  --run-dir DIR      run directory of the daemon ($NBAR_RUN_DIR, or else\n"
	      "                     /run/nbar for root, $XDG_RUNTIME_DIR/nbar, /tmp/nbar-UID)\n"
	      "  -h, --help         this text\n"
	      "\nA process of the timeline is a NIC; a track is a group; a slice is a barrier,\n"
	      "from its start to its completion. Marks show when a host arrives, small slices\n"
	      "are frames, and an arrow leads from a sent frame to the received frame. NICs of\n"
	      "one machine share a clock. The frames between machines align the clocks of\n"
	      "several machines; stderr says how exactly.\n",
	      to);
}

static int trace_read_option(void *arg, int c, const char *value)
{
	struct trace_options *opt = arg;

	switch (c) {
	case 'o':
		return option_text(&opt->output, value);
	case 's':
		return option_flag(&opt->slowest);
	}
	return option_run_dir(value);
}

static int trace_parse(int argc, char **argv, struct trace_options *opt, bool *help)
{
	static const struct option long_options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "slowest", no_argument, NULL, 's' },
		{ "run-dir", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};

	return option_each(argc, argv, 1, ":ho:", long_options, trace_read_option, opt, help);
}

static int trace_add(struct trace_set *s, const char *path)
{
	if (s->nlog == TRACE_LOGS_MAX)
		return tool_usage("at most %u traces", TRACE_LOGS_MAX);
	return trace_file_read(path, &s->log[s->nlog++]);
}

/* Adds the trace of a NIC, by its name or by a path. */
static int add_name(struct trace_set *s, const char *name)
{
	char dir[512], path[1024];

	if (strchr(name, '/') || strstr(name, NBAR_TRACE_SUFFIX))
		return trace_add(s, name);
	nbar_run_dir_find(dir, sizeof(dir));
	snprintf(path, sizeof(path), "%s/%s" NBAR_TRACE_SUFFIX, dir, name);
	return trace_add(s, path);
}

static int trace_is_trace(const struct dirent *e)
{
	size_t n = strlen(e->d_name), k = strlen(NBAR_TRACE_SUFFIX);

	return n > k && strcmp(e->d_name + n - k, NBAR_TRACE_SUFFIX) == 0;
}

static int add_all(struct trace_set *s)
{
	struct dirent **e = NULL;
	char dir[512], path[1024];
	int n, r = 0;

	nbar_run_dir_find(dir, sizeof(dir));
	n = scandir(dir, &e, trace_is_trace, versionsort);
	if (n <= 0) {
		tool_error("no trace in %s%s%s: start nbar-nicd with --trace N, or name its run "
			   "directory by --run-dir",
			   dir, n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
		r = TOOL_FAILED;
	}
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, e[i]->d_name);
		if (!r)
			r = trace_add(s, path);
		free(e[i]);
	}
	free(e);
	return r;
}

/* Prints on stderr how exactly the clocks are aligned. */
static void say_clocks(const struct trace_set *s)
{
	for (uint32_t l = 0; l < s->nlog; l++) {
		const struct trace_clock *c = &s->clock[s->log[l].clock];
		bool first = true;

		for (uint32_t k = 0; k < l; k++)
			first &= s->log[k].clock != s->log[l].clock;
		if (!first || s->log[l].clock == 0)
			continue;
		if (c->aligned)
			fprintf(stderr, "clock of %s: aligned by %u frames, to within %.1f us\n",
				s->log[l].host, c->frames, (double)c->within / 1e3);
		else
			fprintf(stderr,
				"clock of %s: not aligned, because no frames in both directions "
				"are in the traces\n",
				s->log[l].host);
	}
}

static void say_summary(const struct trace_set *s, const struct trace_summary *sum)
{
	uint64_t lost = 0;

	for (uint32_t l = 0; l < s->nlog; l++)
		lost += s->log[l].lost;
	fprintf(stderr, "NICs: %u, events: %llu (older ones overwritten: %llu), barriers: %llu\n",
		s->nlog, (unsigned long long)sum->events, (unsigned long long)lost,
		(unsigned long long)sum->barriers);
	if (sum->any)
		fprintf(stderr, "slowest: barrier %u of group %u, rank %u, at %s of %s: %.1f us\n",
			sum->epoch, sum->index, sum->rank, s->log[sum->log].nic,
			s->log[sum->log].host, (double)(sum->end - sum->begin) / 1e3);
}

static int write_timeline(const struct trace_set *s, const struct trace_options *opt)
{
	struct trace_window w = { .all = !opt->slowest };
	struct trace_summary sum;
	struct output file;
	int r;

	trace_summarize(s, &sum);
	if (opt->slowest && !sum.any) {
		tool_error(
			"no whole barrier is in the traces; keep more events: nbar-nicd --trace N");
		return TOOL_FAILED;
	}
	/* Shows a tenth of the barrier's time before and after the barrier, too. */
	w.begin = sum.begin - (sum.end - sum.begin) / 10;
	w.end = sum.end + (sum.end - sum.begin) / 10;
	r = output_open(&file, "--output", opt->output);
	if (!r)
		r = output_begin(&file);
	if (r)
		return r;
	if (trace_draw(s, &w, file.file) < 0) {
		tool_error("no memory for the timeline: free some, and try again");
		r = TOOL_FAILED;
	}
	r |= output_close(&file, !r);
	if (!r) {
		say_clocks(s);
		say_summary(s, &sum);
	}
	return r;
}

int tool_trace(int argc, char **argv)
{
	struct trace_options opt = { .output = "-" };
	struct trace_set *s;
	bool help = false;
	int r = trace_parse(argc, argv, &opt, &help);

	if (option_ends(r, help, trace_usage))
		return r;
	s = tool_alloc(1, sizeof(*s));
	if (optind == argc)
		r = add_all(s);
	for (int i = optind; i < argc && !r; i++)
		r = add_name(s, argv[i]);
	if (!r && trace_match(s) < 0) {
		tool_error("no memory for the frames: free some, and try again");
		r = TOOL_FAILED;
	}
	if (!r)
		r = write_timeline(s, &opt);
	for (uint32_t l = 0; l < s->nlog; l++)
		free(s->log[l].event);
	free(s->frame);
	free(s);
	return r;
}
