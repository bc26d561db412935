/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * value.c - barriers that carry a value: post, result.
 *
 * A value lies in the page of the port, at the place of its barrier: the NIC reads it when the
 * barrier starts, and writes the result there before the completion word.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"
#include "order.h"

/* Bytes of the elements of a value; 0: no such type, op does not take it, or too many. */
static uint32_t length_of(const struct nbar_value *v)
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

#define HEAD offsetof(struct nbar_value, of)

/* order_post orders the writes of the host here, order_completion_read its reads. */
static struct nbar_value *value_place(const struct nbar_group *g, uint32_t epoch)
{
	return &g->values[epoch % NBAR_VALUES_AHEAD].value;
}

int nblib_value_check(const struct nbar_group *g, const struct nbar_value *value)
{
	uint32_t length = length_of(value);

	if (length == 0 || length > g->value_max)
		return nblib_fail(-EINVAL,
				  "op %u of %u elements of type %u: no value, or more than the %u "
				  "bytes of value_max",
				  value->op, value->count, value->type, g->value_max);
	return 0;
}

void nblib_value_put(struct nbar_group *g, uint32_t epoch, const struct nbar_value *value)
{
	memcpy(value_place(g, epoch), value, HEAD + length_of(value));
	value_place(g, epoch)->epoch = epoch;
}

int nbar_post_value(struct nbar_group *g, const struct nbar_value *value, uint32_t *ticket)
{
	uint64_t word = order_completion_read(&g->completion->word);
	uint32_t epoch = (uint32_t)order_posted_read(&g->posted) + 1;
	int err = nblib_value_check(g, value);

	if (err)
		return err;
	/* A refused value is not in the page: another barrier would take it. */
	if (!nblib_can_post(g, word, epoch, NBAR_VALUES_AHEAD))
		return nblib_post_refused(g, word);
	nblib_value_put(g, epoch, value);
	return nbar_post(g, ticket);
}

int nbar_result(const struct nbar_group *g, uint32_t ticket, struct nbar_value *out)
{
	uint64_t word = order_completion_read(&g->completion->word);
	const struct nbar_value *from =
		g->values && nblib_reached(word, ticket) ? value_place(g, ticket) : NULL;
	struct nbar_value head = { 0 };
	uint32_t length;

	if (!from || !(from->op & NBAR_VALUE_RESULT) || from->epoch != ticket)
		return nblib_fail(
			-EINVAL,
			"barrier %u of the group has no result: it carried no value, is not "
			"complete, or %u later ones were posted",
			ticket, NBAR_VALUES_AHEAD);
	head.op = from->op & (uint8_t)~NBAR_VALUE_RESULT;
	head.type = from->type;
	head.count = from->count;
	length = length_of(&head);
	if (length == 0 || length > NBAR_VALUE_MAX)
		return nblib_fail(-EINVAL,
				  "barrier %u of the group has no result: it has not been posted",
				  ticket);
	memcpy(out, &head, HEAD);
	memcpy(&out->of, &from->of, length);
	return 0;
}

int nbar_allreduce(struct nbar_group *g, const struct nbar_value *in, struct nbar_value *out)
{
	uint32_t ticket;
	int err = nbar_post_value(g, in, &ticket);

	if (err == 0)
		err = nbar_wait(g, ticket, NBAR_FOREVER);
	return err ? err : nbar_result(g, ticket, out);
}
