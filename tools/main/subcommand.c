/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subcommand.c - see subcommand.h.
 */
#include "subcommand.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

#define ARGS_MAX 4 /* words of a subcommand, --help and NULL */

static const struct tool_program *program;

/* True if the name of the subcommand is `word` and a second word. */
static bool is_below(const struct subcommand *s, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(s->name, word, n) && s->name[n] == ' ';
}

/* Prints all subcommands, or only the subcommands of two words that begin with `word`. */
static void subcommand_help(FILE *to, const char *word)
{
	fprintf(to, "usage: %s %s%sSUBCOMMAND [OPTION]...\n\n", program->name, word ? word : "",
		word ? " " : "");
	for (size_t i = 0; i < program->n; i++)
		if (!word || is_below(&program->table[i], word))
			fprintf(to, "  %-17s  %s\n", program->table[i].name,
				program->table[i].help);
	fprintf(to,
		"  help [SUBCOMMAND]  this text, or the help of a subcommand\n"
		"\n`%s SUBCOMMAND --help` lists its options.\n"
		"`%s --version` prints the version.\n",
		program->name, program->name);
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

/* Finds the subcommand that the first two words name, or else the first word. *words: 2 or 1. */
static const struct subcommand *subcommand_find(int argc, char **argv, int *words)
{
	char name[64];

	for (*words = argc > 1 ? 2 : 1; argc > 0 && *words; --*words) {
		snprintf(name, sizeof(name), "%s%s%s", argv[0], *words > 1 ? " " : "",
			 *words > 1 ? argv[1] : "");
		for (size_t i = 0; i < program->n; i++)
			if (!strcmp(program->table[i].name, name))
				return &program->table[i];
	}
	return NULL;
}

static int subcommand_run(const struct subcommand *s, int argc, char **argv)
{
	static char full[64]; /* every later message begins with this text */

	snprintf(full, sizeof(full), "%s %s", program->name, s->name);
	tool_begin(full);
	tool_json_begin();
	return s->run(argc, argv);
}

/* The first word is no subcommand. If it is the first word of several subcommands, lists them. */
static int help_below(int argc, char **argv, bool asked)
{
	bool below = false;

	for (size_t i = 0; i < program->n; i++)
		below |= is_below(&program->table[i], argv[0]);
	if (!below || (argc > 1 && !is_help(argv[1])))
		return tool_usage("no subcommand is called '%s%s%s'", argv[0], below ? " " : "",
				  below ? argv[1] : "");
	asked |= argc > 1;
	subcommand_help(asked ? stdout : stderr, argv[0]);
	return asked ? TOOL_OK : TOOL_USAGE;
}

static int run_help(int argc, char **argv)
{
	char option[] = "--help";
	char *args[ARGS_MAX] = { NULL };
	int words;
	const struct subcommand *s = subcommand_find(argc, argv, &words);

	if (!argc) {
		subcommand_help(stdout, NULL);
		return TOOL_OK;
	}
	if (!s)
		return help_below(argc, argv, true);
	memcpy(args, argv, (size_t)words * sizeof(*args));
	args[words] = option;
	return subcommand_run(s, words + 1, args);
}

static int run_words(int argc, char **argv)
{
	const struct subcommand *s;
	int words;

	if (argc < 2) {
		subcommand_help(stderr, NULL);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("%s " NBAR_VERSION_TEXT "\n", program->name);
		return TOOL_OK;
	}
	if (is_help(argv[1]))
		return run_help(argc - 2, argv + 2);
	s = subcommand_find(argc - 1, argv + 1, &words);
	return s ? subcommand_run(s, argc - 1, argv + 1) : help_below(argc - 1, argv + 1, false);
}

int subcommand_main(const struct tool_program *p, int argc, char **argv)
{
	program = p;
	tool_begin(p->name);
	/* A file that becomes longer than RLIMIT_FSIZE permits is an error of that file. */
	signal(SIGXFSZ, SIG_IGN);
	return tool_end(run_words(argc, argv));
}
