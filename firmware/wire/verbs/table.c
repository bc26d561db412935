/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c - the peers of the wire "verbs", by GID and queue pair.
 *
 * Both threads look up peers; only the polling thread changes the table.
 */
#include <string.h>

#include "verbs.h"

static uint32_t hash_of(const struct verbs_addr *a)
{
	uint64_t low;

	memcpy(&low, a->gid + 8, sizeof(low));
	low = (low ^ a->qpn) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(low >> 32) % VERBS_BUCKETS;
}

/* A datagram tells only the GID and queue pair of its sender: so these two identify a peer. */
struct verbs_peer *verbs_peer_find(const struct verbs_wire *w, const struct verbs_addr *a)
{
	struct verbs_peer *p = w->bucket[hash_of(a)];

	for (; p; p = p->next) {
		struct verbs_addr b = verbs_addr_of(&p->addr);

		if (p->qpn == a->qpn && memcmp(b.gid, a->gid, sizeof(a->gid)) == 0)
			return p;
	}
	return NULL;
}

void verbs_peer_insert(struct verbs_wire *w, struct verbs_peer *p)
{
	struct verbs_addr a = verbs_addr_of(&p->addr);
	struct verbs_peer **at = &w->bucket[hash_of(&a)];

	p->next = *at;
	*at = p;
}

void verbs_peer_remove(struct verbs_wire *w, struct verbs_peer *p)
{
	struct verbs_addr a = verbs_addr_of(&p->addr);
	struct verbs_peer **at = &w->bucket[hash_of(&a)];

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	if (w->connection_at == p)
		w->connection_at = p->next_connection;
	for (at = &w->connections; *at; at = &(*at)->next_connection) {
		if (*at == p) {
			*at = p->next_connection;
			break;
		}
	}
}
