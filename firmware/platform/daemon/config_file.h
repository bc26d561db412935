/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_file.h - a file with options of nbar-nicd, one per line: a word and its value.
 *
 * Called by options.c for --config. Knows no option: the caller takes each line.
 */
#ifndef NBAR_DAEMON_CONFIG_FILE_H
#define NBAR_DAEMON_CONFIG_FILE_H

#define CONFIG_FILE_BYTES_MAX 65536u

/* Takes one line; the strings last for the call. -1: go on; else the exit status. */
typedef int config_file_take(void *arg, const char *word, const char *value);

/* Reads the file and calls take(arg, word, value) for each line that is no comment. A fault is
 * reported with file and line. -1: go on; else the exit status. */
int config_file_read(const char *path, config_file_take *take, void *arg);

#endif
