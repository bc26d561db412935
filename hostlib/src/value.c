/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * value.c - barriers that carry a value: post, result.
 *
 * Called by programs. value_place.c knows where values lie.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"
#include "order.h"

#define HEAD offsetof(struct nbar_value, of)

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
		g->values && nblib_reached(word, ticket) ? nblib_value_place(g, ticket) : NULL;
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
	length = nblib_value_length(&head);
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
