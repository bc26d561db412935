/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_address.c - the address of the metrics server: a socket file, or an address and a port.
 */
#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "metrics.h"

#define UNIX_PREFIX "unix:"

static int parse_path(const char *path, struct metrics_address *out)
{
	struct sockaddr_un *un = &out->name.un;
	size_t n = strlen(path);

	if (n == 0 || n >= sizeof(un->sun_path)) {
		log_error("--metrics unix:%s: the path has 1 to %zu bytes", path,
			  sizeof(un->sun_path) - 1);
		return -EINVAL;
	}
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, n + 1);
	out->length = sizeof(*un);
	return 0;
}

/* Checks the range, because getaddrinfo takes 65537 for 1. */
static bool port_is_valid(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && *end == '\0' && n <= 65535;
}

static int parse_tcp(const char *text, struct metrics_address *out)
{
	const struct addrinfo hint = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	const char *port = strrchr(text, ':');
	size_t n = port ? (size_t)(port - text) : 0;
	struct addrinfo *info;
	char host[64];

	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return -EINVAL; /* an IPv6 address without brackets */
	}
	if (n == 0 || n >= sizeof(host) || !port_is_valid(port + 1))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	if (getaddrinfo(host, port + 1, &hint, &info))
		return -EINVAL;
	memcpy(&out->name, info->ai_addr, info->ai_addrlen);
	out->length = info->ai_addrlen;
	freeaddrinfo(info);
	return 0;
}

int metrics_address_parse(const char *text, struct metrics_address *out)
{
	memset(out, 0, sizeof(*out));
	if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		return parse_path(text + strlen(UNIX_PREFIX), out);
	if (parse_tcp(text, out) == 0)
		return 0;
	log_error("--metrics %s: it is unix:PATH or ADDRESS:PORT, for example 127.0.0.1:9480 or "
		  "[::1]:9480",
		  text);
	return -EINVAL;
}

const char *metrics_address_path(const struct metrics_address *a)
{
	return a->length && a->name.any.sa_family == AF_UNIX ? a->name.un.sun_path : NULL;
}
