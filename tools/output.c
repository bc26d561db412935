/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output.c - see output.h. Called by the subcommands that measure.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

int output_open(struct output *o, const char *option, const char *path)
{
	int fd;

	*o = (struct output){ .path = path };
	if (!path)
		return 0;
	if (!strcmp(path, "-")) {
		o->file = stdout;
		o->is_std = true;
		return 0;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	o->ours = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	o->file = fd < 0 ? NULL : fdopen(fd, "w");
	if (o->file)
		return 0;
	tool_error("%s: cannot write %s: %s", option, path, strerror(errno));
	return TOOL_FAILED;
}

/* Old content goes only when new content is at hand; a pipe or terminal has none. */
int output_begin(const struct output *o)
{
	struct stat st;

	if (o->is_std || fstat(fileno(o->file), &st) || !S_ISREG(st.st_mode) ||
	    !ftruncate(fileno(o->file), 0))
		return 0;
	tool_error("cannot write %s: %s", o->path, strerror(errno));
	return TOOL_FAILED;
}

int output_close(struct output *o, bool written)
{
	bool bad;

	if (!o->file)
		return 0;
	bad = ferror(o->file) != 0;
	bad |= (o->is_std ? fflush(o->file) : fclose(o->file)) != 0;
	if (!written && o->ours)
		unlink(o->path);
	o->file = NULL;
	if (!bad || !written)
		return 0;
	tool_error("cannot write %s: %s", o->is_std ? "to stdout" : o->path, strerror(errno));
	return TOOL_FAILED;
}
