/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rejoin.c - a long-lived program that makes groups and runs barriers on command: for recovery.sh.
 *
 * Usage: rejoin NIC. Reads a command from each line of stdin, and answers it by one line on stdout:
 *
 *   group FOLDER RANK SIZE   closes the group, and opens and connects a new one;
 *                            opens a new port if the port is lost; the members
 *                            exchange endpoint addresses in FOLDER.
 *                            Answer: "connected"
 *
 *   barrier                  runs a barrier. Answer: "complete", or "failed: TEXT"
 *
 * It ends at the end of stdin.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "endpoints.h"
#include "nbar.h"

#define MEMBERS_MAX 64u

static const char *nic;
static struct nbar_port *port;
static struct nbar_group *group;

static int failed(void)
{
	printf("failed: %s\n", nbar_error());
	return -1;
}

/* Opens the group. If the port is lost, opens a new port first. */
static int open_group(const struct nbar_group_attr *attr, struct nbar_endpoint *endpoint)
{
	int rc = port ? nbar_group_open(port, attr, &group, endpoint) : -ENETDOWN;

	if (rc != -ENETDOWN)
		return rc;
	nbar_close(port);
	port = NULL;
	rc = nbar_open(nic, &port);
	return rc < 0 ? rc : nbar_group_open(port, attr, &group, endpoint);
}

static int make_group(const char *folder, unsigned rank, unsigned size)
{
	struct nbar_group_attr attr = { .rank = rank, .size = size };
	struct nbar_endpoint mine, endpoints[MEMBERS_MAX];

	nbar_group_close(group);
	group = NULL;
	if (size > MEMBERS_MAX || open_group(&attr, &mine) < 0)
		return failed();
	endpoint_put(folder, rank, &mine);
	for (unsigned r = 0; r < size; r++)
		endpoint_get(folder, r, &endpoints[r]);
	if (nbar_group_connect(group, endpoints) < 0)
		return failed();
	printf("connected\n");
	return 0;
}

int main(int argc, char **argv)
{
	char line[4096], folder[2048];
	unsigned rank, size;

	if (argc != 2)
		return 2;
	nic = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "group %2047s %u %u", folder, &rank, &size) == 3)
			make_group(folder, rank, size);
		else if (strcmp(line, "barrier\n") == 0 && group && nbar_barrier(group) == 0)
			printf("complete\n");
		else
			failed();
	}
	nbar_close(port);
	return 0;
}
