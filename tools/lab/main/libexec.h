/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libexec.h - finds programs that subcommands start, and that users do not.
 */
#ifndef NBAR_TOOLS_LIBEXEC_H
#define NBAR_TOOLS_LIBEXEC_H

#include <stdbool.h>
#include <stddef.h>

/* Finds a file in libexec/nbar beside this program, or one folder up, where it is installed. */
bool libexec_find(const char *name, char *out, size_t size);

#endif
