/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config_file.h - a file with options of nbar-nicd, one per line: a word and its value.
 *
 * Called by options.c for --config. It knows no option: the caller interprets each line.
 */
#ifndef NBAR_DAEMON_CONFIG_FILE_H
#define NBAR_DAEMON_CONFIG_FILE_H

#define CONFIG_FILE_BYTES_MAX 65536u

/* Interprets one line; the strings are valid during the call. Returns 0, or
 * negative errno after log_error(). */
typedef int config_file_take(void *arg, const char *word, const char *value);

/* Reads the file and calls take(arg, word, value) for each line that is no comment. A fault is
 * reported with file and line. 0, or negative errno after log_error(). */
int config_file_read(const char *path, config_file_take *take, void *arg);

#endif
