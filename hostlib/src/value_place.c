/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * value_place.c - where the value of a barrier lies, and its length.
 *
 * A value lies in the page of the port, or in the results of a NIC in the kernel, at the place of
 * its barrier: the NIC reads it when the barrier starts, and writes the result there before the
 * completion word.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

#define HEAD offsetof(struct nbar_value, of)

uint32_t nblib_value_length(const struct nbar_value *v)
{
	static const char *const takes[] = {
#define TAKES(name, number, classes) [number] = classes,
		NBAR_VALUE_OPS(TAKES)
#undef TAKES
	};
	static const struct {
		char class;
		uint8_t size;
	} type[] = {
#define TYPE(name, number, class, size, ...) [number] = { class, size },
		NBAR_VALUE_TYPES(TYPE)
#undef TYPE
	};

	if (v->op >= sizeof(takes) / sizeof(takes[0]) || !takes[v->op] ||
	    v->type >= sizeof(type) / sizeof(type[0]) || !type[v->type].class ||
	    !strchr(takes[v->op], type[v->type].class))
		return 0;
	return (uint32_t)v->count * type[v->type].size;
}

struct nbar_value *nblib_value_place(const struct nbar_group *g, uint32_t epoch)
{
	return &g->values[epoch % NBAR_VALUES_AHEAD].value;
}

int nblib_value_check(const struct nbar_group *g, const struct nbar_value *value)
{
	uint32_t length = nblib_value_length(value);

	if (length == 0 || length > g->value_max)
		return nblib_fail(-EINVAL,
				  "op %u of %u elements of type %u: no value, or more than the %u "
				  "bytes of value_max",
				  value->op, value->count, value->type, g->value_max);
	return 0;
}

void nblib_value_put(struct nbar_group *g, uint32_t epoch, const struct nbar_value *value)
{
	memcpy(nblib_value_place(g, epoch), value, HEAD + nblib_value_length(value));
	nblib_value_place(g, epoch)->epoch = epoch;
}

uint32_t nblib_value_posted(const struct nbar_group *g, uint32_t epoch, uint8_t *out)
{
	const struct nbar_value *v = nblib_value_place(g, epoch);
	uint32_t length = v->epoch == epoch ? nblib_value_length(v) : 0; /* 0: of a result */

	if (length == 0 || length > sizeof(v->of))
		return 0;
	memcpy(out, v, HEAD + length);
	memset(out + offsetof(struct nbar_value, epoch), 0, sizeof(v->epoch)); /* as in a frame */
	return HEAD + length;
}
