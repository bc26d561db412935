/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * single_mapping.c - maps a page only once, so the NIC and the host library of a test use the same
 * address.
 *
 * ThreadSanitizer follows order by address: with a page mapped twice it would not know that a
 * completion orders one thread's writes before another's reads. Tests linked with this file and
 * --wrap=mmap,--wrap=munmap can use plain memory for the data that a barrier protects, and so check
 * the fences of order.h and page.c.
 */
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "nbar_abi.h"

#define PAGES 256

void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t length);

static struct {
	ino_t ino;
	void *addr;
	unsigned refs;
} page[PAGES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *map_shared(ino_t ino, size_t length, int prot, int fd)
{
	unsigned i, spare = PAGES;

	for (i = 0; i < PAGES && !(page[i].refs && page[i].ino == ino); i++)
		if (!page[i].refs)
			spare = i;
	if (i < PAGES) {
		page[i].refs++;
		return page[i].addr;
	}
	void *addr = __real_mmap(NULL, length, prot, MAP_SHARED, fd, 0);

	if (addr != MAP_FAILED && spare < PAGES) {
		page[spare].ino = ino;
		page[spare].addr = addr;
		page[spare].refs = 1;
	}
	return addr;
}

void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	struct stat st;

	if (addr || length != sizeof(struct nbar_page) || flags != MAP_SHARED || fd < 0 ||
	    fstat(fd, &st) < 0)
		return __real_mmap(addr, length, prot, flags, fd, offset);
	pthread_mutex_lock(&lock);
	addr = map_shared(st.st_ino, length, prot, fd);
	pthread_mutex_unlock(&lock);
	return addr;
}

int __wrap_munmap(void *addr, size_t length)
{
	int rc = 0;
	unsigned i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < PAGES && !(page[i].refs && page[i].addr == addr); i++)
		;
	if (i == PAGES || --page[i].refs == 0)
		rc = __real_munmap(addr, length);
	pthread_mutex_unlock(&lock);
	return rc;
}
