/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rota.h - the order of service: round robin over ports, then over the groups of a port.
 *
 * Used by the files of the NIC loop. Intrusive lists: nothing is allocated, every call takes
 * constant time. A port with a thousand groups gets no more visits than a port with one.
 *
 * A port that enters is *fresh* if neither this pass nor the last one has served it. A fresh port
 * has its first visit before the ports with a backlog (as a new flow has in FQ-CoDel). Then it
 * joins these ports.
 */
#ifndef NBNIC_ROTA_H
#define NBNIC_ROTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

/* A link with next == NULL is in no list. The head of a list is a link, too. */
struct nbnic_link {
	struct nbnic_link *next, *prev;
};

struct nbnic_rota_port {
	struct nbnic_link link; /* in ports */
	struct nbnic_link groups;
	uint32_t served; /* the pass of its last visit */
};

struct nbnic_rota {
	struct nbnic_link fresh, ports; /* ports that have groups here */
	struct nbnic_rota_port *port;   /* NBNIC_PORTS_MAX of them */
	const uint32_t *pass;           /* number of the pass; wraps */
	uint32_t nport;                 /* in both lists */
};

static inline void nbnic_link_init(struct nbnic_link *head)
{
	head->next = head->prev = head;
}

static inline bool nbnic_link_empty(const struct nbnic_link *head)
{
	return head->next == head;
}

static inline void nbnic_link_append(struct nbnic_link *head, struct nbnic_link *l)
{
	l->next = head;
	l->prev = head->prev;
	head->prev->next = l;
	head->prev = l;
}

static inline void nbnic_link_remove(struct nbnic_link *l)
{
	l->next->prev = l->prev;
	l->prev->next = l->next;
	l->next = NULL;
}

static inline void nbnic_rota_init(struct nbnic_rota *r, struct nbnic_rota_port *port,
				   const uint32_t *pass)
{
	nbnic_link_init(&r->fresh);
	nbnic_link_init(&r->ports);
	r->port = port;
	r->pass = pass;
	r->nport = 0;
	for (uint32_t i = 0; i < NBNIC_PORTS_MAX; i++) {
		r->port[i].link.next = NULL;
		nbnic_link_init(&r->port[i].groups);
	}
}

static inline bool nbnic_rota_empty(const struct nbnic_rota *r)
{
	return r->nport == 0;
}

/* Puts the link of a group behind the others of its port, unless it is there already. */
static inline void nbnic_rota_add(struct nbnic_rota *r, uint32_t port, struct nbnic_link *l)
{
	struct nbnic_rota_port *p = &r->port[port];

	if (l->next)
		return;
	nbnic_link_append(&p->groups, l);
	if (p->link.next)
		return;
	nbnic_link_append(*r->pass - p->served > 1 ? &r->fresh : &r->ports, &p->link);
	r->nport++;
}

static inline void nbnic_rota_remove(struct nbnic_rota *r, uint32_t port, struct nbnic_link *l)
{
	if (!l->next)
		return;
	struct nbnic_rota_port *p = &r->port[port];

	nbnic_link_remove(l);
	if (!nbnic_link_empty(&p->groups))
		return;
	nbnic_link_remove(&p->link);
	r->nport--;
}

/* Takes out the first group of the first port of `fresh` or of `ports`, which must have a port. If
 * that port has more groups, it goes to the end of `ports`. */
static inline struct nbnic_link *nbnic_rota_take(struct nbnic_rota *r, bool fresh)
{
	struct nbnic_link *first = fresh ? r->fresh.next : r->ports.next;
	struct nbnic_rota_port *p = (struct nbnic_rota_port *)first;
	struct nbnic_link *l = p->groups.next;

	p->served = *r->pass;
	nbnic_link_remove(l);
	nbnic_link_remove(&p->link);
	if (!nbnic_link_empty(&p->groups))
		nbnic_link_append(&r->ports, &p->link);
	else
		r->nport--;
	return l;
}

#endif
