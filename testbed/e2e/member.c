/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member.c - a member of a group, which arrives at a barrier on command: for why.sh and watch.sh.
 *
 * Usage: member NIC FOLDER RANK SIZE. FOLDER holds the endpoint addresses, as in hello.c. For each
 * line on stdin the member runs one barrier. Until the barrier is complete, it prints the reason
 * every 100 ms. It ends at the end of stdin, or when the group fails.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "endpoints.h"
#include "nbar.h"

#define MEMBERS_MAX 64u
#define LOOK_NS 100000000u

static int fail(const char *what)
{
	printf("%s: %s\n", what, nbar_error());
	return 1;
}

static int barrier(struct nbar_group *group)
{
	uint32_t ticket;
	int rc = nbar_post(group, &ticket);

	if (rc < 0)
		return fail("post");
	while ((rc = nbar_wait(group, ticket, LOOK_NS)) == -ETIME)
		printf("%s\n", nbar_error());
	return rc < 0 ? fail("wait") : 0;
}

int main(int argc, char **argv)
{
	struct nbar_endpoint endpoint, endpoints[MEMBERS_MAX];
	struct nbar_port *port;
	struct nbar_group *group;
	char line[16];

	if (argc != 5)
		return 2;
	unsigned rank = (unsigned)atoi(argv[3]), size = (unsigned)atoi(argv[4]);
	struct nbar_group_attr attr = { .rank = rank, .size = size };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (size > MEMBERS_MAX || nbar_open(argv[1], &port) < 0)
		return fail("open");
	if (nbar_group_open(port, &attr, &group, &endpoint) < 0)
		return fail("group");
	endpoint_put(argv[2], rank, &endpoint);
	for (unsigned r = 0; r < size; r++)
		endpoint_get(argv[2], r, &endpoints[r]);
	if (nbar_group_connect(group, endpoints) < 0)
		return fail("connect");
	printf("connected\n");
	for (unsigned n = 1; fgets(line, sizeof(line), stdin); n++) {
		if (barrier(group))
			return 1;
		printf("complete %u\n", n);
	}
	nbar_close(port);
	return 0;
}
