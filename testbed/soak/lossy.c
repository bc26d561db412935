/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lossy.c - a library to preload into daemons: it loses some of the UDP frames that they send, at
 * random.
 *
 * Used by torture.sh, without privileges. All daemons map the file LOSSY_FILE. Its first word is
 * the percentage of lost frames (100: a partition), and may change at any time; its second word
 * counts the lost frames.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
	uint32_t percent, lost;
} * shared;
static uint64_t seed;

__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("LOSSY_FILE");
	int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		_exit(99);
	seed = (uint64_t)getpid();
}

/* Only the polling thread of a daemon sends frames. */
static bool is_lost(void)
{
	if (!shared)
		return false;
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	if ((seed >> 33) % 100 >= __atomic_load_n(&shared->percent, __ATOMIC_RELAXED))
		return false;
	__atomic_fetch_add(&shared->lost, 1, __ATOMIC_RELAXED);
	return true;
}

ssize_t sendto(int fd, const void *from, size_t size, int flags, __CONST_SOCKADDR_ARG to,
	       socklen_t n)
{
	static ssize_t (*next)(int, const void *, size_t, int, __CONST_SOCKADDR_ARG, socklen_t);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "sendto");
	return is_lost() ? (ssize_t)size : next(fd, from, size, flags, to, n);
}
