/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_log.c - the messages of a daemon on stderr: one write for a line, and a priority where the
 * journal reads it.
 */
#include "unit/unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

static int ours, theirs, saved; /* stderr is one end of a pair, which keeps messages apart */
static char got[1024];

static int begin(void **state)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd),
			 0);
	ours = fd[0];
	theirs = fd[1];
	saved = dup(STDERR_FILENO);
	unsetenv("JOURNAL_STREAM");
	return 0;
}

static int end(void **state)
{
	unsetenv("JOURNAL_STREAM");
	close(ours);
	close(theirs);
	close(saved);
	return 0;
}

/* The one message that this text becomes. */
static const char *said(const char *text)
{
	ssize_t n;
	char more;

	dup2(theirs, STDERR_FILENO);
	log_error("%s", text);
	dup2(saved, STDERR_FILENO);
	n = recv(ours, got, sizeof(got) - 1, 0);
	assert_true(n > 0);
	got[n] = '\0';
	assert_int_equal(recv(ours, &more, 1, 0), -1);
	return got;
}

static void a_line_is_one_write(void **state)
{
	static char name[100], text[700], want[700];
	char *before = program_invocation_short_name;

	program_invocation_short_name = (char *)"nbar-x";
	assert_string_equal(said("no %s here"), "nbar-x: no %s here\n");
	/* Longer ones are cut, and still end with a newline. */
	memset(name, 'n', sizeof(name) - 1);
	memset(text, 't', sizeof(text) - 1);
	program_invocation_short_name = name;
	snprintf(want, sizeof(want), "%.64s: %.511s\n", name, text);
	assert_string_equal(said(text), want);
	program_invocation_short_name = before;
}

/* Only if stderr is the stream that the environment names. */
static void the_journal_reads_a_priority(void **state)
{
	struct stat st;
	char text[64];
	static const struct {
		const char *format;
		int device, inode;
		bool priority;
	} row[] = { { "%llu:%llu", 0, 0, true },  { "%llu:%llu", 1, 0, false },
		    { "%llu:%llu", 0, 1, false }, { "%llu", 0, 0, false },
		    { "%llu %llu", 0, 0, false }, { "x%llu:%llu", 0, 0, false } };

	assert_int_equal(fstat(theirs, &st), 0);
	program_invocation_short_name = (char *)"nbar-x";
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		snprintf(text, sizeof(text), row[i].format,
			 (unsigned long long)st.st_dev + (unsigned)row[i].device,
			 (unsigned long long)st.st_ino + (unsigned)row[i].inode);
		setenv("JOURNAL_STREAM", text, 1);
		assert_string_equal(said("text"),
				    row[i].priority ? "<3>nbar-x: text\n" : "nbar-x: text\n");
	}
}

UNIT_MAIN(NULL, NULL, UNIT_IN(a_line_is_one_write, begin, end),
	  UNIT_IN(the_journal_reads_a_priority, begin, end))
