/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c - the command line of nbar-bared: settings BARED of daemon/settings.c, and checks.
 *
 * Called by main() before anything else. A message names each wrong option and the right form.
 */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "log.h"
#include "options.h"

#define IMAGE "nbar-riscv64.elf"

static void help(void)
{
	printf("usage: nbar-bared [options] --wire WIRE\n"
	       "Runs a NIC on an emulated RISC-V machine (QEMU). Stays in the foreground; SIGTERM "
	       "or SIGINT\n"
	       "ends it; it ends by itself when QEMU does.\n");
	settings_help(SETTING_BARED);
	printf("A client finds the NIC by itself: try `nbar stat n0`. More: man nbar-bared\n");
}

static int bared_usage(const char *what)
{
	log_error("%s; see nbar-bared --help", what);
	return -EINVAL;
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
		return -EINVAL;
	}
	strcpy(o->mac, text);
	return 0;
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
		return 0;
	log_error("--wire %s: it is unix:LOCAL,REMOTE, mcast:ADDRESS:PORT, tap:INTERFACE or "
		  "netdev:TEXT",
		  text);
	return -EINVAL;
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

static int bared_options_finish(struct options *o)
{
	uint8_t b[5];

	if (!o->netdev[0])
		return bared_usage("no wire; name one with --wire, as in --wire tap:tap0");
	if (settings_check(&o->set) < 0)
		return -EINVAL;
	if (!o->image[0])
		image_default(o);
	if (o->mac[0])
		return 0;
	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return bared_usage("the kernel gives no random numbers; give --mac");
	snprintf(o->mac, sizeof(o->mac), "02:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3],
		 b[4]);
	return 0;
}

/* settings_reader.own */
static int host_options_own_take(void *arg, const struct setting *s, const char *text)
{
	struct options *o = arg;

	if (s->type == SETTING_WIRE)
		return wire_set(o, text);
	if (s->type == SETTING_MAC)
		return mac_set(o, text);
	if (s->type == SETTING_QEMU)
		return settings_text("qemu", text, o->qemu, sizeof(o->qemu));
	if (s->type == SETTING_IMAGE)
		return settings_text("image", text, o->image, sizeof(o->image));
	if (s->type == SETTING_KEY_FILE) {
		log_error("--key-file: frames of this NIC cannot have tags; only nbar-nicd and "
			  "in-process NICs make them");
		return -EINVAL;
	}
	if (s->type == SETTING_VERSION)
		printf("nbar-bared " NBAR_VERSION_TEXT "\n");
	else
		help();
	return 1;
}

int options_parse(int argc, char **argv, struct options *o)
{
	const struct settings_reader r = { SETTING_BARED, &o->set, host_options_own_take, o };
	int rc;

	*o = (struct options){ .qemu = "" };
	settings_default(SETTING_BARED, &o->set);
	strcpy(o->qemu, settings_find(SETTING_BARED, "qemu")->usual);
	rc = settings_options(&r, argc, argv);
	if (rc == 0 && optind < argc) {
		log_error("unexpected argument \"%s\"; see nbar-bared --help", argv[optind]);
		return -EINVAL;
	}
	return rc == 0 ? bared_options_finish(o) : rc;
}
