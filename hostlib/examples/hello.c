/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.c - processes that meet in a barrier, and compute while the NICs run it.
 *
 * Build it by: cc -o hello hello.c $(pkg-config --cflags --libs nbar)
 *
 * Usage: hello NIC FOLDER RANK SIZE, once for each rank from 0 to SIZE - 1. FOLDER is an empty
 * folder that all processes see: they exchange their endpoint addresses in it. If a run was
 * stopped, empty the folder before the next run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nbar.h>

static void endpoint_path(char *path, size_t size, const char *folder, unsigned rank)
{
	snprintf(path, size, "%s/rank-%u", folder, rank);
}

/* Writes the file under another name first, so that nobody reads half an endpoint address. */
static int endpoint_put(const char *folder, unsigned rank, const struct nbar_endpoint *endpoint)
{
	char path[4096], part[4100];
	FILE *f;

	endpoint_path(path, sizeof(path), folder, rank);
	snprintf(part, sizeof(part), "%s.new", path);
	f = fopen(part, "wb");
	if (!f)
		return -1;
	if (fwrite(endpoint, sizeof(*endpoint), 1, f) != 1) {
		fclose(f);
		return -1;
	}
	return fclose(f) == 0 ? rename(part, path) : -1;
}

static void endpoint_get(const char *folder, unsigned rank, struct nbar_endpoint *endpoint)
{
	char path[4096];
	size_t n = 0;

	endpoint_path(path, sizeof(path), folder, rank);
	while (n != 1) {
		FILE *f = fopen(path, "rb");

		if (f) {
			n = fread(endpoint, sizeof(*endpoint), 1, f);
			fclose(f);
		} else {
			usleep(1000); /* the file is not there yet */
		}
	}
}

static int hello_fail(const char *what)
{
	fprintf(stderr, "hello: %s: %s\n", what, nbar_error());
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: %s NIC FOLDER RANK SIZE\n", argv[0]);
		return 2;
	}
	unsigned rank = (unsigned)atoi(argv[3]), size = (unsigned)atoi(argv[4]);
	struct nbar_group_attr attr = { .rank = rank, .size = size };
	struct nbar_port *port;
	struct nbar_group *group;
	struct nbar_endpoint endpoint, *endpoints = calloc(size, sizeof(*endpoints));
	double sum = 0;

	/* A member: a port of a NIC, a group on it, and the endpoint addresses of the others. */
	if (!endpoints || nbar_open(argv[1], &port) < 0)
		return hello_fail("open");
	if (nbar_group_open(port, &attr, &group, &endpoint) < 0)
		return hello_fail("group");
	if (endpoint_put(argv[2], rank, &endpoint) < 0) {
		perror(argv[2]);
		return 1;
	}
	for (unsigned r = 0; r < size; r++)
		endpoint_get(argv[2], r, &endpoints[r]);
	if (nbar_group_connect(group, endpoints) < 0)
		return hello_fail("connect");

	/* Arrive, compute while the NICs run the barrier, and wait for the others. */
	for (int i = 1; i <= 1000; i++) {
		uint32_t ticket;

		if (nbar_post(group, &ticket) < 0)
			return hello_fail("post");
		sum += 1.0 / i;
		if (nbar_wait(group, ticket, NBAR_FOREVER) < 0)
			return hello_fail("wait");
	}
	printf("rank %u of %u: hello after 1000 barriers, and %.3f by the way\n", rank, size, sum);

	char path[4096];

	endpoint_path(path, sizeof(path), argv[2], rank);
	unlink(path);
	free(endpoints);
	nbar_close(port);
	return 0;
}
