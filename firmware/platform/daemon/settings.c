/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.c - the table of settings, and what reads one. See settings.h.
 */
#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bared.h"
#include "log.h"
#include "rundir.h"

#define LABEL_MAX 512 /* a longer one is cut, as the message would be */
#define HELP_AT 21    /* the column where the texts of help begin */

#define NICD SETTING_NICD
#define BARED SETTING_BARED
#define PROCESS SETTING_PROCESS
#define KEY SETTING_KEY
#define ROW(n, w, t, v, u, h, ...)                                                             \
	{                                                                                      \
		.name = n, .where = w, .type = SETTING_##t, .value = v, .usual = u, .help = h, \
		__VA_ARGS__                                                                    \
	}
/* Of a number: its bounds, and the field in units. */
#define IN(least, most, one, field)                                                      \
	.low = least, .high = most, .unit = one, .at = offsetof(struct settings, field), \
	.size = sizeof(((struct settings *)0)->field)

/* clang-format off */
const struct setting settings_table[] = {
	ROW("nic", NICD, NIC, "...", NULL, "a NIC; wires and their keys are below", ),
	ROW("nics", NICD, NICS, "N", NULL, "short for N NICs n0, n1, ... on the default wire",
	    IN(1, NBAR_NICS_MAX, 1, nics)),
	ROW("name", BARED, NAME, "NAME", "n0", "of the NIC", ),
	ROW("name", KEY | PROCESS, NAME, NULL, "host", NULL, ),
	ROW("wire", BARED, WIRE, "WIRE", NULL,
	    "unix:LOCAL,REMOTE   a cable to one other machine: two sockets in the file system\n"
	    "mcast:ADDRESS:PORT  a switch for several machines: an IP multicast group\n"
	    "tap:INTERFACE       a TAP interface that exists, for a network with other NICs\n"
	    "netdev:TEXT         anything else: what -netdev of QEMU takes, without id=", ),
	ROW("wire", KEY | PROCESS, WIRE, NULL, NULL, NULL, ),
	ROW("run-dir", NICD | BARED, DIR, "DIR", NULL,
	    "control sockets are DIR/NAME.sock (default: $NBAR_RUN_DIR, or else\n"
	    "/run/nbar for root, $XDG_RUNTIME_DIR/nbar, /tmp/nbar-UID)", ),
	ROW("cpu", NICD | PROCESS, NUMBER, "N", NULL,
	    "the one processor that polls (default: the first allowed)",
	    IN(0, CPU_SETSIZE - 1, 1, cpu)),
	ROW("idle", NICD, WORD, "spin|yield|sleep", NULL,
	    "spin: for a processor of its own; yield: let others run in between;\n"
	    "sleep: yield, then sleep until there is work (default: spin if --cpu\n"
	    "is given and four processors are allowed, else sleep)", IN(0, 0, 1, idle)),
	ROW("mac", BARED, MAC, "MAC", NULL, "address of the NIC (default: random)", ),
	ROW("ports", BARED, NUMBER, "N", "4", "ports, 1 to 8", IN(1, BARED_PORTS_MAX, 1, nport)),
	ROW("pull-us", NICD | PROCESS, NUMBER, "N", "1000",
	    "wait for a token before it is asked for again", IN(1, 60000000, 1000, config.pull_ns)),
	/* An emulated NIC answers in milliseconds. */
	ROW("pull-us", BARED, NUMBER, "N", "20000",
	    "wait for a token before it is asked for again", IN(1, 60000000, 1000, config.pull_ns)),
	ROW("budget-ms", NICD | BARED, NUMBER, "N", "8000", "silence after which a peer is given up",
	    IN(1, 86400000, 1000000, config.budget_ns)),
	/* Its control thread runs a pass every few ms: a budget is many times as long. */
	ROW("budget-ms", PROCESS, NUMBER, "N", "8000", NULL,
	    IN(200, 86400000, 1000000, config.budget_ns)),
	ROW("memory-mb", NICD, NUMBER, "N", "32",
	    "memory for the groups of a NIC; one port may have a quarter",
	    IN(1, 1048576, 1 << 20, config.memory_bytes)),
	ROW("user-percent", NICD, NUMBER, "N", NULL,
	    "of ports, groups, memory and descriptors of a NIC, for one user\n"
	    "(default: 50 with --attach or if --mode lets other users in, else 100)",
	    IN(1, 100, 1, config.user_percent)),
	ROW("user", NICD, USER, "USER", NULL,
	    "whom the daemon becomes after its start, where root starts it", ),
	ROW("mode", NICD | BARED, OCTAL, "MODE", "0600", "permissions of the sockets",
	    IN(0, 0777, 1, mode)),
	ROW("group", NICD | BARED, GROUP, "GROUP", NULL, "of the sockets", ),
	ROW("huge", NICD, WORD, "auto|yes|no", "auto",
	    "hugepages of DPDK; auto: where enough are free", IN(0, 0, 1, huge)),
	ROW("config", NICD, CONFIG, "FILE", NULL, "options, one per line, without dashes", ),
	ROW("check-config", NICD, CHECK, NULL, NULL, "only check the options and their files", ),
	ROW("key-file", NICD | PROCESS, KEY_FILE, "FILE", NULL,
	    "frames that leave the machine have tags by this key (man page)", ),
	ROW("key-file", BARED, KEY_FILE, "FILE", NULL, NULL, ), /* refused, with the reason */
	ROW("attach", NICD, ATTACH, "ADDRESS:PORT", NULL,
	    "remote hosts attach here: the address of an RDMA device\n"
	    "that only they can reach", ),
	ROW("trace", NICD, NUMBER, "N", NULL, "keep the last N events of each NIC, for nbar trace",
	    IN(1, NBAR_TRACE_EVENTS_MAX, 1, trace)),
	ROW("qemu", BARED, QEMU, "PATH", "qemu-system-riscv64", "the emulator", ),
	ROW("image", BARED, IMAGE, "FILE", NULL,
	    "what the machine runs (default: nbar-riscv64.elf beside this program,\n"
	    "or in ../lib/nbar)", ),
	ROW("list-algs", NICD, ALGS, NULL, NULL, "the algorithms", ),
	ROW("list-wires", NICD, WIRES, NULL, NULL, "the wires that this machine has, and their keys", ),
	ROW("version", NICD | BARED, VERSION, NULL, NULL, "the version", ),
	ROW("help", NICD | BARED, HELP, NULL, NULL, "this text", ),
	{ .name = NULL }
};
/* clang-format on */

static int read_number(const struct setting *s, int base, const char *label, const char *text,
		       unsigned long *out)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, base);
	if (*text >= '0' && *text <= '9' && !*end && !errno && n >= s->low && n <= s->high) {
		*out = n;
		return 0;
	}
	log_error(base == 8 ? "%s: not an octal number from %lo to %lo"
			    : "%s: not a number from %lu to %lu",
		  label, s->low, s->high);
	return -EINVAL;
}

/* The number of a user or a group. A text that is not a number is not a name either. */
static int read_id(const struct setting *s, const char *label, const char *text, uint32_t *out)
{
	const struct setting id = { .high = UINT32_MAX - 1 };
	unsigned long n = 0;
	int rc;

	if (*text < '0' || *text > '9') {
		log_error("%s: there is no such %s", label, s->name);
		return -EINVAL;
	}
	rc = read_number(&id, 10, label, text, &n);
	*out = rc == 0 ? (uint32_t)n : *out;
	return rc;
}

static int read_group(const struct setting *s, const char *label, const char *text, gid_t *out)
{
	const struct group *g = getgrnam(text);

	if (!g)
		return read_id(s, label, text, out);
	*out = g->gr_gid;
	return 0;
}

static int read_user(const struct setting *s, const char *label, const char *text,
		     struct settings *out)
{
	const struct passwd *user = getpwnam(text);
	uid_t id = 0;
	int rc = user ? 0 : read_id(s, label, text, &id);

	if (rc < 0)
		return rc;
	if (!user)
		user = getpwuid(id);
	out->uid = user ? user->pw_uid : id;
	out->gid = user ? user->pw_gid : id;
	out->has_user = true;
	return 0;
}

/* Finds the text among the words of s->value, which have bars between them. */
static int read_word(const struct setting *s, const char *label, const char *text, uint32_t *out)
{
	size_t length = strlen(text), n;
	uint32_t i = 0;

	for (const char *word = s->value; *word; word += n + (word[n] == '|'), i++) {
		n = strcspn(word, "|");
		if (n == length && strncmp(word, text, n) == 0) {
			*out = i;
			return 0;
		}
	}
	log_error("%s: it is one of %s", label, s->value);
	return -EINVAL;
}

int settings_text(const char *option, const char *text, char *out, size_t size)
{
	if (*text && strlen(text) < size) {
		strcpy(out, text);
		return 0;
	}
	log_error("--%s: the value must have 1 to %zu bytes", option, size - 1);
	return -EINVAL;
}

int settings_name(const char *label, const char *text, char out[NBAR_NAME_MAX])
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";
	size_t n = strlen(text);

	if (n > 0 && n < NBAR_NAME_MAX && strspn(text, allowed) == n && text[0] != '.') {
		strcpy(out, text);
		return 0;
	}
	log_error("%s: a name has 1 to %u letters, digits, '_', '.' or '-', and does not begin "
		  "with '.'",
		  label, NBAR_NAME_MAX - 1);
	return -EINVAL;
}

int settings_read(const struct settings_reader *r, const struct setting *s, const char *label,
		  const char *text)
{
	void *field = (char *)r->out + s->at;
	unsigned long n;
	int rc;

	if (s->type == SETTING_WORD)
		return read_word(s, label, text, field);
	if (s->type == SETTING_NAME)
		return settings_name(label, text, r->out->name);
	if (s->type == SETTING_DIR)
		return settings_text(s->name, text, r->out->run_dir, sizeof(r->out->run_dir));
	if (s->type == SETTING_USER)
		return read_user(s, label, text, r->out);
	if (s->type == SETTING_GROUP)
		return read_group(s, label, text, &r->out->group);
	if (s->type >= SETTING_NIC)
		return r->own(r->arg, s, text);
	rc = read_number(s, s->type == SETTING_OCTAL ? 8 : 10, label, text, &n);
	if (rc == 0 && s->size == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)n;
	else if (rc == 0)
		*(uint64_t *)field = (uint64_t)n * s->unit;
	return rc;
}

int settings_option(const struct settings_reader *r, const struct setting *s, const char *text)
{
	char label[LABEL_MAX];

	snprintf(label, sizeof(label), "--%s %s", s->name, text ? text : "");
	return settings_read(r, s, label, text);
}

void settings_default(unsigned where, struct settings *out)
{
	const struct settings_reader r = { .out = out };

	*out = (struct settings){ .cpu = SETTINGS_UNSET,
				  .idle = SETTINGS_UNSET,
				  .group = (gid_t)-1 };
	for (const struct setting *s = settings_table; s->name; s++)
		if ((s->where & where) && s->usual && s->type < SETTING_NIC)
			(void)settings_option(&r, s, s->usual);
}

const struct setting *settings_find(unsigned where, const char *name)
{
	const struct setting *s = settings_table;

	while (s->name && (!(s->where & where) || strcmp(s->name, name) != 0))
		s++;
	return s->name ? s : NULL;
}

int settings_options(const struct settings_reader *r, int argc, char **argv)
{
	struct option option[sizeof(settings_table) / sizeof(settings_table[0])] = { 0 };
	int n = 0, which, rc = 0;

	for (const struct setting *s = settings_table; s->name; s++)
		if (s->where & r->where)
			option[n++] = (struct option){ .name = s->name,
						       .has_arg = s->value ? required_argument
									   : no_argument,
						       .val = (int)(s - settings_table) };
	/* getopt has printed the error and returns '?', which is not in the table. */
	while (rc == 0 && (which = getopt_long(argc, argv, "+", option, NULL)) != -1)
		rc = which == '?' ? -EINVAL : settings_option(r, &settings_table[which], optarg);
	if (rc == 0 && !r->out->run_dir[0] &&
	    rundir_default(r->out->run_dir, sizeof(r->out->run_dir)) < 0) {
		log_error("the default run directory has too long a name; give --run-dir");
		return -EINVAL;
	}
	return rc;
}

int settings_check(const struct settings *s)
{
	if (s->config.budget_ns >= NBFW_WINDOW * s->config.pull_ns)
		return 0;
	log_error("budget-ms must be at least %u times pull-us", NBFW_WINDOW);
	return -EINVAL;
}

void settings_help(unsigned where)
{
	for (const struct setting *s = settings_table; s->name; s++) {
		const char *line = s->help;
		int used, n;

		if (!(s->where & where) || !line)
			continue;
		used = printf("  --%s %s", s->name, s->value ? s->value : "");
		printf(used < HELP_AT ? "%*s" : "\n%*s", used < HELP_AT ? HELP_AT - used : HELP_AT,
		       "");
		for (; n = (int)strcspn(line, "\n"), line[n]; line += n + 1)
			printf("%.*s\n%*s", n, line, HELP_AT, "");
		printf(s->usual ? "%s (default %s)\n" : "%s\n", line, s->usual);
	}
}
