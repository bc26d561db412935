/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - the command line of nbar-bared.
 *
 * Called by main() before anything else. A message names each wrong option and the right form.
 */
#include <getopt.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon.h"
#include "engine.h"
#include "log.h"
#include "options.h"
#include "rundir.h"

#define IMAGE "nbar-riscv64.elf"
#define PULL_US 20000u /* an emulated NIC answers in milliseconds */
#define BUDGET_MS 8000u

static const char help[] =
	"usage: nbar-bared [options] --wire WIRE\n"
	"Runs a NIC on an emulated RISC-V machine (QEMU). Stays in the foreground; SIGTERM or SIGINT\n"
	"ends it; it ends by itself when QEMU does.\n"
	"  --wire unix:LOCAL,REMOTE   a cable to one other machine: two sockets in the file system\n"
	"         mcast:ADDRESS:PORT  a switch for several machines: an IP multicast group\n"
	"         tap:INTERFACE       a TAP interface that exists, for a network with other NICs\n"
	"         netdev:TEXT         anything else: what -netdev of QEMU takes, without id=\n"
	"  --name NAME        of the NIC (default n0)\n"
	"  --run-dir DIR      the control socket is DIR/NAME.sock (default: $NBAR_RUN_DIR, or else\n"
	"                     /run/nbar for root, $XDG_RUNTIME_DIR/nbar, /tmp/nbar-UID)\n"
	"  --mac MAC          address of the NIC (default: random)\n"
	"  --ports N          ports, 1 to 8 (default 4)\n"
	"  --pull-us N        wait for a token before it is asked for again (default 20000)\n"
	"  --budget-ms N      silence after which a peer is given up (default 8000)\n"
	"  --mode MODE        permissions of the socket (default 0600)\n"
	"  --group GROUP      group of the socket\n"
	"  --qemu PATH        the emulator (default qemu-system-riscv64)\n"
	"  --image FILE       what the machine runs (default: " IMAGE
	" beside this program, or in\n"
	"                     ../lib/nbar)\n"
	"  --version, --help\n"
	"A client finds the NIC by itself: try `nbar stat n0`. More: man nbar-bared\n";

static int usage(const char *what)
{
	log_error("%s; see nbar-bared --help", what);
	return EXIT_USAGE;
}

static int name_set(struct options *o, const char *text)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";

	if (strspn(text, allowed) == strlen(text) && *text != '.')
		return daemon_text("name", text, o->name, sizeof(o->name));
	log_error("--name %s: a name has letters, digits, '_', '.' and '-', and no '.' at first",
		  text);
	return EXIT_USAGE;
}

static int mac_set(struct options *o, const char *text)
{
	unsigned b[6];
	int n = 0;

	if (strlen(text) != 17 ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		   &n) != 6 ||
	    n != 17 || b[0] & 1) {
		log_error("--mac %s: not the address of one machine, as 02:00:00:00:00:01", text);
		return EXIT_USAGE;
	}
	strcpy(o->mac, text);
	return -1;
}

/* The value of QEMU's -netdev. A comma would begin another key of it. */
static int wire_set(struct options *o, const char *text)
{
	const char *value = strchr(text, ':'), *comma = value ? strchr(value, ',') : NULL;
	bool plain = value && value[1] && !comma;
	int n = -1;

	if (plain && strncmp(text, "tap:", 4) == 0)
		n = snprintf(o->netdev, sizeof(o->netdev),
			     "tap,id=w,ifname=%s,script=no,downscript=no", value + 1);
	else if (plain && strncmp(text, "mcast:", 6) == 0)
		n = snprintf(o->netdev, sizeof(o->netdev), "socket,id=w,mcast=%s", value + 1);
	else if (comma && comma[1] && !strchr(comma + 1, ',') && comma > value + 1 &&
		 strncmp(text, "unix:", 5) == 0)
		n = snprintf(o->netdev, sizeof(o->netdev),
			     "dgram,id=w,local.type=unix,local.path=%.*s,remote.type=unix,"
			     "remote.path=%s",
			     (int)(comma - value - 1), value + 1, comma + 1);
	else if (value && value[1] && strncmp(text, "netdev:", 7) == 0)
		n = snprintf(o->netdev, sizeof(o->netdev), "%s,id=w", value + 1);
	if (n >= 0 && (size_t)n < sizeof(o->netdev))
		return -1;
	log_error("--wire %s: it is unix:LOCAL,REMOTE, mcast:ADDRESS:PORT, tap:INTERFACE or "
		  "netdev:TEXT",
		  text);
	return EXIT_USAGE;
}

/* Takes the image beside this program in a build directory, else the installed image. */
static void image_default(struct options *o)
{
	char self[sizeof(o->image) - 64];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n > 0 ? n : 0] = '\0';
	snprintf(o->image, sizeof(o->image), "%s/" IMAGE, dirname(self));
	if (access(o->image, F_OK) < 0)
		snprintf(o->image, sizeof(o->image), "%s/../lib/nbar/" IMAGE, self);
}

static int finish(struct options *o)
{
	uint8_t b[5];

	if (!o->netdev[0])
		return usage("no wire; name one with --wire, as in --wire tap:tap0");
	if (o->budget_ns / NBFW_WINDOW < o->pull_ns) {
		log_error("--budget-ms must be at least %u times --pull-us", NBFW_WINDOW);
		return EXIT_USAGE;
	}
	if (!o->run_dir[0] && rundir_default(o->run_dir, sizeof(o->run_dir)) < 0)
		return usage("the default run directory has too long a name; give --run-dir");
	if (!o->image[0])
		image_default(o);
	if (o->mac[0])
		return -1;
	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return usage("the kernel gives no random numbers; give --mac");
	snprintf(o->mac, sizeof(o->mac), "02:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3],
		 b[4]);
	return -1;
}

enum {
	OPT_WIRE = 1,
	OPT_NAME,
	OPT_RUN_DIR,
	OPT_MAC,
	OPT_PORTS,
	OPT_PULL,
	OPT_BUDGET,
	OPT_MODE,
	OPT_GROUP,
	OPT_QEMU,
	OPT_IMAGE,
	OPT_KEY_FILE,
	OPT_VERSION,
	OPT_HELP
};

static const struct option long_options[] = {
	{ "wire", required_argument, NULL, OPT_WIRE },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "run-dir", required_argument, NULL, OPT_RUN_DIR },
	{ "mac", required_argument, NULL, OPT_MAC },
	{ "ports", required_argument, NULL, OPT_PORTS },
	{ "pull-us", required_argument, NULL, OPT_PULL },
	{ "budget-ms", required_argument, NULL, OPT_BUDGET },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "group", required_argument, NULL, OPT_GROUP },
	{ "qemu", required_argument, NULL, OPT_QEMU },
	{ "image", required_argument, NULL, OPT_IMAGE },
	{ "key-file", required_argument, NULL, OPT_KEY_FILE },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

/* One option. -1: go on; else the exit status. */
static int option_take(struct options *o, int which, const char *arg)
{
	unsigned long n = 0;
	int rc = -1;

	switch (which) {
	case OPT_WIRE:
		return wire_set(o, arg);
	case OPT_NAME:
		return name_set(o, arg);
	case OPT_RUN_DIR:
		return daemon_text("run-dir", arg, o->run_dir, sizeof(o->run_dir));
	case OPT_MAC:
		return mac_set(o, arg);
	case OPT_PORTS:
		rc = daemon_number("ports", arg, 10, 1, BARED_PORTS_MAX, &n);
		o->nport = (uint32_t)n;
		return rc;
	case OPT_PULL:
		rc = daemon_number("pull-us", arg, 10, 1, 60000000, &n);
		o->pull_ns = n * UINT64_C(1000);
		return rc;
	case OPT_BUDGET:
		rc = daemon_number("budget-ms", arg, 10, 1, 86400000, &n);
		o->budget_ns = n * UINT64_C(1000000);
		return rc;
	case OPT_MODE:
		rc = daemon_number("mode", arg, 8, 0, 0777, &n);
		o->mode = (mode_t)n;
		return rc;
	case OPT_GROUP:
		return daemon_group(arg, &o->group);
	case OPT_QEMU:
		return daemon_text("qemu", arg, o->qemu, sizeof(o->qemu));
	case OPT_IMAGE:
		return daemon_text("image", arg, o->image, sizeof(o->image));
	case OPT_KEY_FILE:
		log_error(
			"--key-file: frames of this NIC cannot have tags; only nbar-nicd and in-process "
			"NICs make them");
		return EXIT_USAGE;
	case OPT_VERSION:
		printf("nbar-bared " NBAR_VERSION_TEXT "\n");
		return EXIT_SUCCESS;
	case OPT_HELP:
		fputs(help, stdout);
		return EXIT_SUCCESS;
	}
	return EXIT_USAGE; /* getopt has said why */
}

int options_parse(int argc, char **argv, struct options *o)
{
	int which, rc = -1;

	*o = (struct options){
		.name = "n0",
		.qemu = "qemu-system-riscv64",
		.nport = 4,
		.pull_ns = PULL_US * UINT64_C(1000),
		.budget_ns = BUDGET_MS * UINT64_C(1000000),
		.mode = 0600,
		.group = (gid_t)-1,
	};
	while (rc == -1 && (which = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		rc = option_take(o, which, optarg);
	if (rc != -1)
		return rc;
	if (optind < argc) {
		log_error("unexpected argument \"%s\"; see nbar-bared --help", argv[optind]);
		return EXIT_USAGE;
	}
	return finish(o);
}
