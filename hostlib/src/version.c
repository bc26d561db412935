/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * version.c - reads an API struct of another version of the library.
 *
 * Called when something is opened, never on the path of a barrier.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

int nblib_struct_read(const char *name, void *to, size_t ours, size_t least, const void *from,
		      uint32_t theirs)
{
	const unsigned char *byte = from;
	size_t size = theirs == 0 ? least : theirs;

	if (size < least)
		return nblib_fail(-EINVAL,
				  "struct %s: struct_size is %u, and no version of it is so small: "
				  "set it to the sizeof of the struct",
				  name, theirs);
	for (size_t i = ours; i < size; i++)
		if (byte[i])
			return nblib_fail(-E2BIG,
					  "struct %s has a field that this library does not know "
					  "(byte %zu of %zu): install the libnbar that the program "
					  "was compiled for",
					  name, i, size);
	memset(to, 0, ours);
	memcpy(to, from, size < ours ? size : ours);
	return 0;
}
