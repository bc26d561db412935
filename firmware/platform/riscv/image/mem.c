/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem.c - the functions that a compiler calls by itself; the image links no libc.
 *
 * Called from everywhere. Uses words if the alignment allows it, because pages are cleared here.
 */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);

#define WORD sizeof(uint64_t)

typedef uint64_t __attribute__((may_alias)) word_alias;

static int all_aligned(uintptr_t bits)
{
	return (bits & (WORD - 1)) == 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	if (all_aligned((uintptr_t)t | (uintptr_t)f))
		for (; n >= WORD; n -= WORD, t += WORD, f += WORD)
			*(word_alias *)t = *(const word_alias *)f;
	while (n--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	if ((uintptr_t)t - (uintptr_t)f >= n)
		return memcpy(to, from, n);
	while (n--)
		t[n] = f[n];
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	uint64_t word = (uint8_t)byte * UINT64_C(0x0101010101010101);
	uint8_t *t = to;

	if (all_aligned((uintptr_t)t))
		for (; n >= WORD; n -= WORD, t += WORD)
			*(word_alias *)t = word;
	while (n--)
		*t++ = (uint8_t)byte;
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *p = a, *q = b;

	for (size_t i = 0; i < n; i++)
		if (p[i] != q[i])
			return p[i] - q[i];
	return 0;
}
