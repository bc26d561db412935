/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * add.c - adds to a word of memory that guests share, all at once.
 *
 * guests-add FILE K N: guest K of N adds 1, ADDITIONS times. FILE contains zeros at first. When all
 * guests are done, each prints the sum; exit status 1 if additions got lost. Used by
 * testbed/verbs/test-guests.sh: the emulator must make atomic operations atomic between guests,
 * too.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define GUESTS_MAX 8u
#define ADDITIONS 2000000u
#define LIMIT_S 600

enum stage { BEGUN = 1, DONE };

struct shared {
	uint32_t sum;
	uint32_t stage[GUESTS_MAX]; /* each written by its guest alone */
};

static void meet(struct shared *shared, uint32_t k, uint32_t n, enum stage stage)
{
	time_t end = time(NULL) + LIMIT_S;

	__atomic_store_n(&shared->stage[k], stage, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < n; i++) {
		while (__atomic_load_n(&shared->stage[i], __ATOMIC_ACQUIRE) < stage) {
			if (time(NULL) <= end)
				continue;
			fprintf(stderr, "guests-add: guest %u did not come within %d s\n", i,
				LIMIT_S);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	uint32_t k = argc == 4 ? (uint32_t)atoi(argv[2]) : 0;
	uint32_t n = argc == 4 ? (uint32_t)atoi(argv[3]) : 0;
	struct shared *shared;
	int fd;

	if (n > GUESTS_MAX || k >= n) {
		fprintf(stderr, "usage: guests-add FILE K N\n");
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	meet(shared, k, n, BEGUN);
	for (uint32_t i = 0; i < ADDITIONS; i++)
		__atomic_fetch_add(&shared->sum, 1, __ATOMIC_RELAXED);
	meet(shared, k, n, DONE);
	printf("%u of %u additions\n", shared->sum, n * ADDITIONS);
	return shared->sum == n * ADDITIONS ? 0 : 1;
}
