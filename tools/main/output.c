/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output.c - see output.h. The subcommands that measure call it.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

static int cannot_write(const struct output *o)
{
	int why = errno;

	if (o->is_std)
		tool_error("cannot write to stdout: %s; name a file with %s", strerror(why),
			   o->option);
	else
		tool_error("%s: cannot write %s: %s; %s, or name another file with %s", o->option,
			   o->path, strerror(why),
			   why == ENOENT                    ? "make its folder"
			   : why == ENOSPC || why == EDQUOT ? "make room there"
							    : "let it be written",
			   o->option);
	return TOOL_FAILED;
}

int output_open(struct output *o, const char *option, const char *path)
{
	int fd;

	*o = (struct output){ .option = option, .path = path };
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
	return o->file ? 0 : cannot_write(o);
}

/* Removes old content only when new content is ready; a pipe or terminal has no content. */
int output_begin(const struct output *o)
{
	struct stat st;

	if (o->is_std || fstat(fileno(o->file), &st) || !S_ISREG(st.st_mode) ||
	    !ftruncate(fileno(o->file), 0))
		return 0;
	return cannot_write(o);
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
	return bad && written ? cannot_write(o) : 0;
}
