/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.h - the settings of a NIC, on every platform that has an operating system: one table
 * from which come command lines, configuration files, descriptions of NICs, defaults and help.
 *
 * A test compares the table with the manual pages. Read before anything runs. Each function
 * that returns an int returns 0, or negative errno after log_error().
 */
#ifndef NBAR_DAEMON_SETTINGS_H
#define NBAR_DAEMON_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "nic.h"

/* Where a setting is known; bits. */
#define SETTING_NICD 1u    /* an option of nbar-nicd, or a line of its configuration file */
#define SETTING_BARED 2u   /* an option of nbar-bared */
#define SETTING_PROCESS 4u /* a key of an in-process NIC */
#define SETTING_KEY 8u     /* a key of --nic */

enum setting_type {
	SETTING_NUMBER,
	SETTING_OCTAL,
	SETTING_WORD,
	SETTING_NAME,
	SETTING_DIR,
	SETTING_USER,
	SETTING_GROUP,
	SETTING_NIC, /* the platform reads this one, and those after it */
	SETTING_NICS,
	SETTING_WIRE,
	SETTING_KEY_FILE,
	SETTING_ATTACH,
	SETTING_CONFIG,
	SETTING_CHECK,
	SETTING_ALGS,
	SETTING_WIRES,
	SETTING_VERSION,
	SETTING_HELP,
	SETTING_MAC,
	SETTING_QEMU,
	SETTING_IMAGE
};

struct setting {
	const char *name;
	unsigned where; /* SETTING_NICD, ... */
	enum setting_type type;
	const char *value; /* how help names it; of a word: the words. NULL: the option has none */
	const char *usual; /* the default, as text; NULL: none, or the platform finds it */
	const char *help;  /* lines; NULL: the setting is not in the help */
	/* Of a number: the bounds, the unit of its field, the field in struct settings. */
	unsigned long low, high, unit;
	size_t at, size;
};

/* The last row has no name. */
extern const struct setting settings_table[];

#define SETTINGS_UNSET UINT32_MAX

struct settings {
	char name[NBAR_NAME_MAX];
	char run_dir[108]; /* the path of a socket must still fit; empty: not given */
	uint32_t cpu;      /* or SETTINGS_UNSET */
	uint32_t idle;     /* enum nicd_idle, or SETTINGS_UNSET */
	uint32_t huge;     /* enum wire_huge */
	uint32_t nport;
	uint32_t nics;  /* of the last --nics */
	uint32_t trace; /* events to keep, by NIC; 0: none */
	struct nbnic_config config;
	mode_t mode;
	gid_t group;   /* of the sockets; (gid_t)-1: that of the process */
	bool has_user; /* --user is given: uid and gid of the process after its start */
	uid_t uid;
	gid_t gid;
};

/* Who reads the settings of one place, and where they go. */
struct settings_reader {
	unsigned where; /* SETTING_NICD, ... */
	struct settings *out;
	/* Reads a setting of the platform's own. 0; 1: all is done, as after --help; or negative
	 * errno after log_error(). */
	int (*own)(void *arg, const struct setting *s, const char *text);
	void *arg;
};

/* Sets everything to its default in this place. */
void settings_default(unsigned where, struct settings *out);

/* Finds a setting that is known in this place; NULL: there is none. */
const struct setting *settings_find(unsigned where, const char *name);

/* Reads one value. Messages begin with `label`, such as "--cpu 7". */
int settings_read(const struct settings_reader *r, const struct setting *s, const char *label,
		  const char *text);

/* Reads an option of a command line, or of a file of options. */
int settings_option(const struct settings_reader *r, const struct setting *s, const char *text);

/* Reads the options of a command line; the first argument that is not an option is argv[optind].
 * Then sets the run directory, if it was not given. Results as those of own(). */
int settings_options(const struct settings_reader *r, int argc, char **argv);

/* A text that is not empty and fits. */
int settings_text(const char *option, const char *text, char *out, size_t size);

/* The name of a NIC. */
int settings_name(const char *label, const char *text, char out[NBAR_NAME_MAX]);

/* Checks that the retry budget is long enough for the interval of PULLs. */
int settings_check(const struct settings *s);

/* Prints the options of a daemon. */
void settings_help(unsigned where);

#endif
