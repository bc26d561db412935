/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - writes all messages to stderr. Each line is one write, so lines of two threads do not
 * mix.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "log.h"

/* True if stderr is the journal's stream: systemd gives its device and inode. There, a line may
 * begin with a priority. */
static int is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(fileno(stderr), &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_error(const char *format, ...)
{
	char text[512], line[600];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "%s%.64s: %s\n", is_journal() ? "<3>" : "",
		 program_invocation_short_name, text);
	fputs(line, stderr); /* one write; fprintf may write in parts of 128 bytes */
}
