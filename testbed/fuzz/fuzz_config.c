/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_config.c - the input is a configuration file of nbar-nicd, with descriptions of NICs.
 *
 * Either the file is refused with a message, or every NIC in it has a valid name and a wire.
 */
#include <getopt.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "log.h"
#include "options.h"

static unsigned messages;

/* Replaces the daemon's function: counts messages. It formats them, so a sanitizer checks the
 * arguments. */
void log_error(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fuzz_require(line[0]);
	messages++;
}

static void check_accepted(const struct options *o)
{
	fuzz_require(o->nnic >= 1 && o->nnic <= NBAR_NICS_MAX);
	for (uint32_t i = 0; i < o->nnic; i++) {
		const struct option_nic *n = &o->nic[i];

		fuzz_require(n->wire && n->name[0] && memchr(n->name, 0, sizeof(n->name)));
		for (uint32_t k = 0; k < i; k++)
			fuzz_require(strcmp(n->name, o->nic[k].name) != 0);
	}
	fuzz_require(o->set.config.pull_ns > 0 && o->set.config.pull_ns <= o->set.config.budget_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct options o;
	char path[64], *argv[] = { "nbar-nicd", "--config", path, "--check-config", NULL };
	int fd = memfd_create("config", MFD_CLOEXEC), rc;

	fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	messages = 0;
	optind = 0;
	rc = options_parse(4, argv, &o);
	close(fd);
	if (rc == 1)
		check_accepted(&o);
	else
		fuzz_require(rc < 0 && messages > 0);
	for (uint32_t i = 0; i < o.eal_argc; i++)
		free(o.eal_argv[i]);
	return 0;
}
