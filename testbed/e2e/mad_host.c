/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mad_host.c - a host that writes nonsense to its start socket, its doorbells and its results:
 * for kernel.sh. Its own group may fail.
 *
 * Usage: mad_host NIC MESSAGES. Exit status 1 if the NIC has no start socket.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "internal.h"
#include "unit/unit.h"

static struct rng rng = { 1 };

/* A number that is near `near`, or any. */
static uint32_t some(uint32_t near)
{
	return rng_percent(&rng, 50) ? near + rng_below(&rng, 4) - 1 : (uint32_t)rng_next(&rng);
}

static void send_nonsense(const struct nbar_port *port)
{
	uint8_t message[1400] = { 0 };
	const struct nbar_start start = { .cell = some(1),
					  .posted = some(port->page->doorbell[0].posted),
					  .sleeps = some(1),
					  .values = some(1) };
	const size_t length =
		rng_percent(&rng, 70)
			? sizeof(start)
			: rng_below(&rng, rng_percent(&rng, 90) ? 100 : sizeof(message));

	for (size_t i = sizeof(start); i < length; i++)
		message[i] = (uint8_t)some(1);
	memcpy(message, &start, sizeof(start));
	send(port->start, message, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void write_nonsense(const struct nbar_port *port)
{
	const uint32_t cell = rng_below(&rng, 4);
	const struct nbar_completion nonsense = { .word = rng_next(&rng),
						  .nstragglers = some(7),
						  .failed_rank = some(0) };

	port->page->doorbell[cell] =
		(struct nbar_doorbell){ .posted = some(port->page->doorbell[cell].posted),
					.wake_seq = some(0) };
	port->page->completion[cell] = port->results->completion[cell] = nonsense;
	port->results->value[cell][some(3) % NBAR_VALUES_AHEAD].value.epoch = some(1);
}

int main(int argc, char **argv)
{
	const unsigned long messages = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	struct nbar_endpoint endpoint[2];
	struct nbar_group *group[2];
	struct nbar_port *port;

	if (argc != 3 || nbar_open(argv[1], &port) < 0 || !port->has_start)
		return 1;
	for (uint32_t i = 0; i < 2; i++) {
		const struct nbar_group_attr attr = { .rank = i, .size = 2, .value_max = 64 };

		if (nbar_group_open(port, &attr, &group[i], &endpoint[i]) < 0)
			return 1;
	}
	for (uint32_t i = 0; i < 2; i++)
		if (nbar_group_connect(group[i], endpoint) < 0)
			return 1;
	for (unsigned long i = 0; i < messages; i++) {
		send_nonsense(port);
		if (i % 16 == 0)
			write_nonsense(port);
	}
	nbar_close(port);
	return 0;
}
