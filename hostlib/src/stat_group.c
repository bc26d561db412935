/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat_group.c - a group's statistic: the ranks from which the last token of each barrier came.
 * Called by programs and monitors, never on the path of a barrier.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define ENTRIES_MAX (1 + NBAR_SLOTS_MAX)
#define CHANGES_MAX 4u /* groups that a cell may get while its statistic is read */

static int by_rank(const void *a, const void *b)
{
	const struct nbar_last *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_time(const void *a, const void *b)
{
	const struct nbar_last *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : by_rank(a, b);
}

/* Adds up the entries of each rank. */
static uint32_t group_merge(struct nbar_last *last, uint32_t n)
{
	uint32_t kept = 0;

	qsort(last, n, sizeof(*last), by_rank);
	for (uint32_t i = 0; i < n; i++) {
		struct nbar_last *to = kept ? &last[kept - 1] : NULL;

		if (!to || to->rank != last[i].rank) {
			last[kept++] = last[i];
			continue;
		}
		to->barriers += last[i].barriers;
		to->ns += last[i].ns;
		if (to->most_ns < last[i].most_ns)
			to->most_ns = last[i].most_ns;
	}
	return kept;
}

static void group_summarize(struct nbar_last *last, uint32_t n, struct nbar_group_stat *out)
{
	memset(out, 0, sizeof(*out));
	n = group_merge(last, n);
	qsort(last, n, sizeof(*last), by_time);
	for (uint32_t i = 0; i < n; i++) {
		out->barriers += last[i].barriers;
		out->ns += last[i].ns;
	}
	out->nrank = n;
	out->nlast = n < NBAR_LAST_MAX ? n : NBAR_LAST_MAX;
	memcpy(out->last, last, out->nlast * sizeof(*last));
}

/* Requests messages of entries, one after the other. If the cell gets another group between two
 * messages, begins again. Returns how many entries came. */
static int group_fetch(struct nblib_link *link, struct nbar_req_group_latency *request,
		       uint32_t *index, struct nbar_last *last)
{
	struct nbar_rep_group_latency reply, first = { .nlast = 0 };
	struct nblib_call call = {
		.op = NBAR_OP_GROUP_LATENCY,
		.body = { { request, sizeof(*request) } },
		.fixed = { &reply, sizeof(reply) },
	};
	uint32_t n = 0, changes = 0;

	for (;;) {
		call.rest = (struct iovec){ last + n, (ENTRIES_MAX - n) * sizeof(*last) };
		int err = nblib_link_call(link, &call);

		if (err)
			return err;
		if (call.nrest != (uint64_t)reply.nlast * sizeof(*last) ||
		    (reply.next != 0 && reply.next <= request->first))
			return nblib_fail(
				-EPROTO,
				"NIC %s: its statistic of a group makes no sense: install "
				"the same nbar for both",
				link->nic);
		if (request->first == 0) {
			first = reply;
		} else if (reply.index != first.index || reply.rank != first.rank) {
			if (++changes == CHANGES_MAX)
				return nblib_fail(-ENOENT,
						  "NIC %s: its groups change too quickly: cell %u "
						  "of port %u had several while its statistic was "
						  "read; try again",
						  link->nic, request->cell, request->port);
			request->first = n = 0;
			continue;
		}
		n += reply.nlast;
		if (reply.next == 0)
			break;
		request->first = reply.next;
	}
	*index = first.index;
	return (int)n;
}

int nblib_stat_group(struct nblib_link *link, uint32_t port, uint32_t cell, uint32_t *index,
		     struct nbar_group_stat *out)
{
	struct nbar_req_group_latency request = { .port = port, .cell = cell };
	struct nbar_last *last = malloc(ENTRIES_MAX * sizeof(*last));
	int n;

	if (!last)
		return nblib_fail(-ENOMEM, "no memory for the statistic of a group");
	n = group_fetch(link, &request, index, last);
	if (n >= 0)
		group_summarize(last, (uint32_t)n, out);
	free(last);
	return n < 0 ? n : 0;
}
