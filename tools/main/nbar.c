/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbar.c - the command: finds the subcommand in the table of subcommands.h and runs it.
 */
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define ARGS_MAX 4 /* words of a subcommand, --help and NULL */

static const struct subcommand {
	const char *name, *help;
	int (*run)(int argc, char **argv);
} subcommands[] = {
#define ROW(name, run, help) { name, help, run },
	SUBCOMMANDS(ROW)
#undef ROW
};
#define NSUBCOMMAND (sizeof(subcommands) / sizeof(subcommands[0]))

/* True if the name of the subcommand is `word` and a second word. */
static bool is_below(const struct subcommand *s, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(s->name, word, n) && s->name[n] == ' ';
}

/* Prints all subcommands, or only the subcommands of two words that begin with `word`. */
static void nbar_help(FILE *to, const char *word)
{
	fprintf(to, "usage: nbar %s%sSUBCOMMAND [OPTION]...\n\n", word ? word : "",
		word ? " " : "");
	for (size_t i = 0; i < NSUBCOMMAND; i++)
		if (!word || is_below(&subcommands[i], word))
			fprintf(to, "  %-17s  %s\n", subcommands[i].name, subcommands[i].help);
	fputs("  help [SUBCOMMAND]  this text, or the help of a subcommand\n"
	      "\n`nbar SUBCOMMAND --help` lists its options; `nbar --version` prints the version.\n",
	      to);
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

/* Finds the subcommand that the first two words name, or else the first word. *words: 2 or 1. */
static const struct subcommand *nbar_find(int argc, char **argv, int *words)
{
	char name[64];

	for (*words = argc > 1 ? 2 : 1; argc > 0 && *words; --*words) {
		snprintf(name, sizeof(name), "%s%s%s", argv[0], *words > 1 ? " " : "",
			 *words > 1 ? argv[1] : "");
		for (size_t i = 0; i < NSUBCOMMAND; i++)
			if (!strcmp(subcommands[i].name, name))
				return &subcommands[i];
	}
	return NULL;
}

static int run(const struct subcommand *s, int argc, char **argv)
{
	static char full[64]; /* every later message begins with this text */

	snprintf(full, sizeof(full), "nbar %s", s->name);
	tool_begin(full);
	tool_json_begin();
	return s->run(argc, argv);
}

/* The first word is no subcommand. If it is the first word of several subcommands, lists them. */
static int help_below(int argc, char **argv, bool asked)
{
	bool below = false;

	for (size_t i = 0; i < NSUBCOMMAND; i++)
		below |= is_below(&subcommands[i], argv[0]);
	if (!below || (argc > 1 && !is_help(argv[1])))
		return tool_usage("no subcommand is called '%s%s%s'", argv[0], below ? " " : "",
				  below ? argv[1] : "");
	asked |= argc > 1;
	nbar_help(asked ? stdout : stderr, argv[0]);
	return asked ? TOOL_OK : TOOL_USAGE;
}

static int run_help(int argc, char **argv)
{
	char option[] = "--help";
	char *args[ARGS_MAX] = { NULL };
	int words;
	const struct subcommand *s = nbar_find(argc, argv, &words);

	if (!argc) {
		nbar_help(stdout, NULL);
		return TOOL_OK;
	}
	if (!s)
		return help_below(argc, argv, true);
	memcpy(args, argv, (size_t)words * sizeof(*args));
	args[words] = option;
	return run(s, words + 1, args);
}

static int run_words(int argc, char **argv)
{
	const struct subcommand *s;
	int words;

	if (argc < 2) {
		nbar_help(stderr, NULL);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("nbar " NBAR_VERSION_TEXT);
		return TOOL_OK;
	}
	if (is_help(argv[1]))
		return run_help(argc - 2, argv + 2);
	s = nbar_find(argc - 1, argv + 1, &words);
	return s ? run(s, argc - 1, argv + 1) : help_below(argc - 1, argv + 1, false);
}

int main(int argc, char **argv)
{
	/* A file that becomes longer than RLIMIT_FSIZE permits is an error of that file. */
	signal(SIGXFSZ, SIG_IGN);
	return tool_end(run_words(argc, argv));
}
