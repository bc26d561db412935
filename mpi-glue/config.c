/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c - settings of the glue: defaults, environment, names of NICs.
 *
 * Called once, when MPI starts. Knows no MPI.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "config.h"

void nbmpi_vsay(const char *format, va_list args)
{
	char text[600], line[sizeof(text) + sizeof("nbar: \n")];

	vsnprintf(text, sizeof(text), format, args);
	snprintf(line, sizeof(line), "nbar: %s\n", text);
	fputs(line, stderr); /* fprintf may write in parts of 128 bytes */
}

void nbmpi_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	nbmpi_vsay(format, args);
	va_end(args);
}

void nbmpi_config_init(struct nbmpi_config *out)
{
	*out = (struct nbmpi_config){
		.enable = true,
		.allreduce = true,
		.alg = "auto",
		.min_hosts = 1,
		.wait = NBMPI_WAIT_AUTO,
	};
}

bool nbmpi_wait_read(const char *name, const char *text, enum nbmpi_wait *out)
{
	static const char *const word[] = {
		[NBMPI_WAIT_AUTO] = "auto",
		[NBMPI_WAIT_SPIN] = "spin",
		[NBMPI_WAIT_YIELD] = "yield",
		[NBMPI_WAIT_BLOCK] = "block",
	};

	for (unsigned i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		if (strcmp(text, word[i]) == 0) {
			*out = (enum nbmpi_wait)i;
			return true;
		}
	}
	nbmpi_say("%s is \"%s\": it must be auto, spin, yield or block", name, text);
	return false;
}

bool nbmpi_where_read(const char *name, const char *text, enum nbmpi_where *out)
{
	static const char *const word[] = {
		[NBMPI_WHERE_AUTO] = "auto",
		[NBMPI_WHERE_NIC] = "nic",
		[NBMPI_WHERE_HOST] = "host",
	};

	for (unsigned i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		if (strcmp(text, word[i]) == 0) {
			*out = (enum nbmpi_where)i;
			return true;
		}
	}
	nbmpi_say("%s is \"%s\": it must be auto, nic or host", name, text);
	return false;
}

/* Returns the value of a variable, or NULL if the variable is not set or empty. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* Reads a number up to max; leaves *out alone if the variable is not set. */
static bool config_number(const char *name, unsigned long max, unsigned long *out)
{
	const char *text = variable(name);
	unsigned long value;
	char *end;

	if (!text)
		return true;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || value > max) {
		nbmpi_say("%s is \"%s\": it must be a number from 0 to %lu", name, text, max);
		return false;
	}
	*out = value;
	return true;
}

static bool text_of(const char *name, char *out, size_t size)
{
	const char *text = variable(name);

	if (!text)
		return true;
	if (strlen(text) >= size) {
		nbmpi_say("%s is too long: %zu characters at most", name, size - 1);
		return false;
	}
	strcpy(out, text);
	return true;
}

void nbmpi_config_env(struct nbmpi_config *out)
{
	unsigned long enable, allreduce, min_hosts, verbose;
	const char *wait = variable("NBAR_MPI_WAIT"), *where = variable("NBAR_MPI_WHERE");
	bool good;

	nbmpi_config_init(out);
	enable = out->enable;
	allreduce = out->allreduce;
	min_hosts = out->min_hosts;
	verbose = (unsigned long)out->verbose;
	good = config_number("NBAR_MPI_ENABLE", 1, &enable);
	good &= config_number("NBAR_MPI_ALLREDUCE", 1, &allreduce);
	good &= config_number("NBAR_MPI_MIN_HOSTS", NBAR_SIZE_MAX, &min_hosts);
	good &= config_number("NBAR_MPI_VERBOSE", 9, &verbose);
	good &= text_of("NBAR_MPI_ALG", out->alg, sizeof(out->alg));
	good &= text_of("NBAR_MPI_NIC", out->nic, sizeof(out->nic));
	good &= !wait || nbmpi_wait_read("NBAR_MPI_WAIT", wait, &out->wait);
	good &= !where || nbmpi_where_read("NBAR_MPI_WHERE", where, &out->where);
	if (!good)
		nbmpi_say("all barriers are left to MPI until that is put right");
	out->enable = good && enable;
	out->allreduce = allreduce;
	out->min_hosts = (uint32_t)min_hosts;
	out->verbose = (int)verbose;
}

#define HOST_PREFIX "host:" /* begins the name of an in-process NIC */

const char *nbmpi_config_nic(const struct nbmpi_config *config)
{
	return *config->nic ? config->nic : variable("NBAR_NIC");
}

static bool names_host(const struct nbmpi_config *config)
{
	const char *nic = nbmpi_config_nic(config);

	return nic && strncmp(nic, HOST_PREFIX, strlen(HOST_PREFIX)) == 0;
}

/*
 * libfabric loads libefa, which registers itself with libibverbs. Open MPI may unload libfabric and
 * libefa in MPI_Init, but libibverbs stays, and would later call a function of the unloaded libefa.
 */
void nbmpi_config_pin(const struct nbmpi_config *config)
{
	if (config->enable && (config->where == NBMPI_WHERE_HOST || names_host(config)))
		(void)dlopen("libefa.so.1", RTLD_LAZY | RTLD_NODELETE);
}

/* False: the setting is "host", but the name does not name an in-process NIC. */
static bool where_fits(struct nbmpi_config *config)
{
	if (names_host(config))
		config->where = NBMPI_WHERE_HOST;
	else if (config->where == NBMPI_WHERE_HOST && nbmpi_config_nic(config))
		return false;
	else if (config->where == NBMPI_WHERE_HOST)
		strcpy(config->nic, HOST_PREFIX);
	return true;
}

void nbmpi_config_check(struct nbmpi_config *config, uint32_t rank)
{
	char nic[NBMPI_NIC_SIZE];

	if (!where_fits(config)) {
		nbmpi_say("barriers are to run where the host is, but NIC \"%s\" does not begin "
			  "with " HOST_PREFIX "; all barriers are left to MPI",
			  nbmpi_config_nic(config));
		config->enable = false;
	}
	if (nbmpi_nic_name(config, rank, nic, sizeof(nic)))
		return;
	nbmpi_say("\"%s\" is not a NIC name: after %% comes r (rank) or h (host's "
		  "name), and it has at most %u characters; all barriers are left to MPI",
		  config->nic, NBMPI_NIC_SIZE - 1);
	config->enable = false;
}

bool nbmpi_nic_name(const struct nbmpi_config *config, uint32_t rank, char *out, size_t size)
{
	struct utsname host;
	size_t at = 0;

	if (uname(&host) < 0)
		host.nodename[0] = '\0';
	for (const char *p = config->nic; *p && at < size; p++) {
		int n;

		if (*p != '%')
			n = snprintf(out + at, size - at, "%c", *p);
		else if (p[1] == 'r')
			n = snprintf(out + at, size - at, "%u", rank);
		else if (p[1] == 'h')
			n = snprintf(out + at, size - at, "%s", host.nodename);
		else
			return false;
		at += (size_t)n;
		p += *p == '%';
	}
	if (at >= size)
		return false;
	out[at] = '\0';
	return true;
}
