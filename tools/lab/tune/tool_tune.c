/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool_tune.c - `nbar-lab tune`: composes the barrier that fits a profile, shows it, and writes it
 * as a C program.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "compose.h"
#include "emit.h"
#include "lab.h"
#include "option.h"
#include "output.h"
#include "tool.h"
#include "tool_hosts.h"

enum { OPT_HOSTS = 256, OPT_EMIT };

static const struct option long_options[] = {
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ "emit", required_argument, NULL, OPT_EMIT },
	{ "output", required_argument, NULL, 'o' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct tune_options {
	const char *profile, *hosts, *output;
	bool emit;
};

static void tune_usage(FILE *to)
{
	fputs("usage: nbar-lab tune PROFILE [OPTION]...\n"
	      "Composes the best barrier for a cluster from its profile and shows it: clusters,\n"
	      "the algorithm of each, and predictions for it and for flat barriers.\n\n"
	      "  --hosts LIST      the host of each rank (all hosts, in the profile's order)\n"
	      "  --emit c          write the barrier as C, for MPI programs\n"
	      "  -o, --output FILE file for --emit; - is stdout (-)\n"
	      "nbar bench --alg tuned:PROFILE composes this barrier by itself.\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
	      to);
}

static int tune_read_option(void *arg, int c, const char *value)
{
	struct tune_options *o = arg;

	switch (c) {
	case OPT_HOSTS:
		return option_text(&o->hosts, value);
	case OPT_EMIT:
		o->emit = !strcmp(value, "c");
		return o->emit ? 0 : tool_usage("--emit: '%s' is not c", value);
	}
	return option_text(&o->output, value);
}

static int tool_tune_parse(int argc, char **argv, struct tune_options *o, bool *help)
{
	int r;

	*o = (struct tune_options){ .output = "-" };
	r = option_each(argc, argv, 1, ":o:h", long_options, tune_read_option, o, help);
	if (!r && !*help && optind + 1 != argc)
		return tool_usage("name one profile");
	o->profile = argv[optind];
	return r;
}

static void tune_show(const struct tool_hosts *h, const struct compose *c, double seconds)
{
	char name[NBAR_NAME_MAX];

	nbfw_alg_name(c->alg, name);
	if (c->scheme) {
		char *tree = tool_hosts_tree(h, c->scheme);

		fputs(tree ? tree : "no memory to show the clusters\n", stdout);
		free(tree);
	} else {
		printf("flat: %s among all %u\n", name, h->size);
	}
	printf("predicted: %.2f us; the best flat barrier, %s: %.2f us\n", c->predicted_s * 1e6,
	       name, c->flat_s * 1e6);
	if (c->error > 0)
		printf("the best flat barrier takes %.2f times as long as predicted; median deviation "
		       "of the measured flat barriers: %.1f %%\n",
		       c->scale, c->error * 100);
	printf("%u members, %u signals, profile %016llx; composed in %.4f s of a processor, %u changes tried\n",
	       h->size, c->schedule->nsignal, (unsigned long long)profile_digest(h->profile),
	       seconds, c->tried);
}

static int tune_emit(const struct tune_options *o, const struct tool_hosts *h,
		     const struct compose *c)
{
	struct output out;
	int r = output_open(&out, "--output", o->output);

	if (!r)
		r = output_begin(&out);
	if (!r) {
		emit_c(c->schedule, h->profile, h->host, out.file);
		r = output_close(&out, true);
	}
	return r;
}

static double processor_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int tool_tune(int argc, char **argv)
{
	struct tune_options o;
	struct tool_hosts h;
	struct compose c;
	const char *why;
	double begun;
	bool help;
	int r = tool_tune_parse(argc, argv, &o, &help);

	if (option_ends(r, help, tune_usage))
		return r;
	r = tool_hosts_read(&h, o.profile, o.hosts);
	if (r)
		return r;
	begun = processor_s();
	if (compose(h.profile, h.host, h.size, &c, &why)) {
		tool_error("%s: no barrier for %u members: %s", o.profile, h.size, why);
		r = TOOL_FAILED;
	} else {
		double seconds = processor_s() - begun;

		if (o.emit)
			r = tune_emit(&o, &h, &c);
		else
			tune_show(&h, &c, seconds);
		compose_free(&c);
	}
	tool_hosts_free(&h);
	return r;
}
