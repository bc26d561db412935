/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz.h - what the fuzz targets share: the input as a stream of bytes, and a check that ends the
 * target.
 *
 * A target is a program of libFuzzer, which calls LLVMFuzzerTestOneInput for each input. No input
 * may break a check of the target or trip a sanitizer.
 */
#ifndef TESTBED_FUZZ_H
#define TESTBED_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_require(cond)                                                         \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                   \
		}                                                                  \
	} while (0)

struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* Takes the next n bytes; beyond the end of the input they are zeros. Returns how many the input
 * had. */
static inline size_t fuzz_take(struct fuzz_input *in, void *to, size_t n)
{
	size_t got = n < in->left ? n : in->left;

	memset(to, 0, n);
	if (got > 0)
		memcpy(to, in->at, got);
	in->at += got;
	in->left -= got;
	return got;
}

static inline uint8_t fuzz_u8(struct fuzz_input *in)
{
	uint8_t v;

	fuzz_take(in, &v, sizeof(v));
	return v;
}

static inline uint16_t fuzz_u16(struct fuzz_input *in)
{
	uint16_t v;

	fuzz_take(in, &v, sizeof(v));
	return v;
}

static inline uint32_t fuzz_u32(struct fuzz_input *in)
{
	uint32_t v;

	fuzz_take(in, &v, sizeof(v));
	return v;
}

/* A number from -128 to 127, modulo 2^32. */
static inline uint32_t fuzz_near(struct fuzz_input *in)
{
	return ((uint32_t)fuzz_u8(in) ^ 0x80) - 0x80;
}

#endif
