/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.c - makes and ends the peers, the NICs that the wire "verbs" sends to.
 *
 * Called by the control thread, because all this takes system calls. It changes data of the polling
 * thread only by base.call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "verbs.h"

struct peer_call {
	struct verbs_wire *w;
	struct verbs_peer *peer;
	struct verbs_connection *connection;
	struct verbs_addr want;
	bool wanted, broken;
};

static void run_insert(void *arg, uint64_t now)
{
	struct peer_call *c = arg;

	(void)now;
	verbs_peer_insert(c->w, c->peer);
}

static void run_remove(void *arg, uint64_t now)
{
	struct peer_call *c = arg;

	(void)now;
	verbs_peer_remove(c->w, c->peer);
}

/* Gives a peer in the table another address: only now is its whole address known, or a restarted
 * NIC has the same queue pair number. Only handshakes use the id in the address: with a wrong id no
 * connection is made, and frames go as datagrams. */
static void run_rename(void *arg, uint64_t now)
{
	struct peer_call *c = arg;

	(void)now;
	memcpy(c->peer->addr.byte, &c->want, sizeof(c->want));
}

static void run_add_connection(void *arg, uint64_t now)
{
	struct peer_call *c = arg;

	(void)now;
	c->peer->connection = c->connection;
	c->peer->next_connection = c->w->connections;
	c->w->connections = c->peer;
}

static bool is_self(const struct verbs_wire *w, const struct verbs_addr *a)
{
	return a->qpn == w->self.qpn && memcmp(a->gid, w->self.gid, sizeof(a->gid)) == 0;
}

static bool is_v4(const uint8_t gid[16])
{
	static const uint8_t v4[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	return memcmp(gid, v4, sizeof(v4)) == 0;
}

/* Returns why the two NICs cannot exchange frames, or NULL. */
static const char *peer_mismatch(const struct verbs_addr *mine, const struct verbs_addr *its)
{
	if (its->link != mine->link)
		return "one of the two NICs is on InfiniBand, the other on Ethernet; use ports of one "
		       "network (device=, port=)";
	if (its->gid_type != mine->gid_type)
		return "the two NICs use different versions of RoCE; choose GIDs of one type (gid=, and "
		       "see ibv_devinfo -v)";
	if (its->gid_type == 1 + IBV_GID_TYPE_ROCE_V2 && is_v4(its->gid) != is_v4(mine->gid))
		return "one of the two NICs has an IPv4 address, the other IPv6; choose GIDs of one kind "
		       "(gid=)";
	if (its->mode != mine->mode && its->mode != VERBS_UD && mine->mode != VERBS_UD)
		return "the two NICs are in different modes, as mode=write is what suits the device; name "
		       "mode=write-rc or mode=write-uc at both";
	if (its->mode != mine->mode)
		return "the two NICs are in different modes; give all the same mode=";
	if (its->mtu != mine->mtu)
		return "the two NICs have different MTUs; make the ports' MTUs equal, or give all the same "
		       "mtu=";
	return NULL;
}

/* Makes a peer and puts it into the table. */
static struct verbs_peer *peer_make(struct verbs_wire *w, const struct verbs_addr *a)
{
	struct ibv_ah_attr path = verbs_path(w, a);
	struct verbs_peer *p = calloc(1, sizeof(*p));
	struct peer_call call = { .w = w, .peer = p };

	if (!p)
		return NULL;
	memcpy(p->addr.byte, a, sizeof(*a));
	p->qpn = a->qpn;
	p->made_at = w->nmade++;
	p->ah = ibv_create_ah(w->pd, &path);
	if (!p->ah) {
		int err = errno;

		free(p);
		errno = err;
		return NULL;
	}
	w->base.call(&w->base, run_insert, &call);
	return p;
}

static void peer_free(struct verbs_peer *p)
{
	if (p->connection)
		verbs_connection_free(p->connection);
	ibv_destroy_ah(p->ah);
	free(p);
}

static void peer_drop(struct verbs_wire *w, struct verbs_peer *p)
{
	struct peer_call call = { .w = w, .peer = p };

	w->base.call(&w->base, run_remove, &call);
	peer_free(p);
}

/* In the modes that write, makes the connection of a peer. */
static int connection_add(struct verbs_wire *w, struct verbs_peer *p, const char **why)
{
	struct peer_call call = { .w = w, .peer = p };

	if (w->self.mode == VERBS_UD || p->connection)
		return 0;
	call.connection = verbs_connection_make(w);
	if (!call.connection) {
		*why = errno == ENOMEM
			       ? "no memory for a queue pair, or too little may be locked; raise "
				 "its process's limit (ulimit -l), or use mode=ud"
			       : "its device has no queue pair left; close groups, or use mode=ud";
		return errno ? -errno : -EIO;
	}
	w->base.call(&w->base, run_add_connection, &call);
	return 0;
}

int verbs_peer_begin(struct wire_base *base, const struct nbnic_addr *addr, const char **why)
{
	struct verbs_wire *w = (struct verbs_wire *)base;
	struct peer_call call = { .w = w, .want = verbs_addr_of(addr) };
	struct verbs_peer *p = verbs_peer_find(w, &call.want);
	int rc;

	*why = w->dead;
	if (*why)
		return -ENETDOWN;
	if (is_self(w, &call.want))
		return 0;
	*why = peer_mismatch(&w->self, &call.want);
	if (*why)
		return -EPROTO;
	if (!p) {
		p = peer_make(w, &call.want);
		*why = "its address cannot be reached from here; try ping, and gid=";
		if (!p)
			return errno ? -errno : -EHOSTUNREACH;
		w->nstranger++;
	} else if (memcmp(&p->addr, addr, sizeof(*addr)) != 0) {
		call.peer = p;
		w->base.call(&w->base, run_rename, &call);
	}
	rc = connection_add(w, p, why);
	if (rc == 0 && p->users++ == 0)
		w->nstranger--;
	return rc;
}

void verbs_peer_end(struct wire_base *base, const struct nbnic_addr *addr)
{
	struct verbs_wire *w = (struct verbs_wire *)base;
	struct verbs_addr a = verbs_addr_of(addr);
	struct verbs_peer *p = is_self(w, &a) ? NULL : verbs_peer_find(w, &a);

	if (p && p->users > 0 && --p->users == 0)
		peer_drop(w, p);
}

/* A stranger (a NIC that is not a peer of any group here, or not yet) has sent a PULL. Makes a
 * peer, so that its next PULL gets an answer. Above VERBS_STRANGERS_MAX, the oldest stranger makes
 * room. */
static void stranger_make(struct verbs_wire *w, const struct verbs_addr *a)
{
	struct verbs_peer *oldest = NULL;

	if (verbs_peer_find(w, a) || is_self(w, a))
		return;
	for (uint32_t i = 0; w->nstranger >= VERBS_STRANGERS_MAX && i < VERBS_BUCKETS; i++)
		for (struct verbs_peer *p = w->bucket[i]; p; p = p->next)
			if (p->users == 0 && (!oldest || p->made_at < oldest->made_at))
				oldest = p;
	if (oldest) {
		w->nstranger--;
		peer_drop(w, oldest);
	}
	if (peer_make(w, a))
		w->nstranger++;
}

static void run_take(void *arg, uint64_t now)
{
	struct peer_call *c = arg;

	(void)now;
	c->want = c->w->want;
	c->wanted = c->w->wanted;
	c->broken = c->w->broken;
	c->w->wanted = false;
	for (c->peer = c->w->connections; c->peer; c->peer = c->peer->next_connection) {
		if (c->peer->connection->state == VERBS_CONNECTION_MAKING &&
		    !c->peer->connection->taken) {
			c->peer->connection->taken = true;
			break;
		}
	}
}

void verbs_serve(struct wire_base *base)
{
	struct verbs_wire *w = (struct verbs_wire *)base;
	struct peer_call call = { .w = w };
	uint64_t n;

	verbs_events(w);
	if (read(w->wake_fd, &n, sizeof(n)) < 0)
		return;
	do {
		w->base.call(&w->base, run_take, &call);
		if (call.broken)
			verbs_repair(w);
		if (call.wanted)
			stranger_make(w, &call.want);
		if (call.peer)
			verbs_connection_connect(w, call.peer);
	} while (call.peer);
}

void verbs_peers_free(struct verbs_wire *w)
{
	for (uint32_t i = 0; i < VERBS_BUCKETS; i++) {
		while (w->bucket[i]) {
			struct verbs_peer *p = w->bucket[i];

			w->bucket[i] = p->next;
			peer_free(p);
		}
	}
}
