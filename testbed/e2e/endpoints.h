/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoints.h - members exchange the addresses of their endpoints by files of a folder.
 *
 * Included by member.c and rejoin.c.
 */
#ifndef NBAR_TEST_ENDPOINTS_H
#define NBAR_TEST_ENDPOINTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "nbar.h"

#define MEET_S 300u /* longest wait for an address */

static void endpoint_put(const char *folder, unsigned rank, const struct nbar_endpoint *endpoint)
{
	char path[4096], part[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/rank-%u", folder, rank);
	snprintf(part, sizeof(part), "%s/new-%u", folder, rank);
	f = fopen(part, "wb");
	if (!f || fwrite(endpoint, sizeof(*endpoint), 1, f) != 1 || fclose(f) != 0 ||
	    rename(part, path) < 0)
		exit(1);
}

static void endpoint_get(const char *folder, unsigned rank, struct nbar_endpoint *endpoint)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/rank-%u", folder, rank);
	for (uint32_t i = 0; !(f = fopen(path, "rb")); i++) {
		if (i == MEET_S * 1000u) {
			fprintf(stderr, "rank %u has not put its address into %s within %u s\n",
				rank, folder, MEET_S);
			exit(1);
		}
		usleep(1000);
	}
	if (fread(endpoint, sizeof(*endpoint), 1, f) != 1)
		exit(1);
	fclose(f);
}

#endif
