/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay.c - a bad cable between two emulated NICs: it loses frames, repeats them, and adds noise.
 *
 *   riscv-relay FOLDER LOSS NOISE SEED
 *
 * NIC 0 sends to FOLDER/r0 and receives at FOLDER/w0, NIC 1 likewise (QEMU's netdev `dgram`). The
 * relay drops LOSS percent of the frames. After NOISE percent of the frames it sends one frame
 * more: the same frame again, or a frame that no correct NIC sends (random bytes behind a right
 * address and type, too short, or too long). testbed/riscv/bared.sh starts the relay, and ends it
 * by SIGTERM; then it prints how many frames it has passed, lost and added.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FRAME_MAX 2048
#define HEAD 14 /* addresses and type of an Ethernet frame */

static unsigned long frames, lost, noisy;
static uint64_t seed;

static uint32_t draw(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33);
}

static struct sockaddr_un name(const char *folder, char kind, int i)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/%c%d", folder, kind, i);
	return sun;
}

/* The receiver's queue is short: a frame for which it has no room is lost, as on any wire. */
static void pass(int fd, const struct sockaddr_un *to, const uint8_t *frame, size_t n)
{
	(void)!sendto(fd, frame, n, MSG_DONTWAIT, (const struct sockaddr *)to, sizeof(*to));
}

static void noise(int fd, const struct sockaddr_un *to, const uint8_t *frame, size_t n)
{
	uint8_t bad[FRAME_MAX];
	size_t length = n;

	memcpy(bad, frame, n);
	switch (draw() % 4) {
	case 0: /* the same frame again */
		break;
	case 1: /* cut short; to QEMU, an empty datagram is the end of the wire */
		length = 1 + draw() % (n - 1);
		break;
	case 2: /* too long */
		length = FRAME_MAX;
		memset(bad + n, 0x5a, length - n);
		bad[HEAD] = 0x7f;
		break;
	case 3: /* right version and type, the rest random */
		for (size_t i = HEAD + 4; i < n; i++)
			bad[i] = (uint8_t)draw();
		break;
	}
	pass(fd, to, bad, length);
	noisy++;
}

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

int main(int argc, char **argv)
{
	struct pollfd p[2];
	struct sockaddr_un to[2];

	if (argc != 5) {
		fprintf(stderr, "usage: riscv-relay FOLDER LOSS NOISE SEED\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = on_stop }, NULL);
	seed = strtoul(argv[4], NULL, 10);
	for (int i = 0; i < 2; i++) {
		struct sockaddr_un here = name(argv[1], 'r', i);

		to[i] = name(argv[1], 'w', !i);
		p[i] = (struct pollfd){ socket(AF_UNIX, SOCK_DGRAM, 0), POLLIN, 0 };
		if (bind(p[i].fd, (const struct sockaddr *)&here, sizeof(here)) < 0) {
			perror(here.sun_path);
			return 1;
		}
	}
	while (!stopped) {
		if (poll(p, 2, -1) < 0)
			continue;
		for (int i = 0; i < 2; i++) {
			uint8_t frame[FRAME_MAX];
			ssize_t n = p[i].revents ? recv(p[i].fd, frame, sizeof(frame), 0) : 0;

			if (n <= HEAD)
				continue;
			frames++;
			if (draw() % 100 < strtoul(argv[2], NULL, 10))
				lost++;
			else
				pass(p[i].fd, &to[i], frame, (size_t)n);
			if (draw() % 100 < strtoul(argv[3], NULL, 10))
				noise(p[i].fd, &to[i], frame, (size_t)n);
		}
	}
	printf("%lu frames, %lu lost, %lu times noise\n", frames, lost, noisy);
	return 0;
}
